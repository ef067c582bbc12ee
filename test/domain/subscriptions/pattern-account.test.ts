// The cost of subscription patterns for one event: which patterns count together, that removed ones leave nothing
// behind, and that no event costs more.

import t from 'tap'
import { eventWorkMax, subscriptionTextLengthMax } from '../../../src/domain/limits.js'
import { EventWork } from '../../../src/domain/queries/pattern.js'
import { Matcher } from '../../../src/domain/subscriptions/matcher.js'
import { PatternAccount } from '../../../src/domain/subscriptions/pattern-account.js'
import type { Subscription } from '../../../src/domain/subscriptions/subscription.js'
import { eventAfter, room } from '../../support/events.js'
import { random } from '../../support/hurtful-patterns.js'
import fc from '../../support/properties.js'
import { subscription } from '../../support/subscriptions.js'

const idOf = (n: number): string => n.toString(16).padStart(24, '0')

const numbered = (n: number, entities: object[], expression?: object, rest: object = {}): Subscription => ({
  ...subscription(
    JSON.stringify({
      subject: { entities, condition: { attrs: [], ...(expression && { expression }) } },
      notification: { http: { url: 'http://h' } },
      ...rest,
    }),
  ),
  id: idOf(n),
})

function workOf(...subscriptions: readonly Subscription[]): number {
  const account = new PatternAccount()
  for (const one of subscriptions) account.add(one)
  return account.work
}

const digits = (n: number): string => `[0-9]x${n}$`
const wild = (n: number): string => `[ab]*a[ab]{${20 + n}}$`

t.test('patterns that are comparisons cost nothing, others the cost of a test of an id', async t => {
  for (const idPattern of ['.*', '^Room', 'Room$', '^urn:(1|2|3)$'])
    t.equal(workOf(numbered(1, [{ idPattern }])), 0, idPattern)
  const usual = workOf(numbered(1, [{ idPattern: '[0-9]+$' }]))
  const hurting = workOf(numbered(1, [{ idPattern: wild(0) }]))
  t.ok(usual > 500 && usual < 600, `${usual}`)
  t.ok(hurting > 6_000 && hurting < 8_000, `${hurting}`)
})

t.test('`~=` costs a look at the longest value', async t => {
  const q = workOf(numbered(1, [{ idPattern: '.*' }], { q: 'name~=[0-9]+$' }))
  t.ok(q > 2 * subscriptionTextLengthMax && q < 2.1 * subscriptionTextLengthMax, `${q}`)
  t.equal(workOf(numbered(1, [{ idPattern: '.*' }], { mq: 'name.unit~=[0-9]+$' })), q)
  t.ok(workOf(numbered(1, [{ idPattern: '.*' }], { q: 'name~=^on$' })) < q / 5)
  t.equal(workOf(numbered(1, [{ idPattern: '.*' }], { q: 'name==on;temperature>20' })), 0)
})

t.test('patterns that no event meets together count apart', async t => {
  const one = workOf(numbered(1, [{ idPattern: digits(1) }]))
  t.equal(workOf(numbered(1, [{ idPattern: digits(1) }]), numbered(2, [{ idPattern: digits(2) }])), 2 * one)
  const typed = [1, 2, 3].map(n => numbered(n, [{ idPattern: digits(n), type: `T${n}` }]))
  t.equal(workOf(...typed), one)
  t.equal(workOf(...typed, numbered(4, [{ idPattern: digits(4) }])), 2 * one)
  const beginning = [1, 2, 3].map(n => numbered(n, [{ idPattern: `^urn:${n}:[0-9]+$` }]))
  t.equal(workOf(...beginning), workOf(beginning[0]!))
  t.equal(workOf(...beginning, numbered(4, [{ idPattern: '^urn:1:[a-z]+$' }])), 2 * workOf(beginning[0]!))
  const expression = (n: number) => ({ q: `name~=[a-c]${n}` })
  const byId = [1, 2, 3].map(n => numbered(n, [{ id: `R${n}` }], expression(n)))
  t.equal(workOf(...byId), workOf(byId[0]!))
  t.equal(
    workOf(numbered(1, [{ id: 'R1' }], expression(1)), numbered(2, [{ id: 'R11' }], expression(2))),
    workOf(byId[0]!),
  )
})

t.test('equal texts count once, as long as a subscription has them', async t => {
  const account = new PatternAccount()
  account.add(numbered(1, [{ idPattern: digits(1) }], { q: 'name~=[a-c]x' }))
  const { work } = account
  account.add(numbered(2, [{ idPattern: digits(1) }], { q: 'name~=[a-c]x' }))
  t.equal(account.work, work)
  account.remove(idOf(1))
  t.equal(account.work, work)
  account.remove(idOf(2))
  t.equal(account.work, 0)
  t.ok(account.isEmpty)
})

t.test('inactive subscriptions cost nothing, and asking changes nothing', async t => {
  const account = new PatternAccount()
  account.add(numbered(1, [{ idPattern: digits(1) }]))
  const { work } = account
  t.same(account.workWith(numbered(2, [{ idPattern: digits(2) }])), { before: work, after: 2 * work })
  t.same(account.workWith(numbered(1, [{ idPattern: '.*' }])), { before: work, after: 0 })
  t.same(account.workWith(numbered(2, [{ idPattern: digits(2) }], undefined, { status: 'inactive' })), {
    before: work,
    after: work,
  })
  t.equal(account.work, work)
  account.add(numbered(1, [{ idPattern: digits(1) }], undefined, { status: 'inactive' }))
  t.equal(account.work, 0)
})

const texts = fc.constantFrom('a', 'ab', 'abc', 'b', 'ba')
const elements = fc.record({
  at: texts.chain(text => fc.constantFrom({ id: text }, { idPattern: `^${text}[0-9]` }, { idPattern: `[0-9]${text}` })),
  type: fc.constantFrom({}, { type: 'T' }, { type: 'U' }, { typePattern: '[TU]$' }),
})
const changes = fc.array(
  fc.record({
    n: fc.integer({ min: 1, max: 6 }),
    elements: fc.array(elements, { maxLength: 2 }),
    q: fc.option(fc.constantFrom('a~=[a-c]x', 'a~=[a-c]y', 'a==1')),
  }),
  { maxLength: 20 },
)

t.test('after any changes the account is that of the remaining subscriptions alone', async t => {
  const holds = fc.property(changes, all => {
    const account = new PatternAccount()
    const left = new Map<number, Subscription>()
    for (const { n, elements, q } of all) {
      if (elements.length === 0) {
        account.remove(idOf(n))
        left.delete(n)
        continue
      }
      const one = numbered(
        n,
        elements.map(({ at, type }) => ({ ...at, ...type })),
        q === null ? undefined : { q },
      )
      account.add(one)
      left.set(n, one)
    }
    return account.work === workOf(...left.values())
  })
  const outcome = fc.check(holds, { numRuns: 500 })
  t.notOk(outcome.failed, `seed ${outcome.seed} ${JSON.stringify(outcome.counterexample)}`)
})

/** Adds subscriptions until one is refused; returns the number of accepted ones. */
function fill(matcher: Matcher, make: (n: number) => Subscription): number {
  const account = new PatternAccount()
  for (let n = 1; ; n++) {
    const one = make(n)
    if (account.workWith(one).after > eventWorkMax) return n - 1
    account.add(one)
    matcher.add(one)
    matcher.prepare(one.id)
  }
}

/** Processor time of one event, the least of several tries, because this thread may be interrupted. */
function timeOf(matcher: Matcher, text: () => string): number {
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < 5; round++) {
    const event = eventAfter(room('{"temperature":20,"name":"x"}'), 'PATCH', `{"name":"${text()}"}`)
    const work = new EventWork()
    work.begin()
    const { user } = process.cpuUsage()
    matcher.touched({ ...event, entity: { ...event.entity, id: random(256) } }, [], work)
    least = Math.min(least, (process.cpuUsage().user - user) / 1000)
    if (work.isExceeded) return Number.NaN
  }
  return least
}

t.test('an event runs all patterns of any accepted subscriptions, in bounded time', async t => {
  const hurting = ['[ab]*a[ab]{20}$', 'a[ab]{12}$', '[ab]{1,200}$', '.{100}a.{100}$', '(a|b)*a(a|b){15}$']
  for (const shape of hurting) {
    const ids = new Matcher()
    const count = fill(ids, n =>
      numbered(n, [{ idPattern: shape.replace('$', `${'b?'.repeat(n % 7)}c{0,${n % 97}}$`) }]),
    )
    const ms = timeOf(ids, () => 'x')
    t.ok(count > 2 && ms < 100, `${count} patterns of ids like ${shape}: ${ms} ms`)
    // A `q` may have no brackets.
    if (shape.includes('(')) continue
    const queries = new Matcher()
    const pattern = (n: number): string => shape.replace('$', `c{0,${n}}$`)
    const queryCount = fill(queries, n => numbered(n, [{ idPattern: '.*' }], { q: `name~=${pattern(n)}` }))
    const queryMs = timeOf(queries, () => random(4_000))
    t.ok(queryCount > 2 && queryMs < 100, `${queryCount} queries like ${shape}: ${queryMs} ms`)
  }
})

t.test('an event stops at the bound, if more was stored before there was one', async t => {
  const matcher = new Matcher()
  for (let n = 1; n <= 1_000; n++)
    matcher.add(numbered(n, [{ idPattern: wild(n % 400).replace('$', `c{0,${n % 7}}$`) }]))
  for (let n = 1; n <= 1_000; n++) matcher.prepare(idOf(n))
  const event = eventAfter(room('{"temperature":20}'), 'PATCH', '{"temperature":21}')
  const hard = { ...event, entity: { ...event.entity, id: random(256) } }
  const work = new EventWork()
  work.begin()
  matcher.touched(hard, [], work)
  t.equal(work.isExceeded, true)
  work.begin()
  t.equal(work.isExceeded, false)
})

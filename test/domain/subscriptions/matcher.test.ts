// The matcher as its user sees it. The comparison with a reference (matcher-model.test.ts) shows that it finds the
// right subscriptions. Here are the cases that a reference cannot show: additions and removals, and the low cost of
// subscriptions that do not match.
import t from 'tap'
import type { Event } from '../../../src/domain/subscriptions/event.js'
import { Matcher } from '../../../src/domain/subscriptions/matcher.js'
import type { Subscription } from '../../../src/domain/subscriptions/subscription.js'
import { matches } from '../../../src/domain/subscriptions/triggering.js'
import { eventAfter, room } from '../../support/events.js'
import { subscription } from '../../support/subscriptions.js'

const idOf = (n: number): string => n.toString(16).padStart(24, '0')

/** A subscription with number n, its subject's element and its condition as JSON. */
const numbered = (n: number, entities: string, condition = '{"attrs":[]}', path = '/#'): Subscription => ({
  ...subscription(
    `{"subject":{"entities":[${entities}],"condition":${condition}},"notification":{"http":{"url":"http://h"}}}`,
    path,
  ),
  id: idOf(n),
})

const everything = '{"idPattern":".*"}'
const warmer = (): Event => eventAfter(room('{"temperature":20,"name":"x"}'), 'PATCH', '{"temperature":21}')

function touched(matcher: Matcher, event: Event): number[] {
  const found: Subscription[] = []
  matcher.touched(event, found)
  return found.map(({ id }) => Number.parseInt(id, 16))
}

t.test('found subscriptions come after those that the caller has, in ascending order of ids', async t => {
  const matcher = new Matcher()
  for (const n of [5, 1, 30, 4]) matcher.add(numbered(n, everything))
  matcher.add(numbered(2, '{"id":"R1"}'))
  matcher.add(numbered(9, '{"idPattern":"^R"}'))
  const before = numbered(99, everything)
  const found = [before]
  matcher.touched(warmer(), found)
  t.strictSame(
    found.map(({ id }) => Number.parseInt(id, 16)),
    [99, 1, 2, 4, 5, 9, 30],
  )
  t.equal(found[0], before)
})

t.test('a subscription is found once, however many of its elements and attributes are meant', async t => {
  const matcher = new Matcher()
  const elements = '{"id":"R1"},{"idPattern":"^R"},{"idPattern":".*"},{"idPattern":"1$","type":"Room"}'
  for (let n = 0; n < 20; n++) matcher.add(numbered(n, elements, '{"attrs":["temperature","name"]}'))
  const both = eventAfter(room('{"temperature":20,"name":"x"}'), 'PATCH', '{"temperature":21,"name":"y"}')
  t.equal(touched(matcher, both).length, 20)
})

t.test('a subscription takes the place of the one with its id', async t => {
  const matcher = new Matcher()
  matcher.add(numbered(1, '{"id":"R2"}'))
  t.strictSame(touched(matcher, warmer()), [])
  matcher.add(numbered(1, '{"id":"R1"}'))
  t.strictSame(touched(matcher, warmer()), [1])
  matcher.add({ ...numbered(1, '{"id":"R1"}'), status: 'inactive' })
  t.strictSame(touched(matcher, warmer()), [])
  t.equal(matcher.size, 0)
})

t.test('a removed subscription is not found, and may be removed again', async t => {
  const matcher = new Matcher()
  for (let n = 0; n < 20; n++) matcher.add(numbered(n, everything))
  matcher.remove(idOf(7))
  matcher.remove(idOf(7))
  matcher.remove(idOf(77))
  t.equal(matcher.size, 19)
  t.notOk(touched(matcher, warmer()).includes(7))
})

t.test('a subscription with very many attributes is found by the last of them', async t => {
  const attrs = [...Array.from({ length: 200 }, (_, n) => `"a${n}"`), '"temperature"']
  const matcher = new Matcher()
  for (let n = 0; n < 20; n++) matcher.add(numbered(n, everything, `{"attrs":[${n === 3 ? attrs : `"a${n}"`}]}`))
  t.strictSame(touched(matcher, warmer()), [3])
  matcher.remove(idOf(3))
  t.strictSame(touched(matcher, warmer()), [])
})

t.test('a query with a very long list is found by the last of its values', async t => {
  const values = [...Array.from({ length: 200 }, (_, n) => n + 1000), 21]
  const matcher = new Matcher()
  const about = (n: number) => `{"expression":{"q":"temperature==${n === 3 ? values : n + 1000}"}}`
  for (let n = 0; n < 20; n++) matcher.add(numbered(n, everything, about(n)))
  t.strictSame(touched(matcher, warmer()), [3])
})

/** Subscriptions by number, hardly any of which matches the event of a room R1 whose temperature becomes 21. */
const mixes: readonly (readonly [why: string, one: (n: number) => Subscription])[] = [
  ['ids', n => numbered(n, `{"id":"S${n}"}`)],
  ['beginnings of ids', n => numbered(n, `{"idPattern":"^S${n}x"}`)],
  ['engines behind beginnings', n => numbered(n, `{"idPattern":"^S${n}x[0-9]+$"}`)],
  ['types', n => numbered(n, `{"idPattern":".*","type":"T${n}"}`)],
  ['attributes', n => numbered(n, everything, `{"attrs":["a${n}"]}`)],
  ['paths', n => numbered(n, everything, '{"attrs":[]}', `/p${n}/#`)],
  [
    'values of an attribute',
    n => numbered(n, '{"idPattern":".*","type":"Room"}', `{"expression":{"q":"name==n${n}"}}`),
  ],
  [
    'lower bounds',
    n => numbered(n, '{"idPattern":".*","type":"Room"}', `{"expression":{"q":"temperature>${n + 100}"}}`),
  ],
  ['upper bounds', n => numbered(n, '{"idPattern":".*","type":"Room"}', `{"expression":{"q":"temperature<${-n}"}}`)],
  ['bounds', n => numbered(n, everything, `{"expression":{"q":"temperature>${n};temperature<${n + 1}"}}`)],
  ['one query', n => numbered(n, everything, '{"expression":{"q":"temperature>100"}}')],
  ['one pattern of ids', n => numbered(n, '{"idPattern":"[S-T][0-9]$"}')],
  ['one pattern of types', n => numbered(n, '{"idPattern":".*","typePattern":"[S-T][0-9]$"}')],
  ['creations', n => numbered(n, everything, '{"alterationTypes":["entityCreate"]}')],
  ['deletions', n => numbered(n, everything, '{"alterationTypes":["entityDelete"]}')],
]

const many = 5000

/** The quickest of several tries: other programs make a try slower, never quicker. */
function leastUs(matcher: Matcher, event: Event): number {
  const times = 100
  let least = Number.POSITIVE_INFINITY
  for (let tries = 10; tries > 0; tries--) {
    const before = performance.now()
    for (let left = times; left > 0; left--) touched(matcher, event)
    least = Math.min(least, ((performance.now() - before) / times) * 1000)
  }
  return least
}

t.test('an event passes by five thousand subscriptions that do not match without asking each', async t => {
  const event = warmer()
  for (const [why, one] of mixes) {
    const all = Array.from({ length: many }, (_, n) => one(n))
    const matcher = new Matcher()
    for (const subscription of all) matcher.add(subscription)
    const wanted = all.filter(subscription => matches(subscription, event))
    t.equal(touched(matcher, event).length, wanted.length, why)
    t.ok(wanted.length < 2, why)
    const us = leastUs(matcher, event)
    // Asking each takes 100 us at 20 ns, and more than that on most machines.
    t.ok(us < 25, `${why}: ${us.toFixed(1)} us`)
    for (const { id } of all) matcher.remove(id)
    t.equal(matcher.size, 0)
    t.strictSame(touched(matcher, event), [])
  }
})

// The oracle of notifications accepts correct notifications, and reports each fault that a broker could make.
//
// There is no broker here: each test makes arrivals from the oracle's own expectations, and then spoils one of them.

import t from 'tap'
import { Random } from '../support/random.js'
import { keyOf } from '../support/reference-entities.js'
import { notificationBody } from '../support/reference-notifications.js'
import { shownEntity } from '../support/reference-query.js'
import { type Arrival, NotificationOracle, type Watch, type Write } from './notification-oracle.js'

const everything: Watch = {
  name: 'all',
  isSteady: true,
  id: 'id',
  fires: 'no',
  plain: {
    id: 'all',
    path: '/#',
    status: 'active',
    throttlingSeconds: 0,
    elements: [{ idPattern: '.*' }],
    attrs: [],
    alterationTypes: ['entityCreate', 'entityUpdate', 'entityDelete'],
    notifyOnMetadataChange: true,
    sentAttrs: [],
    exceptAttrs: [],
    onlyChangedAttrs: false,
  },
}

function oracleWithWatch(): NotificationOracle {
  const oracle = new NotificationOracle(new Random(1))
  const watch = { ...everything }
  oracle.beginWatch(watch)
  oracle.settleWatch(watch, true)
  return oracle
}

/** The notifications that a correct broker would send for a write. */
const arrivalsOf = ({ steps, correlator }: Write): Arrival[] =>
  steps
    .flatMap(({ target, expected }) => expected.map(({ happening }) => ({ path: target.path, happening })))
    .map(({ path, happening }, at) => ({
      watch: 'all',
      correlator: `${correlator}; cbnotif=${at + 1}`,
      notificationId: `${correlator}-${at}`,
      path,
      format: 'normalized',
      body: notificationBody('id', everything.plain, happening),
    }))

/** The next write that changes one entity and triggers one notification of it. */
function nextChange(oracle: NotificationOracle): Write {
  for (;;) {
    const write = oracle.begin(() => true)
    const [step, ...others] = write.steps
    if (others.length === 0 && step!.expected.length === 1 && step!.after !== step!.before) return write
    oracle.acknowledge(write)
    for (const arrival of arrivalsOf(write)) oracle.arrive(arrival)
  }
}

/** The state of each entity if every write has happened. */
const found = ({ reference }: NotificationOracle): Map<string, string> =>
  new Map([...reference.entities].map(entity => [keyOf(entity), shownEntity(entity, { mode: 'normalized' })]))

t.test('an expected notification is right, even if it comes twice', async t => {
  const oracle = oracleWithWatch()
  for (let n = 0; n < 100; n++) {
    const write = oracle.begin(() => true)
    for (const arrival of [...arrivalsOf(write), ...arrivalsOf(write)]) oracle.arrive(arrival)
    oracle.acknowledge(write)
  }
  oracle.settle(found(oracle))
  t.strictSame(oracle.problems, [])
  t.strictSame(oracle.missing(), [])
  t.strictSame(oracle.misnumbered(true), [])
  t.ok(oracle.demanded > 50)
})

t.test('a notification of an acknowledged write is missing until it comes', async t => {
  const oracle = oracleWithWatch()
  const write = nextChange(oracle)
  t.equal(oracle.missing().length, 0, 'nobody was told that it happened')
  oracle.acknowledge(write)
  t.equal(oracle.missing().length, 1)
  for (const arrival of arrivalsOf(write)) oracle.arrive(arrival)
  t.equal(oracle.missing().length, 0)
})

t.test('a write in flight at a kill needs its notification if it is found, else that is too early', async t => {
  for (const isFound of [true, false]) {
    const oracle = oracleWithWatch()
    const before = nextChange(oracle)
    oracle.acknowledge(before)
    for (const arrival of arrivalsOf(before)) oracle.arrive(arrival)
    const then = found(oracle)
    const write = nextChange(oracle)
    const { target, before: was } = write.steps[0]!
    const now = found(oracle)
    const key = keyOf(target)
    if (!isFound && was) now.set(key, then.get(key)!)
    if (!isFound && !was) now.delete(key)
    if (!isFound) oracle.arrive(arrivalsOf(write)[0]!)
    oracle.settle(now)
    t.equal(oracle.missing().length, isFound ? 1 : 0)
    t.match(oracle.problems, isFound ? [] : [/^told before it was durable/])
    t.equal(oracle.problems.length, isFound ? 0 : 1)
  }
})

const spoiled: readonly [fault: string, spoil: (arrival: Arrival) => readonly Arrival[], problem: RegExp][] = [
  ['of no request', one => [{ ...one, correlator: 'none; cbnotif=1' }], /^nothing owes this/],
  ['of another path', one => [{ ...one, path: '/none' }], /^nothing owes this/],
  ['with another body', one => [{ ...one, body: one.body.replace(/\}$/, ' }') }], /^owed is/],
  ['with another id', one => [one, { ...one, notificationId: 'other' }], /^came with another id before/],
  [
    'with another number',
    one => [one, { ...one, correlator: one.correlator.replace(/\d$/, '9') }],
    /^came before with/,
  ],
  ['in another format', one => [{ ...one, format: 'keyValues' }], /^keyValues is not the format/],
]

for (const [fault, spoil, verdict] of spoiled)
  t.test(`a notification that comes ${fault} is reported`, async t => {
    const oracle = oracleWithWatch()
    const write = nextChange(oracle)
    oracle.acknowledge(write)
    for (const arrival of spoil(arrivalsOf(write)[0]!)) oracle.arrive(arrival)
    t.match(oracle.problems, [verdict])
    t.equal(oracle.problems.length, 1)
  })

t.test('an entity with neither the old nor the new values is reported', async t => {
  const oracle = oracleWithWatch()
  const write = nextChange(oracle)
  oracle.settle(new Map([...found(oracle), [keyOf(write.steps[0]!.target), '{}']]))
  t.match(oracle.problems, [/ is \{\}, not /])
})

t.test('two updates in the wrong order are reported', async t => {
  const oracle = oracleWithWatch()
  const byKey = new Map<string, Write>()
  for (;;) {
    const write = nextChange(oracle)
    oracle.acknowledge(write)
    const key = keyOf(write.steps[0]!.target)
    const earlier = byKey.get(key)
    byKey.set(key, write)
    if (!earlier) continue
    for (const arrival of [...arrivalsOf(write), ...arrivalsOf(earlier)]) oracle.arrive(arrival)
    break
  }
  t.match(oracle.problems, [/^came after a later one/])
})

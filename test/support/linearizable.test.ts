// The search for an order of requests: it finds one where there is one, also for histories that were made by chance,
// and none where an answer is impossible.

import t from 'tap'
import {
  type CounterAnswer,
  type CounterCall,
  type CounterState,
  checkLinearizable,
  counterModel,
  type Operation,
} from './linearizable.js'
import { Random } from './random.js'

type Counted = Operation<CounterCall, CounterAnswer>

const initial: CounterState = { n: 0, text: '' }
const model = counterModel(initial)
const read = (n: number, text: string, sentMs: number, answeredMs: number): Counted => ({
  ...{ call: { kind: 'read' }, answer: { n, text }, sentMs, answeredMs },
})
const raise = (sentMs: number, answeredMs = Number.POSITIVE_INFINITY): Counted =>
  change({ kind: 'raise' }, sentMs, answeredMs)
const write = (text: string, sentMs: number, answeredMs = Number.POSITIVE_INFINITY): Counted =>
  change({ kind: 'write', text }, sentMs, answeredMs)

function change(call: CounterCall, sentMs: number, answeredMs: number): Counted {
  return { call, answer: Number.isFinite(answeredMs) ? 'done' : undefined, sentMs, answeredMs }
}

const good: Readonly<Record<string, readonly Counted[]>> = {
  'nothing was asked': [],
  'one after the other': [raise(1, 2), read(1, '', 3, 4), write('x', 5, 6), read(1, 'x', 7, 8)],
  'reads during a change show the state before or after it': [raise(1, 9), read(0, '', 2, 3), read(1, '', 4, 5)],
  'two changes at once, in the order of the reads': [
    write('x', 1, 9),
    write('y', 2, 8),
    read(0, 'x', 3, 4),
    read(0, 'y', 5, 6),
  ],
  'a change without an answer has happened late': [raise(1), read(0, '', 2, 3), read(0, '', 4, 5), read(1, '', 6, 7)],
  'a change without an answer has never happened': [raise(1), read(0, '', 2, 3), raise(4, 5), read(1, '', 6, 7)],
}
for (const [what, operations] of Object.entries(good))
  t.test(`linearizable: ${what}`, async t => {
    t.strictSame(checkLinearizable(model, operations), { kind: 'linearizable' })
  })

const bad: Readonly<Record<string, readonly Counted[]>> = {
  'an acknowledged change is missing': [raise(1, 2), read(0, '', 3, 4)],
  'a change has happened twice': [raise(1, 2), read(2, '', 3, 4)],
  'a read goes back': [raise(1, 9), read(1, '', 2, 3), read(0, '', 4, 5)],
  'a refused text is shown': [read(0, 'x', 1, 2)],
  'two readers see two changes in different orders': [
    write('x', 1, 20),
    write('y', 2, 20),
    ...[read(0, 'x', 3, 4), read(0, 'y', 5, 6), read(0, 'x', 7, 8)],
  ],
  'one change of two is lost': [raise(1, 5), raise(2, 6), read(1, '', 7, 8)],
  'a change without an answer has happened and is gone': [raise(1), read(1, '', 2, 3), read(0, '', 4, 5)],
}
for (const [what, operations] of Object.entries(bad))
  t.test(`not linearizable: ${what}`, async t => {
    const verdict = checkLinearizable(model, operations)
    t.equal(verdict.kind, 'wrong')
    t.ok(verdict.kind === 'wrong' && verdict.stuck.length > 0, 'some answers are named')
  })

const anyRead: CounterCall = { kind: 'read' }

/** A history that several clients may have seen: each request takes effect at some time between its two ends. */
function history(random: Random, count: number, clients: number): Counted[] {
  const freeMs = Array<number>(clients).fill(0)
  const plans = Array.from({ length: count }, (_, number) => {
    const client = random.between(0, clients - 1)
    const sentMs = freeMs[client]! + random.fraction()
    const effectMs = sentMs + random.fraction() * 10
    const answeredMs = effectMs + random.fraction() * 10
    freeMs[client] = answeredMs
    const call = random.pick<CounterCall>([anyRead, anyRead, { kind: 'raise' }, { kind: 'write', text: `t${number}` }])
    return { call, sentMs, effectMs, answeredMs, isAnswered: call.kind === 'read' || random.fraction() < 0.9 }
  })
  let state = initial
  return plans
    .toSorted((a, b) => a.effectMs - b.effectMs)
    .map(({ call, sentMs, answeredMs, isAnswered }) => {
      const isLost = !isAnswered && random.fraction() < 0.5
      if (!isLost) state = model.step(state, call, undefined).after
      if (!isAnswered) return { call, sentMs, answer: undefined, answeredMs: Number.POSITIVE_INFINITY }
      return { call, sentMs, answer: call.kind === 'read' ? state : 'done', answeredMs }
    })
}

t.test('histories that were made in an order have one, and with an older read they have none', async t => {
  const { seed } = Random.fromEnvironment()
  t.comment(`SEED=${seed}`)
  for (let number = 0; number < 20; number++) {
    const operations = history(new Random(seed + number), 40, 3)
    const verdict = checkLinearizable(model, operations)
    if (verdict.kind !== 'linearizable') return t.fail(`SEED=${seed + number}`, { verdict })
    const lastMs = Math.max(
      ...operations.map(({ sentMs, answeredMs }) => (Number.isFinite(answeredMs) ? answeredMs : sentMs)),
    )
    const stale = read(0, 'never written', lastMs + 1, lastMs + 2)
    const other = checkLinearizable(model, [...operations, stale])
    if (other.kind === 'linearizable') return t.fail(`SEED=${seed + number}: a stale read was not noticed`)
  }
  t.pass(`seed ${seed}`)
})

t.test('a search that takes too long is undecided', async t => {
  const operations = [
    ...Array.from({ length: 20 }, (_, number) => write(`t${number}`, 1, 100)),
    read(0, 'never', 101, 102),
  ]
  t.match(checkLinearizable(model, operations, 1_000), { kind: 'undecided' })
})

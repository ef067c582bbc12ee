// Whether the answers about each entity of a simulated cluster fit one order of the requests, without a look at the log
// (support/linearizable.ts). A request without an answer may have taken effect, or not.
//
// So a fault is found as well where log and rows agree with each other, and not with what clients were told: a change
// that found the wrong state, or a level that was forgotten.
//
// The search of one entity is bounded. An entity for which that is not enough counts as undecided.

import { checkLinearizable, type Model, type Operation as TimedCall } from '../support/linearizable.js'
import type { Change, Operation, Seen } from './simulated-operations.js'

/** Steps of the search for one entity. */
const stepsMax = 3000
/** The name of changes that no answer shows. */
const notShown = ''

export interface Linearity {
  readonly wrong: readonly string[]
  readonly decided: number
  readonly undecided: number
}

/** A request about an entity: a change of this operation, or a read. */
interface Call {
  readonly id: string
  readonly change: Change | undefined
}

/** Checks each entity; documents have no changes of this kind. */
export function checkLinearity(operations: readonly Operation[], register: number): Linearity {
  const wrong: string[] = []
  let decided = 0
  const keys = new Set(operations.filter(({ shard }) => shard < register).map(({ key }) => key))
  for (const key of keys) {
    const calls = callsOf(operations.filter(operation => operation.key === key))
    const verdict = checkLinearizable(entityModel, calls, stepsMax)
    if (verdict.kind !== 'undecided') decided++
    if (verdict.kind !== 'wrong') continue
    const stuck = verdict.stuck.map(({ call, answer }) => `${call.id || 'a change'} with ${JSON.stringify(answer)}`)
    wrong.push(`${key}: no order of the requests explains ${stuck.join(', ')}`)
  }
  return { wrong, decided, undecided: keys.size - decided }
}

/** The calls about one entity. All changes that no answer shows have the same name, so equal ones are twins. */
function callsOf(operations: readonly Operation[]): TimedCall<Call, Seen | 'done'>[] {
  const shown = new Set(operations.map(({ seen }) => (seen?.kind === 'value' ? seen.by : undefined)))
  return operations
    .flatMap(callOf)
    .map(one => (shown.has(one.call.id) ? one : { ...one, call: { ...one.call, id: notShown } }))
}

/** None for an operation that had no effect and shows nothing. */
function callOf({ id, kind, change, outcome, seen, askedMs, answeredMs }: Operation): TimedCall<Call, Seen | 'done'>[] {
  const call = { id, change }
  const isChange = kind === 'write' || kind === 'delete'
  if (outcome === undefined)
    return isChange ? [{ call, sentMs: askedMs, answer: undefined, answeredMs: Number.POSITIVE_INFINITY }] : []
  const answer = isChange && outcome === 'done' ? 'done' : seen
  return answer === undefined ? [] : [{ call, sentMs: askedMs, answer, answeredMs }]
}

/** An entity: absent, or a counter, the operation that raised it last, and a register. */
const entityModel: Model<Seen, Call, Seen | 'done'> = {
  initial: { kind: 'absent' },
  step: (state, { id, change }, answer) => {
    if (!change) return { fits: isSeen(state, answer), after: state }
    const refusal = refusalOf(state, change)
    if (refusal) return { fits: answer === undefined || isSeen(refusal, answer), after: state }
    return { fits: answer === undefined || answer === 'done', after: changed(state, id, change) }
  },
  keyOf: state => JSON.stringify(state),
}

/** The answer to a change that the state does not allow; undefined: it allows it. */
function refusalOf(state: Seen, { form }: Change): Seen | undefined {
  if (form === 'create') return state.kind === 'absent' ? undefined : { kind: 'present' }
  return form !== 'append' && state.kind === 'absent' ? state : undefined
}

function changed(state: Seen, by: string, { form, level }: Change): Seen {
  if (form === 'delete') return { kind: 'absent' }
  if (state.kind !== 'value') return { kind: 'value', value: 1, by, level }
  return { kind: 'value', value: state.value + 1, by, level: level ?? state.level }
}

const isSeen = (state: Seen, answer: Seen | 'done' | undefined): boolean =>
  JSON.stringify(state) === JSON.stringify(answer)

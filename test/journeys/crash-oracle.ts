// What a broker that was killed must still know.
//
// The oracle follows every entity through the answers of the broker. An entity has one writer, and a writer has one
// request under way, so what may be found after a crash is exact: the state of the last acknowledged write, or that of
// the one that was under way. Nothing else, in particular no entity that nobody made.
//
// A writer's requests are invented here too, so that what is asked and what is expected stand side by side. Every write
// names all attributes it leaves behind; only `$inc` depends on the broker's own memory, and the oracle adds along.
//
// Not here: HTTP and processes (crash.test.ts).

import { isDeepStrictEqual } from 'node:util'
import type { Random } from '../support/random.js'

/** An entity as the oracle knows it; undefined when it does not exist. */
export type State = { readonly type: string; readonly text: string; readonly n: number } | undefined

/** A request, what it answers, and what it makes of each entity it touches. */
export interface Write {
  readonly method: string
  readonly path: string
  readonly body?: unknown
  readonly status: number
  readonly after: ReadonlyMap<string, State>
}

export class Oracle {
  readonly #acknowledged = new Map<string, State>()
  readonly #underWay = new Map<string, State>()

  /** The state of the last acknowledged write. */
  state(id: string): State {
    return this.#acknowledged.get(id)
  }

  begin(write: Write): void {
    for (const [id, after] of write.after) this.#underWay.set(id, after)
  }

  acknowledge(write: Write): void {
    for (const [id, after] of write.after) {
      this.#underWay.delete(id)
      this.#acknowledged.set(id, after)
    }
  }

  /**
   * What is wrong with finding `found` under this id after a crash, if anything. From then on, what was found is what
   * is known.
   */
  settle(id: string, found: State): string | undefined {
    const known = this.#acknowledged.get(id)
    const possible = this.#underWay.has(id) ? [known, this.#underWay.get(id)] : [known]
    this.#underWay.delete(id)
    this.#acknowledged.set(id, found)
    if (possible.some(state => isDeepStrictEqual(state, found))) return undefined
    return `${id}: ${show(found)} found, ${possible.map(show).join(' or ')} expected`
  }

  /** The ids that exist, as far as acknowledged; of one type when given. */
  ids(type?: string): string[] {
    return [...this.#acknowledged]
      .flatMap(([id, state]) => (state && (!type || state.type === type) ? [id] : []))
      .sort()
  }
}

export const types = ['Lamp', 'Meter', 'Valve'] as const

/**
 * The next thing a writer does to its entities: mostly updates, with enough deletes that ids come back as another type.
 */
export function nextWrite(
  oracle: Pick<Oracle, 'state'>,
  ids: readonly string[],
  random: Random,
  batches: boolean,
): Write {
  const id = ids[random.between(0, ids.length - 1)] ?? ''
  const before = oracle.state(id)
  const fresh: State = {
    type: before?.type ?? random.pick(types),
    text: `t${random.between(0, 1e9)}`,
    n: random.between(0, 99),
  }
  const chance = random.fraction()
  if (batches && chance < 0.1) return batch(oracle, ids, random)
  if (!before) return chance < 0.5 ? create(id, fresh) : upsert(id, fresh)
  if (chance < 0.45) return increment(id, before)
  if (chance < 0.7) return patch(id, { ...before, text: fresh.text })
  if (chance < 0.8) return replace(id, fresh)
  if (chance < 0.9) return upsert(id, fresh)
  return remove(id, before)
}

function create(id: string, after: NonNullable<State>): Write {
  return { method: 'POST', path: '/v2/entities', body: whole(id, after), status: 201, after: new Map([[id, after]]) }
}

function upsert(id: string, after: NonNullable<State>): Write {
  return { ...create(id, after), path: '/v2/entities?options=upsert', status: 204 }
}

function patch(id: string, after: NonNullable<State>): Write {
  const body = { text: { type: 'Text', value: after.text } }
  return { method: 'PATCH', path: at(id, after, '/attrs'), body, status: 204, after: new Map([[id, after]]) }
}

function increment(id: string, before: NonNullable<State>): Write {
  const body = { n: { type: 'Number', value: { $inc: 1 } } }
  const after = { ...before, n: before.n + 1 }
  return { method: 'PATCH', path: at(id, before, '/attrs'), body, status: 204, after: new Map([[id, after]]) }
}

function replace(id: string, after: NonNullable<State>): Write {
  return {
    method: 'PUT',
    path: at(id, after, '/attrs'),
    body: attributes(after),
    status: 204,
    after: new Map([[id, after]]),
  }
}

function remove(id: string, before: NonNullable<State>): Write {
  return { method: 'DELETE', path: at(id, before), status: 204, after: new Map([[id, undefined]]) }
}

/**
 * Some of the writer's entities at once. Each of them may or may not have been written when the batch was under way.
 */
function batch(oracle: Pick<Oracle, 'state'>, ids: readonly string[], random: Random): Write {
  const after = new Map<string, NonNullable<State>>()
  const some = ids.filter(() => random.fraction() < 0.5)
  for (const id of some.length > 0 ? some : ids.slice(0, 1)) {
    const type = oracle.state(id)?.type ?? random.pick(types)
    after.set(id, { type, text: `b${random.between(0, 1e9)}`, n: random.between(0, 99) })
  }
  const body = { actionType: 'append', entities: [...after].map(([id, state]) => whole(id, state)) }
  return { method: 'POST', path: '/v2/op/update', body, status: 204, after }
}

function attributes(state: NonNullable<State>): Record<string, unknown> {
  return { text: { type: 'Text', value: state.text }, n: { type: 'Number', value: state.n } }
}

function whole(id: string, state: NonNullable<State>): Record<string, unknown> {
  return { id, type: state.type, ...attributes(state) }
}

/** PATCH, PUT and DELETE name the type, so that they never meet an entity of another one. */
function at(id: string, { type }: NonNullable<State>, below = ''): string {
  return `/v2/entities/${encodeURIComponent(id)}${below}?type=${type}`
}

function show(state: State): string {
  return state ? JSON.stringify(state) : 'no entity'
}

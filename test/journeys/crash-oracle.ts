// The data that a broker must still have after a kill.
//
// The oracle follows every entity through the answers of the broker. An entity has one writer, and a writer has one
// request in flight. So the possible states after a crash are exact: that of the last acknowledged write, or that of
// the write in flight. Nothing else may exist, in particular no entity that no client created.
//
// The oracle also draws the requests of a writer, so that a request and its expected result are in one place. Every
// write names all attributes that the entity then has. Only `$inc` depends on the broker's own data, and the oracle
// adds along.
//
// Not here: HTTP and processes (crash.test.ts).

import { isDeepStrictEqual } from 'node:util'
import type { Random } from '../support/random.js'

/** An entity as the oracle knows it; undefined if it does not exist. */
export type State = { readonly type: string; readonly text: string; readonly n: number } | undefined

/** A request, its expected status, and the state of each affected entity after it. */
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

  /** Takes `found` as the state of this id after a crash, and returns the fault if that state is not possible. */
  settle(id: string, found: State): string | undefined {
    const known = this.#acknowledged.get(id)
    const possible = this.#underWay.has(id) ? [known, this.#underWay.get(id)] : [known]
    this.#underWay.delete(id)
    this.#acknowledged.set(id, found)
    if (possible.some(state => isDeepStrictEqual(state, found))) return undefined
    return `${id}: ${show(found)} found, ${possible.map(show).join(' or ')} expected`
  }

  /** The ids that exist by acknowledged writes; with `type`, those of that type. */
  ids(type?: string): string[] {
    return [...this.#acknowledged]
      .flatMap(([id, state]) => (state && (!type || state.type === type) ? [id] : []))
      .sort()
  }
}

export const types = ['Lamp', 'Meter', 'Valve'] as const

/**
 * Draws the next write of a writer to its entities: mostly updates, with enough deletions that ids come back as another
 * type.
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
 * Writes some of the writer's entities at once. If the batch was in flight at a kill, each of them may or may not be
 * written.
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

/** PATCH, PUT and DELETE name the type, so that they never affect an entity of another type. */
function at(id: string, { type }: NonNullable<State>, below = ''): string {
  return `/v2/entities/${encodeURIComponent(id)}${below}?type=${type}`
}

function show(state: State): string {
  return state ? JSON.stringify(state) : 'no entity'
}

// All states of every entity, as its writer knows them, and the states that a read may therefore show.
//
// An entity has one writer with one request in flight, and the writer knows the result of each. So the states are in a
// line. A read that begins now shows the last acknowledged state or a later one, and none older than an earlier read
// has shown. A write of unknown outcome may be visible or not, until a read that begins when the write cannot happen
// any more.
//
// States of an entity differ in their content; only "no entity" may occur several times.

import { isDeepStrictEqual } from 'node:util'
import type { State, Write } from './crash-oracle.js'

/** Events of an entity that are kept for reports. */
const eventsMax = 30

/** A state that never existed: its write has not happened and will not. */
const never = Symbol('never')

interface History {
  /** In the order of the writes. */
  readonly states: (State | typeof never)[]
  /** Index of the earliest state that a read may still show. */
  first: number
  readonly events: string[]
}

export class Histories {
  private readonly all = new Map<string, History>()
  private readonly beganMs = performance.now()

  /** The state after all writes that have happened; during a write, the state before it. */
  state(id: string): State {
    const { states, first } = this.of(id)
    const state = states[first]
    return state === never ? undefined : state
  }

  /** The ids that exist. */
  ids(): string[] {
    return [...this.all.keys()].filter(id => this.state(id) !== undefined).sort()
  }

  /** Records a write that is sent for the first time. */
  begin(write: Write): void {
    for (const [id, after] of write.after) {
      this.of(id).states.push(after)
      this.note(id, `${write.method} ${write.path} makes ${show(after)}`)
    }
  }

  acknowledge(write: Write): void {
    for (const id of write.after.keys()) {
      const history = this.of(id)
      history.first = history.states.length - 1
      this.note(id, 'acknowledged')
    }
  }

  /** The first state that a read that begins now may show, as an argument for `see`. */
  seen(id: string): number {
    return this.of(id).first
  }

  /**
   * Records a state that was read, and returns the fault if that state is not possible. `since` is the result of `seen`
   * at the beginning of the read.
   */
  see(id: string, found: State, since: number): string | undefined {
    const history = this.of(id)
    for (let at = since; at < history.states.length; at++) {
      if (!isDeepStrictEqual(history.states[at], found)) continue
      history.first = Math.max(history.first, at)
      return undefined
    }
    const possible = history.states.slice(since).map(state => (state === never ? 'one that never was' : show(state)))
    const known = history.states.findIndex(state => isDeepStrictEqual(state, found))
    const sort = known >= 0 ? `${since - known} states too old` : 'nobody has written that'
    return `${id}: ${show(found)} was read, ${sort}; possible: ${possible.join(' or ')}\n${this.story(id)}`
  }

  /** Whether the entity has had, has, or may get this state. */
  has(id: string, state: State): boolean {
    return this.of(id).states.some(one => isDeepStrictEqual(one, state))
  }

  /** Decides whether the last write of an entity has happened: a read has shown the state after or before it. */
  settle(id: string): void {
    const history = this.of(id)
    const last = history.states.length - 1
    if (history.first < last) history.states[last] = never
    this.note(id, history.first < last ? 'has not happened' : 'has happened')
  }

  /** Records an event of an entity, for reports. */
  note(id: string, event: string): void {
    const { events } = this.of(id)
    events.push(`  ${((performance.now() - this.beganMs) / 1000).toFixed(3)} s ${event}`)
    if (events.length > eventsMax) events.shift()
  }

  /** The latest events of an entity. */
  story(id: string): string {
    return this.of(id).events.join('\n')
  }

  private of(id: string): History {
    let history = this.all.get(id)
    if (!history) {
      history = { states: [undefined], first: 0, events: [] }
      this.all.set(id, history)
    }
    return history
  }
}

/** An entity as the broker shows it. */
export interface Entity {
  readonly id: string
  readonly type: string
  readonly text?: { readonly value: string }
  readonly n?: { readonly value: number }
}

export const stateFrom = ({ type, text, n }: Entity): NonNullable<State> => ({
  type,
  text: text?.value ?? '(no text)',
  n: n?.value ?? Number.NaN,
})

const show = (state: State): string => (state ? JSON.stringify(state) : 'no entity')

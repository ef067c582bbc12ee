// What every entity has been, as those who write it know, and what a read of it may show therefore.
//
// An entity has one writer, which has one request under way and knows what each makes of it. So its states stand in one
// line, and a read that is asked for now shows the last one that was acknowledged, or a later one; and none from before
// what an earlier read has shown. A write of which nobody knows what became may be seen or not, until a read that was
// asked for when it could not happen any more has told.
//
// States of an entity are told apart by what is in them; only that there is none may be so several times.

import { isDeepStrictEqual } from 'node:util'
import type { State, Write } from './crash-oracle.js'

/** Events of an entity that are kept for people. */
const eventsMax = 30

/** A state that never was: its write has not happened and will not. */
const never = Symbol('never')

interface History {
  /** In the order of the writes. */
  readonly states: (State | typeof never)[]
  /** The earliest one that may still be seen. */
  first: number
  readonly events: string[]
}

export class Histories {
  private readonly all = new Map<string, History>()
  private readonly beganMs = performance.now()

  /** The state after all that has happened; while a write is under way, before it. */
  state(id: string): State {
    const { states, first } = this.of(id)
    const state = states[first]
    return state === never ? undefined : state
  }

  /** The ids that exist. */
  ids(): string[] {
    return [...this.all.keys()].filter(id => this.state(id) !== undefined).sort()
  }

  /** A write is sent for the first time. */
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

  /** Which states a read that is asked for now may show: to be given to `see`. */
  seen(id: string): number {
    return this.of(id).first
  }

  /**
   * What is wrong with having read a state, if anything; `since` is what `seen` has said when the read was asked for.
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

  /** Whether an entity has been, is, or may become this. */
  has(id: string, state: State): boolean {
    return this.of(id).states.some(one => isDeepStrictEqual(one, state))
  }

  /**
   * The last write of an entity is known to have happened or not, for a read has shown the state after or before it.
   */
  settle(id: string): void {
    const history = this.of(id)
    const last = history.states.length - 1
    if (history.first < last) history.states[last] = never
    this.note(id, history.first < last ? 'has not happened' : 'has happened')
  }

  /** Notes what happens to an entity, for people. */
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

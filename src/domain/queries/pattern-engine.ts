// The engine of one regular expression (re2js), and the cost of a test.
//
// Its automaton looks each character up in a table, and adds states to the table when a text needs them. A pattern can
// have more states than memory (`[ab]*a[ab]{30}$` has 2^30). Then the engine builds states all the time: 2 to 10 ms for
// 256 characters. Without an automaton a test costs at most its steps times the characters, at 5 to 15 ns.
//
// So the engine stops using an automaton for good when its memory is full. `explore` builds all states in advance,
// which shows whether they fit. Only then a test certainly costs one table lookup for each character, and a
// subscription is charged for that (pattern-account.ts).
//
// Not here: the limits of patterns (pattern.ts), patterns that need no engine (plain-pattern.ts).

import { RE2JS, RE2JSException } from 're2js'
import { automatonBytesMax, explorationMax } from '../limits.js'

/** The remaining budget of automaton states. Many patterns that are explored in one turn share it. */
export class Exploration {
  constructor(public left: number) {}
}

/** A state of the automaton: the positions in the program at which it may be. */
interface State {
  readonly nfaStates: { readonly length: number }
}

/** The internal part of re2js that is used here. pattern-engine.test.ts fails when an update renames it. */
export interface EngineInside {
  readonly re2Input: {
    /** Not null: without an automaton, the pattern is tested with one lookup for each character. */
    readonly onepass: object | null
    readonly dfa: Automaton
  }
}

export interface Automaton {
  stateBudget: number
  memBudget: number
  /** Whether the engine continues without it. */
  failed: boolean
  /** The beginnings of the classes of characters, except the first class, which begins with 0. */
  readonly classBounds: Int32Array
  readonly numClasses: number
  readonly startStates: ReadonlyMap<number, State>
  step(state: State, characterClass: number, character: number, anchor: number): State | null
  /** Empties the memory when it is full. */
  resetCache(state: State): State | null
  clearCache(): void
}

const unanchored = 0
const endOfText = -1

/** Creates the engine of an expression; undefined when the expression is not valid. */
export function engineOf(source: string, steps: number): PatternEngine | undefined {
  try {
    return new PatternEngine(RE2JS.compile(source, RE2JS.DOTALL | RE2JS.DISABLE_UNICODE_GROUPS), steps)
  } catch (error) {
    if (error instanceof RE2JSException) return undefined
    throw error
  }
}

export class PatternEngine {
  private isBounded = false
  /** Whether all states of its automaton exist; undefined: not tried yet. */
  private isExplored: boolean | undefined

  constructor(
    private readonly engine: RE2JS,
    private readonly steps: number,
  ) {}

  /** The cost of a test for each character, in steps; before `explore` the usual cost. */
  get cost(): number {
    // A lookup takes 10 ns, and 40 when the tables are not in the processor's cache. A pattern may begin with a search
    // for a text, whose cost is a little of the length (plain-pattern.ts).
    return this.isExplored === false ? this.steps + 2 : 2 + this.steps / 100
  }

  test(text: string): boolean {
    if (!this.isBounded) this.bound()
    return this.engine.test(text)
  }

  /** Builds all states of the automaton. If the allowance is too small, the pattern has no automaton. */
  explore(allowance: Exploration): void {
    if (this.isExplored !== undefined) return
    const { onepass } = (this.engine as unknown as EngineInside).re2Input
    if (onepass) {
      this.isExplored = true
      return
    }
    const automaton = this.bound()
    this.isExplored = !automaton.failed && makeStates(this.engine, automaton, allowance)
    if (this.isExplored) return
    automaton.failed = true
    automaton.clearCache()
  }

  /** Limits the automaton's memory. A pattern that is never tested does not pay for that. */
  private bound(): Automaton {
    const { dfa } = (this.engine as unknown as EngineInside).re2Input
    if (this.isBounded) return dfa
    this.isBounded = true
    dfa.stateBudget = automatonBytesMax
    dfa.memBudget = automatonBytesMax
    dfa.resetCache = () => {
      dfa.failed = true
      dfa.clearCache()
      this.isExplored = false
      return null
    }
    return dfa
  }
}

/** Builds all states that any text can reach. False: the allowance or the memory was too small. */
function makeStates(engine: RE2JS, automaton: Automaton, allowance: Exploration): boolean {
  // The engine builds the first state for any text; this call cannot be answered without it.
  engine.testExact('')
  const waiting = [...automaton.startStates.values()]
  const known = new Set(waiting)
  let left = Math.min(allowance.left, explorationMax)
  allowance.left -= left
  while (waiting.length > 0) {
    const state = waiting.pop() as State
    for (let at = 0; at <= automaton.numClasses; at++) {
      const isEnd = at === automaton.numClasses
      const character = isEnd ? endOfText : at === 0 ? 0 : (automaton.classBounds[at - 1] as number)
      const next = automaton.step(state, at, character, unanchored)
      left -= 1 + (next?.nfaStates.length ?? 0)
      if (!next || left < 0) return false
      if (isEnd || known.has(next)) continue
      known.add(next)
      waiting.push(next)
    }
  }
  allowance.left += left
  return true
}

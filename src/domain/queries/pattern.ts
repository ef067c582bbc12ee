// Regular expressions of clients: `~=` in queries, `idPattern`, `typePattern` (docs/interface/queries.md#operators).
//
// They run on re2js, whose time is linear in the text; the engine of JavaScript needs seconds for `^(a+)+$` and 28
// characters. Syntax and meaning are those of POSIX extended expressions as far as RE2 agrees: no look-around, no
// flags, no `\p`; the dot matches line breaks. The additions of RE2 to POSIX (`\d`, `\b`, `(?:`) are accepted.
//
// Linear time still has a factor, the steps of the pattern. They are counted in its text, with repetitions written out,
// before it is compiled: `a{0,1000}` a hundred times would take half a second. Steps times characters is limited: a
// text that is too long for its pattern does not match (limits.ts).
//
// Not here: patterns that need no engine, which are most (plain-pattern.ts), the test by an engine (pattern-engine.ts).

import {
  eventWorkMax,
  patternDepthMax,
  patternLengthMax,
  patternStepsMax,
  patternsKeptMax,
  patternWorkMax,
} from '../limits.js'
import { type Exploration, engineOf } from './pattern-engine.js'
import { literalAt, plainTest } from './plain-pattern.js'

/** A compiled regular expression. Immutable to its users. */
export interface Pattern {
  readonly source: string
  /**
   * The highest cost of a test for each character of the text; 0 when its length does not matter. At most
   * `patternStepsMax`.
   */
  readonly steps: number
  /** The expected cost of a test for each character, in steps. It is certain after `explore`. */
  readonly cost: number
  /** Determines the cost of the pattern, once. This takes up to a millisecond of the allowance. */
  explore(allowance: Exploration): void
  /**
   * Whether the expression matches some part of the text: not anchored, case sensitive
   * (docs/interface/queries.md#operators). False for a text that is too long (`patternWorkMax`).
   */
  test(text: string): boolean
}

/**
 * Compiles a pattern; undefined when it is not a valid expression, or exceeds limits.ts
 * (docs/interface/queries.md#operators).
 */
export function compilePattern(text: string): Pattern | undefined {
  const known = kept.get(text)
  if (known) return known
  const pattern = compile(text)
  if (!pattern) return undefined
  // All are forgotten at once: they are cheap to compile again, and an LRU order would cost every hit.
  if (kept.size >= patternsKeptMax) kept.clear()
  kept.set(text, pattern)
  return pattern
}

/**
 * A cache: requests, pages and subscriptions repeat their patterns. One object for all of them also shares its
 * automaton.
 */
const kept = new Map<string, Pattern>()

/** A prefix of every text that the pattern matches; '' when none is known. For scans over sorted names. */
export function literalPrefix({ source }: Pick<Pattern, 'source'>): string {
  if (!source.startsWith('^') || measure(source)?.alternates !== false) return ''
  return literalAt(source, 1).text
}

/** The characters of text that patterns with this many steps may test together. */
export const charactersMax = (steps: number): number => patternWorkMax / steps

function compile(source: string): Pattern | undefined {
  if (source.length > patternLengthMax) return undefined
  const plain = plainTest(source)
  if (plain) return new LimitedPattern(source, plain.steps, plain)
  const measured = measure(source)
  if (!measured) return undefined
  const engine = engineOf(source, measured.steps)
  return engine && new LimitedPattern(source, measured.steps, engine)
}

interface Test {
  /** undefined: the same as its steps. */
  readonly cost?: number
  test(text: string): boolean
  explore?(allowance: Exploration): void
}

class LimitedPattern implements Pattern {
  private readonly lengthMax: number

  constructor(
    readonly source: string,
    readonly steps: number,
    private readonly inner: Test,
  ) {
    this.lengthMax = charactersMax(steps)
  }

  get cost(): number {
    return this.inner.cost ?? this.steps
  }

  explore(allowance: Exploration): void {
    this.inner.explore?.(allowance)
  }

  test(text: string): boolean {
    return text.length <= this.lengthMax && this.inner.test(text)
  }
}

const repetition = /\{(\d+)(?:,(\d*))?\}/y

interface Measured {
  readonly steps: number
  /** Whether it has alternatives outside of any group. */
  readonly alternates: boolean
}

/**
 * Scans a pattern without a full parse. It counts at least the steps of the compiled program. Undefined when the
 * pattern is too large or uses syntax outside of POSIX expressions.
 */
function measure(source: string): Measured | undefined {
  let alternates = false
  /** Steps of the current group, and of its last item; the stack has those of the groups around it. */
  let steps = 0
  let last = 0
  const around: number[] = []
  const lastName = source.lastIndexOf(':]')
  for (let at = 0; at < source.length; at++) {
    switch (source[at]) {
      case '(':
        if (source[at + 1] === '?') {
          if (source[at + 2] !== ':') return undefined
          at += 2
        }
        if (around.length === patternDepthMax) return undefined
        around.push(steps)
        steps = 0
        last = 0
        break
      case ')':
        last = steps + 2
        steps = (around.pop() ?? 0) + last
        break
      case '|':
        if (around.length === 0) alternates = true
        steps++
        break
      case '*':
      case '+':
      case '?':
        last++
        steps++
        break
      case '{': {
        repetition.lastIndex = at
        const found = repetition.exec(source)
        if (found) {
          const least = Number(found[1])
          const most = found[2] === undefined ? least : found[2] === '' ? least + 1 : Number(found[2])
          const times = Math.max(most * (most > least ? 2 : 1), 1)
          steps += last * (times - 1)
          last *= times
          at = repetition.lastIndex - 1
          break
        }
        last = 1
        steps++
        break
      }
      default: {
        const end = endOfItem(source, at, lastName)
        if (end < 0) return undefined
        // A class of many ranges takes longer to search, and very much longer when the alphabet is divided by it.
        last = 1 + Math.floor((end - at) / classCharactersPerStep)
        steps += last
        at = end
      }
    }
    if (steps > patternStepsMax) return undefined
  }
  return { steps, alternates }
}

const classCharactersPerStep = 16

/**
 * The end of the item that begins at `at`: a class, an escape or one character. Negative for `\Q`, which quotes the
 * rest, and for a class without end: the compiler takes long for `[:[:[:`.
 */
function endOfItem(source: string, at: number, lastName: number): number {
  if (source[at] === '\\') {
    if (source[at + 1] === 'Q') return -1
    if (source[at + 1] !== 'x' || source[at + 2] !== '{') return at + 1
    const end = source.indexOf('}', at)
    return end < 0 ? source.length : end
  }
  if (source[at] !== '[') return at
  let end = at + 1
  if (source[end] === '^') end++
  // A bracket in the first position is an ordinary character.
  if (source[end] === ']') end++
  while (end < source.length && source[end] !== ']') {
    if (source[end] === '\\') end++
    else if (source[end] === '[' && source[end + 1] === ':' && end + 2 <= lastName)
      end = source.indexOf(':]', end + 2) + 1
    end++
  }
  return end < source.length ? end : -1
}

// The limit of pattern work for one event: steps times characters, which does not depend on the speed of the machine.
//
// A tenant's subscriptions are bounded when they are created (pattern-account.ts). Subscriptions that were stored
// before this bound existed may exceed it. Then an event runs patterns until its work is used up; the others do not
// match.

/** The fixed cost of a test, however short the text. */
export const charactersPerTest = 10

/** The least cost of a character for values in an array, which may have many texts: a comparison of each. */
const comparisonCost = 0.1

/** The cost of one test of the pattern on a text of this length. */
export const testWork = (pattern: Pattern, length: number): number => pattern.cost * (length + charactersPerTest)

/** The same for attribute values, of which an array has many. */
export const valueWork = ({ cost }: Pattern, length: number): number =>
  Math.max(cost, comparisonCost) * (length + charactersPerTest)

/** The remaining work of an event. One object for all events of a process: they are handled one after the other. */
export class EventWork {
  private left = eventWorkMax
  /** Whether a test was skipped. */
  isExceeded = false

  /** Starts the next event. */
  begin(): void {
    this.left = eventWorkMax
    this.isExceeded = false
  }

  /** Whether a test with this cost may be made. */
  spend(work: number): boolean {
    if (work > this.left) {
      this.isExceeded = true
      return false
    }
    this.left -= work
    return true
  }
}

// Regular expressions of clients: `~=` in queries, `idPattern`, `typePattern` (docs/interface/queries.md#operators).
//
// They run on re2js, whose time is linear in the text; the engine of the language needs seconds for `^(a+)+$` and 28
// characters. Syntax and meaning are those of POSIX extended expressions as far as RE2 agrees: no look-around, no
// flags, no `\p`; the dot matches line breaks. What RE2 adds to POSIX (`\d`, `\b`, `(?:`) is accepted.
//
// Linear time still has a factor, the steps of the pattern. They are counted in its text, with repetitions written out,
// before it is compiled: `a{0,1000}` a hundred times would take half a second. Steps times characters is limited: a
// text that is too long for its pattern does not match (limits.ts).
//
// Not here: patterns that need no engine, which are most (plain-pattern.ts), how the engine tests a text
// (pattern-engine.ts).

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

/** A regular expression that is ready for use. Immutable as far as anybody can tell. */
export interface Pattern {
  readonly source: string
  /** What a test costs for each character of the text; 0 when its length does not matter. At most `patternStepsMax`. */
  readonly steps: number
  /** What a test really costs for each character, in steps, as far as it is known: for certain after `explore`. */
  readonly cost: number
  /** Finds out what the pattern costs, which takes up to a millisecond of the allowance, once. */
  explore(allowance: Exploration): void
  /**
   * Whether the expression matches some part of the text: not anchored, case sensitive
   * (docs/interface/queries.md#operators). False for a text that is too long (`patternWorkMax`).
   */
  test(text: string): boolean
}

/**
 * The pattern of a text; undefined when it is no valid expression, or a larger one than limits.ts allows
 * (docs/interface/queries.md#operators).
 */
export function compilePattern(text: string): Pattern | undefined {
  const known = kept.get(text)
  if (known) return known
  const pattern = compile(text)
  if (!pattern) return undefined
  // Forgotten all at once: they are cheap to compile again, and an order of use would cost every hit.
  if (kept.size >= patternsKeptMax) kept.clear()
  kept.set(text, pattern)
  return pattern
}

/** Requests, pages and subscriptions repeat their patterns; one object for all of them also shares its automaton. */
const kept = new Map<string, Pattern>()

/** A beginning that every text has which the pattern matches; '' when none is known. For scans over sorted names. */
export function literalPrefix({ source }: Pick<Pattern, 'source'>): string {
  if (!source.startsWith('^') || measure(source)?.alternates !== false) return ''
  return literalAt(source, 1).text
}

/** Characters of text in which patterns of so many steps may look together. */
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
  /** undefined: that of its steps. */
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
  /** Whether it has alternatives outside of all groups. */
  readonly alternates: boolean
}

/**
 * Walks over a pattern without understanding all of it. It counts the steps of the compiled program or more. Undefined
 * when the pattern is too large or uses what no POSIX expression has.
 */
function measure(source: string): Measured | undefined {
  let alternates = false
  /** Steps of the group we are in, and of the last item in it; the stack holds the groups around it. */
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
        // A class of many ranges takes longer to look into, and very much longer to divide the alphabet by.
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
 * Where the item ends that begins at `at`: a class, an escape or one character. Negative for `\Q`, which quotes the
 * rest, and for a class without end: the compiler takes long over `[:[:[:`.
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
  // A bracket that comes first stands for itself.
  if (source[end] === ']') end++
  while (end < source.length && source[end] !== ']') {
    if (source[end] === '\\') end++
    else if (source[end] === '[' && source[end + 1] === ':' && end + 2 <= lastName)
      end = source.indexOf(':]', end + 2) + 1
    end++
  }
  return end < source.length ? end : -1
}

// What patterns may cost for one event: steps times characters, so that it does not depend on the speed of the machine.
//
// A tenant's subscriptions are bounded when they are created (pattern-account.ts). Those that were stored before there
// was a bound may exceed it. Then an event runs patterns until its work is used up; the others do not match.

/** A test costs something, however short the text. */
export const charactersPerTest = 10

/** The least cost of a character where there may be many texts, in an array: a comparison of each. */
const comparisonCost = 0.1

/** What it costs to test the pattern once on a text of this length. */
export const testWork = (pattern: Pattern, length: number): number => pattern.cost * (length + charactersPerTest)

/** The same of a test of attribute values, of which an array has many. */
export const valueWork = ({ cost }: Pattern, length: number): number =>
  Math.max(cost, comparisonCost) * (length + charactersPerTest)

/** What an event may still cost. One for all events of a process: no two are on their way together. */
export class EventWork {
  private left = eventWorkMax
  /** Whether a test was left out. */
  isExceeded = false

  /** Another event begins. */
  begin(): void {
    this.left = eventWorkMax
    this.isExceeded = false
  }

  /** Whether a test may be made that costs so much. */
  spend(work: number): boolean {
    if (work > this.left) {
      this.isExceeded = true
      return false
    }
    this.left -= work
    return true
  }
}

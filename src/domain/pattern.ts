// Regular expressions of clients: `~=` in queries, `idPattern`, `typePattern` (entities.md §7.4).
//
// The pattern comes from a client, so it runs on re2js, whose time is linear in the text; the engine of the language needs
// seconds for `^(a+)+$` and 28 characters. Syntax and meaning are those of POSIX extended expressions as far as RE2 agrees: no
// look-around, no flags, no `\p`; the dot matches line breaks too. What RE2 has beyond POSIX (`\d`, `\b`, `(?:`) is taken.
//
// The linear time still has a factor, the steps of the compiled program, so they are limited (limits.ts), and a text is measured
// before it is compiled: `a{0,1000}` a hundred times is 900 characters and half a second.
//
// Most patterns in use are plain texts with or without anchors. They become comparisons and never reach the engine.

import { RE2JS, RE2JSException } from 're2js'
import {
  patternDepthMax,
  patternLengthMax,
  patternStatesBytesMax,
  patternStepsMax,
  patternStepsMaxUnfactored,
  patternsKeptMax,
} from './limits.js'

/** A regular expression that is ready for use. Immutable as far as anybody can tell. */
export interface Pattern {
  readonly source: string
  /** Whether the expression matches some part of the text: not anchored, case sensitive (entities.md §7.4). */
  test(text: string): boolean
}

/** The pattern of a text; undefined when it is no valid expression, or a larger one than limits.ts allows (entities.md §7.4). */
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
export function literalPrefix(pattern: Pattern): string {
  const { source } = pattern
  if (!source.startsWith('^') || measure(source)?.alternates !== false) return ''
  return literalAt(source, 1).text
}

function compile(source: string): Pattern | undefined {
  if (source.length > patternLengthMax) return undefined
  const plain = plainTest(source)
  if (plain) return { source, test: plain }
  if (!measure(source)) return undefined
  try {
    const engine = RE2JS.compile(source, RE2JS.DOTALL | RE2JS.DISABLE_UNICODE_GROUPS)
    return engine.programSize() <= patternStepsMax ? new EnginePattern(source, engine) : undefined
  } catch (error) {
    if (error instanceof RE2JSException) return undefined
    throw error
  }
}

class EnginePattern implements Pattern {
  readonly source: string
  private readonly engine: RE2JS
  private isBudgeted = false

  constructor(source: string, engine: RE2JS) {
    this.source = source
    this.engine = engine
  }

  test(text: string): boolean {
    if (!this.isBudgeted) {
      this.isBudgeted = true
      limitStates(this.engine)
    }
    return this.engine.test(text)
  }
}

/** The part of the inside of re2js that `limitStates` knows. */
export interface EngineInside {
  readonly re2Input: { readonly dfa: { stateBudget: number; memBudget: number } }
}

// The engine keeps the states of its automaton, 8 MiB for each pattern, and offers no option for it. Subscriptions keep their
// patterns for ever, so a few thousand hostile ones would take all memory. pattern.test.ts tells when an update renames these fields.
function limitStates(engine: RE2JS): void {
  const { dfa } = (engine as unknown as EngineInside).re2Input
  dfa.stateBudget = patternStatesBytesMax
  dfa.memBudget = patternStatesBytesMax
}

const matchesAll = /^\^?\.\*\$?$/

/** The test of a pattern that is a plain text with or without anchors; undefined for any other. */
function plainTest(source: string): ((text: string) => boolean) | undefined {
  if (matchesAll.test(source)) return () => true
  const isFromStart = source.startsWith('^')
  const { text, end } = literalAt(source, isFromStart ? 1 : 0)
  const isToEnd = source[end] === '$'
  if (end + (isToEnd ? 1 : 0) !== source.length) return undefined
  if (isFromStart) return isToEnd ? of => of === text : of => of.startsWith(text)
  return isToEnd ? of => of.endsWith(text) : of => of.includes(text)
}

const special = new Set('\\.[](){}*+?|^$')
const repeats = new Set('*+?{')

/** The plain characters from `from` on, and where they end. A character that is repeated is not plain. */
function literalAt(source: string, from: number): { readonly text: string; readonly end: number } {
  let text = ''
  let end = from
  while (end < source.length) {
    let at = end
    if (source[at] === '\\') {
      at++
      if (!special.has(source[at] ?? '')) break
    } else if (special.has(source[at]!)) break
    const character = String.fromCodePoint(source.codePointAt(at)!)
    at += character.length
    if (repeats.has(source[at] ?? '')) break
    text += character
    end = at
  }
  return { text, end }
}

const repetition = /\{(\d+)(?:,(\d*))?\}/y

/**
 * Walks over a pattern without understanding all of it: about how many steps it is when repetitions are written out, and whether it
 * has alternatives outside of all groups. Undefined when it is too large or uses what no POSIX expression has.
 */
function measure(source: string): { readonly alternates: boolean } | undefined {
  let alternates = false
  /** Steps of the group we are in, and of the last item in it; the stack holds the groups around it. */
  let steps = 0
  let last = 0
  const around: number[] = []
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
      default:
        at = endOfItem(source, at)
        if (at < 0) return undefined
        last = 1
        steps++
    }
    if (steps > patternStepsMaxUnfactored) return undefined
  }
  return { alternates }
}

/** Where the item ends that begins at `at`: a class, an escape or one character. Negative for `\Q`, which quotes the rest. */
function endOfItem(source: string, at: number): number {
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
    else if (source[end] === '[' && source[end + 1] === ':') {
      const close = source.indexOf(':]', end + 2)
      if (close > 0) end = close + 1
    }
    end++
  }
  return end
}

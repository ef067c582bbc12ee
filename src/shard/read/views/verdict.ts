// The verdict of a column about a statement of the query language, row by row: yes, no, or "look into the entity".
//
// A statement is prepared once per query and column. A small table has the answer for every kind of cell, numbers are
// an interval (or a set), and each kept text has been tried. So a row costs a few loads and compares. `holdsFor`
// defines the meaning; this file only adds that comparisons of numbers are intervals.

import { holdsFor, type Operand } from '../../../domain/queries/query.js'
import type { Statement } from '../../../domain/queries/query-parser.js'
import { type Column, hashOfText, kinds, kindsCount } from './column.js'

export const no = 0
export const yes = 1
/** The column does not know: the entity must be read. */
export const look = 2

export type Verdict = typeof no | typeof yes | typeof look

export interface Test {
  readonly column: Column
  /** The verdict for each kind; for numbers, texts and hashes that of those not named below. */
  readonly byKind: Uint8Array
  /** The interval of numbers, both ends included, whose verdict is `within`. */
  readonly from: number
  readonly to: number
  /** If given, it replaces the interval. */
  readonly numbers: ReadonlySet<number> | undefined
  readonly within: Verdict
  /** The verdict for each text that the column keeps. */
  readonly byText: Uint8Array
  /** Hashes of the texts that the statement names: for these, the entity must be read. */
  readonly hashes: ReadonlySet<number>
}

/** Prepares a statement for the column of its path. */
export function prepare(statement: Statement, column: Column): Test {
  const verdictOf = (target: Operand): Verdict => (holdsFor(statement, target) ? yes : no)
  const { from, to, numbers } = numbersOf(statement)
  const negated = statement.operator === 'Differs'
  const byKind = new Uint8Array(kindsCount)
  byKind[kinds.absent] = verdictOf(undefined)
  byKind[kinds.null] = verdictOf(null)
  byKind[kinds.false] = verdictOf(false)
  byKind[kinds.true] = verdictOf(true)
  byKind[kinds.number] = negated ? yes : no
  byKind[kinds.hashed] = verdictOfUnnamedText(statement)
  byKind[kinds.opaque] = isAboutExistence(statement) ? byKind[kinds.hashed]! : look
  const byText = verdictsOfTexts(statement, column.texts)
  return { column, byKind, from, to, numbers, within: negated ? no : yes, byText, hashes: hashesOf(statement) }
}

/** A flag on a row number: the columns do not show whether the row matches. */
export const doubt = 0x8000_0000

/** The row of a number that may carry `doubt`. */
export const rowOf = (row: number): number => (row & ~doubt) >>> 0

// [hot] For each row of a view that a query tests: 2 to 3 ns for a number.
/** Writes the rows from `from` to `to` that match, or may, to the beginning of `found`; returns how many there are. */
export function siftRange(test: Test, from: number, to: number, found: Uint32Array): number {
  const { byKind, from: low, to: high, within, numbers: set } = test
  const { kinds: kind, numbers } = test.column
  const without = byKind[kinds.number]!
  let count = 0
  for (let row = from; row < to; row++) {
    let verdict: number
    if (kind[row] === kinds.number && !set) {
      const number = numbers[row]!
      verdict = number >= low && number <= high ? within : without
    } else verdict = judge(test, row)
    if (verdict === yes) found[count++] = row
    else if (verdict === look) found[count++] = row | doubt
  }
  return count
}

/** Keeps those of the first `size` rows that match, or may; returns how many there are. */
export function sift(test: Test, rows: Uint32Array, size: number): number {
  let count = 0
  for (let at = 0; at < size; at++) {
    const row = rows[at]!
    const verdict = judge(test, rowOf(row))
    if (verdict !== no) rows[count++] = verdict === look ? row | doubt : row
  }
  return count
}

function judge(test: Test, row: number): number {
  const { column, byKind } = test
  const kind = column.kinds[row]!
  if (kind === kinds.number) {
    const number = column.numbers[row]!
    const inside = test.numbers ? test.numbers.has(number) : number >= test.from && number <= test.to
    return inside ? test.within : byKind[kind]!
  }
  // A text that came after the test was prepared has not been tried.
  if (kind === kinds.text) return test.byText[column.numbers[row]!] ?? look
  if (kind === kinds.hashed && test.hashes.has(column.numbers[row]!)) return look
  return byKind[kind]!
}

/** Steps times characters of a pattern tried on a column's texts: some 10 ms at worst. Beyond, entities are read. */
const patternWorkMax = 500_000

function verdictsOfTexts(statement: Statement, texts: readonly string[]): Uint8Array {
  const steps = statement.operator === 'MatchPattern' ? statement.right.steps : 0
  let work = 0
  return Uint8Array.from(texts, text => {
    work += steps * text.length
    if (work > patternWorkMax) return look
    return holdsFor(statement, text) ? yes : no
  })
}

const isAboutExistence = ({ operator }: Statement): boolean => operator === 'Exists' || operator === 'NotExists'

/** The verdict for a text that an `==` or `!=` does not name. */
function verdictOfUnnamedText(statement: Statement): Verdict {
  switch (statement.operator) {
    case 'Exists':
      return yes
    case 'NotExists':
      return no
    case 'Equals':
    case 'Differs':
      if (statement.right.kind === 'range' && typeof statement.right.from === 'string') return look
      return statement.operator === 'Differs' ? yes : no
    case 'MatchPattern':
      return look
    default:
      return typeof statement.right === 'string' ? look : no
  }
}

function hashesOf(statement: Statement): ReadonlySet<number> {
  if (statement.operator !== 'Equals' && statement.operator !== 'Differs') return none
  const { right } = statement
  const named = right.kind === 'value' ? [right.value] : right.kind === 'list' ? [...right.items] : []
  return new Set(named.filter(value => typeof value === 'string').map(hashOfText))
}

const none: ReadonlySet<number> = new Set()

interface Numbers {
  readonly from: number
  readonly to: number
  readonly numbers: ReadonlySet<number> | undefined
}

const interval = (from: number, to: number): Numbers => ({ from, to, numbers: undefined })
const all = interval(Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY)
const nothing = interval(Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY)

/** The numbers that match; for `!=` those that do not. */
function numbersOf(statement: Statement): Numbers {
  switch (statement.operator) {
    case 'Exists':
      return all
    case 'Equals':
    case 'Differs': {
      const { right } = statement
      if (right.kind === 'range')
        return typeof right.from === 'number' ? interval(right.from, right.to as number) : nothing
      if (right.kind === 'value') return typeof right.value === 'number' ? interval(right.value, right.value) : nothing
      return { ...nothing, numbers: new Set([...right.items].filter(item => typeof item === 'number')) }
    }
    case 'GreaterThan':
      return typeof statement.right === 'number' ? interval(above(statement.right), Number.POSITIVE_INFINITY) : nothing
    case 'GreaterThanOrEqual':
      return typeof statement.right === 'number' ? interval(statement.right, Number.POSITIVE_INFINITY) : nothing
    case 'LessThan':
      return typeof statement.right === 'number'
        ? interval(Number.NEGATIVE_INFINITY, -above(-statement.right))
        : nothing
    case 'LessThanOrEqual':
      return typeof statement.right === 'number' ? interval(Number.NEGATIVE_INFINITY, statement.right) : nothing
    default:
      return nothing
  }
}

const float = new Float64Array(1)
const bits = new BigInt64Array(float.buffer)

/** The smallest number above a finite one. */
function above(number: number): number {
  if (number === 0) return Number.MIN_VALUE
  float[0] = number
  bits[0]! += number > 0 ? 1n : -1n
  return float[0]!
}

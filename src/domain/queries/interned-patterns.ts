// The regular expressions of many subscriptions. Each is compiled once, when it is needed, and tested once per text.
//
// Compiling costs 33 us and 7 KB, a test by an engine 0.2 to 0.8 us, and the same ids and types occur repeatedly. So a
// table stores the results of engines for the last texts: a row for each text, two bits for each pattern. Patterns that
// need no engine are as quick as the table. Patterns without a column are tested every time.
//
// Not here: the choice of patterns to test (matcher.ts).

import { identifierLengthMax } from '../limits.js'
import { ownText } from '../recent.js'
import { compilePattern, type EventWork, literalPrefix, type Pattern, testWork } from './pattern.js'
import type { Exploration } from './pattern-engine.js'

/** A pattern that one or more subscriptions use. */
export interface InternedPattern {
  readonly source: string
  /** A prefix of every text that it matches; '' when none is known. */
  readonly prefix: string
  /** undefined: not compiled yet; null: the text is not a valid pattern any more, and matches nothing. */
  pattern: Pattern | null | undefined
  /** Its column in the table; negative: none. */
  column: number
  uses: number
  /** The number of the last event for which it was tested, and the result: for patterns without a column. */
  testedFor: number
  holds: boolean
}

/** Columns of the table. Further patterns that need an engine are tested each time. */
const columnsMax = 128
/** Words of a row: for each 32 columns, one word of tested bits and one word of match bits. */
const rowWords = (columnsMax / 32) * 2
/** Rows of the table. At this limit it takes 2 MiB, and the texts some 6 MB. With more texts it is cleared. */
const rowsMax = 65_536
const rowsAtFirst = 1024
/** Rows of the tables of all tenants: some 30 MB. Beyond, a table is cleared when it has `rowsAtFirst`. */
const rowsMaxInAll = 262_144

/** The common row count of tables that share a limit. */
export interface TableRows {
  count: number
}

const allTables: TableRows = { count: 0 }

export class InternedPatterns {
  private readonly patterns = new Map<string, InternedPattern>()
  private readonly rows = new Map<string, number>()
  private table = new Uint32Array(0)
  private readonly freeColumns: number[] = []
  private columnsUsed = 0
  private lastText = ''
  private lastRow = -1

  /** `all`: the row count that this table shares with others. */
  constructor(private readonly all = allTables) {}

  /** The interned pattern of the text, with one more use. */
  intern(source: string): InternedPattern {
    let pattern = this.patterns.get(source)
    if (!pattern) {
      pattern = {
        source,
        prefix: literalPrefix({ source }),
        pattern: undefined,
        column: -1,
        uses: 0,
        testedFor: 0,
        holds: false,
      }
      this.patterns.set(source, pattern)
    }
    pattern.uses++
    return pattern
  }

  /** Counts one use less. A pattern without uses is removed. */
  release(pattern: InternedPattern): void {
    if (--pattern.uses > 0) return
    this.patterns.delete(pattern.source)
    const { column } = pattern
    if (column < 0) return
    this.freeColumns.push(column)
    const { table } = this
    for (let at = (column >>> 5) * 2; at < table.length; at += rowWords) table[at]! &= ~(1 << (column & 31))
    if (this.freeColumns.length === this.columnsUsed) this.forgetTable()
  }

  /** Clears the table when no pattern needs it any more. */
  private forgetTable(): void {
    this.clearRows()
    this.table = new Uint32Array(0)
    this.freeColumns.length = 0
    this.columnsUsed = 0
  }

  private clearRows(): void {
    this.all.count -= this.rows.size
    this.rows.clear()
    this.lastText = ''
    this.lastRow = -1
  }

  /** Compiles a pattern and computes its cost, so that no event has to. A plain comparison need not be compiled now. */
  prepare(interned: InternedPattern, exploration: Exploration): void {
    if (interned.pattern === undefined && (compilePattern(interned.source)?.steps ?? 1) < 1) return
    const pattern = interned.pattern === undefined ? this.compile(interned) : interned.pattern
    pattern?.explore(exploration)
  }

  // [hot] Once per event and distinct pattern that was not excluded otherwise.
  /** Whether the pattern matches the text, an id or a type. `work`: the budget of the event with this number. */
  matches(interned: InternedPattern, text: string, work?: EventWork, number = 0): boolean {
    const pattern = interned.pattern === undefined ? this.compile(interned) : interned.pattern
    if (!pattern) return false
    if (interned.column < 0 || text.length > identifierLengthMax) {
      if (!work || pattern.cost === 0) return pattern.test(text)
      if (interned.testedFor === number) return interned.holds
      interned.testedFor = number
      interned.holds = work.spend(testWork(pattern, text.length)) && pattern.test(text)
      return interned.holds
    }
    const at = this.rowOf(text) * rowWords + (interned.column >>> 5) * 2
    const bit = 1 << (interned.column & 31)
    const { table } = this
    if ((table[at]! & bit) === 0) {
      if (work && !work.spend(testWork(pattern, text.length))) return false
      table[at]! |= bit
      if (pattern.test(text)) table[at + 1]! |= bit
      else table[at + 1]! &= ~bit
    }
    return (table[at + 1]! & bit) !== 0
  }

  private compile(interned: InternedPattern): Pattern | null {
    const pattern = compilePattern(interned.source) ?? null
    interned.pattern = pattern
    // A pattern that costs less than a step for each character is a comparison (plain-pattern.ts).
    if (pattern && pattern.steps >= 1) interned.column = this.takeColumn()
    return pattern
  }

  private takeColumn(): number {
    return this.freeColumns.pop() ?? (this.columnsUsed < columnsMax ? this.columnsUsed++ : -1)
  }

  private rowOf(text: string): number {
    if (text === this.lastText && this.lastRow >= 0) return this.lastRow
    let row = this.rows.get(text)
    if (row === undefined) {
      row = this.freeRow()
      // The text may be cut out of the path of a request.
      this.rows.set(ownText(text), row)
      this.all.count++
    }
    this.lastText = text
    this.lastRow = row
    return row
  }

  private freeRow(): number {
    const row = this.rows.size
    if (row === rowsMax || (row >= rowsAtFirst && this.all.count >= rowsMaxInAll)) {
      this.clearRows()
      this.table.fill(0)
      return 0
    }
    if (row * rowWords === this.table.length) {
      const table = new Uint32Array(Math.max(rowsAtFirst, row * 2) * rowWords)
      table.set(this.table)
      this.table = table
    }
    return row
  }
}

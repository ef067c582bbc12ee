// The regular expressions of many subscriptions: each text is compiled once, when it is needed, and tested on a text
// once.
//
// Compiling costs 33 us and 7 KB, a test by an engine 0.2 to 0.8 us, and the same ids and types come again and again.
// So a table keeps what engines said of the last texts: a row for each text, two bits for each pattern. Patterns that
// need no engine are as quick as the table. Those for which it has no column are tested every time.
//
// Not here: which patterns need to be tested at all (matcher.ts).

import { identifierLengthMax } from '../limits.js'
import { ownText } from '../recent.js'
import { compilePattern, type EventWork, literalPrefix, type Pattern, testWork } from './pattern.js'
import type { Exploration } from './pattern-engine.js'

/** A pattern that one or more subscriptions use. */
export interface InternedPattern {
  readonly source: string
  /** What every text that it matches begins with; '' when nothing is known. */
  readonly prefix: string
  /** undefined: not compiled yet; null: it is no pattern any more, and matches nothing. */
  pattern: Pattern | null | undefined
  /** Its column in the table; negative: none. */
  column: number
  uses: number
  /** The last event that it was tested for, by its number, and the outcome: it may have no column. */
  testedFor: number
  holds: boolean
}

/** Columns of the table. Whoever has more patterns that need an engine pays for each test of the others. */
const columnsMax = 128
/** Words of a row: for each 32 columns, which have been tested, and which of them matched. */
const rowWords = (columnsMax / 32) * 2
/** Rows of the table. It has 2 MiB then, and the texts some 6 MB; with more texts than that it begins anew. */
const rowsMax = 65_536
const rowsAtFirst = 1024
/** Rows of the tables of all tenants: some 30 MB. Beyond, a table begins anew when it has `rowsAtFirst`. */
const rowsMaxInAll = 262_144

/** Tables that share a bound: how many rows they have together. */
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

  /** `all`: the tables that this one shares the bound with. */
  constructor(private readonly all = allTables) {}

  /** The pattern of the text, which is used once more. */
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

  /** The pattern is used once less; without users it goes. */
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

  /** No pattern needs it any more. */
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

  /** Compiles a pattern and finds out its cost, so that no event has to. A comparison may wait. */
  prepare(interned: InternedPattern, exploration: Exploration): void {
    if (interned.pattern === undefined && (compilePattern(interned.source)?.steps ?? 1) < 1) return
    const pattern = interned.pattern === undefined ? this.compile(interned) : interned.pattern
    pattern?.explore(exploration)
  }

  // [hot] Once per event and distinct pattern that nothing else has ruled out.
  /** Whether the pattern matches the text, an id or a type. `work`: of the event of this number. */
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
    // What costs less than a step for each character is a comparison (plain-pattern.ts).
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
      // It may be cut out of the path of a request.
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

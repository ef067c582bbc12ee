// Prints the events of a watch: a line for each, or a table of the latest states that is drawn over itself.
//
// A terminal gets the table at most ten times a second, each time with the lines that fit. Anything else (a pipe, a
// file) gets it once, at the end. Lines for the user go to standard error; above a table on the same terminal they stay
// readable, because the table is drawn again below them.
//
// Not here: the content of the table (table.ts), the escapes for control characters (terminal-text.ts).

import type { Clock } from '../ports.js'
import type { WatchedEvent } from './resuming.js'
import { LatestStates } from './table.js'
import { visible } from './terminal-text.js'

/** Where output goes. `write` returns false when the reader is slower than the writer. */
export interface Output {
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  readonly rows?: number | undefined
  write(text: string): unknown
}

export interface WatchDisplay {
  /** A watch has begun. `isAnew`: earlier states are unknown. */
  begun(isAnew: boolean): void
  event(event: WatchedEvent): void
  /** A line for the user. It may hold texts of strangers. */
  note(line: string): void
  /** Draws again: the terminal has another size. */
  resized(): void
  /** Shows the last state. Nothing else is called afterwards. */
  end(): void
}

/** Characters of a line for the user: a broker may give a long reason. */
const noteLengthMax = 1_000

const noteText = (line: string): string => `orrery watch: ${visible(line.slice(0, noteLengthMax))}\n`

/** An event in each line, as JSON. Bookmarks are left out: they are the broker's sign of life. */
export class EventLines implements WatchDisplay {
  constructor(
    private readonly out: Output,
    private readonly errors: Output,
  ) {}

  begun(): void {}

  event({ kind, members }: WatchedEvent): void {
    if (kind !== 'bookmark') this.out.write(`${visible(JSON.stringify({ event: kind, ...members }))}\n`)
  }

  note(line: string): void {
    this.errors.write(noteText(line))
  }

  resized(): void {}

  end(): void {}
}

/** The least time between two drawings. */
export const drawIntervalMs = 100
/** The size of a terminal that does not report it. */
const columnsDefault = 80
const rowsDefault = 24

const wrapOff = '\u001b[?7l'
const wrapOn = '\u001b[?7h'
const eraseLine = '\u001b[K'
const eraseBelow = '\u001b[J'
const up = (lines: number): string => (lines > 0 ? `\u001b[${lines}A` : '')

export class LatestTable implements WatchDisplay {
  private readonly states = new LatestStates()
  private readonly isDrawn: boolean
  private status: 'complete' | 'incomplete' | 'cut' | undefined
  /** Lines on the terminal, above the cursor. */
  private lines = 0
  private drawnMs = Number.NEGATIVE_INFINITY
  private stopTimer: (() => void) | undefined

  constructor(
    private readonly out: Output,
    private readonly errors: Output,
    private readonly clock: Pick<Clock, 'after' | 'monoMs'>,
  ) {
    this.isDrawn = out.isTTY === true
  }

  begun(isAnew: boolean): void {
    if (isAnew) this.states.clear()
    this.status = isAnew ? 'incomplete' : 'complete'
    this.changed()
  }

  event(event: WatchedEvent): void {
    this.states.apply(event)
    if (event.kind === 'gap') this.status = 'incomplete'
    if (event.kind === 'snapshot' && event.members.end === true) this.status = 'complete'
    if (event.kind !== 'bookmark' && event.kind !== 'coalesced') this.changed()
  }

  note(line: string): void {
    if (this.status !== undefined) this.status = 'cut'
    if (this.isDrawn && this.lines > 0) {
      this.out.write(`${up(this.lines)}\r${eraseBelow}`)
      this.lines = 0
    }
    this.errors.write(noteText(line))
    this.changed()
  }

  resized(): void {
    this.changed()
  }

  end(): void {
    this.stopTimer?.()
    if (this.status === undefined) return
    if (this.isDrawn) this.draw()
    else
      this.out.write(
        `${this.states.lines({ columns: Number.POSITIVE_INFINITY, rows: Number.POSITIVE_INFINITY }).join('\n')}\n`,
      )
  }

  private changed(): void {
    if (!this.isDrawn || this.stopTimer || this.status === undefined) return
    const leftMs = this.drawnMs + drawIntervalMs - this.clock.monoMs()
    if (leftMs <= 0) return this.draw()
    this.stopTimer = this.clock.after(leftMs, () => {
      this.stopTimer = undefined
      this.draw()
    })
  }

  /** One write: a terminal never shows half of it. Without wrapping each line takes one line of the terminal. */
  private draw(): void {
    const { out, states, clock } = this
    const columns = out.columns || columnsDefault
    // Below the table there are a line with its state, and the line of the cursor.
    const rows = Math.max((out.rows || rowsDefault) - 2, 2)
    const lines = [...states.lines({ columns, rows }), this.statusLine()]
    out.write(
      `${wrapOff}${up(this.lines)}\r${lines.map(line => `${line}${eraseLine}\n`).join('')}${eraseBelow}${wrapOn}`,
    )
    this.lines = lines.length
    this.drawnMs = clock.monoMs()
  }

  private statusLine(): string {
    const { size } = this.states
    const words = { complete: 'live', incomplete: 'not complete yet', cut: 'not connected' }
    return `-- ${size} ${size === 1 ? 'entity' : 'entities'}, ${words[this.status ?? 'cut']}`
  }
}

// The progress of long work: a bar at a terminal, else a log line at intervals.
//
// The bar is one line that is drawn over itself. It goes to standard error, because another program may read standard
// output.
//
// Not here: the work. It calls `show` as often as it likes, and `end` after success or failure.

import type { Clock, Logger } from '../ports.js'

/** The stream on which a bar is drawn, if it is a terminal. */
export interface Terminal {
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  write(text: string): unknown
}

export interface ProgressOptions {
  /** The name of the work, such as "Copying". */
  readonly title: string
  /** The counted things, such as "entities". */
  readonly unit: string
  readonly clock: Pick<Clock, 'monoMs'>
  readonly logger: Pick<Logger, 'info'>
  /** Standard error when absent. */
  readonly terminal?: Terminal
  /** Whether a bar may be drawn, if the terminal is one; absent: it may. */
  readonly mayDraw?: boolean
  /** Time between two log lines. */
  readonly logIntervalMs?: number
}

export interface ProgressDisplay {
  /** `total`: undefined when it is not known. */
  show(done: number, total: number | undefined): void
  /** Leaves the last state on the screen. */
  end(): void
}

const drawIntervalMs = 100
const logIntervalMsDefault = 5000
const barLength = 24
const columnsDefault = 80

/** Shows nothing until the first `show`, which also starts the rate: everything done before counts as earlier work. */
export function openProgress(options: ProgressOptions): ProgressDisplay {
  const { title, clock, logger, terminal = process.stderr, logIntervalMs = logIntervalMsDefault } = options
  const isDrawn = terminal.isTTY === true && options.mayDraw !== false
  const intervalMs = isDrawn ? drawIntervalMs : logIntervalMs
  let first: Moment | undefined
  let last: Moment | undefined
  let shownMs = Number.NEGATIVE_INFINITY

  const report = (): void => {
    if (!first || !last || shownMs === last.atMs) return
    shownMs = last.atMs
    if (isDrawn) {
      const drawn = last.total === undefined ? '' : `  ${bar(shareOf(last.done, last.total))}`
      const line = `${title}${drawn}  ${facts(first, last, options.unit).join('  ')}`
      // A line as wide as the terminal would take two lines, and could not be drawn over.
      terminal.write(`\r\u001b[K${line.slice(0, (terminal.columns || columnsDefault) - 1)}`)
    } else logger.info(`${title}: ${facts(first, last, options.unit).join(', ')}`)
  }

  return {
    show(done, total) {
      last = { done, total, atMs: clock.monoMs() }
      first ??= last
      if (last.atMs - shownMs >= intervalMs) report()
    },
    end() {
      report()
      if (isDrawn && last) terminal.write('\n')
      last = undefined
    },
  }
}

interface Moment {
  readonly done: number
  readonly total: number | undefined
  readonly atMs: number
}

const shareOf = (done: number, total: number): number => (total > 0 ? Math.min(done / total, 1) : 1)

function bar(share: number): string {
  const full = Math.floor(share * barLength)
  return `[${'#'.repeat(full)}${'.'.repeat(barLength - full)}]`
}

function facts(first: Moment, last: Moment, unit: string): string[] {
  const { done, total } = last
  const parts =
    total === undefined
      ? [`${grouped(done)} ${unit}`]
      : [`${Math.floor(shareOf(done, total) * 100)} %`, `${grouped(done)} of ${grouped(total)} ${unit}`]
  const seconds = (last.atMs - first.atMs) / 1000
  const perSecond = seconds > 0 ? (done - first.done) / seconds : 0
  if (perSecond <= 0) return parts
  const left = Math.max((total ?? done) - done, 0) / perSecond
  return [...parts, `${grouped(Math.round(perSecond))}/s`, ...(left > 0 ? [`${duration(left)} left`] : [])]
}

const grouped = (count: number): string => count.toLocaleString('en')

function duration(seconds: number): string {
  const whole = Math.ceil(seconds)
  if (whole < 60) return `${whole} s`
  const minutes = Math.floor(whole / 60)
  return minutes < 60 ? `${minutes} min ${whole % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

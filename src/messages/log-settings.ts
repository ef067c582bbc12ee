// How a process logs: what operators read and change while it runs.

import type { TraceLevels } from './trace-levels.js'

export type LogLevel = 'NONE' | 'FATAL' | 'ERROR' | 'WARN' | 'INFO' | 'DEBUG'

/** How the process logs, as operators may change it while it runs (operations.md §5). */
export interface LogSettings {
  level: LogLevel
  /** Bytes of a payload that a line at INFO shows. */
  infoPayloadBytesMax: number
  /** Longer lines are replaced by a short text. */
  lineBytesMax: number
  /** Whether deprecated usages are told of. */
  deprecate: boolean
  /** Which of the lines at DEBUG are written that have a number. */
  traces: TraceLevels
}

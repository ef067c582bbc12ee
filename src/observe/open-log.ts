// The log of a process as its configuration wants it: standard output, and the file of `-logDir`.

import type { LogSettings } from '../messages/admin.js'
import { openLogFile } from './log-file.js'
import { type AreaLogger, openLogger } from './logger.js'

/** Where lines go, and how they look. */
export interface LogDestination {
  readonly format: 'pipe' | 'json'
  /** Standard output gets short lines (`-logForHumans`). */
  readonly forHumans: boolean
  /** undefined: standard output alone. */
  readonly file: { readonly directory: string; readonly append: boolean } | undefined
}

/**
 * Opens the log. `isFirst`: no other process or thread of this program has, so what an earlier start wrote is put away. Fails with a sentence
 * for the operator when the file cannot be had.
 */
export function openLog(
  { file, format, forHumans }: LogDestination,
  settings: LogSettings,
  isFirst: boolean,
): AreaLogger {
  const opened = file && openLogFile(file.directory, { append: file.append || !isFirst, isFirst })
  return openLogger({ settings, format, forHumans, file: opened })
}

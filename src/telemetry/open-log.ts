// The log of a process as its configuration wants it: standard output, and the file of `-logDir`.

import type { Config } from '../config.js'
import type { LogSettings } from '../ports.js'
import { openLogFile } from './log-file.js'
import { type AreaLogger, openLogger } from './logger.js'

/**
 * Opens the log. `isFirst`: no other process or thread of this program has, so what an earlier start wrote is put away. Fails with a sentence
 * for the operator when the file cannot be had.
 */
export function openLog(
  { file, format, forHumans }: Config['logging'],
  settings: LogSettings,
  isFirst: boolean,
): AreaLogger {
  const opened = file && openLogFile(file.directory, { append: file.append || !isFirst, isFirst })
  return openLogger({ settings, format, forHumans, file: opened })
}

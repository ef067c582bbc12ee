// The log file of `-logDir`: `contextBroker.log`, as scripts that look after the reference's expect it (operations.md §1.4, §6.7).
//
// A new one is begun at each start, and the one before is kept as `.old`; with `-logAppend` the old one goes on. It is only ever appended to,
// so several processes may share it, and tools that copy and truncate it work. Each chunk of lines is one write.
//
// Not here: rotation, which is left to such tools.

import { mkdirSync, openSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { type LogOutput, openLogOutput } from './log-output.js'

/** Opens the file in a directory, which is made if need be. `isFirst`: this process decides what becomes of the one before. */
export function openLogFile(directory: string, { append, isFirst }: { append: boolean; isFirst: boolean }): LogOutput {
  const path = join(directory, 'contextBroker.log')
  try {
    mkdirSync(directory, { recursive: true })
    if (isFirst && !append) keepOld(path)
    return openLogOutput(() => openSync(path, 'a', 0o640))
  } catch (cause) {
    throw new Error(`cannot write the log file ${path}: ${(cause as Error).message}`, { cause })
  }
}

function keepOld(path: string): void {
  try {
    renameSync(path, `${path}.old`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

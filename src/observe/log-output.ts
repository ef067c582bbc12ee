// The outputs of log lines: standard output and the log file, asynchronously while the process runs, synchronously for
// its last lines.
//
// Standard output is shared with the audit log: each writes whole lines in its turn (output-turns.ts).
//
// Lines of one turn of the event loop are written together, and one write is in flight at a time. So lines keep their
// order. A slow reader costs memory up to a limit and then lines, but never delays a request. pino's destination does
// the writing. Its own buffer stays empty, because its flush at exit would wait for ever on a full disk. When the
// process exits, the remaining lines go out through a second, synchronous destination, which at worst overtakes the one
// write in flight.
//
// pino's destination closes its file when it is given up after a failed write. So each one opens the file for itself:
// the number of a closed file may soon belong to another file, and lines would be written into that.
//
// The log file is `contextBroker.log`, the name that scripts for the reference's log expect
// (docs/operations/options.md, docs/operations/signals.md#rotating-the-log). It is only ever appended to, so several
// processes may share it. Tools may rotate it by copying and truncating, or by renaming, with a signal or without one
// (docs/operations/signals.md).
//
// A pipe without a reader (EPIPE) and a terminal that was closed (EIO) do not come back: then the output accepts no
// more lines. A file may be written again after any failure.

import { closeSync, fstatSync, mkdirSync, openSync, renameSync, stat } from 'node:fs'
import { join } from 'node:path'
import { destination as open } from 'pino'
import { standardOutputTurns } from './output-turns.js'

/** Characters that wait for a slow reader of the log; further lines are lost, and their number is logged later. */
const waitingLengthMax = 16 * 1024 * 1024

/** Tries to write the last lines to a reader that does not accept them. */
const lastWordsTriesMax = 20

export interface LogOutput {
  /** Writes a line soon. */
  write(line: string): void
  /** Writes all waiting lines before it returns. */
  flush(): void
  /**
   * Opens the file anew, so that it can be renamed. A line that is being written still goes to the old one. When the
   * file cannot be opened, it throws, and the old one stays in use.
   */
  reopen(): void
}

const standardOutput = 1

/** The line in place of lost lines, in the form of the log. */
export type LostLine = (count: number) => string

const plainLostLine: LostLine = count => `${count} LINES LOST`

/** How often the output checks that its file still has its name. Raising it saves a system call. */
const lookMs = 2_000

/** `openFile` returns the file descriptor, and a new one after a failure. Two outputs for one file would mix lines. */
export function openLogOutput(
  openFile: () => number = () => standardOutput,
  lostLine: LostLine = plainLostLine,
): LogOutput {
  let fd = openFile()
  let waiting = ''
  let lost = 0
  let scheduled = false
  let inFlight = false
  /** Whether the write in flight has a turn of standard output, or waits for it. */
  let hasTurn = false
  let readerGone = false
  let destination: ReturnType<typeof openDestination> | undefined = openDestination()
  /** The number of the new file, while a line goes to the old one. */
  let next: number | undefined

  function openDestination() {
    const fresh = open({ fd, sync: false })
    fresh.on('drain', () => {
      written()
      if (next !== undefined) exchange()
      pass()
    })
    // A log that cannot be written must not end the broker. The lines in flight are lost, and the next ones use a new
    // destination.
    fresh.on('error', error => {
      // pino reports a failure twice.
      if (destination !== fresh) return
      written()
      // Otherwise it would retry the lost lines at exit without end.
      fresh.destroy()
      if (isReaderGone(fd, error)) {
        readerGone = true
        destination = undefined
        waiting = ''
      } else reopen()
    })
    return fresh
  }

  /** If the file cannot be opened again, the next line tries once more. */
  function reopen(): void {
    try {
      fd = openFile()
      destination = openDestination()
    } catch {
      destination = undefined
      return
    }
    pass()
  }

  /** Continues with the new file, and closes the old one. Nothing is in flight. */
  function exchange(): void {
    const old = destination
    fd = next!
    next = undefined
    destination = openDestination()
    old?.end()
  }

  function take(): string {
    const lines = lost > 0 ? `${waiting}${lostLine(lost)}\n` : waiting
    waiting = ''
    lost = 0
    return lines
  }

  function pass(): void {
    scheduled = false
    if (inFlight || waiting === '') return
    if (!destination) return reopen()
    inFlight = true
    if (fd !== standardOutput) return void destination.write(take())
    hasTurn = true
    standardOutputTurns.take(() => {
      const lines = take()
      // The lines may have been flushed meanwhile.
      if (destination && lines !== '') destination.write(lines)
      else written()
    })
  }

  /** The write in flight has ended. */
  function written(): void {
    inFlight = false
    if (hasTurn) standardOutputTurns.release()
    hasTurn = false
  }

  function flush(): void {
    if (waiting === '' || readerGone || !destination) return
    let tries = 0
    const lastWords = open({ fd, sync: true, retryEAGAIN: () => ++tries < lastWordsTriesMax })
    lastWords.on('error', () => {})
    lastWords.write(take())
  }

  process.on('exit', flush)

  return {
    write(line) {
      if (readerGone) return
      if (waiting.length + line.length > waitingLengthMax) {
        lost++
        return
      }
      waiting += `${line}\n`
      if (scheduled || inFlight) return
      scheduled = true
      setImmediate(pass)
    },
    flush,
    reopen() {
      const fresh = openFile()
      if (fresh === standardOutput) return
      if (next !== undefined) closeSync(next)
      next = fresh
      if (!inFlight) exchange()
    },
  }
}

/** Whether a failed write means that no reader will come back. A disk fails with EIO as well, and may recover. */
function isReaderGone(fd: number, { code }: NodeJS.ErrnoException): boolean {
  if (code === 'EPIPE') return true
  return code === 'EIO' && fd === standardOutput && !fstatSync(fd).isFile()
}

export const logFileName = 'contextBroker.log'

/**
 * Opens the log file in a directory, which is created if need be. `isFirst`: this process keeps the file of an earlier
 * start as `.old`, unless `append` continues it.
 */
export function openLogFile(
  directory: string,
  { append, isFirst, lostLine }: { append: boolean; isFirst: boolean; lostLine?: LostLine | undefined },
): LogOutput {
  const path = join(directory, logFileName)
  try {
    mkdirSync(directory, { recursive: true })
    if (isFirst && !append) keepOld(path)
    let inode = 0
    const output = openLogOutput(() => {
      const fd = openSync(path, 'a', 0o640)
      inode = fstatSync(fd).ino
      return fd
    }, lostLine)
    const noticeAnother = (error: NodeJS.ErrnoException | null, found: number | undefined): void => {
      if (error ? error.code !== 'ENOENT' : found === inode) return
      try {
        output.reopen()
      } catch {
        // The next look tries again; until then lines go to the old file.
      }
    }
    setInterval(() => stat(path, (error, found) => noticeAnother(error, found?.ino)), lookMs).unref()
    return output
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

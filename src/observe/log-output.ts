// Where log lines go: standard output and the log file, asynchronously while the process runs, synchronously for its
// last words.
//
// Lines of one turn of the event loop are written together, and one write is in flight at a time. So lines keep their
// order, and a slow reader costs memory up to a limit and then lines, never time of a request. pino's destination does
// the writing. Its own buffer stays empty, because its flush at exit would wait for ever on a full disk. What has not
// been written when the process exits goes out through a second, synchronous destination, which at worst overtakes the
// one write in flight.
//
// pino's destination closes its file when it is given up after a failed write. So each one opens the file for itself: a
// number that is closed soon belongs to another file after that, and lines would be written into it.
//
// The log file is `contextBroker.log`, as scripts that look after the reference's expect it
// (docs/operations/options.md, docs/operations/signals.md#rotating-the-log). It is only ever appended to, so several
// processes may share it. Tools may rotate it by copying and truncating, or by renaming, with a signal or without one
// (docs/operations/signals.md).
//
// A pipe without a reader (EPIPE) and a terminal that was closed (EIO) do not come back: then the output takes no more
// lines. A file may be written again after any failure.

import { closeSync, fstatSync, mkdirSync, openSync, renameSync, stat } from 'node:fs'
import { join } from 'node:path'
import { destination as open } from 'pino'

/** Characters that wait for a slow reader of the log; further lines are lost, and their number is logged later. */
const waitingLengthMax = 16 * 1024 * 1024

/** How long last words are offered to a reader that does not take them. */
const lastWordsTriesMax = 20

export interface LogOutput {
  /** Writes a line soon. */
  write(line: string): void
  /** Writes what waits before it returns. */
  flush(): void
  /**
   * Opens the file anew, so that it can be renamed. A line that is being written still goes to the old one. Fails, and
   * goes on with the old one, when the file cannot be opened.
   */
  reopen(): void
}

const standardOutput = 1

/** What stands where lines were lost, in the form of the log. */
export type LostLine = (count: number) => string

const plainLostLine: LostLine = count => `${count} LINES LOST`

/** How often the output checks that its file still has its name. Raising it saves a system call. */
const lookMs = 2_000

/** `openFile` gives the file descriptor, and a new one after a failure. Two outputs for one file would mix lines. */
export function openLogOutput(
  openFile: () => number = () => standardOutput,
  lostLine: LostLine = plainLostLine,
): LogOutput {
  let fd = openFile()
  let waiting = ''
  let lost = 0
  let scheduled = false
  let inFlight = false
  let readerGone = false
  let destination: ReturnType<typeof openDestination> | undefined = openDestination()
  /** The number of the new file, while a line goes to the old one. */
  let next: number | undefined

  function openDestination() {
    const fresh = open({ fd, sync: false })
    fresh.on('drain', () => {
      inFlight = false
      if (next !== undefined) exchange()
      pass()
    })
    // A log that cannot be written must not end the broker. The lines in flight are lost, the next ones get a fresh
    // start.
    fresh.on('error', error => {
      // pino reports a failure twice.
      if (destination !== fresh) return
      inFlight = false
      // It would try the lost lines again when the process exits, and that has no end.
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

  /** Goes on with the new file, and closes the old one. Nothing is in flight. */
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
    destination.write(take())
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

/** Whether a failed write tells that no reader will come back. A disk fails with EIO as well, and may recover. */
function isReaderGone(fd: number, { code }: NodeJS.ErrnoException): boolean {
  if (code === 'EPIPE') return true
  return code === 'EIO' && fd === standardOutput && !fstatSync(fd).isFile()
}

export const logFileName = 'contextBroker.log'

/**
 * Opens the log file in a directory, which is made if need be. `isFirst`: this process keeps the file of an earlier
 * start as `.old`, unless `append` goes on with it.
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

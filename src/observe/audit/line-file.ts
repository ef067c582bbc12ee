// The file of the audit log, and standard output in its place.
//
// Bytes are only ever appended, with one write for each batch of whole lines. So several processes may share the file,
// and their lines do not mix. Nothing here blocks the event loop, except at the start and at the end of the process.

import { close, closeSync, constants, fstat, fstatSync, open, openSync, stat, write, writeSync } from 'node:fs'
import { standardOutputTurns } from '../output-turns.js'

/** Bytes of a write. A longer one delays the lines behind it. */
export const auditBatchBytesMax = 64 * 1024

/** The same on standard output: a pipe keeps this many bytes of one write together (PIPE_BUF). */
export const auditPipeBytesMax = 4_096

/** `kept`: the name cannot be opened, and the old file is still in a directory. `lost`: it is in none any more. */
export type Reopened =
  | { readonly file: 'same' | 'other' }
  | { readonly file: 'kept' | 'lost'; readonly error: NodeJS.ErrnoException }

export interface LineFile {
  /** How operators know it. */
  readonly name: string
  readonly batchBytesMax: number
  /** Appends bytes with one write. `written`: how many of them were written, also if there was an error. */
  append(bytes: Uint8Array, onDone: (error: NodeJS.ErrnoException | undefined, written: number) => void): void
  /** Appends bytes before it returns. Throws an error. */
  appendNow(bytes: Uint8Array): void
  /** Opens the file by its name again. */
  reopen(onDone: (reopened: Reopened) => void): void
  /** Finds out whether the name leads to another file now, or to none. */
  look(onDone: (isAnother: boolean) => void): void
  close(): void
}

/** Only its owner reads it. A queue without a reader is refused, and does not block. */
const mode = 0o600
const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK

const noFile = 'it is not a regular file'

export class AuditFile implements LineFile {
  readonly batchBytesMax = auditBatchBytesMax
  private fd: number
  private inode: number

  /** Creates the file if need be. Throws an error with the reason if it cannot be appended to. */
  constructor(readonly name: string) {
    this.fd = openSync(name, flags, mode)
    const found = fstatSync(this.fd)
    this.inode = found.ino
    if (found.isFile()) return
    closeSync(this.fd)
    throw new Error(noFile)
  }

  append(bytes: Uint8Array, onDone: (error: NodeJS.ErrnoException | undefined, written: number) => void): void {
    write(this.fd, bytes, 0, bytes.length, null, (error, written) => onDone(error ?? undefined, written || 0))
  }

  appendNow(bytes: Uint8Array): void {
    writeSync(this.fd, bytes)
  }

  reopen(onDone: (reopened: Reopened) => void): void {
    const fail = (error: Error): void =>
      fstat(this.fd, (unknown, found) => {
        onDone({ file: unknown === null && found.nlink > 0 ? 'kept' : 'lost', error })
      })
    open(this.name, flags, mode, (error, fd) => {
      if (error) return fail(error)
      fstat(fd, (unknown, found) => {
        if (unknown || !found.isFile()) {
          close(fd)
          return fail(unknown ?? new Error(noFile))
        }
        const file = found.ino === this.inode ? 'same' : 'other'
        close(this.fd)
        this.fd = fd
        this.inode = found.ino
        onDone({ file })
      })
    })
  }

  look(onDone: (isAnother: boolean) => void): void {
    stat(this.name, (error, found) => onDone(error ? error.code === 'ENOENT' : found.ino !== this.inode))
  }

  close(): void {
    closeSync(this.fd)
  }
}

const standardOutput = 1

/** Standard output, in turns with the log. */
export const standardOutputLines: LineFile = {
  name: 'on standard output',
  batchBytesMax: auditPipeBytesMax,
  append(bytes, onDone) {
    standardOutputTurns.take(() =>
      write(standardOutput, bytes, 0, bytes.length, null, (error, written) => {
        standardOutputTurns.release()
        onDone(error ?? undefined, written || 0)
      }),
    )
  },
  appendNow: bytes => void writeSync(standardOutput, bytes),
  reopen: onDone => onDone({ file: 'same' }),
  look: onDone => onDone(false),
  close: () => {},
}

// Writes an export: to a file, or to standard output.
//
// The file holds passwords, and belongs to its user alone (mode 0600). One that is there is never written over, unless it is the unfinished
// one of the same work: then what stands behind the last position is cut off. It is flushed to the disk before it is said to be there.

import { once } from 'node:events'
import { closeSync, fstatSync, fsyncSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { isObject, type Json } from '../domain/json.js'
import { firstLine, lastLine, writeItem } from './lines.js'
import { type Item, MoveError, type Outcome, type Sink } from './moved.js'

const fileMode = 0o600
const written: { readonly outcome: Outcome } = { outcome: 'written' }

/** Where the file must be to go on; undefined: at its beginning. */
export async function openFileSink(path: string, by: string, from: Json | undefined): Promise<Sink> {
  if (path === '-') return stdoutSink(by)
  const bytes = from !== undefined && isObject(from) ? Number(from.bytes) : undefined
  let fd: number
  try {
    fd = openSync(path, bytes === undefined ? 'wx' : 'r+', fileMode)
  } catch (error) {
    const isThere = (error as NodeJS.ErrnoException).code === 'EEXIST'
    const why = isThere
      ? 'is there already: name another one, or remove it'
      : `cannot be written: ${(error as Error).message}`
    throw new MoveError(`file ${path} ${why}`, { cause: error })
  }
  let at = 0
  const write = (text: string): void => {
    const buffer = Buffer.from(text)
    try {
      for (let done = 0; done < buffer.length; ) done += writeSync(fd, buffer, done, buffer.length - done, at + done)
    } catch (error) {
      throw new MoveError(`file ${path} cannot be written: ${(error as Error).message}`, { cause: error })
    }
    at += buffer.length
  }
  if (bytes === undefined) write(`${firstLine(by)}\n`)
  else {
    if (fstatSync(fd).size < bytes) {
      closeSync(fd)
      throw new MoveError(
        `file ${path} is shorter than it was when the work was interrupted: remove it and begin again`,
      )
    }
    ftruncateSync(fd, bytes)
    at = bytes
  }
  return {
    name: `file ${path}`,
    documentsMax: Number.POSITIVE_INFINITY,
    async put(items) {
      write(items.map(item => `${writeItem(item)}\n`).join(''))
      return items.map(() => written)
    },
    position: () => ({ bytes: at }),
    async finish(counts) {
      write(`${lastLine(counts)}\n`)
      fsyncSync(fd)
    },
    close: async () => closeSync(fd),
  }
}

function stdoutSink(by: string): Sink {
  const { stdout } = process
  let failure: Error | undefined
  stdout.on('error', error => {
    failure = error
  })
  const write = async (text: string): Promise<void> => {
    if (failure) throw new MoveError(`standard output cannot be written: ${failure.message}`, { cause: failure })
    if (!stdout.write(text)) await Promise.race([once(stdout, 'drain'), once(stdout, 'error'), once(stdout, 'close')])
  }
  let isBegun = false
  const begin = async (): Promise<void> => {
    if (!isBegun) await write(`${firstLine(by)}\n`)
    isBegun = true
  }
  return {
    name: 'standard output',
    documentsMax: Number.POSITIVE_INFINITY,
    async put(items: readonly Item[]) {
      await begin()
      await write(items.map(item => `${writeItem(item)}\n`).join(''))
      return items.map(() => written)
    },
    position: () => null,
    async finish(counts) {
      await begin()
      await write(`${lastLine(counts)}\n`)
    },
    close: async () => {},
  }
}

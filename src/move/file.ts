// An export: read from a file or standard input, and written to a file or standard output.
//
// The end of a file is read first: a file that was cut is refused before any item is read from it. With standard input
// a cut shows only at the end. A position is behind a line; standard input is read again up to there.
//
// A written file holds passwords, and belongs to its user alone (mode 0600). An existing file is never overwritten,
// unless it is the unfinished one of the same work: then the part behind the last position is cut off. It is flushed at
// the end.

import { once } from 'node:events'
import { closeSync, fstatSync, fsyncSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { resolve } from 'node:path'
import { isObject, type Json, type JsonObject } from '../domain/json.js'
import { refusalText } from '../domain/refusal.js'
import {
  checkFirstLine,
  firstLine,
  type ItemCounts,
  lastLine,
  lineBytesMax,
  parseLastLine,
  readLine,
  writeItem,
} from './lines.js'
import {
  type ItemOutcome,
  type MovedItem,
  MoveError,
  type Sink,
  type Source,
  type SourceItem,
  type SourcePage,
} from './moved.js'

/** A page ends with the line that reaches one of these. More costs memory, and more work to repeat after a kill. */
const pageLinesMax = 1000
const pageBytesMax = 1024 * 1024

const chunkBytes = 1024 * 1024
/** More bytes than the last line has. */
const tailBytes = 4096
const newline = 0x0a

interface Position {
  readonly offset: number
  readonly line: number
}

/** Opens an export; `-` is standard input. A file is identified by its name, size and time. */
export async function openFileSource(path: string): Promise<Source> {
  if (path === '-') return sourceOf('standard input', { stdin: true }, undefined, process.stdin)
  let file: FileHandle
  try {
    file = await open(path, 'r')
  } catch (error) {
    throw new MoveError(`file ${path} cannot be read: ${(error as Error).message}`, { cause: error })
  }
  try {
    const { size, mtimeMs } = await file.stat()
    const tail = Buffer.alloc(Math.min(size, tailBytes))
    await file.read(tail, 0, tail.length, size - tail.length)
    const counts = lastOf(tail)
    if (!counts) throw new MoveError(`file ${path} has no last line: it was cut, or is no export`)
    return sourceOf(`file ${path}`, { file: resolve(path), size, mtimeMs }, counts, file)
  } catch (error) {
    await file.close()
    throw error
  }
}

function lastOf(tail: Buffer): ItemCounts | undefined {
  let end = tail.length
  while (end > 0 && tail[end - 1]! <= 0x20) end--
  return parseLastLine(tail.subarray(tail.lastIndexOf(newline, Math.max(end - 1, 0)) + 1, end))
}

function sourceOf(
  name: string,
  identity: JsonObject,
  counts: ItemCounts | undefined,
  input: FileHandle | NodeJS.ReadableStream,
): Source {
  return {
    name,
    identity,
    total: counts?.entity,
    pages: (from, nowMs) => pagesOf(name, input, from as unknown as Position | undefined, nowMs),
    close: async () => {
      if ('fd' in input && 'stat' in input) await input.close()
    },
  }
}

async function* pagesOf(
  name: string,
  input: FileHandle | NodeJS.ReadableStream,
  from: Position | undefined,
  nowMs: number,
): AsyncIterable<SourcePage> {
  const lines = linesOf(name, input)
  let found: SourceItem[] = []
  let bytes = 0
  let last: ItemCounts | undefined
  let number = 0
  let offset = 0
  // Reading can begin anywhere in a file, but only at the beginning of a stream.
  if (from && isFile(input)) {
    offset = from.offset
    number = from.line
  }
  for await (const line of lines(offset)) {
    number++
    offset += line.length + 1
    if (number === 1) {
      const fault = checkFirstLine(line)
      if (fault) throw new MoveError(`${name} ${fault}`)
      continue
    }
    if ((from && number <= from.line) || line.length === 0) continue
    if (last) throw new MoveError(`${name}: line ${number} follows the last line`)
    last = parseLastLine(line)
    if (last) continue
    const item = readLine(line, nowMs)
    const where = `line ${number}`
    found.push(
      item.ok ? { where, item: item.value, fault: '' } : { where, item: undefined, fault: refusalText(item.refusal) },
    )
    bytes += line.length
    if (found.length < pageLinesMax && bytes < pageBytesMax) continue
    yield { found, after: { offset, line: number } }
    found = []
    bytes = 0
  }
  if (found.length > 0) yield { found, after: { offset, line: number } }
  if (number === 0) throw new MoveError(`${name} is empty`)
  if (!last) throw new MoveError(`${name} ends without its last line: it was cut`)
}

const isFile = (input: FileHandle | NodeJS.ReadableStream): input is FileHandle => 'fd' in input && 'stat' in input

/** Lines from an offset on, without their ends. Bytes behind the last end are a line as well. */
function linesOf(name: string, input: FileHandle | NodeJS.ReadableStream) {
  return async function* (offset: number): AsyncIterable<Buffer> {
    let rest: Buffer[] = []
    let restBytes = 0
    for await (const chunk of isFile(input) ? chunksOf(input, offset) : (input as AsyncIterable<Buffer>)) {
      let begin = 0
      for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, begin)) {
        const part = chunk.subarray(begin, end)
        yield restBytes === 0 ? part : Buffer.concat([...rest, part])
        rest = []
        restBytes = 0
        begin = end + 1
      }
      if (begin === chunk.length) continue
      rest.push(chunk.subarray(begin))
      restBytes += chunk.length - begin
      if (restBytes > lineBytesMax) throw new MoveError(`${name} has a line of more than ${lineBytesMax} bytes`)
    }
    if (restBytes > 0) yield Buffer.concat(rest)
  }
}

async function* chunksOf(file: FileHandle, from: number): AsyncIterable<Buffer> {
  for (let at = from; ; ) {
    const chunk = Buffer.allocUnsafe(chunkBytes)
    const { bytesRead } = await file.read(chunk, 0, chunkBytes, at)
    if (bytesRead === 0) return
    at += bytesRead
    yield chunk.subarray(0, bytesRead)
  }
}

const fileMode = 0o600
const written: { readonly outcome: ItemOutcome } = { outcome: 'written' }

/** Opens the target of an export. `from`: the position at which it continues; undefined: at its beginning. */
export async function openFileSink(path: string, by: string, from: Json | undefined): Promise<Sink> {
  if (path === '-') return stdoutSink(by)
  const bytes = from !== undefined && isObject(from) ? Number(from.bytes) : undefined
  let fd: number
  try {
    fd = openSync(path, bytes === undefined ? 'wx' : 'r+', fileMode)
  } catch (error) {
    const isThere = (error as NodeJS.ErrnoException).code === 'EEXIST'
    const why = isThere
      ? 'exists already: name another one, or remove it'
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
    async put(items: readonly MovedItem[]) {
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

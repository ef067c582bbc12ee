// The file of a backup: a sequence of blocks, each with a checksum that covers all blocks before it.
//
//   "ORRERYBK", then of each block:
//   u32 length of the body | u8 kind | body | 32 bytes SHA-256 of (the checksum before | the rest of this block)
//   header    JSON: versions, placement, time of the start, and the contribution of each owner of shards
//   rows      u16 owner, then of each row: u16 length | key | u32 length | value
//   trailer   JSON: number of rows and bytes in all blocks, time of the end. Nothing follows it
//   failure   JSON: why the backup ended without a trailer
//
// So a reader refuses a file that was cut, extended or altered, or whose blocks are in another order. The checksums use
// no key: they find damage, but an attacker can compute them anew.
//
// Not here: the choice of rows (shard/backup-source.ts), and restoring them (process/restore.ts).

import { createHash } from 'node:crypto'
import type { Row } from '../ports.js'

/** The message is a sentence for the operator about a damaged or missing backup. */
export class BackupError extends Error {
  override readonly name = 'BackupError'
}

/** The position of one shard in its log when its rows were read, in a cluster. */
export interface ShardPosition {
  readonly shard: number
  readonly epoch: number
  readonly sequence: number
}

/** A process that owned shards, and the properties of its rows. */
export interface BackupOwner {
  readonly shards: readonly number[]
  /** Whether a restore uses its subscriptions and registrations. Exactly one owner has `true`. */
  readonly isKeeper: boolean
  /** All stamps in its rows are at most this. */
  readonly stamp: number
  /** Empty if the store itself is the log. */
  readonly positions: readonly ShardPosition[]
}

export interface BackupHeader {
  readonly version: number
  /** The format of the rows, as in `orrery.json`. */
  readonly rowFormat: number
  /** The program that wrote it. */
  readonly by: string
  readonly beganMs: number
  readonly shards: number
  readonly spread: number
  readonly owners: readonly BackupOwner[]
}

export interface BackupTrailer {
  readonly rows: number
  /** Bytes of keys and values. */
  readonly bytes: number
  readonly endedMs: number
}

export type Block =
  | { readonly kind: 'header'; readonly header: BackupHeader }
  | { readonly kind: 'rows'; readonly owner: number; readonly rows: readonly Row[] }
  | { readonly kind: 'trailer'; readonly trailer: BackupTrailer }

/** The version of the file's form. */
export const backupVersion = 1

const magic = Buffer.from('ORRERYBK')
const kinds = { header: 1, rows: 2, trailer: 3, failure: 4 } as const
const headBytes = 5
const digestBytes = 32
/** Initial memory for blocks and their rows: enough for a page of usual rows. */
const bytesFirst = 128 * 1024

/** Maximal bytes of a body. The largest row of an entity, a header with all positions and a page of rows stay below. */
export const bodyBytesMax = 64 * 1024 * 1024

const digestOf = (before: Buffer, ...parts: readonly Buffer[]): Buffer => {
  const hash = createHash('sha256').update(before)
  for (const part of parts) hash.update(part)
  return hash.digest()
}

const firstDigest = digestOf(magic)

/** Writes a backup block by block. The bytes of a block are overwritten by the next one. */
export class BackupWriter {
  private digest = firstDigest
  private bytes = Buffer.allocUnsafe(bytesFirst)
  private rows = 0
  private rowBytes = 0

  /** The beginning of the file. */
  begin(header: Omit<BackupHeader, 'version'>): Buffer {
    const json: BackupHeader = { version: backupVersion, ...header }
    return Buffer.concat([magic, this.block(kinds.header, Buffer.from(JSON.stringify(json)))])
  }

  /** A block of an owner's rows, from a `RowPacker`. */
  page(owner: number, { bytes, rows, rowBytes }: PackedRows): Buffer {
    this.rows += rows
    this.rowBytes += rowBytes
    const number = Buffer.allocUnsafe(2)
    number.writeUInt16BE(owner)
    return this.block(kinds.rows, number, bytes)
  }

  end(endedMs: number): Buffer {
    const trailer: BackupTrailer = { rows: this.rows, bytes: this.rowBytes, endedMs }
    return this.block(kinds.trailer, Buffer.from(JSON.stringify(trailer)))
  }

  /** A failure block, in place of everything that would follow. */
  fail(reason: string): Buffer {
    return this.block(kinds.failure, Buffer.from(JSON.stringify({ reason })))
  }

  /** Uses the same memory for each block: new memory for each page would keep the garbage collector busy. */
  private block(kind: number, ...body: readonly Buffer[]): Buffer {
    const bodyBytes = body.reduce((sum, part) => sum + part.length, 0)
    const length = headBytes + bodyBytes + digestBytes
    if (length > this.bytes.length) this.bytes = Buffer.allocUnsafe(Math.max(length, 2 * this.bytes.length))
    const block = this.bytes.subarray(0, length)
    block.writeUInt32BE(bodyBytes, 0)
    block[4] = kind
    let at = headBytes
    for (const part of body) {
      block.set(part, at)
      at += part.length
    }
    this.digest = digestOf(this.digest, block.subarray(0, at))
    block.set(this.digest, at)
    return block
  }
}

/** Rows one after the other, in the form of a block. */
export interface PackedRows {
  /** Overwritten when the packer begins anew. */
  readonly bytes: Buffer
  readonly rows: number
  /** Bytes of keys and values. */
  readonly rowBytes: number
}

const rowHeadBytes = 6

/** Packs rows one after the other, again and again in the same memory. */
export class RowPacker {
  private bytes = Buffer.allocUnsafe(bytesFirst)
  private at = 0
  private rows = 0

  /** Forgets the rows. */
  begin(): void {
    this.at = 0
    this.rows = 0
  }

  /** Bytes so far. */
  get length(): number {
    return this.at
  }

  add({ key, value }: Row): void {
    const end = this.at + rowHeadBytes + key.length + value.length
    if (end > this.bytes.length) this.grow(end)
    const { bytes } = this
    let at = bytes.writeUInt16BE(key.length, this.at)
    bytes.set(key, at)
    at = bytes.writeUInt32BE(value.length, at + key.length)
    bytes.set(value, at)
    this.at = end
    this.rows++
  }

  private grow(needed: number): void {
    const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.bytes.length))
    larger.set(this.bytes.subarray(0, this.at))
    this.bytes = larger
  }

  packed(): PackedRows {
    const { at, rows } = this
    return { bytes: this.bytes.subarray(0, at), rows, rowBytes: at - rows * rowHeadBytes }
  }
}

function unpacked(bytes: Buffer): readonly Row[] {
  const rows: Row[] = []
  let at = 0
  const read = (length: number): Buffer => {
    if (at + length > bytes.length) throw damaged('a row ends too early')
    at += length
    return bytes.subarray(at - length, at)
  }
  while (at < bytes.length) {
    const key = read(read(2).readUInt16BE())
    rows.push({ key, value: read(read(4).readUInt32BE()) })
  }
  return rows
}

const damaged = (why: string): BackupError => new BackupError(`the backup is damaged: ${why}`)
const cut = (): BackupError => damaged('it ends too early')

/**
 * Yields the blocks of a file, each after checking its checksum: the header first, the trailer last. Throws a
 * `BackupError` when the file is not whole. The blocks until then are right, but others may be missing.
 */
export async function* blocksOf(file: AsyncIterable<Buffer>): AsyncGenerator<Block, void, void> {
  const input = new Input(file)
  try {
    yield* blocksIn(input)
  } finally {
    await input.close()
  }
}

async function* blocksIn(input: Input): AsyncGenerator<Block, void, void> {
  if (!(await input.read(magic.length)).equals(magic)) throw new BackupError('this is no backup of Orrery')
  let digest = firstDigest
  let rows = 0
  let rowBytes = 0
  for (let number = 0; ; number++) {
    const head = await input.read(headBytes)
    const length = head.readUInt32BE(0)
    if (length > bodyBytesMax) throw damaged('a block is too long')
    const body = await input.read(length)
    digest = digestOf(digest, head, body)
    if (!(await input.read(digestBytes)).equals(digest)) throw damaged(`the checksum of block ${number} is wrong`)
    const kind = head[4]
    if (kind === kinds.failure) throw new BackupError(`the backup is not complete: ${reasonIn(body)}`)
    if ((number === 0) !== (kind === kinds.header)) throw damaged('its header is not its first block')
    switch (kind) {
      case kinds.header:
        yield { kind: 'header', header: headerIn(body) }
        break
      case kinds.rows: {
        if (length < 2) throw damaged('a block has no owner')
        const found = unpacked(body.subarray(2))
        rows += found.length
        for (const { key, value } of found) rowBytes += key.length + value.length
        yield { kind: 'rows', owner: body.readUInt16BE(0), rows: found }
        break
      }
      case kinds.trailer: {
        const trailer = JSON.parse(body.toString()) as BackupTrailer
        if (trailer.rows !== rows || trailer.bytes !== rowBytes) throw damaged('rows are missing')
        if (!(await input.isAtEnd())) throw damaged('something follows its end')
        yield { kind: 'trailer', trailer }
        return
      }
      default:
        throw new BackupError(`the backup has a block of kind ${kind}, which this version does not know`)
    }
  }
}

const reasonIn = (body: Buffer): string => (JSON.parse(body.toString()) as { readonly reason: string }).reason

function headerIn(body: Buffer): BackupHeader {
  const header = JSON.parse(body.toString()) as BackupHeader
  if (header.version !== backupVersion)
    throw new BackupError(
      `the backup has version ${header.version}, and this version of Orrery reads version ${backupVersion}: use the one that wrote it (${header.by})`,
    )
  return header
}

/** A reader of bytes that arrive in pieces of any size. */
class Input {
  private readonly pieces: AsyncIterator<Buffer>
  private rest: Buffer[] = []
  private restBytes = 0

  constructor(file: AsyncIterable<Buffer>) {
    this.pieces = file[Symbol.asyncIterator]()
  }

  async read(length: number): Promise<Buffer> {
    while (this.restBytes < length) if (!(await this.more())) throw cut()
    const all = this.rest.length === 1 ? this.rest[0]! : Buffer.concat(this.rest)
    this.rest = [all.subarray(length)]
    this.restBytes -= length
    return all.subarray(0, length)
  }

  /** Lets the source of the pieces release its resources. */
  async close(): Promise<void> {
    await this.pieces.return?.()
  }

  async isAtEnd(): Promise<boolean> {
    while (this.restBytes === 0) if (!(await this.more())) return true
    return false
  }

  private async more(): Promise<boolean> {
    const { done, value } = await this.pieces.next()
    if (done) return false
    this.rest.push(value)
    this.restBytes += value.length
    return true
  }
}

// The store over LevelDB, for platforms without a RocksDB binary.
//
// Reads are synchronous. A batch is kept as a list of operations and written on the thread pool, flushed or not
// according to the durability, so no thread of our own is needed. Such a batch may become visible at any moment, even
// between two gets of one turn. So reads during a commit use a snapshot taken before it: they see nothing of it.
//
// Not here: which store to open (open-store), the rules about commits (commit-gate).

import assert from 'node:assert/strict'
import type { ClassicLevel, Iterator, Snapshot } from 'classic-level'
import type { Batch, Cursor, Durability, Range, Row, Store } from '../ports.js'
import { CommitGate, type Enterable, syncKey } from './commit-gate.js'

export interface LevelOptions {
  readonly durability: Durability
  /** Memory for the database: a quarter for rows not yet in tables, twice that at times, the rest for the cache. */
  readonly memoryBytes?: number
}

type Level = ClassicLevel<Buffer, Buffer>
type LevelIterator = Iterator<Level, Buffer, Buffer>
type Operation = { type: 'put'; key: Buffer; value: Buffer } | { type: 'del'; key: Buffer }

const memoryBytesDefault = 64 * 1024 * 1024

/** A cursor's answer ends with the row that reaches this, whatever number of rows was asked for. */
const answerBytesMax = 4 * 1024 * 1024

const none = Object.freeze({})

/** Opens the database in `directory`, or creates it. Rejects if the files are in use. */
export async function openLevelStore(directory: string, options: LevelOptions): Promise<Store> {
  const { ClassicLevel } = await import('classic-level')
  const memoryBytes = options.memoryBytes ?? memoryBytesDefault
  const db: Level = new ClassicLevel(directory, { keyEncoding: 'buffer', valueEncoding: 'buffer' })
  await db.open({
    createIfMissing: true,
    writeBufferSize: Math.floor(memoryBytes / 4),
    cacheSize: Math.floor((memoryBytes * 3) / 4),
  })
  return new LevelStore(db, directory, options.durability)
}

class LevelStore implements Store {
  readonly name = 'level'
  readonly shared = undefined
  readonly #db: Level
  readonly #write: { readonly sync: boolean }
  readonly #gate: CommitGate
  /** Represents a requested flush in the gate. */
  readonly #flushing: Enterable = { inFlight: false }
  readonly #cursors = new Set<LevelCursor>()
  #before: SharedSnapshot | undefined
  #closing: Promise<void> | undefined

  constructor(db: Level, directory: string, durability: Durability) {
    this.#db = db
    this.#gate = new CommitGate(directory)
    this.#write = { sync: durability === 'sync' }
  }

  get(key: Uint8Array): Buffer | undefined {
    this.#gate.assertOpen()
    return this.#db.getSync(bufferOf(key), this.#before?.options ?? none)
  }

  getMany(keys: readonly Uint8Array[]): (Buffer | undefined)[] {
    return keys.map(key => this.get(key))
  }

  cursor(range: Range): Cursor {
    this.#gate.assertOpen()
    const before = this.#before?.share()
    const iterator = this.#db.iterator({
      ...before?.options,
      gte: range.gte,
      lt: range.lt,
      highWaterMarkBytes: answerBytesMax,
    })
    const cursor = new LevelCursor(iterator, () => {
      before?.release()
      this.#cursors.delete(cursor)
    })
    this.#cursors.add(cursor)
    return cursor
  }

  batch(): Batch {
    this.#gate.assertOpen()
    return new LevelBatch()
  }

  commit(batch: Batch, onDone: (error?: Error) => void): void {
    assert(batch instanceof LevelBatch, 'the batch was committed already, or is of another store')
    if (!this.#gate.enter(batch, onDone)) return
    this.#before = new SharedSnapshot(this.#db.snapshot())
    this.#db
      .batch(batch.operations, this.#write)
      .catch((error: unknown) => this.#gate.fail('the store could not write', error))
      // Outside of the promise: an exception in onDone is a bug of its owner, and must not become a rejection of ours.
      .then(() => process.nextTick(() => this.#onWritten()))
  }

  sync(onDone: (error?: Error) => void): void {
    if (!this.#gate.enter(this.#flushing, onDone)) return
    this.#db
      .del(syncKey, { sync: true })
      .catch((error: unknown) => this.#gate.fail('the store could not flush', error))
      .then(() => process.nextTick(() => this.#gate.leave()))
  }

  #onWritten(): void {
    this.#before?.release()
    this.#before = undefined
    this.#gate.leave()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    await this.#gate.close()
    for (const cursor of this.#cursors) await cursor.close()
    try {
      if (!this.#gate.failure) await this.#db.del(syncKey, { sync: true })
    } finally {
      await this.#db.close()
    }
  }
}

/** Closed with its last user, because closing it under a cursor would close the cursor. */
class SharedSnapshot {
  readonly options: { readonly snapshot: Snapshot }
  #users = 1

  constructor(snapshot: Snapshot) {
    this.options = { snapshot }
  }

  share(): this {
    this.#users++
    return this
  }

  release(): void {
    this.#users--
    if (this.#users === 0) void this.options.snapshot.close()
  }
}

class LevelBatch implements Batch, Enterable {
  readonly operations: Operation[] = []
  inFlight = false

  get length(): number {
    return this.operations.length
  }

  // Copies, as the other stores do: the caller may write its next key into the same buffer.
  put(key: Uint8Array, value: Uint8Array): void {
    assert(!this.inFlight, 'the batch is being committed')
    this.operations.push({ type: 'put', key: Buffer.from(key), value: Buffer.from(value) })
  }

  del(key: Uint8Array): void {
    assert(!this.inFlight, 'the batch is being committed')
    this.operations.push({ type: 'del', key: Buffer.from(key) })
  }

  clear(): void {
    assert(!this.inFlight, 'the batch is being committed')
    this.operations.length = 0
  }
}

class LevelCursor implements Cursor {
  readonly #iterator: LevelIterator
  readonly #onClosed: () => void
  #closed = false

  constructor(iterator: LevelIterator, onClosed: () => void) {
    this.#iterator = iterator
    this.#onClosed = onClosed
  }

  async next(rowsMax: number): Promise<Row[]> {
    assert(!this.#closed, 'the cursor is closed')
    assert(rowsMax > 0, 'a read must ask for at least one row')
    const entries = await this.#iterator.nextv(rowsMax)
    return entries.map(([key, value]) => ({ key, value }))
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#iterator.close()
    this.#onClosed()
  }
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

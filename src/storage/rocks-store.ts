// The store over RocksDB: reads and writes on the calling thread, flushes on a thread of their own (rocks-syncer).
//
// `commit` writes the batch to the log without a flush, which survives the death of the process. With durability `sync`
// it then asks the syncer thread for a flush, and `onDone` follows that. With another durability the thread starts with
// the first requested flush. No thread writes to the database while the syncer works: such a write would block the
// event loop for as long as the disk takes.
//
// The binding crashes the process when a closed database is touched or when a database is closed under a running
// thread. So every call is guarded, and `close` has this order: commit in flight, cursors, last flush, syncer thread,
// batches, database.
//
// Not here: grouping of changes into commits (the shards), which store to open (open-store), the types (rocksdb.d.ts).

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { NativeBatch, NativeIterator, RocksLevel } from '@nxtedition/rocksdb'
import type {
  Batch,
  Cursor,
  Durability,
  Range,
  Row,
  RowParts,
  SharedStore,
  Store,
  StoreNumbers,
  StoreReader,
} from '../ports.js'
import { CommitGate, type Enterable, syncKey } from './commit-gate.js'

export interface RocksOptions {
  readonly durability: Durability
  /**
   * Memory for the database: half for rows that are not yet in tables, half for the cache of blocks. While tables are
   * being written it may take a quarter more. The size of the log kept for a restart follows it: about a third,
   * replayed at 100 MB/s or so.
   */
  readonly memoryBytes?: number
}

const memoryBytesDefault = 128 * 1024 * 1024

// One object for all calls: the binding looks up its options on every call, and an empty object is the cheapest.
const none = Object.freeze({})

/**
 * Rows that a cursor reads on the calling thread: 128 rows of 300 bytes take about 0.5 ms, a trip to the pool 0.1 ms.
 */
const rowsSyncMax = 128

/** An answer ends with the row that reaches this, whatever number of rows was asked for. */
const answerBytesMax = 4 * 1024 * 1024

/** Input of the syncer thread: the database, and a counter of the requested flushes. */
export interface SyncerInput {
  readonly handle: bigint
  readonly wanted: Int32Array
}

/** The answer of the syncer thread to each flush: null, or the reason of its failure. */
export type SyncerAnswer = null | Error

export const endOfFlushes = -1

/** The counter of flushes restarts here, well before it would turn negative. */
const flushesMax = 2 ** 30

/** The reason why RocksDB cannot be used on this platform; undefined if it can. */
export async function rocksMissing(): Promise<string | undefined> {
  try {
    await import('@nxtedition/rocksdb')
    return undefined
  } catch (error) {
    // The rest of the message lists the searched folders.
    return (error instanceof Error ? error.message : String(error)).split('\n', 1)[0]
  }
}

/** Opens the database in `directory`, or creates it. Rejects if the package is not there or the files are in use. */
export async function openRocksStore(directory: string, options: RocksOptions): Promise<Store> {
  const { RocksLevel } = (await import('@nxtedition/rocksdb')).default
  const memoryBytes = options.memoryBytes ?? memoryBytesDefault
  const db = new RocksLevel(directory, { keyEncoding: 'buffer', valueEncoding: 'buffer' })
  await db.open({
    createIfMissing: true,
    // Without `compaction` the memory budget is ignored. A million entities of 400 bytes, 64 MB of cache: level with
    // point-lookup takes 181 MB on disk, a random get 11-13 us, a cached one 7; level alone 183 MB, 14-16 and 7-11 us;
    // universal without compression 372 MB, 10 and 7 us. A cache of 192 MB gains nothing, and costs 140 MB.
    compaction: 'level',
    optimize: 'point-lookup',
    memtableMemoryBudget: Math.floor(memoryBytes / 2),
    cacheSize: Math.floor(memoryBytes / 2),
    walCompression: false,
  })
  return new RocksStore(db, directory, options.durability === 'sync' ? new Syncer(db.handle) : undefined)
}

/** The syncer thread, as the event loop uses it. A flush that is requested before the thread runs is its first one. */
class Syncer {
  readonly worker: Worker
  readonly #wanted = new Int32Array(new SharedArrayBuffer(4))

  constructor(handle: bigint) {
    const workerData: SyncerInput = { handle, wanted: this.#wanted }
    // The thread must not get flags of the process: `--input-type`, for example, would keep it from starting.
    this.worker = new Worker(new URL('./rocks-syncer.js', import.meta.url), { workerData, execArgv: [] })
  }

  /** Requests a flush of everything written so far, one at a time; a message reports its end. */
  flush(): void {
    const wanted = Atomics.load(this.#wanted, 0)
    Atomics.store(this.#wanted, 0, wanted === flushesMax ? 1 : wanted + 1)
    Atomics.notify(this.#wanted, 0)
  }

  async end(): Promise<void> {
    this.worker.removeAllListeners()
    const exited = once(this.worker, 'exit')
    Atomics.store(this.#wanted, 0, endOfFlushes)
    Atomics.notify(this.#wanted, 0)
    await exited
  }
}

class RocksStore implements Store {
  readonly name = 'rocksdb'
  readonly #db: RocksLevel
  /** Whether every commit is flushed. */
  readonly #flushes: boolean
  #syncer: Syncer | undefined
  /** Represents a requested flush in the gate. */
  readonly #flushing: Enterable = { inFlight: false }
  readonly #gate: CommitGate
  readonly #batches = new Set<RocksBatch>()
  readonly #cursors = new Set<RocksCursor>()
  readonly #one: Uint8Array[] = [syncKey]
  #syncing = false
  #closing: Promise<void> | undefined

  constructor(db: RocksLevel, directory: string, syncer: Syncer | undefined) {
    this.#db = db
    this.#gate = new CommitGate(directory)
    this.#flushes = syncer !== undefined
    this.#syncer = syncer && this.#attended(syncer)
  }

  #attended(syncer: Syncer): Syncer {
    syncer.worker.on('message', (answer: SyncerAnswer) => this.#onSynced(answer))
    syncer.worker.on('error', error => this.#onSynced(error))
    syncer.worker.on('exit', code => this.#onSynced(new Error(`the syncer thread ended with code ${code}`)))
    return syncer
  }

  get shared(): SharedStore {
    return { kind: 'rocksdb', handle: this.#db.handle }
  }

  // [hot] Runs once per entity that is not in memory: 3 us for a missing key, 7 for a cached one of 400 bytes.
  get(key: Uint8Array): Buffer | undefined {
    this.#gate.assertOpen()
    this.#one[0] = key
    return this.#db._getManySync(this.#one, none)[0]
  }

  getMany(keys: readonly Uint8Array[]): (Buffer | undefined)[] {
    this.#gate.assertOpen()
    return this.#db._getManySync(keys, none)
  }

  cursor(range: Range, parts?: RowParts): Cursor {
    this.#gate.assertOpen()
    const cursor = new RocksCursor(this.#db, range, parts, () => this.#cursors.delete(cursor))
    this.#cursors.add(cursor)
    return cursor
  }

  numbers(): StoreNumbers {
    this.#gate.assertOpen()
    const number = (property: string): number => Number(this.#db.getProperty(`rocksdb.${property}`)) || 0
    return {
      tableBytes: number('total-sst-files-size'),
      memtableBytes: number('size-all-mem-tables'),
      cacheBytes: number('block-cache-usage'),
      compactions: number('num-running-compactions'),
      flushes: number('num-running-flushes'),
      pendingCompactionBytes: number('estimate-pending-compaction-bytes'),
      isStalled: number('is-write-stopped') > 0,
      delayedBytesPerS: number('actual-delayed-write-rate'),
      backgroundErrors: number('background-errors'),
    }
  }

  batch(): Batch {
    this.#gate.assertOpen()
    const batch = new RocksBatch(this.#db.batch())
    this.#batches.add(batch)
    return batch
  }

  commit(batch: Batch, onDone: (error?: Error) => void): void {
    assert(
      batch instanceof RocksBatch && this.#batches.has(batch),
      'the batch was committed already, or is of another store',
    )
    if (!this.#gate.enter(batch, onDone)) return
    try {
      batch.native._writeSync(none)
    } catch (error) {
      this.#gate.fail('the store could not write', error)
      this.#gate.leaveSoon()
      return
    }
    if (this.#flushes) this.#sync()
    else this.#gate.leaveSoon()
  }

  sync(onDone: (error?: Error) => void): void {
    if (this.#gate.enter(this.#flushing, onDone)) this.#sync()
  }

  #sync(): void {
    this.#syncing = true
    this.#syncer ??= this.#attended(new Syncer(this.#db.handle))
    this.#syncer.flush()
  }

  #onSynced(error: unknown): void {
    if (error) this.#gate.fail('the store could not flush', error)
    if (!this.#syncing) return
    this.#syncing = false
    this.#gate.leave()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    await this.#gate.close()
    for (const cursor of this.#cursors) await cursor.close()
    let failure: unknown
    if (!this.#gate.failure) failure = this.#flush()
    await this.#syncer?.end()
    for (const batch of this.#batches) await batch.native.close()
    try {
      await this.#db.close()
    } catch (error) {
      failure ??= error
    }
    // A failed commit was reported already, and the store guarantees nothing after it. So closing cannot fail then.
    if (failure !== undefined && !this.#gate.failure) throw failure
  }

  #flush(): unknown {
    const batch = this.#db.batch()
    try {
      batch._del(syncKey, none)
      batch._writeSync({ sync: true })
      return undefined
    } catch (error) {
      return error
    } finally {
      void batch.close()
    }
  }
}

/** Reused with `clear`. A native batch that is not closed leaks memory, so the store keeps a set of all batches. */
class RocksBatch implements Batch, Enterable {
  readonly native: NativeBatch
  inFlight = false
  #length = 0

  constructor(native: NativeBatch) {
    this.native = native
  }

  get length(): number {
    return this.#length
  }

  put(key: Uint8Array, value: Uint8Array): void {
    assert(!this.inFlight, 'the batch is being committed')
    this.native._put(key, value, none)
    this.#length++
  }

  del(key: Uint8Array): void {
    assert(!this.inFlight, 'the batch is being committed')
    this.native._del(key, none)
    this.#length++
  }

  clear(): void {
    assert(!this.inFlight, 'the batch is being committed')
    this.native._clear()
    this.#length = 0
  }
}

/** Rows of a range, in order. Opening an iterator costs 100 to 300 us, much more than the rows of a short page. */
class RocksCursor implements Cursor {
  readonly #iterator: NativeIterator
  readonly #onClosed: () => void
  #reading: Promise<unknown> | undefined
  #closed = false

  constructor(db: RocksLevel, { gte, lt }: Range, parts: RowParts = 'both', onClosed: () => void) {
    const encodings = { keyEncoding: 'buffer', valueEncoding: 'buffer' }
    const wanted = { keys: parts !== 'values', values: parts !== 'keys' }
    this.#iterator = db.iterator({ gte, lt, ...wanted, ...encodings, highWaterMarkBytes: answerBytesMax })
    this.#onClosed = onClosed
  }

  async next(rowsMax: number): Promise<Row[]> {
    assert(!this.#closed, 'the cursor is closed')
    assert(!this.#reading, 'the cursor is reading already')
    assert(rowsMax > 0, 'a read must ask for at least one row')
    if (rowsMax <= rowsSyncMax) return paired(this.#iterator._nextvSync(rowsMax, none).rows)
    const reading = this.#iterator._nextvAsync(rowsMax, none)
    this.#reading = reading
    try {
      return paired((await reading).rows)
    } finally {
      this.#reading = undefined
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    // Closing the iterator under the thread that reads it would crash. A failure of that read is reported to its
    // caller.
    await this.#reading?.catch(() => undefined)
    await this.#iterator.close()
    this.#onClosed()
  }
}

const leftOut = Buffer.alloc(0)

function paired(flat: readonly (Buffer | undefined)[]): Row[] {
  const rows: Row[] = []
  for (let i = 0; i < flat.length; i += 2) rows.push({ key: flat[i] ?? leftOut, value: flat[i + 1] ?? leftOut })
  return rows
}

/** A database that another thread of this process has open. That thread closes it, after this one has ended. */
export async function attachRocksStore({ handle }: SharedStore): Promise<StoreReader> {
  const { RocksLevel } = (await import('@nxtedition/rocksdb')).default
  const db = new RocksLevel(handle, { keyEncoding: 'buffer', valueEncoding: 'buffer' })
  await db.open()
  return new AttachedStore(db)
}

class AttachedStore implements StoreReader {
  readonly #db: RocksLevel

  constructor(db: RocksLevel) {
    this.#db = db
  }

  get(key: Uint8Array): Buffer | undefined {
    return this.getMany([key])[0]
  }

  getMany(keys: readonly Uint8Array[]): (Buffer | undefined)[] {
    return this.#db._getManySync(keys, none)
  }

  cursor(range: Range, parts?: RowParts): Cursor {
    return new RocksCursor(this.#db, range, parts, () => {})
  }
}

// The store of the tests: an ordered map in memory that behaves like the stores on disk.
//
// All bytes that come in or go out are copied, as the stores on disk do. So a test that changes a buffer afterwards
// behaves here as it would there. A cursor takes its rows when it is opened.
//
// Not here: speed with many rows. Each new key shifts the array of keys (sorted-rows.ts).

import assert from 'node:assert/strict'
import type { Batch, Cursor, Range, Row, Store } from '../../src/ports.js'
import { CommitGate, type Enterable } from '../../src/storage/commit-gate.js'
import { SortedRows } from './sorted-rows.js'

export class MemoryStore implements Store {
  readonly name = 'memory'
  readonly shared = undefined
  readonly #gate = new CommitGate()
  readonly #rows: SortedRows

  /** `rows`: its rows at the start. */
  constructor(rows = new SortedRows()) {
    this.#rows = rows
  }

  get(key: Uint8Array): Buffer | undefined {
    this.#gate.assertOpen()
    const value = this.#rows.get(textOf(key))
    return value && Buffer.from(value)
  }

  getMany(keys: readonly Uint8Array[]): (Buffer | undefined)[] {
    return keys.map(key => this.get(key))
  }

  cursor(range: Range): Cursor {
    this.#gate.assertOpen()
    return new MemoryCursor(this.#rows.between(textOf(range.gte), textOf(range.lt)))
  }

  batch(): Batch {
    this.#gate.assertOpen()
    return new MemoryBatch()
  }

  commit(batch: Batch, onDone: (error?: Error) => void): void {
    assert(batch instanceof MemoryBatch, 'the batch was committed already, or is of another store')
    if (!this.#gate.enter(batch, onDone)) return
    for (const { key, value } of batch.operations) {
      if (value) this.#rows.put(key, value)
      else this.#rows.del(key)
    }
    this.#gate.leaveSoon()
  }

  /** There is nothing to make durable here; only the contract of the call is kept. */
  sync(onDone: (error?: Error) => void): void {
    if (this.#gate.enter({ inFlight: false }, onDone)) this.#gate.leaveSoon()
  }

  close(): Promise<void> {
    return this.#gate.close()
  }

  /** For tests: from now on every commit fails, as on a full disk. */
  breakDown(cause: Error): void {
    this.#gate.fail('the store could not write', cause)
  }
}

class MemoryBatch implements Batch, Enterable {
  readonly operations: { readonly key: string; readonly value?: Buffer }[] = []
  inFlight = false

  get length(): number {
    return this.operations.length
  }

  put(key: Uint8Array, value: Uint8Array): void {
    assert(!this.inFlight, 'the batch is being committed')
    this.operations.push({ key: textOf(key), value: Buffer.from(value) })
  }

  del(key: Uint8Array): void {
    assert(!this.inFlight, 'the batch is being committed')
    this.operations.push({ key: textOf(key) })
  }

  clear(): void {
    assert(!this.inFlight, 'the batch is being committed')
    this.operations.length = 0
  }
}

class MemoryCursor implements Cursor {
  readonly #rows: readonly (readonly [string, Buffer])[]
  #read = 0
  #closed = false

  constructor(rows: readonly (readonly [string, Buffer])[]) {
    this.#rows = rows
  }

  async next(rowsMax: number): Promise<Row[]> {
    assert(!this.#closed, 'the cursor is closed')
    assert(rowsMax > 0, 'a read must ask for at least one row')
    const rows = this.#rows.slice(this.#read, this.#read + rowsMax)
    this.#read += rows.length
    return rows.map(([key, value]) => ({ key: Buffer.from(key, 'latin1'), value: Buffer.from(value) }))
  }

  async close(): Promise<void> {
    this.#closed = true
  }
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
}

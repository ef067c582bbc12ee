// The store of the tests: an ordered map in memory, with the manners of the stores on disk.
//
// Keys are kept as latin1 strings, one character per byte: strings of such characters compare as their bytes do.
// Everything that comes in or goes out is copied, as it is by the stores on disk, so a test that changes a buffer
// afterwards behaves here as it would there. A cursor takes its rows when it is opened.
//
// Not here: speed with many rows. Each new key shifts the array of keys.

import assert from 'node:assert/strict'
import type { Batch, Cursor, Range, Row, Store } from '../../src/ports.js'
import { CommitGate, type Enterable } from '../../src/storage/commit-gate.js'

export class MemoryStore implements Store {
  readonly name = 'memory'
  readonly shared = undefined
  readonly #gate = new CommitGate()
  readonly #values = new Map<string, Buffer>()
  /** The keys of `#values`, in order. */
  readonly #keys: string[] = []

  get(key: Uint8Array): Buffer | undefined {
    this.#gate.assertOpen()
    const value = this.#values.get(textOf(key))
    return value && Buffer.from(value)
  }

  getMany(keys: readonly Uint8Array[]): (Buffer | undefined)[] {
    return keys.map(key => this.get(key))
  }

  cursor(range: Range): Cursor {
    this.#gate.assertOpen()
    const from = this.#placeOf(textOf(range.gte))
    const to = this.#placeOf(textOf(range.lt))
    const keys = this.#keys.slice(from, Math.max(from, to))
    return new MemoryCursor(keys.map(key => [key, this.#values.get(key)!]))
  }

  batch(): Batch {
    this.#gate.assertOpen()
    return new MemoryBatch()
  }

  commit(batch: Batch, onDone: (error?: Error) => void): void {
    assert(batch instanceof MemoryBatch, 'a batch of this store')
    if (!this.#gate.enter(batch, onDone)) return
    for (const { key, value } of batch.operations) {
      if (value) this.#put(key, value)
      else this.#del(key)
    }
    this.#gate.leaveSoon()
  }

  /** Nothing here survives anything. */
  sync(onDone: (error?: Error) => void): void {
    if (this.#gate.enter({ inFlight: false }, onDone)) this.#gate.leaveSoon()
  }

  close(): Promise<void> {
    return this.#gate.close()
  }

  /** For tests: from now on every commit fails, as on a disk that is full. */
  breakDown(cause: Error): void {
    this.#gate.fail('the store could not write', cause)
  }

  #put(key: string, value: Buffer): void {
    if (!this.#values.has(key)) this.#keys.splice(this.#placeOf(key), 0, key)
    this.#values.set(key, value)
  }

  #del(key: string): void {
    if (this.#values.delete(key)) this.#keys.splice(this.#placeOf(key), 1)
  }

  /** How many keys are before this one. */
  #placeOf(key: string): number {
    let low = 0
    let high = this.#keys.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#keys[middle]! < key) low = middle + 1
      else high = middle
    }
    return low
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
    assert(rowsMax > 0, 'asks for a row at least')
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

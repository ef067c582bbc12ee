// A node's disk, which outlives its processes, and the store that a process has opened over it. Reads, commits and
// syncs take simulated time.
//
// A process that is killed leaves its last commit written or not written, as a whole. A loss of power loses a random
// number of the last unflushed batches.

import type { Batch, Cursor, Range, Row } from '../../src/ports.js'
import { MemoryStore } from '../support/memory-store.js'
import type { Random } from '../support/random.js'
import { SortedRows } from '../support/sorted-rows.js'
import type { Process } from './simulated-world.js'

/** The probability that a loss of power loses all unflushed batches. */
const allLost = 0.5

export class SimulatedDisk extends SortedRows {
  /** Grows with each process that opens it: earlier processes write nothing any more. */
  life = 0
  /** For each batch since the last flush: its rows as they were before it. */
  private unflushed: Map<string, Buffer | undefined>[] = []

  /** Later writes belong to another batch. */
  beginBatch(): void {
    this.unflushed.push(new Map())
  }

  override put(key: string, value: Buffer): void {
    this.keepBefore(key)
    super.put(key, value)
  }

  override del(key: string): void {
    this.keepBefore(key)
    super.del(key)
  }

  flush(): void {
    this.unflushed = []
  }

  losePower(random: Random): void {
    this.life++
    const { unflushed } = this
    const lost = random.fraction() < allLost ? unflushed.length : random.between(0, unflushed.length)
    for (const batch of unflushed.splice(unflushed.length - lost).reverse())
      for (const [key, before] of batch)
        if (before) super.put(key, before)
        else super.del(key)
    this.flush()
  }

  private keepBefore(key: string): void {
    const batch = this.unflushed.at(-1)
    if (batch && !batch.has(key)) batch.set(key, this.get(key))
  }
}

/** How long a commit, sync or read takes; sometimes the disk is slow. */
const commitMsMax = 3
const readMsMax = 0.5
const slowMsMax = 150
const slow = 0.02
/** The probability that a commit is written that was in flight when its process was killed. */
const writtenAfterKill = 0.5

export class SimulatedStore extends MemoryStore {
  private readonly disk: SimulatedDisk
  private readonly process: Process
  private readonly life: number

  constructor(disk: SimulatedDisk, process: Process) {
    super(disk)
    this.disk = disk
    this.process = process
    this.life = ++disk.life
  }

  override commit(batch: Batch, onDone: (error?: Error) => void): void {
    this.later(() => {
      this.disk.beginBatch()
      super.commit(batch, error => this.report(onDone, error))
    })
  }

  override sync(onDone: (error?: Error) => void): void {
    this.later(() => {
      this.disk.flush()
      super.sync(error => this.report(onDone, error))
    })
  }

  override cursor(range: Range): Cursor {
    const cursor = super.cursor(range)
    return {
      next: rowsMax =>
        new Promise<Row[]>((resolve, reject) => {
          const { world } = this.process
          this.process.at(world.nowMs + world.random.fraction() * readMsMax, () => {
            cursor.next(rowsMax).then(resolve, reject)
          })
        }),
      close: () => cursor.close(),
    }
  }

  /** The disk works on while the process is stopped, and may complete an operation after the process was killed. */
  private later(run: () => void): void {
    const { process, disk, life } = this
    const { world } = process
    const delayMs = world.random.fraction() * (world.chance(slow) ? slowMsMax : commitMsMax)
    if (!process.alive) return
    world.at(world.nowMs + delayMs, () => {
      if (disk.life === life && (process.alive || world.chance(writtenAfterKill))) run()
    })
  }

  private report(onDone: (error?: Error) => void, error: Error | undefined): void {
    const { process } = this
    process.at(process.world.nowMs, () => onDone(error))
  }
}

// A node's disk, which outlives its processes, and the store that a process has opened over it. Reads, commits and
// syncs take simulated time.
//
// A process that is killed leaves its last commit written or not written, as a whole. A loss of power takes the end of
// what was not flushed: as many of the last batches as chance decides.

import type { Batch, Cursor, Range, Row } from '../../src/ports.js'
import { MemoryStore } from '../support/memory-store.js'
import type { Random } from '../support/random.js'
import { SortedRows } from '../support/sorted-rows.js'
import type { Process } from './simulated-world.js'

/** How often all that was not flushed is lost with the power. */
const allLost = 0.5

export class SimulatedDisk extends SortedRows {
  /** Grows with each process that opens it: the ones before write nothing any more. */
  life = 0
  /** Of each batch since the last flush: what its rows were before it. */
  private unflushed: Map<string, Buffer | undefined>[] = []

  /** What follows belongs to another batch. */
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

/** A commit or sync, or a read, takes so long; now and then the disk is slow. */
const commitMsMax = 3
const readMsMax = 0.5
const slowMsMax = 150
const slow = 0.02
/** How often a commit that was in flight when its process was killed is written. */
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
      super.commit(batch, error => this.tell(onDone, error))
    })
  }

  override sync(onDone: (error?: Error) => void): void {
    this.later(() => {
      this.disk.flush()
      super.sync(error => this.tell(onDone, error))
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

  /** The disk goes on while the process is stopped, and perhaps once more when it has been killed. */
  private later(run: () => void): void {
    const { process, disk, life } = this
    const { world } = process
    const delayMs = world.random.fraction() * (world.chance(slow) ? slowMsMax : commitMsMax)
    if (!process.alive) return
    world.at(world.nowMs + delayMs, () => {
      if (disk.life === life && (process.alive || world.chance(writtenAfterKill))) run()
    })
  }

  private tell(onDone: (error?: Error) => void, error: Error | undefined): void {
    const { process } = this
    process.at(process.world.nowMs, () => onDone(error))
  }
}

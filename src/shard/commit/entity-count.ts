// The number of entities in this owner's shards: the number in the store at one moment, read in the background, plus
// the later changes. It is read again when shards come or go.
//
// The rows to read are as many as shards of each path and type, not as entities.

import { decodeNumber } from '../keys.js'
import type { Counts } from './counts.js'

export class EntityCount {
  private readonly counts: Pick<Counts, 'difference' | 'rowsNow'>
  /** The number before `counts.difference` began. */
  private before: number | undefined
  private reading: Promise<void> | undefined
  private isReading = false
  /** Shards have come or gone since reading began. */
  private isStale = false
  private isStopped = false

  /** `counts`: those of entities. */
  constructor(counts: Pick<Counts, 'difference' | 'rowsNow'>) {
    this.counts = counts
    this.begin()
  }

  /** undefined: not known yet. */
  get total(): number | undefined {
    return this.before === undefined ? undefined : this.before + this.counts.difference
  }

  /** Reads the number again, because shards have come or gone. */
  begin(): void {
    this.before = undefined
    this.isStale = true
    if (this.isReading) return
    this.isReading = true
    // Other code reports a store that cannot be read; here the number stays unknown.
    this.reading = this.read().catch(() => undefined)
  }

  private async read(): Promise<void> {
    try {
      while (this.isStale && !this.isStopped) {
        this.isStale = false
        const { difference } = this.counts
        let sum = 0
        for await (const rows of this.counts.rowsNow()) {
          for (const { value } of rows) sum += decodeNumber(value)
          if (this.isStale || this.isStopped) break
        }
        if (!this.isStale && !this.isStopped) this.before = sum - difference
      }
    } finally {
      this.isReading = false
    }
  }

  /** Stops reading; resolves when the store is not needed. */
  async stop(): Promise<void> {
    this.isStopped = true
    await this.reading
  }
}

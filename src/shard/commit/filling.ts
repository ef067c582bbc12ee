// Fills a store that nobody uses yet: rows by batches, each with the index rows and the counts that its entities call for, so that whatever was
// written agrees with itself.

import type { Batch, Row, Store } from '../../ports.js'
import { prefix } from '../keys.js'
import { indexRow } from '../rebuild.js'
import type { PathCounts } from './counts.js'

/** A batch of the target with what goes into it. */
export class Filling {
  rows = 0
  bytes = 0
  private entitiesAdded = 0
  private readonly batch: Batch
  private readonly entities: PathCounts
  private readonly attributes: PathCounts
  private readonly target: Store

  constructor(target: Store, entities: PathCounts, attributes: PathCounts) {
    this.target = target
    this.batch = target.batch()
    this.entities = entities
    this.attributes = attributes
  }

  add(row: Row): void {
    this.batch.put(row.key, row.value)
    if (row.key[0] === prefix.entity) this.entitiesAdded += indexRow(row, this.batch, this.entities, this.attributes)
    this.rows++
    this.bytes += row.key.length + row.value.length
  }

  /** Writes what was added, with the counts as they then are and what `finish` puts in. Gives how many entities were added. */
  async commit(finish: (batch: Batch) => void): Promise<number> {
    const { target, batch, entitiesAdded } = this
    this.entities.flush(batch)
    this.attributes.flush(batch)
    finish(batch)
    await new Promise<void>((resolve, reject) =>
      target.commit(batch, error => {
        if (error) reject(error)
        else resolve()
      }),
    )
    batch.clear()
    this.rows = 0
    this.bytes = 0
    this.entitiesAdded = 0
    return entitiesAdded
  }
}

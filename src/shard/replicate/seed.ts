// From the stores of a single node to that of a node of a cluster, with the same content: entities, subscriptions and registrations, what
// became of notifications, what is owed and what was given up.
//
// The shards may be other ones, so everything is placed anew. Two entities of a type and path that were made in one moment by two
// workers may meet in one shard, where one row of the type index tells of each moment: then one of them moves on by far less than a millisecond.
// So do notifications that are owed, which keep their order.
//
// The sources must rest meanwhile. What was begun cannot be gone on with, only begun again in an empty store.
//
// Not here: which stores there are (src/process/cluster-init.ts), where the logs of the shards begin (cluster/replication/founding.ts).

import { TenantPaths } from '../../domain/few-paths.js'
import { keeper, type ShardMap, workerOf } from '../../domain/scope.js'
import { createdAt, imageCreated, imageType } from '../../image.js'
import type { DocumentKind } from '../../messages/messages.js'
import type { Batch, Range, Row, Store, StoreReader } from '../../ports.js'
import { rowsOf } from '../../rows.js'
import { Counts } from '../commit/counts.js'
import { Filling } from '../commit/filling.js'
import { documentKey, homeRange, parseDocumentKey, progressKey } from '../documents/document-layout.js'
import { encodeNumber } from '../keys.js'
import {
  attributeCounts,
  decodeRow,
  encodeRow,
  entityCounts,
  entityKey,
  nothing,
  parseEntityKey,
  shardRange,
  stampKey,
  typeKey,
} from '../layout.js'
import {
  decodeLetterRow,
  letterKey,
  letterRange,
  outboxKey,
  outboxRange,
  parseLetterKey,
  parseOutboxKey,
} from '../notify/notification-layout.js'
import { decodeTriggerEvent } from '../notify/trigger-event.js'
import { mergedProgress, type TransferLimits } from '../transfer.js'
import { encodePosition, pathKey, positionKey } from './replicated-layout.js'
import type { Position } from './replication.js'

export interface Seed {
  /** Of all workers of the single node. */
  readonly sources: readonly Store[]
  /** How many shards its data is divided into. */
  readonly sourceShards: number
  /** Empty. */
  readonly target: Store
  /** The cluster's. */
  readonly shardMap: ShardMap
  /** The largest of the stamps that the sources gave. */
  readonly stamp: number
  readonly limits: TransferLimits
  /** Told after each batch how many entities it held. */
  readonly onBatch: (entities: number) => void
  /** Stops between two batches. */
  readonly signal?: AbortSignal | undefined
}

/** What a store was filled with. */
export interface Seeded {
  readonly entities: number
  readonly subscriptions: number
  readonly registrations: number
  /** No stamp in it is larger. */
  readonly stamp: number
}

/** Fills the target. Rejects when a commit fails or the signal comes. */
export async function seed(given: Seed): Promise<Seeded> {
  const seeding = new Seeding(given)
  await seeding.each(shardRange, row => seeding.addEntity(row))
  await seeding.each(letterRange, row => seeding.addLetter(row))
  await seeding.each(outboxRange, row => seeding.addOwed(row))
  for (const kind of ['registration', 'subscription'] as const)
    await seeding.eachOf(given.sources[keeper]!, homeRange(kind, given.sourceShards), row =>
      seeding.addDocument(kind, row),
    )
  await seeding.addProgress()
  await seeding.commit()
  return seeding
}

/** The shards of a store have everything up to these positions, and nobody gives a stamp up to this one again: to be durable before a node uses it. */
export function putPositions(batch: Batch, positions: ReadonlyMap<number, Position>, stamp: number): void {
  for (const [shard, position] of positions) batch.put(positionKey(shard), encodePosition(position))
  batch.put(stampKey(), encodeNumber(stamp))
}

class Seeding implements Seeded {
  entities = 0
  subscriptions = 0
  registrations = 0
  stamp: number
  private readonly given: Seed
  private readonly filling: Filling
  private readonly register: number
  /** Of rows that are not written yet, as latin1: keys that must not be there twice. */
  private readonly taken = new Set<string>()
  private readonly paths = new TenantPaths()

  constructor(given: Seed) {
    const { target, shardMap, stamp } = given
    this.given = given
    this.register = shardMap.placement.shards
    this.stamp = stamp
    const owned = new Uint8Array(this.register).fill(1)
    const counts = [new Counts(target, entityCounts, owned), new Counts(target, attributeCounts, owned)] as const
    this.filling = new Filling(target, ...counts)
  }

  /** Adds the rows of all shards of the sources, each from the store that it belongs to. */
  async each(rangeOf: (shard: number) => Range, add: (row: Row) => void): Promise<void> {
    const { sources, sourceShards } = this.given
    for (let shard = 0; shard < sourceShards; shard++)
      await this.eachOf(this.sourceOf(shard, sources), rangeOf(shard), add)
  }

  /** Adds rows of one source. */
  async eachOf(source: StoreReader, range: Range, add: (row: Row) => void): Promise<void> {
    const { limits } = this.given
    for await (const rows of rowsOf(source, range, { rowsPerRead: limits.batchRowsMax }))
      for (const row of rows) {
        add(row)
        if (this.filling.rows >= limits.batchRowsMax || this.filling.bytes >= limits.batchBytesMax) await this.commit()
      }
  }

  private sourceOf(shard: number, sources: readonly Store[]): StoreReader {
    return sources[workerOf(shard, sources.length)] as Store
  }

  async commit(): Promise<void> {
    const { onBatch, signal } = this.given
    const entities = await this.filling.commit(() => {})
    this.taken.clear()
    this.entities += entities
    onBatch(entities)
    signal?.throwIfAborted()
  }

  addEntity({ key, value }: Row): void {
    const { tenant, path, id } = parseEntityKey(key)
    const shard = this.given.shardMap.shardOf(tenant, path, id)
    const images = decodeRow(value).map(image => {
      const type = imageType(image)
      const created = this.free(imageCreated(image), stamp => typeKey(tenant, path, type, stamp, shard))
      return created === imageCreated(image) ? image : createdAt(image, created)
    })
    this.filling.add({ key: entityKey(shard, tenant, path, id), value: encodeRow(images) })
    this.notePath(tenant, path)
  }

  private notePath(tenant: string, path: string): void {
    if (!this.paths.wants(tenant, path)) return
    this.paths.add(tenant, path)
    this.filling.add({ key: pathKey(this.register, tenant, path), value: nothing })
  }

  addOwed({ key, value }: Row): void {
    const place = parseOutboxKey(key)
    const shard = this.shardOf(value, place)
    const stamp = this.free(place.stamp, one => outboxKey({ shard, stamp: one }))
    this.filling.add({ key: outboxKey({ shard, stamp }), value })
  }

  addLetter({ key, value }: Row): void {
    const { tenant, subscription, ...place } = parseLetterKey(key)
    const shard = this.shardOf(decodeLetterRow(value).message, place)
    const keyAt = (stamp: number): Buffer => letterKey({ shard, tenant, subscription, stamp })
    this.filling.add({ key: keyAt(this.free(place.stamp, keyAt)), value })
  }

  /** The shard of the entity that a firing is about. */
  private shardOf(row: Buffer, place: { readonly shard: number; readonly stamp: number }): number {
    const { tenant, path, entity } = decodeTriggerEvent(row, place)
    return this.given.shardMap.shardOf(tenant, path, entity.id)
  }

  /** This stamp, or the next one with which a key is not there yet. */
  private free(stamp: number, keyAt: (stamp: number) => Buffer): number {
    for (let one = stamp; ; one++) {
      const key = keyAt(one)
      const name = key.toString('latin1')
      if (this.taken.has(name) || this.given.target.get(key)) continue
      this.taken.add(name)
      this.stamp = Math.max(this.stamp, one)
      return one
    }
  }

  addDocument(kind: DocumentKind, { key, value }: Row): void {
    const { tenant, id } = parseDocumentKey(key)
    this.filling.add({ key: documentKey(kind, { home: this.register, tenant, id }), value })
    this[`${kind}s`]++
  }

  async addProgress(): Promise<void> {
    const { sources, sourceShards } = this.given
    for (const { key, value } of await mergedProgress(sources, sourceShards)) {
      const { tenant, id } = parseDocumentKey(key)
      this.filling.add({ key: progressKey({ home: this.register, tenant, id }), value })
    }
  }
}

// Moves shards from stores at rest to another store: of another worker, of a node of a cluster, or of a single node.
//
// Rows that go with their shard are copied in the order of their keys. Indexes and counts are made from the entities
// (rebuild.ts), so errors in the old ones disappear. A batch holds some rows, all rows that follow from them, the
// present counts, and the last key. Whenever the process dies, the store itself has the progress, and agrees with its
// rows. The stamp is in the last batch: a store that has it is finished.
//
// The register comes last: documents from the store of its keeper, which decides. Every worker has a part of the
// subscriptions' progress; the keeper's store gets all parts as one. Where there are several owners, each store gets
// the service paths from the counts of entities. All that is little against the entities, so it is not reported as
// progress.
//
// The sources must be at rest from the first batch to the last. A caller that permits a write in between discards the
// target (src/process/repartition.ts).
//
// An entity of 320 bytes takes about 30 us of processor time, RocksDB's own threads and flushes included. Reading ahead
// while a batch is written gained nothing.
//
// Not here: which stores there are, and when the new ones begin to count (src/process/repartition.ts,
// cluster-directories.ts), how shards move between nodes that run (replicate/snapshot.ts).

import assert from 'node:assert/strict'
import { TenantPaths } from '../domain/few-paths.js'
import { keeper, workerOf } from '../domain/scope.js'
import { mergeProgress } from '../domain/subscriptions/subscription-status.js'
import type { Batch, Range, Row, Store, StoreReader } from '../ports.js'
import { readRow, rowsOf } from '../rows.js'
import { lastStamp } from './commit/commit-log.js'
import { Counts } from './commit/counts.js'
import { progressRange } from './documents/document-layout.js'
import { decodeNumber, destinations, encodeNumber, kindsThatGo, prefix, shardOfKey, under } from './keys.js'
import { attributeCounts, copiedKey, entityCounts, nothing, stampKey } from './layout.js'
import { decodeProgress, encodeProgress } from './notify/progress-book.js'
import { putRow } from './rebuild.js'
import { allPositions, kindRange, pathKey, pathRange } from './replicate/replicated-layout.js'
import { rowsBehind } from './replicate/snapshot.js'
import { isMarkKey } from './tenants/deletion-layout.js'

/** The names of rows that go with their shard. */
const shardRows = { entity: 'an entity', letter: 'a dead letter', outbox: 'a pending notification' }

export interface TransferLimits {
  /**
   * Limits of the primary rows of a batch, and of their bytes, which the last row may exceed. Larger batches cost fewer
   * commits, and lose more when the process is killed.
   */
  readonly batchRowsMax: number
  readonly batchBytesMax: number
}

export const transferLimitsDefault: TransferLimits = { batchRowsMax: 1000, batchBytesMax: 1024 * 1024 }

export interface Transfer {
  readonly target: Store
  /** The number of the worker whose store the target is, and of all workers; 0 of 1 on a single node. */
  readonly worker: number
  readonly workers: number
  /**
   * Whether a node of a cluster will use it. There, shards come and go, so the target has counts of each shard, and the
   * service paths of all nodes.
   */
  readonly isNode: boolean
  /** The stores at rest, of all workers. */
  readonly sources: readonly Store[]
  readonly shards: number
  readonly limits: TransferLimits
  /** Called after each batch with the number of its entities. */
  readonly onBatch: (entities: number) => void
  /** Stops the transfer between two batches. */
  readonly signal?: AbortSignal | undefined
}

/** Fills the target, from where an earlier attempt ended. Rejects when a commit fails or the signal comes. */
export async function transfer(given: Transfer): Promise<void> {
  const { target, worker, workers, isNode, sources, shards, limits, onBatch, signal } = given
  signal?.throwIfAborted()
  if (target.get(stampKey())) return
  const filling = new TransferBatch(target, isNode ? new Uint8Array(shards).fill(1) : undefined)
  const copied = target.get(copiedKey())
  for (const { source, range } of rangesToCopy(given))
    for await (const rows of rowsBehind(source, range, copied))
      for (const row of rows) {
        filling.add(row)
        if (filling.rows < limits.batchRowsMax && filling.bytes < limits.batchBytesMax) continue
        onBatch(await filling.commit(batch => batch.put(copiedKey(), row.key)))
        signal?.throwIfAborted()
      }
  if (worker === keeper) for (const row of await mergedProgress(sources, shards)) filling.add(row)
  for await (const row of marks(sources[keeper]!, shards)) filling.add(row)
  if (isNode || workers > 1) for await (const row of pathRows(sources, shards)) filling.add(row)
  onBatch(
    await filling.commit(batch => {
      batch.del(copiedKey())
      // At least as large as every stamp that any of the sources gave.
      batch.put(stampKey(), encodeNumber(Math.max(...sources.map(lastStamp))))
    }),
  )
}

/** The ranges that are copied byte by byte, in the order of keys: so one key marks the progress. */
function* rangesToCopy(given: Transfer): Iterable<{ readonly source: Store; readonly range: Range }> {
  const { worker, workers, sources, shards } = given
  for (const kind of kindsThatGo('shard'))
    for (let shard = worker; shard < shards; shard += workers)
      yield { source: sources[workerOf(shard, sources.length)]!, range: kindRange(kind, shard) }
  for (const kind of kindsThatGo('register')) yield { source: sources[keeper]!, range: kindRange(kind, shards) }
}

/** A batch of the target: rows that go with their shard or the register, and all rows that follow from them. */
export class TransferBatch {
  rows = 0
  bytes = 0
  private entitiesAdded = 0
  private readonly target: Store
  private readonly batch: Batch
  private readonly counts: { readonly entities: Counts; readonly attributes: Counts }

  /** `owned`: the shards whose counts are kept apart; undefined: all shards share their counts. */
  constructor(target: Store, owned: Uint8Array | undefined) {
    this.target = target
    this.batch = target.batch()
    this.counts = {
      entities: new Counts(target, entityCounts, owned),
      attributes: new Counts(target, attributeCounts, owned),
    }
  }

  add(row: Row): void {
    this.entitiesAdded += putRow(row, this.batch, this.counts)
    this.rows++
    this.bytes += row.key.length + row.value.length
  }

  /**
   * Writes the rows that were added, the present counts and the rows that `finish` puts. Returns how many entities were
   * added.
   */
  async commit(finish: (batch: Batch) => void): Promise<number> {
    const { target, batch, entitiesAdded } = this
    const { entities, attributes } = this.counts
    entities.flush(batch, everyShard)
    attributes.flush(batch, everyShard)
    finish(batch)
    await new Promise<void>((resolve, reject) => target.commit(batch, error => (error ? reject(error) : resolve())))
    entities.settle(everyShard)
    attributes.settle(everyShard)
    batch.clear()
    this.rows = 0
    this.bytes = 0
    this.entitiesAdded = 0
    return entitiesAdded
  }
}

const everyShard = (): boolean => true

/** The rows of the register for the service paths that exist. */
async function* pathRows(sources: Iterable<StoreReader>, register: number): AsyncIterable<Row> {
  const paths = new TenantPaths()
  for (const source of sources)
    for await (const rows of rowsOf(source, entityCounts.all))
      for (const { key } of rows) {
        const { tenant, path } = entityCounts.parse(key)
        if (!paths.wants(tenant, path)) continue
        paths.add(tenant, path)
        yield { key: pathKey(register, tenant, path), value: nothing }
      }
}

/** The marks of tenants that are being deleted: the owner that has these rows continues the deletion. */
async function* marks(source: StoreReader, register: number): AsyncIterable<Row> {
  for await (const rows of rowsOf(source, pathRange(register)))
    for (const row of rows) if (isMarkKey(row.key)) yield row
}

async function mergedProgress(sources: Iterable<StoreReader>, register: number): Promise<readonly Row[]> {
  const parts = new ProgressParts()
  for (const source of sources)
    for await (const rows of rowsOf(source, progressRange(register))) for (const row of rows) parts.add(row)
  return parts.merged()
}

/** The progress of subscriptions: merges the parts of all owners. It takes few bytes for each subscription. */
export class ProgressParts {
  private readonly parts = new Map<string, { readonly key: Buffer; readonly values: Buffer[] }>()

  add({ key, value }: Row): void {
    const known = this.parts.get(key.toString('latin1'))
    if (known) known.values.push(value)
    else this.parts.set(key.toString('latin1'), { key, values: [value] })
  }

  merged(): readonly Row[] {
    return [...this.parts.values()].map(({ key, values }) => {
      const decoded = values.map(value => readRow(key, () => decodeProgress(value)))
      const progress = mergeProgress(decoded.map(one => one.progress))
      return { key, value: encodeProgress(progress, decoded.find(({ grants }) => grants.length > 0)?.grants) }
    })
  }
}

/** The number of entities of a store, from its directory. */
export async function countEntities(store: StoreReader): Promise<number> {
  let total = 0
  for await (const rows of rowsOf(store, entityCounts.all)) for (const { value } of rows) total += decodeNumber(value)
  return total
}

/**
 * Describes the first row of a store that a transfer would lose; undefined when there is none. Such rows are of kinds
 * or notes that this version does not know, or of shards that the store should not hold.
 */
export async function findForeignRow(
  store: StoreReader,
  owns: (shard: number) => boolean,
): Promise<string | undefined> {
  let from: Buffer = Buffer.alloc(1)
  for (;;) {
    const key = await firstKey(store, { gte: from, lt: behindAll })
    if (!key) return undefined
    const kind = kinds.get(key[0] as number)
    if (kind === undefined) return `a row of a kind that this version does not know, key ${shown(key)}`
    switch (destinations[kind]) {
      case 'split':
        return `pending notifications that have not been split, key ${shown(key)}`
      case 'shard': {
        const shard = shardOfKey(key)
        if (!owns(shard))
          return `${shardRows[kind as keyof typeof shardRows]} of shard ${shard}, which belongs into another store, key ${shown(key)}`
        from = under(key.subarray(0, shardKeyBytes)).lt
        break
      }
      case 'register':
      case 'progress':
      case 'paths':
      case 'anew':
        from = under(key.subarray(0, 1)).lt
        break
      case 'note':
        if (!isKnownNote(key)) return `a note that this version does not know, key ${shown(key)}`
        // The first possible key after it.
        from = Buffer.concat([key, Buffer.alloc(1)])
    }
  }
}

/**
 * The largest stamp is kept. Positions begin anew: the stores of workers have one of the register, those of nodes one
 * of each shard.
 */
const isKnownNote = (key: Buffer): boolean => key.equals(stampKey()) || isPosition(key)

function isPosition(key: Buffer): boolean {
  const { gte, lt } = allPositions()
  return Buffer.compare(gte, key) <= 0 && Buffer.compare(key, lt) < 0
}

const kinds = new Map(Object.entries(prefix).map(([kind, first]) => [first as number, kind as keyof typeof prefix]))

/** The first bytes of the keys of one shard: their kind and its number. */
const shardKeyBytes = 3

/** After every key: none begins with so many of the highest byte. */
const behindAll = Buffer.alloc(64, 0xff)

async function firstKey(store: StoreReader, range: Range): Promise<Buffer | undefined> {
  for await (const [first] of rowsOf(store, range, { rowsPerRead: 1 })) return first?.key
  return undefined
}

/** Bytes of a key that a message shows. */
const shownBytesMax = 60

function shown(key: Buffer): string {
  assert(key.length > 0, 'a key is empty')
  return JSON.stringify(key.toString('latin1', 0, shownBytesMax))
}

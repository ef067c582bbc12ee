// Rows on their way from the stores of one division into shards to a store of another.
//
// Primary rows are copied as they are, shard by shard and in the order of their keys; indexes and counts are made from them
// (rebuild.ts), so whatever was wrong with the old ones is right afterwards. A batch holds some rows, all they call for, the
// counts as they then are, and the key of the last of them: whenever the process dies, the store says itself how far it got, and
// cannot disagree with its rows. The stamp comes with the last batch: a store that has it is finished.
//
// Dead letters and what is owed to receivers follow the entities, as they are and with their shards. Then come registrations and
// subscriptions: every store gets all of them, from the store of the register's keeper, whose word counts. What became of their notifications is
// known to every store in part; the store of the keeper gets all parts as one. Where there are several stores, all get the service paths that the
// directories know. All that is little against the entities, so nobody is told how much it is.
//
// The sources must rest meanwhile, and from the first batch to the last: whoever lets anybody write to them throws away
// what was begun (src/process/repartition.ts).
//
// An entity of 320 bytes takes about 30 us of processor time, RocksDB's own threads and flushes included; reading ahead while a
// batch is written gained nothing.
//
// Not here: which stores there are, and when the new ones begin to count (src/process/repartition.ts).

import assert from 'node:assert/strict'
import { TenantPaths } from '../domain/few-paths.js'
import { keeper } from '../domain/scope.js'
import { mergeProgress } from '../domain/subscriptions/subscription-status.js'
import type { Range, Row, Store, StoreReader } from '../ports.js'
import { readRow, rowsOf } from '../rows.js'
import { Counts } from './commit/counts.js'
import { Filling } from './commit/filling.js'
import { homeRange, progressRange } from './documents/document-layout.js'
import { decodeNumber, encodeNumber, prefix, shardOfKey, under } from './keys.js'
import { attributeCounts, copiedKey, entityCounts, nothing, shardRange, stampKey } from './layout.js'
import { letterRange, outboxRange } from './notify/notification-layout.js'
import { decodeProgress, encodeProgress } from './notify/progress-book.js'
import { pathKey, positionKey } from './replicate/replicated-layout.js'

/**
 * Where the rows of each kind go. `shard`: with their shard, byte by byte. `anew`: nowhere, they are made from the primary rows.
 * `everywhere`: to every store. `merged`: all parts of one become one, in the store of its home. `known`: one by one, as `notes` says.
 * `register`: to every store, made from the directory, if there are several. `split`: whoever divides stores has made rows of the outbox of them.
 */
const destinations = {
  entity: 'shard',
  type: 'anew',
  id: 'anew',
  expiry: 'anew',
  directory: 'anew',
  attribute: 'anew',
  letter: 'shard',
  registration: 'everywhere',
  subscription: 'everywhere',
  progress: 'merged',
  outbox: 'shard',
  bundle: 'split',
  meta: 'known',
  path: 'register',
} as const satisfies Record<
  keyof typeof prefix,
  'shard' | 'anew' | 'everywhere' | 'merged' | 'register' | 'known' | 'split'
>

/** What rows that go with their shard are called. */
const shardRows = { entity: 'an entity', letter: 'a dead letter', outbox: 'a notification that is owed' }

/** The node's notes that are looked after: of the stamps the largest goes on, and the position of the register begins anew. */
const notesOf = (register: number): readonly Buffer[] => [stampKey(), positionKey(register)]

export interface TransferLimits {
  /** Primary rows of a batch, and bytes of them; one row more may exceed the bytes. What a kill costs, against the cost of a commit. */
  readonly batchRowsMax: number
  readonly batchBytesMax: number
}

export const transferLimitsDefault: TransferLimits = { batchRowsMax: 1000, batchBytesMax: 1024 * 1024 }

export interface Transfer {
  readonly target: Store
  /** The shards that the target is to hold, in ascending order. */
  readonly shards: readonly number[]
  /** How many there are in all. */
  readonly shardCount: number
  /** Whether the target is that of the register's keeper. */
  readonly isKeeper: boolean
  /** Whether it is one of several. */
  readonly hasOthers: boolean
  readonly sourceOf: (shard: number) => StoreReader
  /** The largest of the stamps that the sources gave. */
  readonly stamp: number
  readonly limits: TransferLimits
  /** Told after each batch how many entities it held. */
  readonly onBatch: (entities: number) => void
  /** Stops between two batches. */
  readonly signal?: AbortSignal | undefined
}

/** Fills the target, from where an earlier try was when it ended. Rejects when a commit fails or the signal comes. */
export async function transfer(given: Transfer): Promise<void> {
  const { target, shards, shardCount, isKeeper, hasOthers, sourceOf, stamp, limits, onBatch, signal } = given
  signal?.throwIfAborted()
  if (target.get(stampKey())) return
  const filling = new Filling(target, new Counts(target, entityCounts), new Counts(target, attributeCounts))
  const copied = target.get(copiedKey())
  const entities = shards.map(shard => ({ shard, all: shardRange(shard) }))
  const all = Array.from({ length: shardCount }, (_, shard) => shard)
  const letters = shards.map(shard => ({ shard, all: letterRange(shard) }))
  const outbox = shards.map(shard => ({ shard, all: outboxRange(shard) }))
  const registrations = [{ shard: keeper, all: homeRange('registration', shardCount) }]
  const subscriptions = [{ shard: keeper, all: homeRange('subscription', shardCount) }]
  // In the order of keys: how far it got is told by one of them.
  for (const { shard, all } of [...entities, ...letters, ...outbox, ...registrations, ...subscriptions]) {
    const range = rest(all, copied)
    if (!range) continue
    for await (const rows of rowsOf(sourceOf(shard), range, { rowsPerRead: limits.batchRowsMax }))
      for (const row of rows) {
        filling.add(row)
        if (filling.rows < limits.batchRowsMax && filling.bytes < limits.batchBytesMax) continue
        onBatch(await filling.commit(batch => batch.put(copiedKey(), row.key)))
        signal?.throwIfAborted()
      }
  }
  const sources = new Set(all.map(sourceOf))
  if (isKeeper) for (const row of await mergedProgress(sources, shardCount)) filling.add(row)
  if (hasOthers) for await (const row of pathRows(sources, shardCount)) filling.add(row)
  onBatch(
    await filling.commit(batch => {
      batch.del(copiedKey())
      batch.put(stampKey(), encodeNumber(stamp))
    }),
  )
}

/** The rows of the register that tell which service paths there are. */
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

/** What became of the notifications of subscriptions: the parts of all stores as one. Few bytes for each subscription. */
export async function mergedProgress(sources: Iterable<StoreReader>, home: number): Promise<readonly Row[]> {
  const parts = new Map<string, { readonly key: Buffer; readonly values: Buffer[] }>()
  for (const source of sources)
    for await (const rows of rowsOf(source, progressRange(home)))
      for (const { key, value } of rows) {
        const known = parts.get(key.toString('latin1'))
        if (known) known.values.push(value)
        else parts.set(key.toString('latin1'), { key, values: [value] })
      }
  return [...parts.values()].map(({ key, values }) => {
    const decoded = values.map(value => readRow(key, () => decodeProgress(value)))
    const progress = mergeProgress(decoded.map(one => one.progress))
    return { key, value: encodeProgress(progress, decoded.find(({ grants }) => grants.length > 0)?.grants) }
  })
}

/** What of a range comes after a key; undefined when nothing can. */
function rest({ gte, lt }: Range, after: Buffer | undefined): Range | undefined {
  if (!after || Buffer.compare(after, gte) < 0) return { gte, lt }
  return Buffer.compare(after, lt) < 0 ? { gte: next(after), lt } : undefined
}

/** The first key behind another. */
const next = (key: Buffer): Buffer => Buffer.concat([key, Buffer.alloc(1)])

/** How many entities a store says it has, from its directory. */
export async function countEntities(store: StoreReader): Promise<number> {
  let total = 0
  for await (const rows of rowsOf(store, entityCounts.all)) for (const { value } of rows) total += decodeNumber(value)
  return total
}

/**
 * The first row of a store that would be lost in a transfer, in words; undefined when there is none: rows of kinds that this version does
 * not know, notes it does not know, and what belongs to shards that the store is not supposed to hold.
 */
export async function findStranger(
  store: StoreReader,
  register: number,
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
        return `notifications that are owed and have not been split, key ${shown(key)}`
      case 'shard': {
        const shard = shardOfKey(key)
        if (!owns(shard))
          return `${shardRows[kind as keyof typeof shardRows]} of shard ${shard}, which belongs into another store, key ${shown(key)}`
        from = under(key.subarray(0, shardKeyBytes)).lt
        break
      }
      case 'merged':
      case 'register':
      case 'anew':
      case 'everywhere':
        from = under(key.subarray(0, 1)).lt
        break
      case 'known':
        if (!notesOf(register).some(note => note.equals(key)))
          return `a note that this version does not know, key ${shown(key)}`
        from = next(key)
    }
  }
}

const kinds = new Map(Object.entries(prefix).map(([kind, first]) => [first as number, kind as keyof typeof prefix]))

/** What the keys of one shard begin with: their kind and its number. */
const shardKeyBytes = 3

/** Behind every key: none begins with so many of the highest byte. */
const behindAll = Buffer.alloc(64, 0xff)

async function firstKey(store: StoreReader, range: Range): Promise<Buffer | undefined> {
  for await (const [first] of rowsOf(store, range, { rowsPerRead: 1 })) return first?.key
  return undefined
}

/** Bytes of a key that a sentence shows. */
const shownBytesMax = 60

function shown(key: Buffer): string {
  assert(key.length > 0, 'a key has a first byte')
  return JSON.stringify(key.toString('latin1', 0, shownBytesMax))
}

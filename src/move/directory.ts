// The stores of a data directory that no broker uses: opens and closes them, and reads out all their items.
//
// Their locks are held as long as they are open, so no other process can use the directory meanwhile, or divide it
// anew.
//
// Items come in the order of tenant, path and id. The rows of each shard have that order, and those of all shards are
// merged, so the number of workers does not matter. Documents come from the keeper's store, whose rows decide. Every
// store has a part of the progress of a subscription.
//
// A position is the last row that came. It is valid until the directory is written to, which its stamp shows.
//
// Not here: writing to the stores (directory-sink.ts).

import type { Json } from '../domain/json.js'
import { ShardMap, workerOf } from '../domain/scope.js'
import type { SubscriptionProgress } from '../domain/subscriptions/subscription.js'
import { mergeProgress } from '../domain/subscriptions/subscription-status.js'
import { decodeEntity, encodedRoot } from '../encoded-entity.js'
import type { Durability, Row, Store } from '../ports.js'
import { readRow, rowsOf } from '../rows.js'
import { lastStamp } from '../shard/commit/commit-log.js'
import {
  type DocumentKey,
  decodeDocumentRow,
  documentRange,
  parseDocumentKey,
  progressKey,
} from '../shard/documents/document-layout.js'
import { registrationForm, subscriptionForm } from '../shard/documents/forms.js'
import { decodeRow, parseEntityKey, shardRange } from '../shard/layout.js'
import { decodeProgress } from '../shard/notify/progress-book.js'
import { countEntities } from '../shard/transfer.js'
import { Heap } from '../shard/turn/heap.js'
import type { DataDirectory } from '../storage/data-directory.js'
import { openStore, settleStore } from '../storage/open-store.js'
import { itemKinds, type MovedItem, type MovedKind, type Source, type SourceItem, type SourcePage } from './moved.js'
import { readCopies, shardsInWords } from './node-copies.js'

export interface OpenDirectory {
  readonly directory: DataDirectory
  readonly stores: readonly Store[]
  readonly shardMap: ShardMap
  storeOf(shard: number): Store
  close(): Promise<void>
}

/** Opens all stores. Rejects with a DataDirectoryError when the operator must correct something. */
export async function openStores(
  directory: DataDirectory,
  durability: Durability,
  warn: (line: string) => void,
): Promise<OpenDirectory> {
  const settled = await settleStore(directory, {})
  const { workers } = settled
  const stores: Store[] = []
  const close = async (): Promise<void> => {
    for (const store of stores) await store.close()
  }
  try {
    for (let worker = 0; worker < workers; worker++)
      stores.push(await openStore(settled, { durability, logger: { warn }, part: { worker, workers } }))
  } catch (error) {
    await close()
    throw error
  }
  return {
    directory: settled,
    stores,
    shardMap: new ShardMap(settled),
    storeOf: shard => stores[workerOf(shard, workers)] as Store,
    close,
  }
}

/** A page ends with the row that reaches one of these. */
const pageRowsMax = 1000
const pageBytesMax = 1024 * 1024

/** Rows per read from a shard: with 256 shards, this number for each is in memory. */
const rowsPerRead = 64

/**
 * Bytes at the beginning of a key: its kind and the number of the shard or document owner. The rest sorts alike in all
 * shards.
 */
const shardKeyBytes = 3

interface Position {
  readonly kind: MovedKind
  /** The key of the last row without its shard, in base 64. */
  readonly after: string
}

export async function directorySource(open: OpenDirectory): Promise<Source> {
  const { directory, stores } = open
  let total = 0
  for (const store of stores) total += await countEntities(store)
  // A node of a cluster has one store.
  const missing = directory.cluster ? (await readCopies(stores[0]!, directory.shards)).missing : []
  const lack = `data directory ${directory.path} has no complete copy of ${shardsInWords(missing)}`
  return {
    ...(missing.length > 0 && { lack }),
    name: `data directory ${directory.path}`,
    identity: { directory: directory.id, stamp: Math.max(...stores.map(lastStamp)) },
    total,
    pages: from => pagesOf(open, from as unknown as Position | undefined),
    close: () => open.close(),
  }
}

async function* pagesOf(open: OpenDirectory, from: Position | undefined): AsyncIterable<SourcePage> {
  for (const kind of itemKinds) {
    if (from && itemKinds.indexOf(kind) < itemKinds.indexOf(from.kind)) continue
    const after = from?.kind === kind ? Buffer.from(from.after, 'base64') : undefined
    const rows = new Merged(open, kind, after)
    try {
      for (;;) {
        const page = await pageOf(open, kind, rows)
        if (!page) break
        yield page
      }
    } finally {
      await rows.close()
    }
  }
}

async function pageOf(open: OpenDirectory, kind: MovedKind, rows: Merged): Promise<SourcePage | undefined> {
  const found: SourceItem[] = []
  let bytes = 0
  let last: Row | undefined
  for (let count = 0; count < pageRowsMax && bytes < pageBytesMax; count++) {
    const row = await rows.next()
    if (!row) break
    last = row
    bytes += row.value.length
    for (const item of readRow(row.key, () => itemsOf(open, kind, row))) found.push({ where: 'a row', item, fault: '' })
  }
  if (!last) return undefined
  const after = last.key.subarray(shardKeyBytes).toString('base64')
  return { found, after: { kind, after } satisfies Position as unknown as Json }
}

function itemsOf(open: OpenDirectory, kind: MovedKind, { key, value }: Row): MovedItem[] {
  if (kind === 'entity') {
    const { tenant, path } = parseEntityKey(key)
    return decodeRow(value).map(encoded => {
      const known = { isStamped: true, hasCreated: true, hasModified: true }
      return { kind, tenant, path, entity: decodeEntity(encoded), root: encodedRoot(encoded), ...known }
    })
  }
  const text = decodeDocumentRow(value)
  if (kind === 'registration') return [{ kind, registration: registrationForm.decode(text) }]
  return [
    { kind, subscription: subscriptionForm.decode(text), progress: storedProgress(open.stores, parseDocumentKey(key)) },
  ]
}

/** The progress of a subscription, merged from all stores. */
export function storedProgress(stores: readonly Store[], place: DocumentKey): SubscriptionProgress {
  const key = progressKey(place)
  const rows = stores.flatMap(store => store.get(key) ?? [])
  return mergeProgress(rows.map(row => decodeProgress(row).progress))
}

/** The rows of one kind of all shards, in the order of their keys behind the shard. */
class Merged {
  private readonly streams: readonly Stream[]
  private heads: Heap<Stream> | undefined

  constructor({ directory, storeOf }: OpenDirectory, kind: MovedKind, after: Buffer | undefined) {
    const shards =
      kind === 'entity' ? Array.from({ length: directory.shards }, (_, shard) => shard) : [directory.shards]
    this.streams = shards.map(shard => {
      const all = kind === 'entity' ? shardRange(shard) : documentRange(kind, shard)
      // The first key after a given one is that key and a zero byte.
      const gte = after ? Buffer.concat([all.gte, after, Buffer.alloc(1)]) : all.gte
      return new Stream(rowsOf(storeOf(shard), { gte, lt: all.lt }, { rowsPerRead }))
    })
  }

  async next(): Promise<Row | undefined> {
    this.heads ??= await this.open()
    const stream = this.heads.top
    const row = stream?.row
    if (!stream || !row) return undefined
    if (stream.advance() || (await stream.read())) this.heads.replaceTop(stream)
    else this.heads.pop()
    return row
  }

  private async open(): Promise<Heap<Stream>> {
    const heads = new Heap<Stream>(byKey)
    for (const stream of this.streams) if (await stream.read()) heads.push(stream)
    return heads
  }

  async close(): Promise<void> {
    for (const stream of this.streams) await stream.close()
  }
}

const byKey = ({ row: a }: Stream, { row: b }: Stream): number =>
  a!.key.compare(b!.key, shardKeyBytes, b!.key.length, shardKeyBytes, a!.key.length)

class Stream {
  row: Row | undefined
  private rows: readonly Row[] = []
  private at = 0

  constructor(private readonly reads: AsyncGenerator<Row[], void, void>) {}

  /** Moves on to the next row; false when rows have to be read first. */
  advance(): boolean {
    this.row = this.rows[++this.at]
    return this.row !== undefined
  }

  /** Reads rows; false at the end, where nothing is kept open. */
  async read(): Promise<boolean> {
    this.rows = (await this.reads.next()).value ?? []
    this.at = 0
    this.row = this.rows[0]
    return this.row !== undefined
  }

  async close(): Promise<void> {
    await this.reads.return()
  }
}

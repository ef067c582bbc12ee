// The check "indexes equal to a rebuild": every row of an index and of the counts can be found again from the primary rows, so
// after any crash the two must agree.
//
// What a primary row calls for is said here once (`indexRow`, `MadeCounts`), also for who makes a store anew from its primary rows (transfer.ts), or
// a shard from a snapshot (replicate/snapshot.ts).
//
// Rows are computed as the primary rows are read, and looked up in the store a few at a time: the memory it takes does not grow with
// the number of entities, only with that of counts. Extra rows are found by counting; only when there are too many are
// the expected keys collected to see which. The store must rest meanwhile: nobody writes.
//
// Not here: whether a primary row itself is right, and in its right shard.

import { expiryAttribute } from '../domain/entities/entity.js'
import { assertImage, decodeImage, imageCreated, imageExpiresMs, imageType } from '../image.js'
import type { Row, Store } from '../ports.js'
import { readRow, rowsOf } from '../rows.js'
import { decodeNumber, encodeNumber, prefix } from './keys.js'
import {
  allEntities,
  allIndexes,
  allShards,
  attributeCounts,
  attributeOfType,
  type CountRows,
  decodeRow,
  entityCounts,
  expiryKey,
  idKey,
  nothing,
  parseEntityKey,
  parseExpiryKey,
  parseIdKey,
  parseTypeKey,
  typeKey,
} from './layout.js'
import { nested } from './nested.js'

const rowsPerRead = 128

/** Where counts go: by tenant, path, and type or attribute (commit/counts.ts). */
export interface CountSink {
  count(tenant: string, path: string, type: string, difference: 1, shard: number): void
}

/** Puts every index row that a primary row calls for, and counts what it adds, if wanted. Gives the number of its entities. */
export function indexRow(
  { key, value }: Row,
  indexes: { put(key: Buffer, value: Buffer): void },
  entities?: CountSink,
  attributes?: CountSink,
): number {
  const place = parseEntityKey(key)
  const { shard, tenant, path, id } = place
  if (path !== '/') indexes.put(idKey(tenant, id, path), nothing)
  const images = decodeRow(value)
  for (const image of images) {
    readRow(key, () => assertImage(image))
    const type = imageType(image)
    indexes.put(typeKey(tenant, path, type, imageCreated(image), shard), Buffer.from(id))
    const expiresMs = imageExpiresMs(image)
    if (expiresMs !== undefined) indexes.put(expiryKey({ ...place, type, expiresMs }), nothing)
    entities?.count(tenant, path, type, 1, shard)
    if (attributes)
      for (const attribute of readRow(key, () => attributesIn(image, type)))
        attributes.count(tenant, path, attribute, 1, shard)
  }
  return images.length
}

/** The attributes of an image, as counts name them. */
const attributesIn = (image: Buffer, type: string): readonly string[] =>
  [...decodeImage(image).attributes]
    .filter(([name]) => name !== expiryAttribute)
    .map(([name, attribute]) => attributeOfType(type, name, attribute.type))

/** Every index row and row of counts that the primary rows of the store call for, in no particular order. */
export async function* rebuildIndexes(store: Store, countsAre: CountsAre = 'together'): AsyncIterable<Row> {
  const counts = new MadeCounts(countsAre)
  for await (const stored of rowsOf(store, allEntities(), { rowsPerRead })) {
    const rows: Row[] = []
    for (const row of stored)
      indexRow(row, { put: (key, value) => rows.push({ key, value }) }, counts.entities, counts.attributes)
    yield* rows
  }
  yield* counts.rows()
}

/** Whether a store has counts of each shard, as that of a node of a cluster, or of all shards together. */
export type CountsAre = 'together' | 'by shard'

/** Counts as primary rows call for them: of a store, or of a shard. */
export class MadeCounts {
  readonly entities: Totals
  readonly attributes: Totals

  constructor(countsAre: CountsAre) {
    this.entities = new Totals(entityCounts, countsAre)
    this.attributes = new Totals(attributeCounts, countsAre)
  }

  rows(): readonly Row[] {
    return [...this.entities.rows(), ...this.attributes.rows()]
  }
}

class Totals implements CountSink {
  private readonly layout: CountRows
  private readonly countsAre: CountsAre
  /** By tenant, path, type and shard. */
  private readonly totals = new Map<string, Map<string, Map<string, Map<number, number>>>>()

  constructor(layout: CountRows, countsAre: CountsAre) {
    this.layout = layout
    this.countsAre = countsAre
  }

  count(tenant: string, path: string, type: string, difference: 1, shard: number): void {
    const shards = nested(nested(nested(this.totals, tenant), path), type)
    const slot = this.countsAre === 'by shard' ? shard : allShards
    shards.set(slot, (shards.get(slot) ?? 0) + difference)
  }

  *rows(): Iterable<Row> {
    for (const [tenant, paths] of this.totals)
      for (const [path, types] of paths)
        for (const [type, shards] of types)
          for (const [shard, total] of shards)
            yield { key: this.layout.key(tenant, path, type, shard), value: encodeNumber(total) }
  }
}

/** What is wrong with the indexes and counts: one sentence for each row that is missing, extra or different. */
export async function compareIndexes(store: Store, countsAre: CountsAre = 'together'): Promise<readonly string[]> {
  const wrong: string[] = []
  let found = 0
  const compare = (rows: readonly Row[]): void => {
    const stored = store.getMany(rows.map(row => row.key))
    for (const [index, { key, value }] of rows.entries()) {
      const there = stored[index]
      if (there) found++
      if (!there) wrong.push(`missing: ${sentence(key, value)}`)
      else if (!there.equals(value))
        wrong.push(`different: ${sentence(key, there)}, where it should be ${said(key, value)}`)
    }
  }
  let some: Row[] = []
  for await (const row of rebuildIndexes(store, countsAre)) {
    some.push(row)
    if (some.length < rowsPerRead) continue
    compare(some)
    some = []
  }
  compare(some)
  // A row that two entities call for counts twice; what is wrong with them has been told by then.
  return (await countIndexes(store)) === found ? wrong : [...wrong, ...(await extras(store, countsAre))]
}

async function countIndexes(store: Store): Promise<number> {
  let count = 0
  for (const range of allIndexes()) for await (const rows of rowsOf(store, range)) count += rows.length
  return count
}

async function extras(store: Store, countsAre: CountsAre): Promise<string[]> {
  const expected = new Set<string>()
  for await (const { key } of rebuildIndexes(store, countsAre)) expected.add(key.toString('latin1'))
  const extra: string[] = []
  for (const range of allIndexes())
    for await (const rows of rowsOf(store, range))
      for (const { key, value } of rows)
        if (!expected.has(key.toString('latin1'))) extra.push(`extra: ${sentence(key, value)}`)
  return extra
}

// Rows in words

const { type: typeIndex, id: idIndex, expiry: expiryIndex, directory, attribute: attributes } = prefix
const numbered: ReadonlySet<number | undefined> = new Set([directory, attributes])

/** A row for an operator: which index it belongs to, its key taken apart, and its value. */
function sentence(key: Buffer, value: Buffer): string {
  try {
    return `${decoded(key)} = ${said(key, value)}`
  } catch {
    return `a row that cannot be read, key ${key.toString('hex')}`
  }
}

function decoded(key: Buffer): string {
  switch (key[0]) {
    case typeIndex: {
      const { created, shard, ...scope } = parseTypeKey(key)
      return `type index ${JSON.stringify({ ...scope, created, shard })}`
    }
    case idIndex:
      return `id index ${JSON.stringify(parseIdKey(key))}`
    case expiryIndex: {
      const { expiresMs, shard, ...place } = parseExpiryKey(key)
      return `expiry index ${JSON.stringify({ expires: new Date(expiresMs).toISOString(), ...place, shard })}`
    }
    case attributes:
      return `attribute counts ${JSON.stringify(attributeCounts.parse(key))}`
    default:
      return `directory ${JSON.stringify(entityCounts.parse(key))}`
  }
}

function said(key: Buffer, value: Buffer): string {
  if (numbered.has(key[0]) && value.length === 8) return String(decodeNumber(value))
  return JSON.stringify(value.toString())
}

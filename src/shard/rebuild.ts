// The check "indexes equal to a rebuild": every row of an index and of the directory can be found again from the primary rows, so
// after any crash the two must agree.
//
// What a primary row calls for is said here once (`indexRow`), also for who makes a store anew from its primary rows (transfer.ts).
//
// Rows are computed as the primary rows are read, and looked up in the store a few at a time: the memory it takes does not grow with
// the number of entities, only with the pairs of path and type. Extra rows are found by counting; only when there are too many are
// the expected keys collected to see which. The store must rest meanwhile: nobody writes.
//
// Not here: whether a primary row itself is right, and in its right shard.

import { expiryAttribute } from '../domain/entities/entity.js'
import { assertImage, decodeImage, imageCreated, imageExpiresMs, imageType } from '../image.js'
import type { Range, Row, Store } from '../ports.js'
import { rowsOf } from '../rows.js'
import { attributeCounts, type CountRows, entityCounts } from './commit/directory.js'
import { decodeNumber, encodeNumber, prefix, shardOfKey, under } from './keys.js'
import {
  allEntities,
  allIndexes,
  attributeOfType,
  decodeRow,
  expiryKey,
  idKey,
  nothing,
  parseAttributeCountKey,
  parseDirectoryKey,
  parseEntityKey,
  parseExpiryKey,
  parseIdKey,
  parseTypeKey,
  typeKey,
} from './layout.js'
import { readRow } from './read-row.js'
import { attributeCountsOf, entityCountsOf } from './replicate/replicated-layout.js'

const rowsPerRead = 128

/** Where counts go: by tenant, path, and type or attribute (directory.ts). */
export interface Counts {
  count(tenant: string, path: string, type: string, difference: 1, shard: number): void
}

/** Where a store keeps its counts: all in the same rows, or those of each shard in rows of their own. */
export interface CountLayout {
  /** Where all indexes and counts stand. */
  readonly ranges: readonly Range[]
  entities(shard: number): CountRows
  attributes(shard: number): CountRows
}

const countsOfNode: CountLayout = {
  ranges: allIndexes(),
  entities: () => entityCounts,
  attributes: () => attributeCounts,
}

/** As a node of a cluster keeps them: nothing may stand where others do. */
export const countsByShard: CountLayout = {
  ranges: [
    ...allIndexes(),
    ...[prefix.directoryOfShard, prefix.attributeOfShard].map(kind => under(Buffer.from([kind]))),
  ],
  entities: entityCountsOf,
  attributes: attributeCountsOf,
}

/** Puts every index row that a primary row calls for, and counts what it adds to the directory, if wanted. Gives the number of its entities. */
export function indexRow(
  { key, value }: Row,
  indexes: { put(key: Buffer, value: Buffer): void },
  entities?: Counts,
  attributes?: Counts,
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
    if (!attributes) continue
    for (const [name, attribute] of decodeImage(image).attributes)
      if (name !== expiryAttribute)
        attributes.count(tenant, path, attributeOfType(type, name, attribute.type), 1, shard)
  }
  return images.length
}

/** Every index row and directory row that the primary rows of the store call for, in no particular order. */
export async function* rebuildIndexes(store: Store, counts = countsOfNode): AsyncIterable<Row> {
  const entities = new Totals(shard => counts.entities(shard))
  const attributes = new Totals(shard => counts.attributes(shard))
  for await (const stored of rowsOf(store, allEntities(), { rowsPerRead })) {
    const rows: Row[] = []
    for (const row of stored) indexRow(row, { put: (key, value) => rows.push({ key, value }) }, entities, attributes)
    yield* rows
  }
  yield* entities.rows()
  yield* attributes.rows()
}

/** Counts of a store as they should be. */
class Totals implements Counts {
  /** By key. */
  private readonly totals = new Map<string, number>()
  private readonly rowsOf: (shard: number) => CountRows

  constructor(rowsOf: (shard: number) => CountRows) {
    this.rowsOf = rowsOf
  }

  count(tenant: string, path: string, type: string, _difference: 1, shard: number): void {
    const key = this.rowsOf(shard).key(tenant, path, type).toString('latin1')
    this.totals.set(key, (this.totals.get(key) ?? 0) + 1)
  }

  *rows(): Iterable<Row> {
    for (const [key, total] of this.totals) yield { key: Buffer.from(key, 'latin1'), value: encodeNumber(total) }
  }
}

/** What is wrong with the indexes and the directory: one sentence for each row that is missing, extra or different. */
export async function compareIndexes(store: Store, counts = countsOfNode): Promise<readonly string[]> {
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
  for await (const row of rebuildIndexes(store, counts)) {
    some.push(row)
    if (some.length < rowsPerRead) continue
    compare(some)
    some = []
  }
  compare(some)
  // A row that two entities call for counts twice; what is wrong with them has been told by then.
  return (await countIndexes(store, counts)) === found ? wrong : [...wrong, ...(await extras(store, counts))]
}

async function countIndexes(store: Store, { ranges }: CountLayout): Promise<number> {
  let count = 0
  for (const range of ranges) for await (const rows of rowsOf(store, range)) count += rows.length
  return count
}

async function extras(store: Store, counts: CountLayout): Promise<string[]> {
  const expected = new Set<string>()
  for await (const { key } of rebuildIndexes(store, counts)) expected.add(key.toString('latin1'))
  const extra: string[] = []
  for (const range of counts.ranges)
    for await (const rows of rowsOf(store, range))
      for (const { key, value } of rows)
        if (!expected.has(key.toString('latin1'))) extra.push(`extra: ${sentence(key, value)}`)
  return extra
}

// Rows in words

const { type: typeIndex, id: idIndex, expiry: expiryIndex, directory, attribute: attributes } = prefix
const { directoryOfShard, attributeOfShard } = prefix
const numbered: ReadonlySet<number | undefined> = new Set([directory, attributes, directoryOfShard, attributeOfShard])

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
      return `attribute counts ${JSON.stringify(parseAttributeCountKey(key))}`
    case directoryOfShard:
    case attributeOfShard: {
      const rows = key[0] === directoryOfShard ? entityCountsOf : attributeCountsOf
      return `counts ${JSON.stringify({ shard: shardOfKey(key), ...rows(0).parse(key) })}`
    }
    default: {
      const { tenant, path, type } = parseDirectoryKey(key)
      return `directory ${JSON.stringify({ tenant, path, type })}`
    }
  }
}

function said(key: Buffer, value: Buffer): string {
  if (numbered.has(key[0]) && value.length === 8) return String(decodeNumber(value))
  return JSON.stringify(value.toString())
}

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

import { expiryAttribute } from '../domain/entity.js'
import { decodeImage, imageCreated, imageExpiresMs, imageType } from '../image.js'
import type { Range, Row, Store } from '../ports.js'
import { attributeCounts, type CountRows, entityCounts } from './directory.js'
import { decodeNumber, encodeNumber } from './keys.js'
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
import { nested } from './nested.js'

const rowsPerRead = 128

/** Where counts go: by tenant, path, and type or attribute (directory.ts). */
export interface Counts {
  count(tenant: string, path: string, type: string, difference: 1): void
}

/** Puts every index row that a primary row calls for, and counts what it adds to the directory. Gives the number of its entities. */
export function indexRow(
  { key, value }: Row,
  indexes: { put(key: Buffer, value: Buffer): void },
  entities: Counts,
  attributes: Counts,
): number {
  const place = parseEntityKey(key)
  const { shard, tenant, path, id } = place
  if (path !== '/') indexes.put(idKey(tenant, id, path), nothing)
  const images = decodeRow(value)
  for (const image of images) {
    const type = imageType(image)
    indexes.put(typeKey(tenant, path, type, imageCreated(image), shard), Buffer.from(id))
    const expiresMs = imageExpiresMs(image)
    if (expiresMs !== undefined) indexes.put(expiryKey({ ...place, type, expiresMs }), nothing)
    entities.count(tenant, path, type, 1)
    for (const [name, attribute] of decodeImage(image).attributes)
      if (name !== expiryAttribute) attributes.count(tenant, path, attributeOfType(type, name, attribute.type), 1)
  }
  return images.length
}

/** Every index row and directory row that the primary rows of the store call for, in no particular order. */
export async function* rebuildIndexes(store: Store): AsyncIterable<Row> {
  const entities = new Totals(entityCounts)
  const attributes = new Totals(attributeCounts)
  for await (const row of rowsOf(store, allEntities())) {
    const rows: Row[] = []
    indexRow(row, { put: (key, value) => rows.push({ key, value }) }, entities, attributes)
    yield* rows
  }
  yield* entities.rows()
  yield* attributes.rows()
}

/** Counts of a store as they should be. */
class Totals implements Counts {
  private readonly tenants = new Map<string, Map<string, Map<string, number>>>()
  private readonly kind: CountRows

  constructor(kind: CountRows) {
    this.kind = kind
  }

  count(tenant: string, path: string, type: string): void {
    const types = nested(nested(this.tenants, tenant), path)
    types.set(type, (types.get(type) ?? 0) + 1)
  }

  *rows(): Iterable<Row> {
    for (const [tenant, paths] of this.tenants)
      for (const [path, types] of paths)
        for (const [type, total] of types) yield { key: this.kind.key(tenant, path, type), value: encodeNumber(total) }
  }
}

/** What is wrong with the indexes and the directory: one sentence for each row that is missing, extra or different. */
export async function compareIndexes(store: Store): Promise<readonly string[]> {
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
  for await (const row of rebuildIndexes(store)) {
    some.push(row)
    if (some.length < rowsPerRead) continue
    compare(some)
    some = []
  }
  compare(some)
  // A row that two entities call for counts twice; what is wrong with them has been told by then.
  return (await countIndexes(store)) === found ? wrong : [...wrong, ...(await extras(store))]
}

async function countIndexes(store: Store): Promise<number> {
  let count = 0
  for (const range of allIndexes()) for await (const _ of rowsOf(store, range)) count++
  return count
}

async function extras(store: Store): Promise<string[]> {
  const expected = new Set<string>()
  for await (const { key } of rebuildIndexes(store)) expected.add(key.toString('latin1'))
  const extra: string[] = []
  for (const range of allIndexes())
    for await (const { key, value } of rowsOf(store, range))
      if (!expected.has(key.toString('latin1'))) extra.push(`extra: ${sentence(key, value)}`)
  return extra
}

async function* rowsOf(store: Store, range: Range): AsyncIterable<Row> {
  const cursor = store.cursor(range)
  try {
    for (;;) {
      const rows = await cursor.next(rowsPerRead)
      if (rows.length === 0) return
      yield* rows
    }
  } finally {
    await cursor.close()
  }
}

// Rows in words

const [typeIndex, idIndex, expiryIndex, directory, attributes] = allIndexes().map(range => range.gte[0]) as [
  number,
  number,
  number,
  number,
  number,
]

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
    default: {
      const { tenant, path, type } = parseDirectoryKey(key)
      return `directory ${JSON.stringify({ tenant, path, type })}`
    }
  }
}

function said(key: Buffer, value: Buffer): string {
  if ((key[0] === directory || key[0] === attributes) && value.length === 8) return String(decodeNumber(value))
  return JSON.stringify(value.toString())
}

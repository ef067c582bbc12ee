// The check "indexes equal to a rebuild": every row of an index and of the directory can be found again from the primary rows, so
// after any crash the two must agree.
//
// Rows are computed as the primary rows are read, and looked up in the store a few at a time: the memory it takes does not grow with
// the number of entities, only with the pairs of path and type. Extra rows are found by counting; only when there are too many are
// the expected keys collected to see which. The store must rest meanwhile: nobody writes.
//
// Not here: whether a primary row itself is right, and in its right shard.

import { expiryAttribute } from '../domain/entity.js'
import { decodeImage, imageCreated, imageExpiresMs, imageType } from '../image.js'
import type { Range, Row, Store } from '../ports.js'
import {
  allEntities,
  allIndexes,
  attributeCountKey,
  attributeOfType,
  decodeNumber,
  decodeRow,
  directoryKey,
  encodeNumber,
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

const rowsPerRead = 128

/** Every index row and directory row that the primary rows of the store call for, in no particular order. */
export async function* rebuildIndexes(store: Store): AsyncIterable<Row> {
  const counts = new Map<string, { readonly key: Buffer; total: number }>()
  const add = (key: Buffer): void => {
    const count = counts.get(key.toString('latin1'))
    if (count) count.total++
    else counts.set(key.toString('latin1'), { key, total: 1 })
  }
  for await (const { key, value } of rowsOf(store, allEntities())) {
    const place = parseEntityKey(key)
    const { shard, tenant, path, id } = place
    if (path !== '/') yield { key: idKey(tenant, id, path), value: nothing }
    for (const image of decodeRow(value)) {
      const type = imageType(image)
      yield { key: typeKey(tenant, path, type, imageCreated(image), shard), value: Buffer.from(id) }
      const expiresMs = imageExpiresMs(image)
      if (expiresMs !== undefined) yield { key: expiryKey({ ...place, type, expiresMs }), value: nothing }
      add(directoryKey(tenant, path, type))
      for (const [name, attribute] of decodeImage(image).attributes)
        if (name !== expiryAttribute) add(attributeCountKey(tenant, path, attributeOfType(type, name, attribute.type)))
    }
  }
  for (const { key, total } of counts.values()) yield { key, value: encodeNumber(total) }
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

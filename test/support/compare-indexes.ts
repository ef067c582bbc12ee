// The check "indexes equal to a rebuild": every row of an index and of the counts can be computed from the primary
// rows, so after any crash the two must agree.
//
// Rows are computed as the primary rows are read, and looked up in the store a few at a time. So memory grows with the
// number of counts, not with that of entities. Extra rows are found by counting; only when there are too many, the
// expected keys are collected to find which. There must be no writes to the store meanwhile.
//
// Not here: the rows that a primary row calls for (src/shard/rebuild.ts), and the check of the primary rows themselves.

import type { Row, Store } from '../../src/ports.js'
import { rowsOf } from '../../src/rows.js'
import { decodeNumber, prefix, shardOfKey } from '../../src/shard/keys.js'
import {
  allEntities,
  allIndexes,
  allShards,
  attributeCounts,
  entityCounts,
  parseExpiryKey,
  parseIdKey,
  parseTypeKey,
} from '../../src/shard/layout.js'
import { indexRow, MadeCounts } from '../../src/shard/rebuild.js'

const rowsPerRead = 128

/** Whether a store has counts of each shard, as on a node of a cluster, or of all shards together. */
export type CountsAre = 'together' | 'by shard'

/** Every row of indexes and counts that the primary rows of the store call for, in no particular order. */
async function* rebuildIndexes(store: Store, countsAre: CountsAre): AsyncIterable<Row> {
  const counts = new Map<number, MadeCounts>()
  for await (const stored of rowsOf(store, allEntities(), { rowsPerRead })) {
    const rows: Row[] = []
    for (const row of stored) {
      const slot = countsAre === 'by shard' ? shardOfKey(row.key) : allShards
      const made = counts.get(slot) ?? new MadeCounts(slot)
      counts.set(slot, made)
      indexRow(row, { put: (key, value) => rows.push({ key, value }) }, made)
    }
    yield* rows
  }
  for (const made of counts.values()) yield* made.rows()
}

/** The errors of the indexes and counts: one sentence for each row that is missing, extra or different. */
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
  // A row that two entities call for counts twice; its errors are reported by then.
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

/** A row, for an operator: its index, its key taken apart, and its value. */
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

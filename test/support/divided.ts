// A data directory with entities of all sorts, and its content, for any number of workers.
//
// Entities come by turns of real shards: several types of an id, several tenants and paths, texts beyond ASCII, dates
// to expire, some changed, some deleted again.

import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import { systemClock } from '../../src/clock.js'
import type { WantedAttribute } from '../../src/domain/entities/entity.js'
import type { Json } from '../../src/domain/json.js'
import { ShardMap, workerOf } from '../../src/domain/scope.js'
import type { ShardReply, WriteRequest } from '../../src/messages/messages.js'
import type { Row, Store } from '../../src/ports.js'
import { lastStamp } from '../../src/shard/commit/commit-log.js'
import { allEntities, decodeRow, parseEntityKey } from '../../src/shard/layout.js'
import { type DataDirectory, openDataDirectory, recordStore, type StoreKind } from '../../src/storage/data-directory.js'
import { openStore } from '../../src/storage/open-store.js'
import { rowsOf } from '../storage/store-contract.js'
import { compareIndexes } from './compare-indexes.js'
import { localShards } from './local-shards.js'
import type { Random } from './random.js'

export const placement = { shards: 16, spread: 4 }

/** The directory at a path; a new one is for one worker. */
export const directoryAt = (path: string): DataDirectory => openDataDirectory(path, placement, () => 'an-id')

/** A new directory for one worker, after this number of creating turns and some other turns. */
export async function populated(
  path: string,
  random: Random,
  turns: number,
  kind?: StoreKind,
  words: Words = anyWords,
): Promise<DataDirectory> {
  const fresh = directoryAt(path)
  const directory = kind ? recordStore(fresh, kind) : fresh
  const [store] = (await openAll(directory)) as [Store]
  try {
    const shardMap = new ShardMap(directory)
    const shards = await localShards(store, shardMap, systemClock)
    const settled: Promise<ShardReply>[] = []
    for (let turn = 0; turn < turns; turn++) {
      const request = turnOf(random, turn, words)
      const { tenant, path, id } = request.target
      settled.push(new Promise(resolve => shards.ask(shardMap.shardOf(tenant, path, id), request, resolve)))
      if (turn % 500 === 0) await turnOfTheLoop()
    }
    await Promise.all(settled)
    await shards.drain()
  } finally {
    await store.close()
  }
  return directoryAt(path)
}

const tenants = ['', 'city', 'a_b'] as const
const paths = ['/', '/', '/a', '/a/b', '/ab'] as const

/** Beginnings of ids, and types. */
export interface Words {
  readonly stems: readonly [string, ...string[]]
  readonly types: readonly [string, ...string[]]
}

/** Words without restriction: rows with any words can be copied. */
const anyWords: Words = {
  types: ['Room', 'Hall', 'x.y', '会议室'],
  stems: ['urn:room:', 'é', '😀', 'a\u0001b', 'constructor', '(|)'],
}
/** Words that a request could bring, and a few more plain ones. */
export const plainWords: Words = {
  types: ['Room', 'Hall', 'x.y', '\\"'],
  stems: ['urn:room:', 'a\u0001b', 'constructor', '__proto__', '(|)', '\\'],
}
const names = ['temp', 'name', '__proto__', 'größe', 'a:b'] as const
const origin = { correlatorRoot: 'root' }
const options = { overrideMetadata: false, forcedUpdate: false }

function turnOf(random: Random, turn: number, { stems, types }: Words): WriteRequest {
  const id = `${random.pick(stems)}${random.between(0, turn)}`
  const type = random.pick(types)
  const target = { tenant: random.pick(tenants), path: random.pick(paths), id, type }
  if (random.fraction() < 0.1) return { kind: 'deleteEntity', target, origin }
  const attributes = attributesOf(random)
  return { kind: 'create', target, origin, entity: { id, type, attributes }, upsert: true, options }
}

function attributesOf(random: Random): Map<string, WantedAttribute> {
  const attributes = new Map<string, WantedAttribute>()
  for (const name of names)
    if (random.fraction() < 0.6) {
      const [type, value] = random.pick<readonly [string, Json]>([
        ['Number', random.between(0, 99)],
        ['Text', 'ü'.repeat(random.between(0, 40))],
        ['StructuredValue', { k: [1, null, '\u2028'] }],
        ['größe', null],
      ])
      attributes.set(name, wanted(type, value))
    }
  // A `dateExpires` that is a date is shown only on request; a text of that name is always shown.
  const expiring = random.fraction()
  if (expiring < 0.1) attributes.set('dateExpires', wanted('DateTime', '2999-01-01T00:00:00.000Z'))
  else if (expiring < 0.15) attributes.set('dateExpires', wanted('Text', 'never'))
  return attributes
}

const wanted = (type: string, value: Json): WantedAttribute => ({
  type,
  value,
  operator: undefined,
  metadata: new Map([['acc', { type: 'Number', value: 1 }]]),
})

/** The stores of all workers. */
export async function openAll(directory: DataDirectory): Promise<Store[]> {
  const { workers } = directory
  const stores: Store[] = []
  for (let worker = 0; worker < workers; worker++)
    stores.push(
      await openStore(directoryAt(directory.path), {
        durability: 'os',
        logger: { warn: () => {} },
        part: { worker, workers },
      }),
    )
  return stores
}

async function withAll<T>(path: string, look: (stores: readonly Store[], directory: DataDirectory) => Promise<T>) {
  const directory = directoryAt(path)
  const stores = await openAll(directory)
  try {
    return await look(stores, directory)
  } finally {
    for (const store of stores) await store.close()
  }
}

/** The content of a directory: every primary row by its key, and the number of entities in them. */
export interface Contents {
  readonly rows: ReadonlyMap<string, string>
  readonly entities: number
  /** The largest of the last stamps. */
  readonly stamp: number
}

/** Everything in the directory at a path, from all its stores together. */
export function contentsOf(path: string): Promise<Contents> {
  return withAll(path, async stores => {
    const found = (await Promise.all(stores.map(store => rowsOf(store, allEntities())))).flat()
    const rows = new Map(found.map(({ key, value }) => [key.toString('latin1'), value.toString('latin1')]))
    const entities = found.reduce((sum, { value }) => sum + decodeRow(value).length, 0)
    return { rows, entities, stamp: Math.max(...stores.map(lastStamp)) }
  })
}

/**
 * The errors in the stores of a directory: rows that are in the wrong store, and indexes that differ from a rebuild.
 */
export function wrongIn(path: string): Promise<string[]> {
  return withAll(path, async (stores, { workers }) => {
    const wrong: string[] = []
    for (const [worker, store] of stores.entries()) {
      for (const { key } of await rowsOf(store, allEntities())) {
        const { shard } = parseEntityKey(key)
        if (workerOf(shard, workers) !== worker) wrong.push(`worker ${worker} has a row of shard ${shard}`)
      }
      for (const { key } of await notesOf(store))
        if (key.toString('latin1') !== 'Mstamp\0') wrong.push(`worker ${worker} has the note ${key.toString('latin1')}`)
      wrong.push(...(await compareIndexes(store)))
    }
    return wrong
  })
}

const notesOf = (store: Store): Promise<Row[]> => rowsOf(store, { gte: Buffer.from('M'), lt: Buffer.from('N') })

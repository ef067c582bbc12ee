// The key filter: it never denies a key that is stored, and it denies most keys that are not.

import t from 'tap'
import { HybridClock, systemClock } from '../../../src/clock.js'
import { ShardMap } from '../../../src/domain/scope.js'
import type { ShardReply, WriteRequest } from '../../../src/messages/messages.js'
import { entityKey } from '../../../src/shard/layout.js'
import { shardLimitsDefault } from '../../../src/shard/open-shards.js'
import { StepwiseScanner } from '../../../src/shard/read/scans.js'
import { KeyFilter, type KeySource, readKeys } from '../../../src/shard/turn/key-filter.js'
import { entityOf, fill } from '../../support/entities.js'
import { localShards } from '../../support/local-shards.js'
import { MemoryStore } from '../../support/memory-store.js'

const shardMap = new ShardMap({ shards: 8, spread: 8 })
const keyOf = (id: string): Buffer => entityKey(shardMap.shardOf('t', '/', id), 't', '/', id)
const noPause = {
  after(_: number, run: () => void) {
    const soon = setImmediate(run)
    return () => clearImmediate(soon)
  },
}

const placed = (from: number, until: number) =>
  Array.from({ length: until - from }, (_, n) => ({
    path: '/',
    entity: entityOf(`E${from + n}`, 'T', from + n + 1, {}),
  }))

const sourceOf = (store: MemoryStore): KeySource => new StepwiseScanner(store, shardMap, systemClock)

t.test('everything may be there before the store has been read', async t => {
  t.ok(new KeyFilter().mayHold(keyOf('E1')))
})

t.test('stored keys may be there, and nearly no others', async t => {
  const store = new MemoryStore()
  await fill(store, shardMap, 't', placed(0, 20_000))
  const keyFilter = new KeyFilter()
  await keyFilter.learn(store, sourceOf(store), noPause)
  const there = placed(0, 20_000).filter(({ entity }) => keyFilter.mayHold(keyOf(entity.id)))
  const mistaken = placed(20_000, 40_000).filter(({ entity }) => keyFilter.mayHold(keyOf(entity.id)))
  t.equal(there.length, 20_000)
  t.ok(mistaken.length < 400, `${mistaken.length} of 20,000`)
})

t.test('added keys may be there, through many layers', async t => {
  const store = new MemoryStore()
  const keyFilter = new KeyFilter()
  await keyFilter.learn(store, sourceOf(store), noPause)
  for (let n = 0; n < 300_000; n++) keyFilter.add(keyOf(`E${n}`))
  let lacking = 0
  let mistaken = 0
  for (let n = 0; n < 300_000; n++) if (!keyFilter.mayHold(keyOf(`E${n}`))) lacking++
  for (let n = 300_000; n < 320_000; n++) if (keyFilter.mayHold(keyOf(`E${n}`))) mistaken++
  t.equal(lacking, 0)
  t.ok(mistaken < 1000, `${mistaken} of 20,000`)
})

t.test('keys that are added while the store is read may be there', async t => {
  const store = new MemoryStore()
  await fill(store, shardMap, 't', placed(0, 100))
  const keyFilter = new KeyFilter()
  const keys: KeySource['keys'] = async scan => {
    keyFilter.add(keyOf('meanwhile'))
    return readKeys(store, scan, async () => {})
  }
  await keyFilter.learn(store, { keys }, noPause)
  t.ok(keyFilter.mayHold(keyOf('meanwhile')))
  t.notOk(keyFilter.mayHold(keyOf('never')))
})

t.test('a store that cannot be read leaves everything possible', async t => {
  const store = new MemoryStore()
  await fill(store, shardMap, 't', placed(0, 10))
  const keyFilter = new KeyFilter()
  const failing: KeySource = { keys: () => Promise.reject(new Error('the disk')) }
  await t.rejects(keyFilter.learn(store, failing, noPause), /the disk/)
  t.ok(keyFilter.mayHold(keyOf('never')))
})

t.test('learning ends when it is stopped, and leaves everything possible', async t => {
  const store = new MemoryStore()
  await fill(store, shardMap, 't', placed(0, 10))
  const keyFilter = new KeyFilter()
  const learned = keyFilter.learn(store, sourceOf(store), { after: () => () => {} })
  // The pause after the first portion never ends by itself.
  await new Promise(resolve => setImmediate(() => setImmediate(() => setImmediate(resolve))))
  keyFilter.stop()
  await learned
  t.ok(keyFilter.mayHold(keyOf('never')))
})

t.test('entities are found, created and created again as without it', async t => {
  const store = new MemoryStore()
  await fill(store, shardMap, 't', placed(0, 50))
  const shards = await localShards(store, shardMap, systemClock, {
    stamps: new HybridClock(systemClock, 1000),
    limits: { ...shardLimitsDefault, liveActorsMax: 2 },
  })
  await shards.parts.keyFilter.learn(store, sourceOf(store), noPause)
  const ask = (request: WriteRequest): Promise<ShardReply> =>
    new Promise(resolve => shards.ask(shardMap.shardOf('t', '/', request.target.id), request, resolve))
  const create = (id: string) =>
    ask({
      kind: 'create',
      target: { tenant: 't', path: '/', id, type: 'T' },
      entity: { id, type: 'T', attributes: new Map() },
      upsert: false,
      options: { overrideMetadata: false, forcedUpdate: false },
      origin: { correlatorRoot: '' },
    })
  const remove = (id: string) =>
    ask({ kind: 'deleteEntity', target: { tenant: 't', path: '/', id, type: 'T' }, origin: { correlatorRoot: '' } })
  for (let round = 0; round < 2; round++) {
    for (let n = 0; n < 60; n++) {
      const isThere = n < 50
      t.equal((await create(`E${n}`)).kind, isThere ? 'refused' : 'done', `E${n}`)
    }
    for (let n = 50; n < 60; n++) t.equal((await remove(`E${n}`)).kind, 'done')
  }
})

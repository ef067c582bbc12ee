// The part of a backup that an owner of shards gives: which rows, of which moment, and how long it keeps them.

import t from 'tap'
import type { BackupReply, BackupStep } from '../../src/messages/messages.js'
import type { Store } from '../../src/ports.js'
import { BackupSource, type BackupSourceParts } from '../../src/shard/backup-source.js'
import { documentKey, progressKey } from '../../src/shard/documents/document-layout.js'
import { encodeNumber } from '../../src/shard/keys.js'
import { entityKey, stampKey, typeKey } from '../../src/shard/layout.js'
import { bundleKey, letterKey, outboxKey } from '../../src/shard/notify/notification-layout.js'
import { encodePosition, pathKey, positionKey } from '../../src/shard/replicate/replicated-layout.js'
import { commit } from '../storage/store-contract.js'
import { FakeClock } from '../support/fake-clock.js'
import { MemoryStore } from '../support/memory-store.js'

const shards = 4
const register = shards
const letter = { tenant: 't', subscription: 's', stamp: 1 }
const document = { register: register, tenant: 't', id: 'd' }
const outcome = { succeeded: true, endedMs: 3, durationMs: 2, bytes: 1 }

/** A row of every kind, in shards 0 and 1, by name. */
const rows: Readonly<Record<string, Buffer>> = {
  bundle: bundleKey({ shard: 0, stamp: 1 }),
  'entity 0': entityKey(0, 't', '/', 'E'),
  'entity 1': entityKey(1, 't', '/', 'F'),
  'letter 0': letterKey({ shard: 0, ...letter }),
  'letter 1': letterKey({ shard: 1, ...letter }),
  'outbox 0': outboxKey({ shard: 0, stamp: 1 }),
  'outbox 1': outboxKey({ shard: 1, stamp: 1 }),
  progress: progressKey(document),
  registration: documentKey('registration', document),
  subscription: documentKey('subscription', document),
  path: pathKey(register, 't', '/'),
  'position 1': positionKey(1),
  stamp: stampKey(),
  type: typeKey('t', '/', 'T', 1, 0),
}
const names = new Map(Object.entries(rows).map(([name, key]) => [key.toString('hex'), name]))

async function storeOf(value = 'before'): Promise<MemoryStore> {
  const store = new MemoryStore()
  await put(store, value)
  return store
}

const put = (store: Store, value: string): Promise<void> =>
  commit(store, batch => {
    for (const key of Object.values(rows)) batch.put(key, Buffer.from(value))
    batch.put(positionKey(1), encodePosition({ sequence: 5, epoch: 2, hash: Buffer.alloc(32) }))
    batch.put(stampKey(), encodeNumber(17))
  })

class Scene {
  readonly clock = new FakeClock()
  readonly source: BackupSource

  constructor(store: Store, parts: Partial<BackupSourceParts> = {}) {
    this.source = new BackupSource({
      store,
      commit: { afterAll: onDurable => onDurable(), whenQuiet: onQuiet => onQuiet() },
      clock: this.clock,
      shards,
      lastStamp: () => 17,
      owns: () => true,
      isNode: false,
      ...parts,
    })
  }

  ask(step: BackupStep): Promise<BackupReply> {
    return new Promise((resolve, reject) =>
      this.source.onAsk({ kind: 'backup', step }, reply =>
        reply.kind === 'backup' ? resolve(reply.content) : reject(new Error(JSON.stringify(reply))),
      ),
    )
  }

  /** The names of all rows that the source returns, each with its value. */
  async rows(session: string): Promise<string[]> {
    const found: string[] = []
    for (;;) {
      const reply = await this.ask({ what: 'page', session })
      if (reply.what !== 'page') throw new Error(reply.what)
      for (let at = 0; at < reply.bytes.length; ) {
        const keyEnd = at + 2 + reply.bytes.readUInt16BE(at)
        const end = keyEnd + 4 + reply.bytes.readUInt32BE(keyEnd)
        const key = reply.bytes.toString('hex', at + 2, keyEnd)
        found.push(`${names.get(key)}: ${reply.bytes.toString('utf8', keyEnd + 4, end)}`)
        at = end
      }
      if (reply.isLast) return found
    }
  }
}

const given = (...some: readonly string[]): string[] => some.map(name => `${name}: before`)

t.test('an owner that is alone gives every row that is not made from others, and no note of its own', async t => {
  const scene = new Scene(await storeOf())
  t.strictSame(await scene.ask({ what: 'begin', session: 'a' }), {
    what: 'begun',
    shards: [0, 1, 2, 3],
    isKeeper: true,
    stamp: 17,
    positions: [],
  })
  const wanted = ['bundle', 'entity 0', 'entity 1', 'letter 0', 'letter 1', 'outbox 0', 'outbox 1']
  t.strictSame(await scene.rows('a'), given(...wanted, 'progress', 'registration', 'subscription'))
})

t.test(
  'a worker without the register gives the rows of its shards, and its part of the progress of notifications',
  async t => {
    const scene = new Scene(await storeOf(), { owns: shard => shard === 1 })
    t.match(await scene.ask({ what: 'begin', session: 'a' }), { shards: [1], isKeeper: false })
    t.strictSame(await scene.rows('a'), given('bundle', 'entity 1', 'letter 1', 'outbox 1', 'progress'))
  },
)

t.test('a node gives the rows of shards that are its own, with their positions, and nothing of copies', async t => {
  const scene = new Scene(await storeOf(), { owns: shard => shard === 1, isNode: true })
  const begun = await scene.ask({ what: 'begin', session: 'a' })
  t.match(begun, { shards: [1], positions: [{ shard: 1, epoch: 2, sequence: 5 }] })
  t.strictSame(await scene.rows('a'), given('bundle', 'entity 1', 'letter 1', 'outbox 1'))
})

t.test('rows that are written after the beginning are not in it', async t => {
  const store = await storeOf()
  const scene = new Scene(store)
  await scene.ask({ what: 'begin', session: 'a' })
  await put(store, 'after')
  for (const one of await scene.rows('a')) t.match(one, /: before$/)
})

t.test('it begins when staged changes are durable', async t => {
  const store = new MemoryStore()
  let isDurable = (): void => {}
  const scene = new Scene(store, {
    commit: {
      whenQuiet: onQuiet => onQuiet(),
      afterAll: onDurable => {
        isDurable = onDurable
      },
    },
  })
  const begun = scene.ask({ what: 'begin', session: 'a' })
  await put(store, 'before')
  isDurable()
  await begun
  t.equal((await scene.rows('a')).length, 10)
})

t.test('it does not wait for ever for staged changes: a full disk may hold them up', async t => {
  const scene = new Scene(await storeOf(), { commit: { afterAll: () => {}, whenQuiet: () => {} } })
  const begun = scene.ask({ what: 'begin', session: 'a' })
  scene.clock.advance(1_000)
  t.match(await begun, { what: 'begun' })
})

t.test('rows that are many come in several pages', async t => {
  const store = new MemoryStore()
  await commit(store, batch => {
    for (let n = 0; n < 1_000; n++) batch.put(entityKey(0, 't', '/', `E${n}`), Buffer.alloc(400))
  })
  const scene = new Scene(store)
  await scene.ask({ what: 'begin', session: 'a' })
  let pages = 0
  for (let isLast = false; !isLast; pages++) {
    const reply = await scene.ask({ what: 'page', session: 'a' })
    if (reply.what !== 'page') throw new Error(reply.what)
    t.ok(reply.bytes.length < 80_000, `${reply.bytes.length} bytes`)
    isLast = reply.isLast
  }
  t.ok(pages >= 5, `${pages} pages`)
})

t.test('one backup at a time is accepted, and the next one when it has ended', async t => {
  const scene = new Scene(await storeOf())
  await scene.ask({ what: 'begin', session: 'a' })
  t.strictSame(scene.source.numbers, { isRunning: true, last: undefined })
  t.strictSame(await scene.ask({ what: 'begin', session: 'b' }), { what: 'busy' })
  t.strictSame(await scene.ask({ what: 'end', session: 'b', outcome }), { what: 'unknown' })
  t.strictSame(await scene.ask({ what: 'end', session: 'a', outcome }), { what: 'ended' })
  t.strictSame(scene.source.numbers, { isRunning: false, last: outcome })
  t.match(await scene.ask({ what: 'begin', session: 'b' }), { what: 'begun' })
})

t.test('a backup without further requests is given up, and one with requests is not', async t => {
  const scene = new Scene(await storeOf())
  await scene.ask({ what: 'begin', session: 'a' })
  for (let n = 0; n < 4; n++) {
    scene.clock.advance(40_000)
    t.match(await scene.ask({ what: 'page', session: 'a' }), { what: 'page' })
  }
  scene.clock.advance(50_000)
  t.strictSame(await scene.ask({ what: 'page', session: 'a' }), { what: 'unknown' })
  t.match(await scene.ask({ what: 'begin', session: 'b' }), { what: 'begun' })
})

t.test('a backup that takes too long is given up, in spite of requests', async t => {
  const scene = new Scene(await storeOf())
  await scene.ask({ what: 'begin', session: 'a' })
  const limit = 6 * 60 * 60_000
  const pageAfter = (ms: number): Promise<BackupReply> => {
    scene.clock.advance(ms)
    return scene.ask({ what: 'page', session: 'a' })
  }
  for (let ms = 30_000; ms < limit; ms += 30_000) t.match(await pageAfter(30_000), { what: 'page' })
  await pageAfter(30_000)
  t.strictSame(await pageAfter(30_000), { what: 'unknown' })
})

// Removal of expired entities: when their time has come, not before, silently, and not after they got a new date.

import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import t from 'tap'
import type { WantedAttribute } from '../../src/domain/entities/entity.js'
import { ShardMap } from '../../src/domain/scope.js'
import type { ShardReply, ShardRequest, Shards } from '../../src/messages/messages.js'
import type { Cursor, Range } from '../../src/ports.js'
import { Expiry } from '../../src/shard/expiry.js'
import { allEntities, expiryRange } from '../../src/shard/layout.js'
import type { LocalShards } from '../../src/shard/shards.js'
import { compareIndexes } from '../support/compare-indexes.js'
import { FakeClock } from '../support/fake-clock.js'
import { localShards } from '../support/local-shards.js'
import { MemoryStore } from '../support/memory-store.js'

const shardMap = new ShardMap({ shards: 16, spread: 16 })
const origin = { correlatorRoot: '' }
const options = { overrideMetadata: false, forcedUpdate: false }
const intervalMs = 1000

/** Shards that record their requests. If the test sets an answer, they reply it instead of asking the real shards. */
class Watched implements Shards {
  readonly asked: ShardRequest[] = []
  answer: ShardReply | undefined
  private readonly inner: Shards

  constructor(inner: Shards) {
    this.inner = inner
  }

  ask(shard: number, request: ShardRequest, onReply: (reply: ShardReply) => void): void {
    this.asked.push(request)
    if (this.answer) onReply(this.answer)
    else this.inner.ask(shard, request, onReply)
  }

  owners(): readonly number[] {
    return this.inner.owners()
  }

  pathsOf(tenant: string): Iterable<string> | undefined {
    return this.inner.pathsOf(tenant)
  }

  ownerOf(shard: number): number {
    return this.inner.ownerOf(shard)
  }
}

/** A store that records where each reading of expired entities begins. */
class WatchedStore extends MemoryStore {
  readonly begins: Buffer[] = []

  override cursor(range: Range): Cursor {
    if (range.gte[0] === expiryRange(0, 0).gte[0]) this.begins.push(Buffer.from(range.gte))
    return super.cursor(range)
  }
}

class Node {
  readonly store: WatchedStore
  readonly clock: FakeClock
  readonly shards: Watched
  readonly logged: string[] = []
  readonly expiry: Expiry

  static async open(): Promise<Node> {
    const store = new WatchedStore()
    const clock = new FakeClock()
    return new Node(store, clock, await localShards(store, shardMap, clock))
  }

  private constructor(store: WatchedStore, clock: FakeClock, local: LocalShards) {
    this.store = store
    this.clock = clock
    this.shards = new Watched(local)
    const logger = { error: (message: string) => void this.logged.push(message) }
    this.expiry = new Expiry({ store, shards: this.shards, clock, logger, intervalMs, mark: local.parts.expiryMark })
  }

  /** Stages an entity that is due for removal in this number of milliseconds; undefined: never. */
  create(id: string, dueInMs: number | undefined): void {
    const attributes = new Map(dueInMs === undefined ? [] : [['dateExpires', this.date(dueInMs)] as const])
    const target = { tenant: 't', path: '/', id, type: 'T' }
    const entity = { id, type: 'T', attributes }
    this.shards.ask(
      shardMap.shardOf('t', '/', id),
      { kind: 'create', target, origin, entity, upsert: true, options },
      () => {},
    )
  }

  private date(inMs: number): WantedAttribute {
    return { type: 'DateTime', value: new Date(this.clock.wallMs() + inMs).toISOString(), metadata: undefined }
  }

  /** Lets commits and runs in flight end, without advancing the time. */
  async rest(): Promise<void> {
    for (let rounds = 0; rounds < 12; rounds++) {
      this.clock.tick()
      await turnOfTheLoop()
    }
  }

  /** Advances the time, run by run. */
  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += intervalMs) {
      this.clock.advance(Math.min(intervalMs, ms - passed))
      await this.rest()
    }
  }

  async entities(): Promise<number> {
    return (await this.store.cursor(allEntities()).next(1000)).length
  }
}

async function started(...due: (number | undefined)[]): Promise<Node> {
  const node = await Node.open()
  for (const [index, dueInMs] of due.entries()) node.create(`E${index}`, dueInMs)
  await node.rest()
  node.expiry.start()
  return node
}

t.test('an entity is removed when its time has come, and not before', async t => {
  const node = await started(10_000)
  await node.pass(9_000)
  t.equal(await node.entities(), 1)
  await node.pass(1_000)
  t.equal(await node.entities(), 0)
})

t.test('an entity that is due already is removed at the next run', async t => {
  const node = await started(-5_000)
  t.equal(await node.entities(), 1)
  await node.pass(intervalMs)
  t.equal(await node.entities(), 0)
})

t.test('an entity without a date stays, and those due later do', async t => {
  const node = await started(undefined, 2_000, 60_000)
  await node.pass(5_000)
  t.equal(await node.entities(), 2)
})

t.test('a run does not begin before the removals of the one before have ended', async t => {
  const node = await started(2_000, 5_000)
  await node.pass(3_000)
  t.equal(await node.entities(), 1)
  const at = (ms: number): Buffer => expiryRange(ms, 0).gte
  await node.pass(intervalMs)
  t.ok(Buffer.compare(node.store.begins.at(-1)!, at(node.clock.wallMs() - 2 * intervalMs)) > 0)
  node.create('late', -60_000)
  await node.pass(2 * intervalMs)
  t.equal(await node.entities(), 0, 'what comes with an earlier date is found all the same')
})

t.test('a run that failed begins again where it began', async t => {
  const node = await started(2_000)
  node.shards.answer = { kind: 'busy' }
  await node.pass(3_000)
  t.equal(await node.entities(), 1)
  node.shards.answer = undefined
  await node.pass(2 * intervalMs)
  t.equal(await node.entities(), 0)
})

t.test('a removal takes the index rows along', async t => {
  const node = await started(undefined, 2_000)
  await node.pass(5_000)
  t.strictSame(await compareIndexes(node.store), [])
})

t.test('an entity that was given a later date in time stays', async t => {
  const node = await started(2_000)
  await node.pass(1_000)
  node.create('E0', 60_000)
  await node.pass(5_000)
  t.equal(await node.entities(), 1)
})

t.test('an entity that is rescued while its removal is on the way stays', async t => {
  const node = await started(-1)
  node.create('E0', 60_000) // staged: the index still says that it is due
  const run = node.expiry.run()
  await node.rest()
  await run
  t.equal(await node.entities(), 1)
  t.ok(
    node.shards.asked.some(({ kind }) => kind === 'expire'),
    'its removal was asked for',
  )
})

t.test('three hundred that are due at once go in one run', async t => {
  const node = await started(...Array.from({ length: 300 }, () => 500))
  t.equal(await node.entities(), 300)
  await node.pass(intervalMs)
  t.equal(await node.entities(), 0)
  t.strictSame(await compareIndexes(node.store), [])
})

t.test('removal is silent', async t => {
  const node = await started(500)
  await node.pass(2_000)
  t.strictSame(node.logged, [])
})

t.test('a run with nothing due sends no request', async t => {
  const node = await started(60_000, undefined)
  node.shards.asked.length = 0
  await node.pass(3_000)
  t.strictSame(node.shards.asked, [])
})

t.test('an entity that could not be removed because its shard is busy goes at a later run', async t => {
  const node = await started(500)
  node.shards.answer = { kind: 'busy' }
  await node.pass(intervalMs)
  t.equal(await node.entities(), 1)
  node.shards.answer = undefined
  await node.pass(intervalMs)
  t.equal(await node.entities(), 0)
})

t.test('a run that fails is logged, and the next one comes', async t => {
  const node = await started(500)
  node.shards.answer = { kind: 'failed', reason: 'disk full' }
  await node.pass(intervalMs)
  t.match(node.logged, [/disk full/])
  node.shards.answer = undefined
  await node.pass(intervalMs)
  t.equal(await node.entities(), 0)
})

t.test('no run begins after stopping', async t => {
  const node = await started(2_000)
  await node.expiry.stop()
  await node.pass(10_000)
  t.equal(await node.entities(), 1)
  t.equal(node.clock.waiting, 0)
})

t.test('stopping waits for the run in flight, which is the last one', async t => {
  const node = await started(500)
  node.clock.advance(intervalMs)
  let stopped = false
  const stopping = node.expiry.stop().then(() => {
    stopped = true
  })
  t.notOk(stopped)
  await node.rest()
  await stopping
  t.equal(await node.entities(), 0)
  t.equal(node.clock.waiting, 0)
})

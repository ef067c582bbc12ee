// Changes staged for the logs: by shard, in order, and with a bound. A commit is written only when the logs have it.
// Commits of different shards overlap.

import t from 'tap'
import { DeposedError } from '../../../cluster/replication/shard-host.js'
import type { OpenBatch } from '../../../src/shard/commit/commit-log.js'
import { entityKey, stampKey, typeKey } from '../../../src/shard/layout.js'
import { outboxKey } from '../../../src/shard/notify/notification-layout.js'
import { commitGapMsMax } from '../../../src/shard/replicate/commit-gap.js'
import { CommitLane } from '../../../src/shard/replicate/commit-lane.js'
import { Positions } from '../../../src/shard/replicate/positions.js'
import { ReplicatedLog } from '../../../src/shard/replicate/replicated-log.js'
import type { FollowedPosition, LogPayload } from '../../../src/shard/replicate/replication.js'
import { decodeOperations } from '../../../src/shard/replicate/row-operations.js'
import { FakeClock } from '../../support/fake-clock.js'
import { MemoryStore } from '../../support/memory-store.js'

const one = Buffer.from('1')
const key = (shard: number): Buffer => entityKey(shard, 't', '/', 'E')

type OnAppended = (outcome: ReadonlyMap<number, FollowedPosition> | Error) => void

/** A log whose appends end when the test chooses. */
class Setting {
  readonly store = new MemoryStore()
  readonly positions = new Positions()
  readonly appended: (readonly LogPayload[])[] = []
  readonly events: string[] = []
  end: OnAppended = () => {}
  readonly ends: OnAppended[] = []
  readonly log: ReplicatedLog
  utilization = 0

  constructor() {
    const alongWith = (sink: { put(key: Buffer, value: Buffer): void }): void => sink.put(stampKey(), one)
    this.log = new ReplicatedLog({
      store: this.store,
      clock: new FakeClock(),
      replication: {
        engines: 1,
        engineOf: () => 0,
        append: (parts, onDone) => {
          this.appended.push(parts)
          this.end = onDone
          this.ends.push(onDone)
        },
      },
      lane: new CommitLane(this.store, alongWith),
      positions: this.positions,
      utilization: () => this.utilization,
      register: 9,
      lastStamp: () => 77,
      alongWith,
    })
  }

  /** What is staged for a shard. */
  batchOf(shard: number): OpenBatch {
    const batch = this.log.open(shard)
    batch.rowsOf(shard).put(key(shard), one)
    return batch
  }

  commit(...batches: readonly OpenBatch[]): void {
    this.log.commit(batches, failure => this.events.push(failure ? failure.message : 'durable'))
  }
}

const position = { sequence: 1, epoch: 2, hash: Buffer.from('hash') }

t.test('only a busy node leaves a gap between its commits', async t => {
  const setting = new Setting()
  t.equal(setting.log.gapMs, 0)
  setting.utilization = 1
  t.equal(setting.log.gapMs, commitGapMsMax)
})

t.test('the register comes first, since a commit may be cut into several appends', async t => {
  const setting = new Setting()
  setting.commit(...[3, 9, 5].map(shard => setting.batchOf(shard)))
  t.strictSame(
    setting.appended.map(parts => parts.map(({ shard }) => shard)),
    [[9, 5, 3]],
  )
})

t.test('changes of a shard are kept for its log, in order', async t => {
  const setting = new Setting()
  const { log } = setting
  const batch = setting.batchOf(3)
  const index = typeKey('t', '/', 'T', 7, 3)
  batch.orderedOf(3).del(index)
  const outbox = outboxKey({ shard: 3, stamp: 1 })
  batch.rows.put(outbox, one)
  t.equal(batch.length, 3)
  t.strictSame([log.laneOfKey(outbox), log.laneOfKey(index)], [3, 3])
  setting.commit(batch)
  const [[part] = []] = setting.appended
  t.strictSame(decodeOperations(part!.payload, 3), {
    stamp: 77,
    operations: [
      { key: key(3), value: one },
      { key: index, value: undefined },
      { key: outbox, value: one },
    ],
  })
  t.equal(log.stagedOf(3).length, 3, 'as long as it is on its way')
  setting.end(new Map([[3, position]]))
  await Promise.resolve()
  t.strictSame(setting.events, ['durable'])
  t.equal(log.stagedOf(3).length, 0)
})

t.test('a commit ends without waiting for one of other shards that began before it', async t => {
  const setting = new Setting()
  setting.commit(setting.batchOf(3))
  setting.log.commit([setting.batchOf(5)], () => setting.events.push('5 is durable'))
  t.equal(setting.ends.length, 2)
  setting.ends[1]!(new Map([[5, position]]))
  await Promise.resolve()
  t.strictSame(setting.events, ['5 is durable'])
  t.strictSame([setting.store.get(key(3)), setting.store.get(key(5))], [undefined, one])
  setting.ends[0]!(new Map([[3, position]]))
  await Promise.resolve()
  t.strictSame(setting.events, ['5 is durable', 'durable'])
})

t.test('what is staged and in flight has a bound', async t => {
  const setting = new Setting()
  const { log } = setting
  const large = Buffer.alloc(16 * 1024 * 1024)
  const batches = Array.from({ length: 8 }, (_, shard) => log.open(shard))
  for (const [shard, batch] of batches.entries()) {
    t.equal(log.isFull, false)
    batch.rowsOf(shard).put(key(shard), large)
  }
  t.equal(log.isFull, true)
  setting.commit(...batches.slice(0, 4))
  t.equal(log.isFull, true, 'as long as it is on its way')
  setting.end(new Map([0, 1, 2, 3].map(shard => [shard, position])))
  await Promise.resolve()
  t.equal(log.isFull, false)
})

t.test('a batch is written when the logs have its parts, with their positions', async t => {
  const setting = new Setting()
  const { store, positions, events } = setting
  setting.commit(setting.batchOf(3))
  t.equal(store.get(key(3)), undefined)
  setting.end(new Map([[3, position]]))
  await Promise.resolve()
  t.strictSame(events, ['durable'])
  t.strictSame(store.get(key(3)), one)
  t.strictSame(store.get(stampKey()), one)
  t.strictSame(positions.of(3), position)
  t.strictSame((await Positions.read(store)).of(3), position)
  const batch = setting.log.open(3)
  batch.rowsOf(3).put(key(3), Buffer.from('2'))
  setting.commit(batch)
  setting.end(new Error('another owner'))
  t.strictSame(events.at(-1), 'another owner')
  t.strictSame(positions.of(3), position)
  t.strictSame(store.get(key(3)), one)
})

t.test('a batch that is about no shard goes to the store alone', async t => {
  const setting = new Setting()
  setting.commit()
  await Promise.resolve()
  t.strictSame([setting.events, setting.appended], [['durable'], []])
})

t.test('of a batch with some lost shards the rest is written, and owners of memory are called first', async t => {
  const setting = new Setting()
  const { store, positions, events, log } = setting
  const batch = setting.batchOf(3)
  const lost = setting.batchOf(5)
  const index = typeKey('t', '/', 'T', 7, 3)
  batch.orderedOf(3).put(index, one)
  log.open(5).rowsOf(5).del(key(5))
  log.whenLost(({ losses }) => {
    const staged = log.stagedOf(5).map(row => (row.value ? 'put' : 'del'))
    events.push(`lost ${losses.map(({ shard }) => shard)}, staged ${staged}, written ${store.get(key(3))}`)
  })
  setting.commit(batch, lost)
  const losses = [{ shard: 5, node: 'b', epoch: 3, certainMs: 100 }]
  setting.end(new DeposedError(losses, new Map([[3, position]])))
  await Promise.resolve()
  t.strictSame(events, ['lost 5, staged put,del, written 1', 'shard 5 was taken over by b'])
  t.strictSame([store.get(key(3)), store.get(index), store.get(key(5))], [one, one, undefined])
  t.strictSame([positions.of(3), positions.of(5)], [position, undefined])
  t.strictSame([log.stagedOf(3).length, log.stagedOf(5).length], [0, 1], 'what is staged since then is kept')
})

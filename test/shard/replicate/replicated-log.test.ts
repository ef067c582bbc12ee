// Changes staged for the logs: by shard, in order, and with a bound. A commit is written only when the logs have it.

import t from 'tap'
import { DeposedError } from '../../../cluster/replication/shard-host.js'
import type { OpenBatch } from '../../../src/shard/commit/commit-log.js'
import { entityKey, stampKey, typeKey } from '../../../src/shard/layout.js'
import { outboxKey } from '../../../src/shard/notify/notification-layout.js'
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
  readonly log: ReplicatedLog

  constructor() {
    const alongWith = (sink: { put(key: Buffer, value: Buffer): void }): void => sink.put(stampKey(), one)
    this.log = new ReplicatedLog({
      store: this.store,
      clock: new FakeClock(),
      replication: {
        append: (parts, onDone) => {
          this.appended.push(parts)
          this.end = onDone
        },
      },
      lane: new CommitLane(this.store, alongWith),
      positions: this.positions,
      lastStamp: () => 77,
      alongWith,
    })
  }

  commit(batch: OpenBatch): void {
    batch.commit(failure => this.events.push(failure ? failure.message : 'durable'))
  }
}

const position = { sequence: 1, epoch: 2, hash: Buffer.from('hash') }

t.test('the register comes first, since a commit may be cut into several appends', async t => {
  const setting = new Setting()
  const batch = setting.log.open()
  batch.rowsOf(3).put(key(3), one)
  batch.rowsOf(8).put(key(8), one)
  batch.rowsOf(5).put(key(5), one)
  setting.commit(batch)
  t.strictSame(
    setting.appended.map(parts => parts.map(({ shard }) => shard)),
    [[8, 5, 3]],
  )
})

t.test('changes of the batch are kept for the log of their shard, in order', async t => {
  const setting = new Setting()
  const batch = setting.log.open()
  const index = typeKey('t', '/', 'T', 7, 3)
  batch.rowsOf(3).put(key(3), one)
  batch.orderedOf(3).del(index)
  const outbox = outboxKey({ shard: 3, stamp: 1 })
  batch.rows.put(outbox, one)
  batch.rows.del(outboxKey({ shard: 5, stamp: 1 }))
  t.equal(batch.length, 3, 'the type index is written last')
  t.strictSame([batch.holds(3), batch.holds(4), batch.holds(5)], [true, false, true])
  setting.commit(batch)
  const [parts = []] = setting.appended
  t.strictSame(
    parts.map(({ shard }) => shard),
    [5, 3],
  )
  t.strictSame(decodeOperations(parts[1]!.payload, 3), {
    stamp: 77,
    operations: [
      { key: key(3), value: one },
      { key: index, value: undefined },
      { key: outbox, value: one },
    ],
  })
  t.ok(batch.holds(3), 'as long as it is on its way')
  setting.end(
    new Map([
      [3, position],
      [5, position],
    ]),
  )
  await Promise.resolve()
  t.strictSame(setting.events, ['durable'])
  t.strictSame([batch.holds(3), batch.length], [false, 0], 'and it begins anew')
})

t.test('the staged changes have a bound', async t => {
  const batch = new Setting().log.open()
  const large = Buffer.alloc(8 * 1024 * 1024)
  for (let n = 0; n < 7; n++) batch.rowsOf(n).put(key(n), large)
  t.equal(batch.isFull, false)
  batch.rowsOf(7).put(key(7), large)
  t.equal(batch.isFull, true)
})

t.test('a batch is written when the logs have its parts, with their positions', async t => {
  const setting = new Setting()
  const { store, positions, events } = setting
  const batch = setting.log.open()
  batch.rowsOf(3).put(key(3), one)
  setting.commit(batch)
  t.equal(store.get(key(3)), undefined)
  setting.end(new Map([[3, position]]))
  await Promise.resolve()
  t.strictSame(events, ['durable'])
  t.strictSame(store.get(key(3)), one)
  t.strictSame(store.get(stampKey()), one)
  t.strictSame(positions.of(3), position)
  t.strictSame((await Positions.read(store)).of(3), position)
  batch.rowsOf(3).put(key(3), Buffer.from('2'))
  setting.commit(batch)
  setting.end(new Error('another owner'))
  t.strictSame(events.at(-1), 'another owner')
  t.strictSame(positions.of(3), position)
  t.strictSame(store.get(key(3)), one)
})

t.test('a batch that is about no shard goes to the store alone', async t => {
  const setting = new Setting()
  setting.commit(setting.log.open())
  await Promise.resolve()
  t.strictSame([setting.events, setting.appended], [['durable'], []])
})

t.test('of a batch with some lost shards the rest is written, and owners of memory are called first', async t => {
  const setting = new Setting()
  const { store, positions, events, log } = setting
  const [batch, next] = [log.open(), log.open()]
  const index = typeKey('t', '/', 'T', 7, 3)
  batch.rowsOf(3).put(key(3), one)
  batch.orderedOf(3).put(index, one)
  batch.rowsOf(5).put(key(5), one)
  next.rowsOf(5).del(key(5))
  log.whenLost(({ losses }) => {
    const staged = log.stagedOf(5).map(row => (row.value ? 'put' : 'del'))
    events.push(`lost ${losses.map(({ shard }) => shard)}, staged ${staged}, written ${store.get(key(3))}`)
  })
  setting.commit(batch)
  const losses = [{ shard: 5, node: 'b', epoch: 3, certainMs: 100 }]
  setting.end(new DeposedError(losses, new Map([[3, position]])))
  await Promise.resolve()
  t.strictSame(events, ['lost 5, staged put,del, written 1', 'shard 5 was taken over by b'])
  t.strictSame([store.get(key(3)), store.get(index), store.get(key(5))], [one, one, undefined])
  t.strictSame([positions.of(3), positions.of(5)], [position, undefined])
  t.strictSame([batch.length, batch.holds(3), batch.holds(5)], [0, false, false], 'and it begins anew')
})

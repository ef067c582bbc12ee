// What is staged for the logs: by shard, in order, and not without end; and a commit that is written only when the logs have it.

import t from 'tap'
import type { Part, Position } from '../../../src/ports.js'
import { entityKey, stampKey, typeKey } from '../../../src/shard/layout.js'
import { outboxKey } from '../../../src/shard/notify/notification-layout.js'
import { CommitLane } from '../../../src/shard/replicate/commit-lane.js'
import { Positions } from '../../../src/shard/replicate/positions.js'
import { Replicator, StagedParts } from '../../../src/shard/replicate/replicator.js'
import { decodeOperations } from '../../../src/shard/replicate/row-operations.js'
import { MemoryStore } from '../../../src/storage/memory-store.js'

const one = Buffer.from('1')
const key = (shard: number): Buffer => entityKey(shard, 't', '/', 'E')

t.test('what goes to the batch is kept for the log of its shard, in order', async t => {
  const batch = new MemoryStore().batch()
  const staged = new StagedParts()
  const index = typeKey('t', '/', 'T', 7, 3)
  staged.sink(3, batch).put(key(3), one)
  staged.sink(3, batch).del(index)
  const outbox = outboxKey({ shard: 3, stamp: 1 })
  staged.sinkByKey(batch).put(outbox, one)
  staged.sinkByKey(batch).del(outboxKey({ shard: 5, stamp: 1 }))
  t.equal(batch.length, 4)
  t.strictSame([staged.holds(3), staged.holds(4), staged.holds(5)], [true, false, true])
  const parts = staged.take(77)
  t.strictSame(
    parts.map(({ shard }) => shard),
    [3, 5],
  )
  t.strictSame(decodeOperations(parts[0]!.payload, 3), {
    stamp: 77,
    operations: [
      { key: key(3), value: one },
      { key: index, value: undefined },
      { key: outbox, value: one },
    ],
  })
  t.strictSame([staged.holds(3), staged.take(78)], [false, []], 'and it begins anew')
})

t.test('there is an end to what is staged', async t => {
  const staged = new StagedParts()
  const large = Buffer.alloc(8 * 1024 * 1024)
  for (let n = 0; n < 7; n++) staged.sink(n, { put() {}, del() {} }).put(key(n), large)
  t.equal(staged.isFull, false)
  staged.sink(7, { put() {}, del() {} }).put(key(7), large)
  t.equal(staged.isFull, true)
  staged.take(1)
  t.equal(staged.isFull, false)
})

t.test('a batch is written when the logs have its parts, with their positions', async t => {
  const store = new MemoryStore()
  const positions = new Positions()
  const alongWith = (sink: { put(key: Buffer, value: Buffer): void }): void => sink.put(stampKey(), one)
  const lane = new CommitLane(store, alongWith)
  let end: (outcome: ReadonlyMap<number, Position> | Error) => void = () => {}
  const replication = {
    append(_parts: readonly Part[], onDone: typeof end) {
      end = onDone
    },
  }
  const replicator = new Replicator({ replication, lane, positions, alongWith })
  const log: string[] = []
  const batch = store.batch()
  batch.put(key(3), one)
  const onDone = (failure?: Error): void => void log.push(failure ? failure.message : 'written')
  replicator.commit(batch, [{ shard: 3, payload: one }], () => log.push('appended'), onDone)
  t.equal(store.get(key(3)), undefined)
  const position = { sequence: 1, epoch: 2, hash: Buffer.from('hash') }
  end(new Map([[3, position]]))
  await Promise.resolve()
  t.strictSame(log, ['appended', 'written'])
  t.strictSame(store.get(key(3)), one)
  t.strictSame(store.get(stampKey()), one)
  t.strictSame(positions.of(3), position)
  const read = new Positions()
  await read.load(store)
  t.strictSame(read.of(3), position)
  batch.clear()
  replicator.commit(batch, [{ shard: 3, payload: one }], () => {}, onDone)
  end(new Error('another owner'))
  t.strictSame(log.at(-1), 'another owner')
  t.strictSame(positions.of(3), position)
})

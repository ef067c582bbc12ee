// A shard on a disk without room: it refuses or waits, but never makes a write that would end the node.

import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import t from 'tap'
import { refusals, refusalText } from '../../../src/domain/refusal.js'
import type { ShardReply, ShardRequest } from '../../../src/messages/messages.js'
import { FakeClock } from '../../support/fake-clock.js'
import { localShards } from '../../support/local-shards.js'
import { MemoryStore } from '../../support/memory-store.js'
import { create, remove, shardMap, update, watching } from '../../support/notifying.js'
import { PretendedRoom } from '../../support/pretended-room.js'

async function world() {
  const room = new PretendedRoom()
  const clock = new FakeClock()
  const failures: Error[] = []
  const shards = await localShards(new MemoryStore(), shardMap, clock, {
    room,
    onFailure: failure => failures.push(failure),
  })
  const ask = (request: ShardRequest): ShardReply[] => {
    const replies: ShardReply[] = []
    const shard = 'target' in request ? shardMap.shardOf(request.target.tenant, '/', request.target.id) : 0
    shards.ask(shard, request, reply => replies.push(reply))
    return replies
  }
  const rest = async (): Promise<void> => {
    for (let rounds = 0; rounds < 4; rounds++) {
      clock.tick()
      await turnOfTheLoop()
    }
  }
  const end = async (request: ShardRequest): Promise<ShardReply | undefined> => {
    const replies = ask(request)
    await rest()
    return replies[0]
  }
  return { room, clock, failures, ask, end, rest }
}

const done: ShardReply = { kind: 'done' }
const noRoom = {
  kind: 'refused',
  refusal: refusals.noRoom(41 * 1024 * 1024, 64 * 1024 * 1024),
} as const satisfies ShardReply

t.test('the refusal contains the free room, and nothing else of the machine', async t => {
  t.equal(refusalText(noRoom.refusal), 'no room on the disk of this node: 41 MB free, 64 MB reserved')
  t.match(refusalText(refusals.noRoom(-5_000_000, 67_108_864)), ': 0 MB free, 64 MB reserved')
})

t.test('where room is short, writes are refused and deletions are made', async t => {
  const { room, end } = await world()
  t.same(await end(create('A')), done)
  room.become('short')
  t.same(await end(create('B')), noRoom)
  t.same(await end(update('A', { n: 2 })), noRoom)
  t.same(await end({ kind: 'createSubscription', subscription: watching(1) }), noRoom)
  t.same(await end(remove('A')), done)
  room.become('ample')
  t.same(await end(create('B')), done)
})

t.test('an invalid request is refused for that reason, and one that changes nothing is done', async t => {
  const { room, end } = await world()
  await end(create('A'))
  room.become('short')
  t.same(await end(create('A')), { kind: 'refused', refusal: refusals.entityExists })
  t.same(await end(update('nobody', { n: 2 })), { kind: 'refused', refusal: refusals.entityNotFound })
})

t.test('a subscription can be removed where room is short', async t => {
  const { room, end } = await world()
  const subscription = watching(1)
  t.same(await end({ kind: 'createSubscription', subscription }), done)
  room.become('short')
  const { tenant, id } = subscription
  t.same(await end({ kind: 'removeSubscription', tenant, id }), done)
})

t.test('on a disk without any room deletions are refused, and accepted writes wait instead of failing', async t => {
  const { room, clock, failures, ask, end, rest } = await world()
  await end(create('A'))
  const taken = ask(create('B'))
  room.become('exhausted')
  t.same(await end(remove('A')), noRoom)
  clock.advance(10_000)
  await rest()
  t.same(taken, [], 'its commit waits')
  room.become('scarce')
  clock.advance(100)
  await rest()
  t.same(taken, [done])
  t.same(failures, [])
  t.same(await end(remove('A')), done)
})

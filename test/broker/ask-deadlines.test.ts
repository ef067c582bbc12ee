// Asks whose replies do not come: each ends at its deadline, and a later reply is dropped.

import t from 'tap'
import { AskDeadlines, lateMax } from '../../src/broker/ask-deadlines.js'
import type { ListRequest, ShardReply, ShardRequest, Shards } from '../../src/messages/messages.js'
import { FakeClock } from '../support/fake-clock.js'

const waitMs = 5_000
const listWaitMs = 30_000
const done: ShardReply = { kind: 'done' }
const write: ShardRequest = { kind: 'announce', tenant: 't', path: '/a' }
const read: ShardRequest = { kind: 'find', tenant: 't', paths: ['/'], id: 'E', type: undefined }
const list = { kind: 'list', tenant: 't', paths: ['/#'] } as unknown as ListRequest

/** Shards that reply when the test calls their callbacks, behind deadlines. */
function scene() {
  const clock = new FakeClock()
  const asked: ((reply: ShardReply) => void)[] = []
  const replies: ShardReply[] = []
  const log = { stalledMs: 0 }
  const slow: Shards = {
    ask: (_shard, _request, onReply) => void asked.push(onReply),
    owners: () => [0],
    ownerOf: () => 0,
    pathsOf: () => undefined,
  }
  const shards = new AskDeadlines(slow, clock, { waitMs, listWaitMs, stalledMs: () => log.stalledMs })
  const ask = (request: ShardRequest): void => shards.ask(0, request, reply => void replies.push(reply))
  return { clock, asked, replies, log, ask }
}

for (const request of [write, read])
  t.test(`${request.kind}: an ask without a reply is lost when its time is over`, async t => {
    const { clock, replies, ask } = scene()
    ask(request)
    clock.advance(waitMs - 1)
    t.strictSame(replies, [])
    clock.advance(1)
    t.match(replies, [{ kind: 'lost', reason: /not done within 5000 ms/ }])
  })

t.test('a reply in time is passed on once, and a late one is dropped', async t => {
  const { clock, asked, replies, ask } = scene()
  ask(write)
  ask(write)
  asked[1]!(done)
  clock.advance(waitMs)
  asked[0]!(done)
  clock.advance(waitMs)
  t.match(replies, [done, { kind: 'lost' }])
  t.equal(replies.length, 2)
})

t.test('many asks share a timer, each ends in its own time, and none is left behind', async t => {
  const { clock, asked, replies, ask } = scene()
  for (let n = 0; n < 100; n++) {
    ask(write)
    t.equal(clock.waiting, 1)
    clock.advance(10)
  }
  clock.advance(waitMs - 1_000)
  t.equal(replies.length, 1)
  clock.advance(500)
  t.equal(replies.length, 51)
  for (const reply of asked) reply(done)
  t.equal(replies.length, 100)
  clock.advance(2 * waitMs)
  t.equal(clock.waiting, 0)
})

t.test('a list may take long, but not while the log is stalled', async t => {
  const { clock, replies, log, ask } = scene()
  ask(list)
  clock.advance(2 * waitMs)
  t.strictSame(replies, [], 'it is at work')
  log.stalledMs = waitMs
  clock.advance(1_000)
  t.match(replies, [{ kind: 'lost' }])
  log.stalledMs = 0
  ask(list)
  clock.advance(listWaitMs)
  t.equal(replies.length, 2)
})

t.test('asks that were given up are bounded: the next ones are turned away until some have ended', async t => {
  const { clock, asked, replies, ask } = scene()
  for (let n = 0; n < lateMax; n++) ask(write)
  clock.advance(waitMs)
  replies.length = 0
  ask(write)
  t.strictSame(replies, [{ kind: 'busy' }])
  ask(read)
  t.equal(replies.length, 1, 'other kinds are asked')
  asked[0]!(done)
  ask(write)
  t.equal(replies.length, 1)
})

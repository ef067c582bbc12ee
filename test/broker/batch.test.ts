// A batch says what became of it, also when the store does not.

import t from 'tap'
import { BatchOperations } from '../../src/broker/batch.js'
import { ShardClient } from '../../src/broker/shard-client.js'
import { type Refusal, refusals } from '../../src/domain/refusal.js'
import { ShardMap } from '../../src/domain/scope.js'
import type { ShardReply } from '../../src/messages.js'
import { FakeClock } from '../support/fake-clock.js'

/** What op/notify answers when the shard gives this reply. */
function notified(reply: ShardReply): Refusal | undefined | 'nothing' {
  const shards = {
    ask: (_shard: number, _request: unknown, onReply: (reply: ShardReply) => void) => onReply(reply),
    owners: () => [0],
    ownerOf: () => 0,
  }
  const batch = new BatchOperations(new ShardClient(shards, new ShardMap({ shards: 4, spread: 2 })), new FakeClock())
  const item = { id: 'E', type: 'T', attributes: new Map(), names: [] }
  let answer: Refusal | undefined | 'nothing' = 'nothing'
  batch.notify({ tenant: '', path: '/' }, [item], { correlatorRoot: '' }, result => {
    answer = result.ok ? undefined : result.refusal
  })
  return answer
}

t.test('a notification whose entity the rules refuse is taken', async t => {
  t.equal(notified({ kind: 'refused', refusal: refusals.locationSecond }), undefined)
})

t.test('a notification that was perhaps not made durable is not acknowledged', async t => {
  t.match(notified({ kind: 'failed', reason: 'disk' }), { kind: 'InternalServerError' })
})

t.test('a notification that found the shard busy is to be sent again', async t => {
  t.match(notified({ kind: 'busy' }), { kind: 'Unavailable' })
})

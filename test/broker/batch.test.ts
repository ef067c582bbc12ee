// A batch reports its outcome, also when the store fails.

import t from 'tap'
import { BatchOperations } from '../../src/broker/batch.js'
import { ShardClient } from '../../src/broker/shard-client.js'
import { type Refusal, refusals } from '../../src/domain/refusal.js'
import { ShardMap } from '../../src/domain/scope.js'
import type { ShardReply, WriteReply } from '../../src/messages/messages.js'
import { FakeClock } from '../support/fake-clock.js'

/** Batches to the shards of one owner that give these replies. */
function batchesTo(...replies: WriteReply[]): BatchOperations {
  const shards = {
    ask: (_shard: number, _request: unknown, onReply: (reply: ShardReply) => void) =>
      onReply({ kind: 'batch', replies }),
    owners: () => [0],
    pathsOf: () => undefined,
    ownerOf: () => 0,
  }
  return new BatchOperations(new ShardClient(shards, new ShardMap({ shards: 4, spread: 2 })), new FakeClock())
}

const item = (id: string) => ({ id, type: 'T', attributes: new Map(), names: [] })
const scope = { tenant: '', path: '/' }
const origin = { correlatorRoot: '' }

/** The answer of op/notify when the shard gives this reply. */
function notified(reply: WriteReply): Refusal | undefined | 'nothing' {
  let answer: Refusal | undefined | 'nothing' = 'nothing'
  batchesTo(reply).notify(scope, { action: 'append', items: [item('E')] }, origin, result => {
    answer = result.ok ? undefined : result.refusal
  })
  return answer
}

/** The answer of op/update when the shard gives these replies to E1, E2 and so on. */
function updated(...replies: WriteReply[]): Refusal | undefined | 'nothing' {
  let answer: Refusal | undefined | 'nothing' = 'nothing'
  const items = replies.map((_, index) => item(`E${index + 1}`))
  const options = { overrideMetadata: false, forcedUpdate: false }
  batchesTo(...replies).update(scope, { action: 'append', items }, options, origin, result => {
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

const failed: WriteReply = { kind: 'failed', reason: 'disk' }
const second: WriteReply = { kind: 'refused', refusal: refusals.locationSecond }

t.test('an entity that was perhaps not made durable is named first, and the other refusals follow', async t => {
  const unknown = (id: string, others: 'done' | Refusal) =>
    refusals.batchUnknown('InternalServerError', [`${id}/T`], 2, ['disk'], others)
  t.strictSame(updated({ kind: 'done' }, failed), unknown('E2', 'done'))
  t.strictSame(updated(failed, second), unknown('E1', refusals.locationSecond))
})

t.test('a batch of which all is done or refused is answered by the rules alone', async t => {
  t.equal(updated({ kind: 'done' }, { kind: 'done' }), undefined)
  t.strictSame(updated({ kind: 'done' }, second), refusals.locationSecond)
  t.match(updated({ kind: 'done' }, { kind: 'busy' }), { kind: 'Unavailable' })
})

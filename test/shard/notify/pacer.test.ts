// Flow control: when a reply leaves, by the algorithm of docs/interface/notifications.md#flow-control, over queues that
// the test invents.

import t from 'tap'
import type { ShardReply } from '../../../src/messages/messages.js'
import type { FlowControl } from '../../../src/shard/notify/pacer.js'
import { create, NotifyingOwner, originOf, watching } from '../../support/notifying.js'
import { Random } from '../../support/random.js'

interface Run {
  readonly control: FlowControl
  /** Length of the queue before the request. */
  readonly before: number
  /** Its length at each later look; the last one stays. */
  readonly lengths: readonly number[]
  /** Notifications of the request. */
  readonly sent: number
}

/** The number of sleeps of the algorithm. */
function sleepsOf({ control: { gauge, stepMs, waitMsMax }, before, lengths, sent }: Run): number {
  const target = Math.floor(before + (1 - gauge) * sent)
  let waitedMs = 0
  let sleeps = 0
  while (lengths[Math.min(sleeps, lengths.length - 1)]! > target) {
    sleeps++
    waitedMs += stepMs
    if (waitedMs > waitMsMax) break
  }
  return sleeps
}

/** The time at which a paced reply leaves, in ms after it could have left. */
async function replied({ control, before, lengths, sent }: Run, isPaced = true): Promise<number> {
  const subscriptions = Array.from({ length: sent }, (_, n) => watching(n))
  const owner = await NotifyingOwner.with(subscriptions, {
    notifications: { isKept: true, descendantsMax: 1000, flowControl: control },
  })
  let looks = -1
  owner.deliverer.queueLength = () => {
    const length = looks < 0 ? before : lengths[Math.min(looks, lengths.length - 1)]!
    looks++
    return length
  }
  const replies: ShardReply[] = owner.ask(create('E', { n: 1 }, originOf({ isPaced })))
  await owner.rest()
  const fromMs = owner.clock.monoMs()
  while (replies.length === 0) owner.clock.advance(1)
  t.strictSame(replies, [{ kind: 'done' }])
  return owner.clock.monoMs() - fromMs
}

const full: FlowControl = { gauge: 1, stepMs: 100, waitMsMax: 250 }

t.test('with a gauge of 1 a reply waits until the queue is as long as before', async t => {
  t.equal(await replied({ control: full, before: 5, lengths: [7, 6, 5], sent: 2 }), 200)
  t.equal(await replied({ control: full, before: 5, lengths: [5], sent: 2 }), 0)
})

t.test('with a gauge of 0 it waits for notifications of others at most', async t => {
  const control = { ...full, gauge: 0 }
  t.equal(await replied({ control, before: 5, lengths: [7], sent: 2 }), 0)
  t.equal(await replied({ control, before: 5, lengths: [8, 7], sent: 2 }), 100)
})

t.test('between them the target is rounded down', async t => {
  const control = { ...full, gauge: 0.5 }
  t.equal(await replied({ control, before: 0, lengths: [2, 1], sent: 3 }), 100)
})

t.test('it waits no longer than it may, up to the step in which that is over', async t => {
  t.equal(await replied({ control: full, before: 0, lengths: [9], sent: 1 }), 300)
  t.equal(await replied({ control: { ...full, waitMsMax: 200 }, before: 0, lengths: [9], sent: 1 }), 300)
  t.equal(await replied({ control: { ...full, waitMsMax: 99 }, before: 0, lengths: [9], sent: 1 }), 100)
})

t.test('a request without flow control does not wait', async t => {
  t.equal(await replied({ control: full, before: 0, lengths: [9], sent: 1 }, false), 0)
})

t.test('random queues are waited for by the rules of the algorithm', async t => {
  const random = Random.fromEnvironment()
  t.comment(`seed ${random.seed}`)
  for (let n = 0; n < 60; n++) {
    const stepMs = random.between(1, 50)
    const run: Run = {
      control: { gauge: random.pick([0, 0.25, 0.5, 0.75, 1]), stepMs, waitMsMax: random.between(0, 400) },
      before: random.between(0, 5),
      lengths: Array.from({ length: random.between(1, 8) }, () => random.between(0, 12)),
      sent: random.between(0, 6),
    }
    t.equal(await replied(run), sleepsOf(run) * stepMs, JSON.stringify(run))
  }
})

t.test('a batch waits for all its notifications, and the counts of others do not matter', async t => {
  const control = { gauge: 0.5, stepMs: 100, waitMsMax: 1000 }
  const owner = await NotifyingOwner.with([watching(1), watching(2)], {
    notifications: { isKept: true, descendantsMax: 1000, flowControl: control },
  })
  const origin = originOf({ isPaced: true, numbering: { next: 1_000_000_000, step: 3 } })
  const replies = owner.ask({ kind: 'batch', items: ['A', 'B', 'C'].map(id => create(id, { n: 1 }, origin)) })
  owner.deliverer.waiting = 4
  await owner.rest()
  t.strictSame(replies, [], 'half of six may wait')
  owner.deliverer.waiting = 3
  await owner.rest(99)
  t.strictSame(replies, [])
  await owner.rest(1)
  t.match(replies, [{ kind: 'batch' }])
})

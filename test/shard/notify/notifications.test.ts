// From a change to the sender: the notifications that are passed on, when, with which number, and the record of their
// end.

import t from 'tap'
import type { ShardReply } from '../../../src/messages/messages.js'
import type { PendingNotification } from '../../../src/ports.js'
import { allLetters, allOutbox } from '../../../src/shard/notify/notification-layout.js'
import { rowsOf } from '../../storage/store-contract.js'
import {
  create,
  dead,
  delivered,
  failed,
  idOf,
  intentsOf,
  NotifyingOwner,
  originOf,
  remove,
  tenant,
  update,
  watching,
} from '../../support/notifying.js'
import { subscription } from '../../support/subscriptions.js'

const done: ShardReply = { kind: 'done' }
const anyUpdate = { condition: { alterationTypes: ['entityUpdate'] } }
const anything = {
  condition: { alterationTypes: ['entityCreate', 'entityUpdate', 'entityChange', 'entityDelete'] },
}

t.test('no notification is passed on, and no reply sent, before the commit is durable', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  owner.store.isHeld = true
  const replies = owner.ask(create('E'))
  await owner.rest(1000)
  t.strictSame([replies, owner.deliverer.taken.length], [[], 0])
  owner.store.land()
  t.strictSame([replies, owner.deliverer.taken.length], [[done], 1])
})

t.test('a notification that cannot be made durable is not passed on', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  owner.store.breakDown(new Error('disk full'))
  t.match(await owner.end(create('E')), { kind: 'failed', reason: /disk full/ })
  t.equal((await owner.handed()).length, 0)
})

t.test('an update without a change triggers subscriptions to updates; its reply waits for that commit', async t => {
  const owner = await NotifyingOwner.with([watching(1), watching(2, anyUpdate)])
  await owner.end(create('E'))
  owner.deliverer.next()
  owner.store.isHeld = true
  const replies = owner.ask(update('E', { n: 1 }))
  await owner.rest()
  t.strictSame([replies, owner.deliverer.taken.length], [[], 0])
  owner.store.land()
  t.strictSame(replies, [done])
  const [due] = owner.deliverer.next()
  t.equal(due?.subscription, idOf(2))
  t.strictSame(intentsOf(due!)!.slice(1), ['E', 'entityUpdate', 1])
})

t.test(
  'a notification has the state after its change, not after later ones; that of a deletion has the last state',
  async t => {
    const owner = await NotifyingOwner.with([watching(1, anything)])
    for (const request of [create('E'), update('E', { n: 2 }), update('E', { n: 2 }), remove('E')]) owner.ask(request)
    const dues = await owner.handed()
    const values = (all: readonly PendingNotification[]) =>
      all.map(due => {
        const { entity, alteration } = due.input()!
        return [alteration, entity.attributes.get('n')?.value]
      })
    const wanted = [
      ['entityCreate', 1],
      ['entityChange', 2],
      ['entityUpdate', 2],
      ['entityDelete', 2],
    ]
    t.strictSame(values(dues), wanted)
    t.strictSame(values(dues), wanted, 'also when it is read from its row')
  },
)

t.test('an entity that expires triggers nothing', async t => {
  const owner = await NotifyingOwner.with([watching(1, anything)])
  const target = { tenant, path: '/', id: 'E', type: 'T' }
  const expires = new Date(owner.clock.wallMs() + 1000).toISOString()
  const transient = create('E')
  if (transient.kind !== 'create') throw new Error(transient.kind)
  const dateExpires = { type: 'DateTime', value: expires, operator: undefined, metadata: undefined }
  const attributes = new Map([...transient.entity.attributes, ['dateExpires', dateExpires] as const])
  await owner.end({ ...transient, entity: { ...transient.entity, attributes } })
  t.equal((await owner.handed()).length, 1)
  const nowMs = owner.clock.wallMs() + 2000
  t.strictSame(await owner.end({ kind: 'expire', target, origin: originOf(), nowMs }), done)
  t.match(await owner.end(remove('E')), { refusal: { kind: 'NotFound' } }, 'it has gone')
  t.equal((await owner.handed()).length, 0)
  t.equal((await owner.rows()).length, 1, 'that of the creation')
})

t.test('an update that has come round in a circle applies and triggers nothing, and that is logged', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  await owner.end(create('E'))
  owner.deliverer.next()
  const round = (more = {}) => originOf({ correlatorRoot: 'root', correlator: 'root; cbnotif=1', ...more })
  t.strictSame(await owner.end(update('E', { n: 2 }, round({ isCustomNotification: true }))), done)
  t.equal((await owner.handed()).length, 0)
  t.strictSame(owner.lines, ['Notification loop detected for entity id E type T, skipping subscription triggering'])
  await owner.end(update('E', { n: 3 }, round()))
  t.equal((await owner.handed())[0]?.input()?.correlator, 'root; cbnotif=1', 'no custom notification')
  await owner.end(update('E', { n: 4 }, round({ isCustomNotification: true, correlatorRoot: 'other' })))
  t.equal((await owner.handed()).length, 1, 'another root')
  t.equal(owner.lines.length, 1)
})

t.test('a patched notification that has come round in a circle triggers no custom one', async t => {
  const body = '{"subject":{"entities":[{"idPattern":".*"}]},"notification":{"httpCustom":{"url":"http://h"}}}'
  const custom = { ...subscription(body), id: idOf(2), tenant }
  const owner = await NotifyingOwner.with([watching(1), custom])
  await owner.end(create('E'))
  owner.deliverer.next()
  const round = originOf({ correlator: 'root; cbnotif=1', isPatchedNotification: true })
  await owner.end(update('E', { n: 2 }, round))
  t.strictSame(
    (await owner.handed()).map(due => due.subscription),
    [idOf(1)],
  )
  await owner.end(update('E', { n: 3 }, { ...round, correlatorRoot: 'other', correlator: 'other; cbnotif=1' }))
  t.equal((await owner.handed()).length, 2, 'another root')
})

t.test('of one request a bounded number of notifications descend, also after a crash', async t => {
  const all = [1, 2, 3].map(n => watching(n))
  const owner = await NotifyingOwner.with(all)
  const counts: number[] = []
  const ask = async (of: NotifyingOwner, n: number, correlator: string) => {
    await of.end(create(`E${correlator}${n}`, { n }, originOf({ correlator })))
    counts.push((await of.handed()).length)
  }
  await owner.end(create('E'))
  t.equal((await owner.handed()).length, 3)
  for (let n = 0; n < 300; n++) await ask(owner, n, 'root; cbnotif=1')
  t.strictSame(counts.splice(0), Array(300).fill(3))
  const after = await owner.killed()
  t.equal((await after.handed()).length, 903, 'all are owed')
  for (let n = 0; n < 40; n++) await ask(after, n, 'root; cbnotif=1; cbnotif=2')
  t.strictSame(counts.splice(0), [...Array(32).fill(3), 1, ...Array(7).fill(0)])
  t.equal(after.shards.parts.notifications.droppedDescendants, 2 + 7 * 3)
  t.strictSame(after.lines, ['more than 1000 notifications descend from one request, further ones are dropped'])
  await after.end(create('F'))
  t.equal((await after.handed()).length, 3, 'a request of a client begins anew')
  await ask(after, 1_000, 'root; cbnotif=1')
  t.strictSame(counts, [3])
})

t.test('notifications that a request triggers itself are never dropped, also when another broker sends it', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  for (const correlator of [undefined, 'b; cbnotif=7']) {
    const origin = originOf({ correlatorRoot: correlator ? 'b' : 'a', correlator })
    const items = Array.from({ length: 1_500 }, (_, n) => create(`${correlator}${n}`, { n }, origin))
    await owner.end({ kind: 'batch', items })
    t.equal((await owner.handed()).length, 1_500)
    await owner.end(
      create(`next ${correlator}`, { n: 1 }, { ...origin, correlator: `${correlator ?? 'a'}; cbnotif=1` }),
    )
  }
  t.equal((await owner.handed()).length, 0)
})

t.test('a refused request triggers nothing, and one done in part triggers for its part', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  await owner.end(create('E'))
  owner.deliverer.next()
  t.match(await owner.end(create('E')), { kind: 'refused', refusal: { kind: 'Unprocessable' } })
  t.match(await owner.end(update('none', { n: 2 })), { kind: 'refused', refusal: { kind: 'NotFound' } })
  t.match(await owner.end(update('E', { n: 'x'.repeat(20_000_000) })), { kind: 'refused' }, 'too large')
  t.equal((await owner.handed()).length, 0)
  t.match(await owner.end(update('E', { n: 2, missing: 3 })), { kind: 'refused', refusal: { kind: 'PartialUpdate' } })
  const [due, ...others] = await owner.handed()
  t.equal(due?.input()?.entity.attributes.get('n')?.value, 2)
  t.equal(others.length, 0)
})

t.test(
  'the notifications of a batch are numbered as they come, over entities and subscriptions in the order of ids',
  async t => {
    const owner = await NotifyingOwner.with([watching(2), watching(1)])
    const origin = originOf({ correlator: 'root; cbnotif=7', authToken: 'tok' })
    const items = ['E1', 'E2', 'E3'].map(id => create(id, { n: 1 }, origin))
    t.match(await owner.end({ kind: 'batch', items }), { kind: 'batch', replies: [done, done, done] })
    const dues = await owner.handed()
    t.strictSame(
      dues.map(due => [due.subscription, ...intentsOf(due)!.slice(1)]),
      ['E1', 'E2', 'E3'].flatMap((id, at) => [
        [idOf(1), id, 'entityCreate', 2 * at + 1],
        [idOf(2), id, 'entityCreate', 2 * at + 2],
      ]),
    )
    t.match(dues[5]!.input(), { correlator: 'root; cbnotif=7', authToken: 'tok', tenant, path: '/' })
  },
)

t.test('numbers go on in steps where others count as well, and a request without one triggers nothing', async t => {
  const owner = await NotifyingOwner.with([watching(1), watching(2)])
  await owner.end(create('E', { n: 1 }, originOf({ numbering: { next: 8, step: 3 } })))
  t.strictSame(
    (await owner.handed()).map(due => intentsOf(due)![3]),
    [8, 11],
  )
  await owner.end(create('F', { n: 1 }, originOf({ numbering: undefined })))
  t.equal((await owner.handed()).length, 0)
})

t.test('in bestEffort there are no rows, and the changes behind notifications are durable all the same', async t => {
  const owner = await NotifyingOwner.with([watching(1, anything)], {
    notifications: { isKept: false, descendantsMax: 1000, flowControl: undefined },
  })
  owner.store.isHeld = true
  owner.ask(create('E'))
  await owner.rest()
  t.equal(owner.deliverer.taken.length, 0)
  owner.store.land()
  const [due] = owner.deliverer.next()
  t.strictSame(await owner.rows(), [])
  t.equal(intentsOf(due!)![1], 'E')
  t.equal(intentsOf(due!)![1], 'E', 'it is at hand as long as it takes')
  due!.onOutcome(dead(1))
  await owner.rest(100)
  t.match(owner.progress(1), { timesSent: 1, failsCounter: 1 })
  t.strictSame(await rowsOf(owner.store, allLetters()), [], 'nothing is left to be sent again')
  const replies = owner.ask(update('E', { n: 1 }))
  t.equal(owner.deliverer.next().length, 1, 'nothing has changed, so nothing has to become durable')
  t.strictSame(replies, [done])
})

t.test('the removal of a subscription ends its pending notifications, now and after a start', async t => {
  const owner = await NotifyingOwner.with([watching(1), watching(2)])
  await owner.end(create('E'))
  await owner.end(create('F'))
  const dues = await owner.handed()
  await owner.end({ kind: 'removeSubscription', tenant, id: idOf(1) })
  const [one, other] = dues as [PendingNotification, PendingNotification]
  t.equal(one.input(), undefined)
  other.onOutcome(delivered)
  await owner.rest(100)
  t.equal((await owner.rows()).length, 1, 'that of E has gone')
  const after = await owner.killed()
  const [gone, kept] = (await after.handed()) as [PendingNotification, PendingNotification]
  t.equal(gone.input(), undefined)
  kept.onOutcome(delivered)
  await after.rest(100)
  t.strictSame(await after.rows(), [])
})

t.test('a patched subscription sends earlier pending notifications in its new way', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  await owner.end(create('E'))
  const [due] = await owner.handed()
  const value = { notification: { http: { url: 'http://other' } } }
  const payload = { value, duplicates: [], deep: false }
  await owner.end({ kind: 'changeSubscription', tenant, id: idOf(1), servicePath: '/#', payload })
  t.match(due!.input()?.subscription.notification.transport, { url: 'http://other' })
})

t.test('counters count each notification once, for any outcomes of its tries', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  const sent = async (): Promise<PendingNotification> => {
    await owner.rest(10)
    await owner.end(create(`E${owner.clock.monoMs()}`))
    return owner.deliverer.next()[0]!
  }
  const first = await sent()
  const sentMs = owner.clock.wallMs()
  t.match(owner.progress(1), { timesSent: 1, lastNotificationMs: sentMs, failsCounter: 0, lastSuccessMs: undefined })
  await owner.rest(10)
  first.onOutcome(failed(1))
  const failedMs = owner.clock.wallMs()
  await owner.rest(10)
  first.onOutcome(failed(2))
  first.onOutcome(dead())
  const afterFailure = { timesSent: 1, failsCounter: 1, lastFailureMs: failedMs, lastFailureReason: 'refused' }
  t.match(owner.progress(1), afterFailure)
  const second = await sent()
  second.onOutcome(failed(1))
  t.match(owner.progress(1), { timesSent: 2, failsCounter: 2 })
  second.onOutcome(failed(2, 503))
  const answeredMs = owner.clock.wallMs()
  t.match(owner.progress(1), { failsCounter: 0, lastSuccessMs: answeredMs, lastSuccessCode: 503 }, 'it has answered')
  await owner.rest(10)
  const third = await sent()
  third.onOutcome({ kind: 'simulated' })
  t.match(owner.progress(1), { timesSent: 3, lastSuccessMs: answeredMs })
  const fourth = await sent()
  fourth.onOutcome({ kind: 'dropped', why: 'malformed URL' })
  t.match(owner.progress(1), { timesSent: 4, failsCounter: 0, lastSuccessMs: answeredMs })
  const fifth = await sent()
  fifth.onOutcome(dead(1))
  t.match(owner.progress(1), { timesSent: 5, failsCounter: 1 }, 'one that never could be sent')
})

t.test('each try is reported with its number', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  await owner.end(create('E'))
  const [due] = (await owner.handed()) as [PendingNotification]
  for (const outcome of [failed(1), failed(2, 503), delivered]) due.onOutcome(outcome)
  const reply = await owner.end({ kind: 'deliveries', tenant, id: idOf(1), limit: 10 })
  t.match(reply, {
    deliveries: [
      { outcome: 'delivered', attempt: 3, code: 204 },
      { outcome: 'failed', attempt: 2, code: 503 },
      { outcome: 'failed', attempt: 1, reason: 'refused', id: 'E', type: 'T', path: '/', notificationId: due.id },
    ],
    deadLetters: [],
  })
})

t.test('throttling, one-shots and limits of failures hold from one change to the next', async t => {
  const owner = await NotifyingOwner.with([
    watching(1, { throttling: 5 }),
    watching(2, { status: 'oneshot' }),
    watching(3, { notification: { maxFailsLimit: 1 } }),
  ])
  const notified = async (id: string): Promise<string[]> => {
    await owner.end(create(id))
    return (await owner.handed()).map(due => {
      due.onOutcome(dead(1))
      return due.subscription.slice(-1)
    })
  }
  t.strictSame(await notified('A'), ['1', '2', '3'])
  t.strictSame(await notified('B'), ['3'], 'the failure that is one too many')
  t.match(owner.lines, [/automatically disabled due to failsCounter \(2\) overpasses maxFailsLimit \(1\)/])
  t.strictSame(await notified('C'), [])
  await owner.rest(4999)
  t.strictSame(await notified('D'), [])
  await owner.rest(1)
  t.strictSame(await notified('E'), ['1'])
})

t.test('several changes of one tick trigger a one-shot once', async t => {
  const owner = await NotifyingOwner.with([watching(1, { status: 'oneshot' })])
  for (const id of ['A', 'B', 'C']) owner.ask(create(id))
  t.equal((await owner.handed()).length, 1)
})

/** The numbers of rows of the outbox and of dead letters after each commit. */
function watchedCommits(owner: NotifyingOwner): [rows: number, letters: number][] {
  const seen: [number, number][] = []
  const plain = owner.store.commit.bind(owner.store)
  owner.store.commit = (batch, onDone) =>
    plain(batch, async error => {
      seen.push([(await rowsOf(owner.store, allOutbox())).length, (await rowsOf(owner.store, allLetters())).length])
      onDone(error)
    })
  return seen
}

t.test('a dead letter is stored in the commit that removes its row, and replayed in one with its id', async t => {
  const owner = await NotifyingOwner.with([watching(1), watching(2)])
  await owner.end(create('E'))
  const [due, other] = (await owner.handed()) as [PendingNotification, PendingNotification]
  const before = intentsOf(due)
  other.onOutcome(delivered)
  const seen = watchedCommits(owner)
  due.onOutcome(dead())
  await owner.rest(100)
  t.strictSame(seen.splice(0), [[0, 1]])
  await owner.end(update('E', { n: 2 }))
  for (const one of owner.deliverer.next()) one.onOutcome(delivered)
  await owner.rest(100)
  seen.length = 0
  const retried = await owner.end({ kind: 'retryDeliveries', tenant, id: idOf(1) })
  t.strictSame(retried, { kind: 'retried', count: 1 })
  t.strictSame(seen.splice(0), [[1, 0]])
  const [again, ...others] = (await owner.handed()) as [PendingNotification]
  t.strictSame([intentsOf(again), others.length], [before, 0])
  t.equal(again.attempts, 0)
  t.equal(owner.progress(1).timesSent, 2, 'it was counted before')
  const after = await owner.killed()
  t.strictSame((await after.handed()).map(intentsOf), [before])
})

t.test('a notification that is sent again while all rows are being read comes last', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  await owner.end(create('E'))
  await owner.end(create('F'))
  const [due] = (await owner.handed()) as [PendingNotification]
  due.onOutcome(dead())
  await owner.rest(100)
  const after = await owner.killed({ begins: false })
  await after.end({ kind: 'retryDeliveries', tenant, id: idOf(1) })
  t.equal(after.deliverer.taken.length, 0)
  await after.begin()
  t.strictSame(
    (await after.handed()).map(one => intentsOf(one)![1]),
    ['F', 'E'],
  )
})

t.test('no notification is passed on after the end, and the next owner has the durable ones', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  owner.shards.parts.notifications.end()
  t.strictSame(await owner.end(create('E')), done)
  t.equal((await owner.handed()).length, 0)
  t.equal((await (await owner.killed()).handed()).length, 1)
})

t.test('the sender gets the subscriptions that may trigger', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  t.strictSame(owner.deliverer.expected, [idOf(1)])
  await owner.end({ kind: 'removeSubscription', tenant, id: idOf(1) })
  t.notOk(owner.shards.parts.notifications.concerns(tenant), 'and no change is looked at any more')
})

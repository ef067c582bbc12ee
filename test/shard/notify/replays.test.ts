// Dead letters that are replayed automatically: when, how many, in which order, and when not. The clock stands still,
// and the test is the receiver.

import t from 'tap'
import type { DeadCause, DeliveryRecord } from '../../../src/messages/messages.js'
import type { DeliveryOutcome, PendingNotification } from '../../../src/ports.js'
import { allLetters, decodeLetterRow } from '../../../src/shard/notify/notification-layout.js'
import { type ReplayLimits, replayLimitsDefault } from '../../../src/shard/notify/replays.js'
import { rowsOf } from '../../storage/store-contract.js'
import {
  create,
  dead,
  delivered,
  idOf,
  intentsOf,
  NotifyingOwner,
  RecordingDeliverer,
  update,
  watching,
} from '../../support/notifying.js'

const receiver = 'http://h:80'
const { receiverPauseMsMin, letterPauseMsMin, receiverReplaysMax } = replayLimitsDefault
/** After this time a resting receiver is certainly tried. */
const pauseMs = receiverPauseMsMin * 1.2

const notifying = (replays: Partial<ReplayLimits> = {}) => ({
  notifications: {
    isKept: true,
    descendantsMax: 1000,
    flowControl: undefined,
    replays: { ...replayLimitsDefault, ...replays },
  },
})

const away = dead(5)
const unsendable: DeliveryOutcome = { ...away, kind: 'dead', cause: 'unsendable' } as DeliveryOutcome
const heldBack: DeliveryOutcome = { ...away, kind: 'dead', sent: false } as DeliveryOutcome

type Owner = NotifyingOwner

/** An owner whose subscription 1 has a dead letter of each of these changes, in this order. */
async function withLetters(
  entities: readonly string[],
  { outcome = away, subscriptions = [watching(1)], replays = {} as Partial<ReplayLimits> } = {},
): Promise<Owner> {
  const owner = await NotifyingOwner.with(subscriptions, notifying(replays))
  await letters(owner, entities, outcome)
  return owner
}

async function letters(owner: Owner, entities: readonly string[], outcome = away): Promise<void> {
  const known = new Set<string>()
  for (const [n, id] of entities.entries()) {
    owner.ask(known.has(id) ? update(id, { n }) : create(id, { n }))
    known.add(id)
    await owner.rest()
  }
  const pending = await owner.handed()
  for (const one of pending) {
    intentsOf(one)
    one.onOutcome(outcome)
  }
  await owner.rest(200)
}

/** Notifications passed on since the last call, as entity and value. */
async function handed(owner: Owner): Promise<(readonly [string, unknown])[]> {
  return (await sent(owner)).map(([shown]) => shown)
}

async function sent(owner: Owner): Promise<(readonly [readonly [string, unknown], PendingNotification])[]> {
  const found: (readonly [readonly [string, unknown], PendingNotification])[] = []
  for (const pending of await owner.handed()) {
    const input = pending.input()
    if (input) found.push([[input.entity.id, input.entity.attributes.get('n')?.value], pending])
  }
  return found
}

/** Ends notifications until no more are passed on; returns all of them. */
async function takeAll(owner: Owner, outcome = delivered, turnsMax = 1_000): Promise<(readonly [string, unknown])[]> {
  const all: (readonly [string, unknown])[] = []
  for (let turns = 0, quiet = 0; quiet < 3 && turns < turnsMax; turns++) {
    const found = await sent(owner)
    for (const [shown, pending] of found) {
      all.push(shown)
      pending.onOutcome(outcome)
    }
    quiet = found.length === 0 ? quiet + 1 : 0
    await owner.rest(50)
  }
  return all
}

const kept = async (owner: Owner): Promise<DeliveryRecord[]> => {
  await owner.rest(200)
  return (await rowsOf(owner.store, allLetters())).map(({ value }) => JSON.parse(decodeLetterRow(value).head))
}
const answers = (owner: Owner): void => owner.shards.parts.notifications.onAnswering(receiver)
const range = (count: number): number[] => Array.from({ length: count }, (_, n) => n)

t.test(
  'a receiver that answers again is tried with one letter, the oldest, and gets the others when it takes that',
  async t => {
    const owner = await withLetters(['A', 'B', 'A', 'B', 'A'])
    t.strictSame(await handed(owner), [])
    answers(owner)
    await owner.rest()
    const [[first, pending] = []] = await sent(owner)
    t.strictSame(first, ['A', 0])
    t.strictSame(await handed(owner), [], 'one alone')
    t.strictSame([pending!.isReplay, pending!.attempts], [true, 5])
    pending!.onOutcome(delivered)
    t.strictSame(await takeAll(owner), [
      ['B', 1],
      ['A', 2],
      ['B', 3],
      ['A', 4],
    ])
    t.strictSame(await kept(owner), [])
    t.strictSame(owner.shards.parts.replays!.counters, { delivered: 5, failed: 0, unsendable: 0 })
  },
)

t.test('a quiet receiver is tried with one letter now and then, more and more seldom', async t => {
  const owner = await withLetters(['A', 'B'])
  const tries: number[] = []
  const sinceMs = owner.clock.monoMs()
  for (let steps = 0; steps < 500; steps++) {
    await owner.rest(4_000)
    for (const [, pending] of await sent(owner)) {
      tries.push(owner.clock.monoMs() - sinceMs)
      pending.onOutcome(dead(pending.attempts + 1))
    }
  }
  const pauses = tries.map((ms, n) => ms - (tries[n - 1] ?? 0))
  for (const [n, ms] of pauses.entries()) {
    const wanted = Math.min(receiverPauseMsMin * 2 ** n, replayLimitsDefault.receiverPauseMsMax)
    t.ok(ms >= wanted * 0.8 - 4_000 && ms <= wanted * 1.2 + 4_000, `${ms} ms for ${wanted}`)
  }
  t.ok(tries.length < 15, `${tries.length}`)
  t.equal((await kept(owner)).length, 2, 'the same rows')
  for (const letter of await kept(owner)) t.ok(letter.attempt > 5, 'with its tries counted')
  // The last pause may be that of five minutes.
  await owner.rest(replayLimitsDefault.receiverPauseMsMax * 1.2)
  t.strictSame((await takeAll(owner)).length, 2)
})

t.test('letters flow at a rate, and only so many are on their way', async t => {
  const owner = await withLetters(
    range(60).map(n => `E${n}`),
    { replays: { receiverReplaysPerSecondMax: 20 } },
  )
  answers(owner)
  await owner.rest()
  const [[, first] = []] = await sent(owner)
  first!.onOutcome(delivered)
  const startMs = owner.clock.monoMs()
  t.equal((await takeAll(owner)).length, 59)
  const tookMs = owner.clock.monoMs() - startMs
  t.ok(tookMs > 2_500 && tookMs < 4_000, `${tookMs} ms`)
  const wide = await withLetters(range(60).map(n => `E${n}`))
  answers(wide)
  await wide.rest()
  const [[, one] = []] = await sent(wide)
  one!.onOutcome(delivered)
  await wide.rest(1_000)
  t.equal((await handed(wide)).length, receiverReplaysMax)
})

t.test(
  'replay stops at once when the receiver goes away again, and goes on later; all come once, in order',
  async t => {
    const entities = range(40).map(n => `E${n % 4}`)
    const owner = await withLetters(entities)
    const taken: (readonly [string, unknown])[] = []
    answers(owner)
    await owner.rest()
    while (taken.length < 10) {
      for (const [shown, pending] of await sent(owner)) {
        taken.push(shown)
        pending.onOutcome(delivered)
      }
      await owner.rest(50)
    }
    for (const [, pending] of await sent(owner)) pending.onOutcome(heldBack)
    t.strictSame(await takeAll(owner), [], 'nothing more')
    await owner.rest(pauseMs)
    taken.push(...(await takeAll(owner)))
    t.equal(taken.length, 40)
    for (const id of ['E0', 'E1', 'E2', 'E3']) {
      const values = taken.filter(([entity]) => entity === id).map(([, value]) => value)
      t.strictSame(
        values,
        range(40).filter(n => `E${n % 4}` === id),
        id,
      )
    }
  },
)

t.test('letters that cannot be sent, or were denied, stay', async t => {
  const owner = await withLetters(['A', 'B'], { outcome: unsendable })
  answers(owner)
  await owner.rest(3_600_000)
  t.strictSame(await handed(owner), [])
  t.match(await owner.end({ kind: 'deliveries', tenant: 't', id: idOf(1), limit: 9 }), {
    deadLetters: [{ cause: 'unsendable', nextReplayMs: undefined }, {}],
  })
})

t.test(
  'a letter that is refused while others are taken waits longer each time, and holds back its entity alone',
  async t => {
    const owner = await withLetters(['A', 'B', 'A', 'B', 'C'])
    answers(owner)
    const tries: number[] = []
    const taken: (readonly [string, unknown])[] = []
    for (let steps = 0; steps < 600; steps++) {
      await owner.rest(steps < 100 ? 50 : 5_000)
      for (const [shown, pending] of await sent(owner)) {
        if (shown[0] !== 'A') taken.push(shown)
        else tries.push(Math.round(owner.clock.monoMs() / 1_000))
        pending.onOutcome(shown[0] === 'A' ? dead(6, 503) : delivered)
      }
    }
    t.strictSame(taken, [
      ['B', 1],
      ['B', 3],
      ['C', 4],
    ])
    t.ok(tries.length < 20, `tried at ${tries}`)
    const last = tries.slice(-3)
    t.ok(last[2]! - last[1]! > letterPauseMsMin / 1_000, `tried at ${tries}`)
    const left = await kept(owner)
    t.strictSame(
      left.map(({ id }) => id),
      ['A', 'A'],
    )
    t.equal(Math.max(...left.map(({ attempt }) => attempt)), 6)
  },
)

t.test('nothing is replayed for a subscription that is inactive, until it is active again', async t => {
  const owner = await withLetters(['A'])
  const change = (status: string) =>
    owner.end({
      kind: 'changeSubscription',
      tenant: 't',
      id: idOf(1),
      servicePath: '/#',
      payload: { value: { status }, duplicates: new Map() } as never,
    })
  await change('inactive')
  answers(owner)
  await owner.rest(3_600_000)
  t.strictSame(await handed(owner), [])
  await change('active')
  await owner.rest(2_000)
  t.strictSame(await handed(owner), [['A', 0]])
})

t.test('nothing is replayed for a subscription that has failed too often, and a one-shot is', async t => {
  const failing = watching(1, { notification: { maxFailsLimit: 1 } })
  const oneShot = watching(2, { status: 'oneshot' })
  const owner = await withLetters(['A', 'B'], { subscriptions: [failing, oneShot] })
  answers(owner)
  await owner.rest(60_000)
  const found = await owner.handed()
  t.strictSame(
    found.map(({ subscription }) => subscription),
    [idOf(2)],
  )
})

t.test('letters go with their subscription, also one that is on its way', async t => {
  const owner = await withLetters(['A'])
  answers(owner)
  await owner.rest()
  const [[, pending] = []] = await sent(owner)
  await owner.end({ kind: 'removeSubscription', tenant: 't', id: idOf(1) })
  pending!.onOutcome(delivered)
  t.equal(pending!.input(), undefined)
  t.strictSame(await kept(owner), [])
})

t.test(
  'after a start letters are replayed when the receiver answers something, or when their pause is over',
  async t => {
    const before = await withLetters(['A', 'B'])
    const owner = await before.killed(notifying())
    await owner.end(update('A', { n: 7 }))
    const fresh = await sent(owner)
    t.strictSame(
      fresh.map(([shown]) => shown),
      [['A', 7]],
    )
    fresh[0]![1].onOutcome(delivered)
    await owner.rest(1_000)
    t.strictSame(await takeAll(owner), [
      ['A', 0],
      ['B', 1],
    ])
    const quiet = await (await withLetters(['A'])).killed(notifying())
    await quiet.rest(pauseMs)
    t.strictSame(await takeAll(quiet), [['A', 0]])
  },
)

t.test('a crash while a letter is on its way leaves the letter', async t => {
  const before = await withLetters(['A'])
  answers(before)
  await before.rest()
  t.equal((await sent(before)).length, 1)
  const owner = await before.killed(notifying())
  t.equal((await kept(owner)).length, 1)
})

t.test('a client that asks for all letters does not send those again that are on their way', async t => {
  const owner = await withLetters(['A', 'B'])
  answers(owner)
  await owner.rest()
  const [[, pending] = []] = await sent(owner)
  t.match(await owner.end({ kind: 'retryDeliveries', tenant: 't', id: idOf(1) }), { kind: 'retried', count: 2 })
  t.strictSame(await handed(owner), [['B', 1]])
  pending!.onOutcome(delivered)
  t.strictSame(await kept(owner), [])
})

t.test('a list of letters shows when each is replayed automatically', async t => {
  const owner = await withLetters(['A'])
  const next = async (of: Owner): Promise<number | undefined> => {
    const reply = await of.end({ kind: 'deliveries', tenant: 't', id: idOf(1), limit: 9 })
    return (reply as { readonly deadLetters: readonly DeliveryRecord[] }).deadLetters[0]?.nextReplayMs
  }
  const inMs = (await next(owner))! - owner.clock.wallMs()
  t.ok(inMs > receiverPauseMsMin * 0.7 && inMs <= pauseMs, `${inMs} ms`)
  const manual = await NotifyingOwner.with([watching(1)])
  await letters(manual, ['A'])
  t.equal(await next(manual), undefined)
  await manual.rest(3_600_000)
  t.strictSame(await handed(manual), [], 'without replays nothing is sent')
})

t.test('counters: a replay that is taken is a success, and one that fails is no further failure', async t => {
  const owner = await withLetters(['A'])
  t.match(owner.progress(1), { timesSent: 1, failsCounter: 1 })
  await owner.rest(pauseMs)
  for (const [, pending] of await sent(owner)) pending.onOutcome(away)
  t.match(owner.progress(1), { timesSent: 1, failsCounter: 1 })
  await owner.rest(3 * pauseMs)
  t.equal((await takeAll(owner)).length, 1)
  t.match(owner.progress(1), { timesSent: 1, failsCounter: 0, lastSuccessCode: 204 })
})

t.test('letters of two subscriptions of one receiver take turns', async t => {
  const owner = await withLetters(['A', 'B', 'C'], { subscriptions: [watching(1), watching(2)] })
  answers(owner)
  await owner.rest()
  const order: string[] = []
  for (let turns = 0; turns < 20; turns++) {
    for (const pending of await owner.handed()) {
      pending.input()
      order.push(pending.subscription)
      pending.onOutcome(delivered)
    }
    await owner.rest(50)
  }
  t.equal(order.length, 6)
  t.strictSame(new Set(order.slice(0, 2)), new Set([idOf(1), idOf(2)]))
})

t.test(
  'a letter that an older build has written is replayed only if its status shows that another try may help',
  async t => {
    const owner = await NotifyingOwner.with([watching(1)], notifying())
    const { letters: of } = owner.shards.parts
    const old = (cause: DeadCause | undefined, code: number | undefined): DeliveryRecord => ({
      atMs: 1,
      id: 'A',
      type: 'T',
      path: '/',
      notificationId: 'n',
      attempt: 5,
      outcome: 'dead',
      code,
      reason: '',
      cause,
    })
    of.bury('t', idOf(1), old(undefined, undefined), Buffer.alloc(1))
    of.bury('t', idOf(1), old(undefined, 503), Buffer.alloc(1))
    of.bury('t', idOf(1), old('noAnswer', undefined), Buffer.alloc(1))
    t.strictSame(
      [...of.of('t', idOf(1))!].map(({ mayReplay }) => mayReplay),
      [false, true, true],
    )
  },
)

t.test('a letter that this build cannot send as it is does no harm', async t => {
  const deliverer = new RecordingDeliverer()
  const owner = await NotifyingOwner.with([watching(1)], { ...notifying(), deliverer })
  const record: DeliveryRecord = { ...(await firstRecord()), cause: 'noAnswer' }
  owner.shards.parts.letters.bury('t', idOf(1), record, Buffer.from('nonsense'))
  await owner.rest(pauseMs)
  for (const pending of await owner.handed()) t.equal(pending.input(), undefined)
  await owner.rest(3_600_000)
  t.strictSame(await owner.handed(), [])
  t.equal((await kept(owner)).length, 1)
})

async function firstRecord(): Promise<DeliveryRecord> {
  const [record] = await kept(await withLetters(['A']))
  return record!
}

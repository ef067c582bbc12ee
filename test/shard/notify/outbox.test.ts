// Pending notifications are a row in the commit of the change that triggers them. The row goes in a later commit when
// all of them have ended. So after a crash the notifications that had not ended are pending again, and no others but
// those of the same bundle.

import t, { type Test } from 'tap'
import type { Cursor, PendingNotification, Range, Store } from '../../../src/ports.js'
import { prefix } from '../../../src/shard/keys.js'
import { allEntities } from '../../../src/shard/layout.js'
import { allLetters, parseOutboxKey } from '../../../src/shard/notify/notification-layout.js'
import { shardLimitsDefault } from '../../../src/shard/open-shards.js'
import { openDataDirectory } from '../../../src/storage/data-directory.js'
import { openStore } from '../../../src/storage/open-store.js'
import { rowsOf } from '../../storage/store-contract.js'
import { tempDir } from '../../support/broker-process.js'
import { HoldingStore } from '../../support/changes.js'
import { FakeClock } from '../../support/fake-clock.js'
import {
  create,
  dead,
  delivered,
  failed,
  idOf,
  intentsOf,
  NotifyingOwner,
  remove,
  shardMap,
  until,
  update,
  watching,
} from '../../support/notifying.js'
import { Random } from '../../support/random.js'

const ids = (dues: readonly PendingNotification[]): string[] => dues.map(({ id }) => id)
const entityIds = (count: number): string[] => Array.from({ length: count }, (_, n) => `E${n}`)
const isOutbox = (key: Uint8Array): boolean => key[0] === prefix.outbox

/** Counts the commits of an owner from now on. */
function commitsOf<S extends Store>({ store }: NotifyingOwner<S>): { count: number } {
  const commits = { count: 0 }
  const plain = store.commit.bind(store)
  store.commit = (batch, onDone) => {
    commits.count++
    plain(batch, onDone)
  }
  return commits
}

/** Counts the lookups of rows of the outbox. */
function readsOf({ store }: NotifyingOwner): { count: number } {
  const reads = { count: 0 }
  const plain = store.get.bind(store)
  store.get = key => {
    if (isOutbox(key)) reads.count++
    return plain(key)
  }
  return reads
}

/** After this time a bundle with a pending notification has been split. Piggybacked writes wait as well. */
const bundlesWaitMs = 350

const limited = (limits: Partial<typeof shardLimitsDefault>) => ({ limits: { ...shardLimitsDefault, ...limits } })

t.test('a row is in one commit with its change, for any number of notifications', async t => {
  const owner = await NotifyingOwner.with([watching(1), watching(2)])
  const commits = commitsOf(owner)
  owner.ask(create('E'))
  t.strictSame(await owner.rows(), [])
  await owner.rest()
  t.equal(commits.count, 1)
  t.equal((await rowsOf(owner.store, allEntities())).length, 1)
  const rows = await owner.rows()
  t.equal(rows.length, 1)
  t.equal(parseOutboxKey(rows[0]!.key).shard, shardMap.shardOf('t', '/', 'E'))
  t.equal((await owner.intents()).length, 2)
})

t.test('a row goes in a later commit when all its notifications have ended, and not before', async t => {
  const owner = await NotifyingOwner.with([watching(1), watching(2), watching(3), watching(4)])
  await owner.end(create('E'))
  const dues = await owner.handed()
  t.equal(dues.length, 4)
  for (const [at, outcome] of [delivered, { kind: 'simulated' }, { kind: 'dropped', why: '' }].entries())
    dues[at]!.onOutcome(outcome as typeof delivered)
  dues[3]!.onOutcome(failed(1))
  await owner.rest(1000)
  t.equal((await owner.rows()).length, 1, 'one is to be tried again')
  dues[3]!.onOutcome(delivered)
  t.equal((await owner.rows()).length, 1)
  const commits = commitsOf(owner)
  await owner.rest(99)
  t.equal(commits.count, 0, 'it is not urgent')
  await owner.rest(1)
  t.equal(commits.count, 1)
  t.strictSame(await owner.rows(), [])
})

t.test('the removal of a row is a piggybacked write of the next commit', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  await owner.end(create('E'))
  const [due] = await owner.handed()
  due!.onOutcome(delivered)
  const commits = commitsOf(owner)
  owner.ask(create('F'))
  await owner.rest()
  t.equal(commits.count, 1)
  t.strictSame(
    (await owner.intents()).map(({ id }) => id),
    ids(await owner.handed()),
    'of the second one alone',
  )
})

t.test('rows of one commit are one row, which goes when all of them have ended', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  for (const id of entityIds(40)) owner.ask(create(id))
  await owner.rest()
  const dues = await owner.handed()
  t.equal(dues.length, 40)
  t.equal((await owner.bundles()).length, 1)
  t.strictSame(await owner.rows(), [])
  for (const due of dues.slice(1)) due.onOutcome(delivered)
  await owner.rest(200)
  t.equal((await owner.bundles()).length, 1, 'one has not ended')
  t.equal(owner.shards.parts.notifications.pending.rows, 1)
  const commits = commitsOf(owner)
  dues[0]!.onOutcome(delivered)
  await owner.rest(100)
  t.equal(commits.count, 1)
  t.strictSame([await owner.bundles(), await owner.rows()], [[], []])
  t.strictSame(owner.shards.parts.notifications.pending, { rows: 0, bytes: 0 })
})

t.test(
  'notifications of a bundle that have not ended after a while get rows of their own, with the same contents',
  async t => {
    const owner = await NotifyingOwner.with([watching(1), watching(2)])
    for (const id of entityIds(6)) owner.ask(create(id))
    await owner.rest()
    const dues = await owner.handed()
    const first = dues.map(intentsOf)
    for (const due of dues.slice(0, 5)) due.onOutcome(delivered)
    const reads = readsOf(owner)
    const before = dues.slice(5).map(intentsOf)
    t.equal(reads.count, 0, 'the bundle is in memory')
    t.strictSame(before, first.slice(5))
    await owner.rest(249)
    t.equal((await owner.bundles()).length, 1)
    owner.store.isHeld = true
    const commits = commitsOf(owner)
    await owner.rest(101)
    t.equal(commits.count, 1, 'the commit that moves them is on its way')
    const meanwhile = dues.slice(5).map(intentsOf)
    t.equal(reads.count, 0, 'nor are they looked for while they move')
    t.strictSame(meanwhile, first.slice(5))
    // These end while the bundle is being split.
    for (const due of dues.slice(8)) due.onOutcome(delivered)
    owner.store.isHeld = false
    owner.store.land()
    await owner.rest(100)
    t.strictSame(await owner.bundles(), [])
    t.strictSame(
      (await owner.intents()).map(({ id }) => id).sort(),
      // The third change has ended in part.
      ids(dues.slice(4, 8)).sort(),
    )
    t.strictSame(dues.slice(5, 8).map(intentsOf), first.slice(5, 8))
    t.ok(reads.count > 0)
    for (const due of dues.slice(5, 8)) due.onOutcome(delivered)
    await owner.rest(100)
    t.strictSame(await owner.rows(), [])
  },
)

t.test('a bundle that ends while it waits to be taken apart goes as a whole', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  for (const id of entityIds(3)) owner.ask(create(id))
  await owner.rest()
  const dues = await owner.handed()
  await owner.rest(250)
  t.equal((await owner.bundles()).length, 1, 'it is overdue')
  for (const due of dues) due.onOutcome(delivered)
  await owner.rest(100)
  t.strictSame([await owner.bundles(), await owner.rows()], [[], []])
})

t.test('an owner that has drained keeps exactly its pending notifications, and writes nothing more', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  for (const id of entityIds(3)) owner.ask(create(id))
  await owner.rest()
  const dues = await owner.handed()
  dues[1]!.onOutcome(delivered)
  for (const id of ['F', 'G']) owner.ask(create(id))
  let isDrained = false
  void owner.shards.drain().then(() => {
    isDrained = true
  })
  await until(owner.clock, () => isDrained)
  t.strictSame(await owner.bundles(), [])
  t.equal((await owner.rows()).length, 4)
  const commits = commitsOf(owner)
  await owner.rest(10_000)
  t.equal(commits.count, 0)
})

t.test('a notification that is given up leaves its bundle with the commit that stores its dead letter', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  for (const id of entityIds(3)) owner.ask(create(id))
  await owner.rest()
  const dues = await owner.handed()
  const commits = commitsOf(owner)
  dues[1]!.onOutcome(dead())
  await owner.rest()
  t.equal(commits.count, 1)
  t.equal((await rowsOf(owner.store, allLetters())).length, 1)
  t.strictSame(await owner.bundles(), [])
  t.strictSame(ids(await (await owner.killed()).handed()), ids([dues[0]!, dues[2]!]).sort())
})

t.test('a crash makes all of a bundle with a pending notification pending again, in order and once', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  const all = entityIds(30)
  for (const id of all) owner.ask(create(id))
  await owner.rest()
  for (const id of all) owner.ask(update(id, { n: 2 }))
  await owner.rest()
  const dues = await owner.handed()
  t.equal((await owner.bundles()).length, 2)
  // All of the first bundle, and nearly all of the second, have ended.
  for (const due of dues.slice(0, 59)) due.onOutcome(delivered)
  await owner.rest(100)
  const after = await owner.killed()
  t.strictSame(ids(await after.handed()), ids(dues.slice(30)).sort())
  t.strictSame(await after.bundles(), [])
  t.equal((await after.rows()).length, 30)
  // An owner that is stopped while it splits them begins again.
  t.strictSame(ids(await (await after.killed()).handed()), ids(dues.slice(30)).sort())
})

t.test('bundles have a size, and large rows are not bundled', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  const sizes = [20_000, 10, 10_000, 15_000, 17_000, ...Array<number>(40).fill(12_000)]
  for (const [n, length] of sizes.entries()) owner.ask(create(`E${n}`, { n: 'x'.repeat(length) }))
  await owner.rest()
  const dues = await owner.handed()
  t.equal(dues.length, sizes.length)
  t.equal((await owner.rows()).length, 2)
  const bundles = await owner.bundles()
  t.equal(bundles.length, 2)
  for (const { value } of bundles) t.ok(value.length > 100_000 && value.length <= 256 * 1024, `${value.length} bytes`)
  const after = await owner.killed()
  t.strictSame(ids(await after.handed()), ids(dues).sort())
})

t.test('a notification that waits counts as failed once, over crashes too, and its tries go on', async t => {
  let owner = await NotifyingOwner.with([watching(1, { notification: { maxFailsLimit: 2 } })])
  await owner.end(create('E'))
  for (let tries = 1; tries <= 4; tries++) {
    const [due] = await owner.handed()
    t.equal(due!.attempts, tries - 1)
    due!.onOutcome(failed(tries))
    await owner.rest(bundlesWaitMs)
    t.equal(owner.progress(1).failsCounter, 1, `after ${tries} tries`)
    owner = await owner.killed()
  }
  t.notMatch(owner.lines, [/automatically disabled/])
})

t.test('a failure and its count are in one commit', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  await owner.end(create('E'))
  const [due] = await owner.handed()
  due!.onOutcome(failed(1))
  const commits = commitsOf(owner)
  await owner.rest(100)
  t.equal(commits.count, 1)
  t.match(await owner.intents(), [{ id: due!.id, failed: { tries: 1 } }])
  const after = await owner.killed()
  t.equal(after.progress(1).failsCounter, 1)
})

t.test('a crash does not hurry notifications put off, and does not delay those without an answer', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  for (const id of ['E', 'F']) await owner.end(create(id))
  const [putOff, lost] = await owner.handed()
  const dueMs = owner.clock.wallMs() + 30_000
  putOff!.onOutcome({ ...failed(3, 503), nextAttemptMs: dueMs } as typeof delivered)
  lost!.onOutcome({ ...failed(3), nextAttemptMs: dueMs } as typeof delivered)
  await owner.rest(bundlesWaitMs)
  const again = new Map((await (await owner.killed()).handed()).map(due => [due.id, due]))
  t.match(again.get(putOff!.id), { attempts: 3, dueMs })
  t.match(again.get(lost!.id), { attempts: 3, dueMs: undefined })
})

t.test('a crash does not revive ended notifications of a row with a waiting one, before or after it', async t => {
  const owner = await NotifyingOwner.with([watching(1), watching(2), watching(3)])
  await owner.end(create('E'))
  const [before, waiting, behind] = await owner.handed()
  before!.onOutcome(delivered)
  waiting!.onOutcome(failed(1))
  await owner.rest(bundlesWaitMs)
  behind!.onOutcome(delivered)
  await owner.rest(100)
  const after = await owner.killed()
  const again = await after.handed()
  t.strictSame(ids(again), [waiting!.id])
  again[0]!.onOutcome(delivered)
  await after.rest(100)
  t.strictSame(await after.rows(), [])
})

t.test('a notification that is sent again after it was given up begins anew, and counts no second time', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  await owner.end(create('E'))
  const [due] = await owner.handed()
  due!.onOutcome(failed(1))
  due!.onOutcome(dead())
  await owner.end({ kind: 'retryDeliveries', tenant: 't', id: idOf(1) })
  const [again] = await owner.handed()
  t.match(again, { id: due!.id, attempts: 0 })
  again!.onOutcome(failed(1))
  await owner.rest(100)
  t.equal(owner.progress(1).failsCounter, 1)
})

t.test('an outbox is crowded when more than half of its rows or bytes are taken, until some have ended', async t => {
  for (const limits of [{ rowsMax: 4 }, { bytesMax: 1500 }]) {
    const owner = await NotifyingOwner.with([watching(1)], limited(limits))
    const { notifications } = owner.shards.parts
    await owner.end(create('E'))
    t.equal(notifications.isCrowded, false)
    for (const id of ['F', 'G', 'H']) await owner.end(create(id))
    t.equal(notifications.isCrowded, true)
    for (const due of (await owner.handed()).slice(0, 3)) due.onOutcome(delivered)
    t.equal(notifications.isCrowded, false)
  }
})

t.test('a notification that is given up ends as well', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  await owner.end(create('E'))
  for (const due of await owner.handed()) due.onOutcome(dead())
  await owner.rest(100)
  t.strictSame(await owner.rows(), [])
})

/** The store of a directory, closed with the test. */
async function realStore(t: Test): Promise<Store> {
  const directory = openDataDirectory(tempDir(t), { shards: 16, spread: 16, workers: 1 }, () => 'none')
  const store = await openStore(directory, { durability: 'os', logger: { warn: () => {} }, part: undefined })
  t.teardown(() => store.close())
  return store
}

for (const [what, made] of [
  ['RocksDB', realStore],
  ['memory', async () => new HoldingStore()],
] as const)
  t.test(`a crash makes pending again exactly the unended notifications, unchanged and in order: ${what}`, async t => {
    const random = Random.fromEnvironment()
    t.comment(`seed ${random.seed}`)
    const owner = await NotifyingOwner.over(await made(t))
    const condition = { alterationTypes: ['entityCreate', 'entityChange', 'entityDelete'] }
    for (const n of [1, 2, 3]) await owner.end({ kind: 'createSubscription', subscription: watching(n, { condition }) })
    const all = entityIds(40)
    for (const id of all) owner.ask(create(id))
    await owner.end(update('E7', { n: 2 }))
    await owner.end(remove('E8'))
    const dues = owner.deliverer.next()
    t.equal(dues.length, 3 * 42)
    const open = new Map(dues.map(due => [due.id, intentsOf(due)]))
    for (const due of dues) {
      if (random.fraction() < 0.4) continue
      due.onOutcome(random.pick([delivered, dead(), failed(1)]))
      if (due.attempts === 0) open.delete(due.id)
    }
    await owner.rest(bundlesWaitMs)
    await owner.shards.drain()
    t.strictSame(await owner.bundles(), [])
    // The pending notifications of a row stay or go together, until the row is written again because a try has failed.
    const rowOf = (id: string): string => id.slice(0, -6)
    const rows = new Set([...open.keys()].map(rowOf))
    const rewritten = new Set(dues.filter(({ attempts }) => attempts > 0).map(({ id }) => rowOf(id)))
    const wanted = dues.filter(({ id }) => (rewritten.has(rowOf(id)) ? open.has(id) : rows.has(rowOf(id))))
    const after = await owner.killed()
    const again = await after.handed()
    t.strictSame(
      again.map(({ id }) => id),
      ids(wanted).sort(),
    )
    for (const due of again) if (open.has(due.id)) t.strictSame(intentsOf(due), open.get(due.id))
    t.ok(again.length > 20 && again.length < dues.length)
    for (const due of again) due.onOutcome(delivered)
    await after.rest(100)
    await after.shards.drain()
    t.strictSame(await after.rows(), [])
    t.equal((await (await after.killed()).handed()).length, 0)
  })

t.test('rows read after a start cost no memory until they are made, and then have the same contents', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  for (const id of entityIds(5)) await owner.end(create(id))
  const before = (await owner.handed()).map(intentsOf)
  const after = await owner.killed()
  const reads = readsOf(after)
  const dues = await after.handed()
  t.equal(reads.count, 0)
  t.strictSame(dues.map(intentsOf).sort(), before.sort())
  t.equal(reads.count, 5, 'each is read when it is made')
})

t.test('the contents of a new change are in memory once; later they come from its row', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  await owner.end(create('E'))
  const [due] = await owner.handed()
  const reads = readsOf(owner)
  const first = intentsOf(due!)
  t.equal(reads.count, 0)
  await owner.end(update('E', { n: 2 }))
  t.strictSame(intentsOf(due!), first)
  t.equal(reads.count, 1)
})

t.test('of many large changes whose messages are not made yet, a bounded number is in memory', async t => {
  const owner = await NotifyingOwner.with(Array.from({ length: 60 }, (_, n) => watching(n)))
  await owner.end(create('E', { n: 'x'.repeat(1_000_000) }))
  const dues = await owner.handed()
  const reads = readsOf(owner)
  for (const due of dues) t.equal(due.input()?.entity.id, 'E')
  t.ok(reads.count > 20 && reads.count < 40, `${reads.count} of 60 were read again`)
  await owner.end(create('F'))
  for (const due of await owner.handed()) due.input()
  t.ok(reads.count < 40, 'when they are made there is room for others')
})

t.test('notifications that are triggered before all rows are read come behind them, in order', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  for (const id of entityIds(500)) owner.ask(create(id))
  await owner.rest()
  const before = ids(owner.deliverer.next())
  const after = await owner.killed({ begins: false })
  const begun = after.begin()
  after.ask(create('new'))
  for (let turns = 0; turns < 3; turns++) {
    await after.rest()
    after.ask(update('new', { n: turns + 2 }))
  }
  await until(after.clock, () => after.deliverer.taken.length === 504)
  await begun
  const names = (await after.handed()).map(due => [due.id, due.input()?.entity.attributes.get('n')?.value])
  t.strictSame(
    names.slice(0, 500).map(([id]) => id),
    before.sort(),
  )
  t.strictSame(
    names.slice(500).map(([, n]) => n),
    [1, 2, 3, 4],
  )
})

t.test('a notification that is triggered before any sender has begun is pending once', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  await owner.end(create('E'))
  const after = await owner.killed({ begins: false })
  await after.end(create('F'))
  await after.begin()
  const dues = await after.handed()
  t.strictSame(
    dues.map(due => due.input()?.entity.id),
    ['E', 'F'],
  )
  for (const due of dues) due.onOutcome(delivered)
  await after.rest(100)
  t.strictSame(await after.rows(), [])
})

/** A store whose outbox cannot be read. */
class UnreadableStore extends HoldingStore {
  isBroken = false

  override cursor(range: Range): Cursor {
    const cursor = super.cursor(range)
    if (!this.isBroken || !isOutbox(range.gte)) return cursor
    return { next: () => Promise.reject(new Error('unreadable')), close: () => cursor.close() }
  }
}

t.test('when pending rows cannot be read, later notifications are sent all the same', async t => {
  const owner = await NotifyingOwner.over(new UnreadableStore())
  await owner.end({ kind: 'createSubscription', subscription: watching(1) })
  owner.store.isBroken = true
  const after = await owner.killed({ begins: false })
  const begun = t.rejects(after.begin(), /unreadable/)
  await after.end(create('E'))
  await begun
  await after.end(create('F'))
  t.equal((await after.handed()).length, 2)
})

t.test('nothing is read any more when it has ended', async t => {
  const owner = await NotifyingOwner.with([watching(1)])
  for (const id of entityIds(500)) owner.ask(create(id))
  await owner.rest()
  const after = await owner.killed({ begins: false })
  let reads = 0
  const plain = after.store.cursor.bind(after.store)
  after.store.cursor = range => {
    const cursor = plain(range)
    const next = (rowsMax: number) => {
      reads++
      return cursor.next(rowsMax)
    }
    return { next, close: () => cursor.close() }
  }
  const begun = after.begin()
  after.shards.parts.notifications.end()
  await begun
  t.equal(reads, 1)
  t.equal((await after.handed()).length, 0)
})

t.test('beyond rowsMax no notification is accepted, which is counted, and logged once a second', async t => {
  const owner = await NotifyingOwner.with([watching(1), watching(2)], limited({ rowsMax: 3 }))
  for (const id of entityIds(5)) t.strictSame(await owner.end(create(id)), { kind: 'done' })
  const dues = await owner.handed()
  t.equal(dues.length, 6)
  t.equal((await owner.rows()).length, 3)
  const { notifications } = owner.shards.parts
  t.equal(notifications.droppedCount, 4)
  const line = (count: number) => `Runtime Error (the outbox of notifications is full, ${count} dropped so far)`
  t.strictSame(owner.lines, [line(2)])
  await owner.rest(1000)
  await owner.end(create('F'))
  t.strictSame(owner.lines, [line(2), line(6)])
  for (const due of dues.slice(0, 2)) due.onOutcome(delivered)
  await owner.end(create('G'))
  t.equal((await owner.handed()).length, 2, 'there is room again')
  await owner.end(create('H'))
  t.equal((await owner.handed()).length, 0)
})

t.test('beyond bytesMax nothing more is taken, also after a start', async t => {
  const parts = limited({ bytesMax: 10_000 })
  const owner = await NotifyingOwner.with([watching(1)], parts)
  const large = { n: 'x'.repeat(6_000) }
  for (const id of entityIds(3)) await owner.end(create(id, large))
  t.equal((await owner.handed()).length, 2, 'one may exceed it')
  const after = await owner.killed(parts)
  const dues = await after.handed()
  t.equal(dues.length, 2)
  await after.end(create('F', large))
  t.equal((await after.handed()).length, 0)
  dues[0]!.onOutcome(delivered)
  await after.end(create('G', large))
  t.equal((await after.handed()).length, 1)
})

t.test('two owners of one clock make no id twice', async t => {
  const clock = new FakeClock()
  const owners = await Promise.all([0, 1].map(() => NotifyingOwner.over(new HoldingStore(), {}, clock)))
  const all: string[] = []
  for (const [at, owner] of owners.entries()) {
    await owner.end({ kind: 'createSubscription', subscription: watching(1) })
    // Each owner has the shards of one remainder.
    const own = entityIds(40).filter(id => shardMap.shardOf('t', '/', id) % 2 === at)
    for (const id of own) await owner.end(create(id))
    all.push(...ids(await owner.handed()))
  }
  t.equal(all.length, 40)
  t.equal(new Set(all).size, 40)
})

// Group commit: replies after durability, one commit at a time, and the end of all commits when the store fails.

import t from 'tap'
import { DeposedError } from '../../../cluster/replication/shard-host.js'
import type { Batch, Store } from '../../../src/ports.js'
import { GroupCommit } from '../../../src/shard/commit/commit.js'
import { StoreLog } from '../../../src/shard/commit/commit-log.js'
import { Counts } from '../../../src/shard/commit/counts.js'
import { hasLost } from '../../../src/shard/commit/deposed.js'
import { decodeNumber } from '../../../src/shard/keys.js'
import { attributeCounts, entityCounts, entityKey, stampKey } from '../../../src/shard/layout.js'
import type { ShardRecord } from '../../../src/shard/turn/apply.js'
import { FakeClock } from '../../support/fake-clock.js'
import { MemoryStore } from '../../support/memory-store.js'

/** A store whose commits end when the test calls `release`. */
class HeldStore extends MemoryStore {
  /** Operations of each commit that began. */
  readonly begun: number[] = []
  private readonly held: (() => void)[] = []

  override commit(batch: Batch, onDone: (error?: Error) => void): void {
    this.begun.push(batch.length)
    super.commit(batch, error => {
      this.held.push(() => onDone(error))
    })
  }

  /** Ends the commit in flight. */
  async release(): Promise<void> {
    await Promise.resolve()
    this.held.shift()!()
  }
}

interface Setting {
  readonly store: HeldStore
  readonly clock: FakeClock
  readonly commit: GroupCommit
  readonly failures: Error[]
  readonly log: string[]
  /** Appends the removal of an id, and notes in `log` when and how its end is reported. */
  append(id: string): void
}

function setting(): Setting {
  const store = new HeldStore()
  const clock = new FakeClock()
  const failures: Error[] = []
  const log: string[] = []
  const commit = new GroupCommit({
    log: new StoreLog(store, clock, () => 77),
    clock,
    directory: new Counts(store, entityCounts),
    attributes: new Counts(store, attributeCounts),
    onFailure: failure => failures.push(failure),
  })
  const append = (id: string) => {
    const number = commit.append(recordOf(id), entityKey(0, '', '/', id), Buffer.from(id), undefined)
    commit.afterCommit(number, failure => log.push(failure ? `${id}: ${failure.message}` : id))
  }
  return { store, clock, commit, failures, log, append }
}

/** A record that touches no index: only its row counts here. */
const recordOf = (id: string): ShardRecord => ({
  shard: 0,
  tenant: '',
  path: '/',
  id,
  type: 'T',
  before: undefined,
  attributes: [],
  encoded: undefined,
})

const stored = (store: Store, id: string): string | undefined => store.get(entityKey(0, '', '/', id))?.toString()

t.test('a commit begins at the end of the tick, with all that the tick has appended', async t => {
  const { store, clock, append } = setting()
  append('a')
  append('b')
  t.strictSame(store.begun, [])
  clock.tick()
  t.strictSame(store.begun, [3], 'two rows and the stamp')
})

t.test('a commit takes the records of three ticks when each brings some', async t => {
  const { store, clock, append } = setting()
  const later = ['b', 'c', 'd']
  const bring = () => {
    const id = later.shift()
    if (id === undefined) return
    append(id)
    clock.endOfTick(bring)
  }
  append('a')
  clock.endOfTick(bring)
  clock.tick()
  t.strictSame(store.begun, [4], 'three rows and the stamp')
})

t.test('a commit does not wait after a tick that brings nothing', async t => {
  const { store, clock, append } = setting()
  let ticks = 0
  const count = () => {
    if (store.begun.length > 0) return
    ticks++
    clock.endOfTick(count)
  }
  append('a')
  clock.endOfTick(count)
  clock.tick()
  t.equal(ticks, 1)
})

t.test('no reply leaves before the commit is durable, and then all leave in order', async t => {
  const { store, clock, append, log } = setting()
  append('a')
  append('b')
  clock.tick()
  t.strictSame(log, [])
  await store.release()
  t.strictSame(log, ['a', 'b'])
})

t.test('records that arrive while a commit is in flight are the next batch, which begins after it', async t => {
  const { store, clock, append, log } = setting()
  append('a')
  clock.tick()
  append('b')
  append('c')
  clock.tick()
  t.strictSame(store.begun, [2], 'one commit is in flight')
  await store.release()
  t.strictSame(log, ['a'])
  clock.tick()
  t.strictSame(store.begun, [2, 3])
  await store.release()
  t.strictSame(log, ['a', 'b', 'c'])
})

t.test('records appended in the callback of a commit are in the next one', async t => {
  const { store, clock, commit, append, log } = setting()
  const number = commit.append(recordOf('a'), entityKey(0, '', '/', 'a'), Buffer.from('a'), undefined)
  commit.afterCommit(number, () => append('b'))
  clock.tick()
  await store.release()
  t.strictSame(log, [])
  clock.tick()
  await store.release()
  t.strictSame(log, ['b'])
})

t.test('a commit is durable when the store has ended it', async t => {
  const { store, clock, commit } = setting()
  t.equal(commit.isDurable(0), true, 'nothing was staged')
  const number = commit.append(recordOf('a'), entityKey(0, '', '/', 'a'), Buffer.from('a'), undefined)
  clock.tick()
  t.equal(commit.isDurable(number), false)
  await store.release()
  t.equal(commit.isDurable(number), true)
})

t.test('a caller that waits for a durable commit is called at once', async t => {
  const { store, clock, commit, append } = setting()
  append('a')
  clock.tick()
  await store.release()
  let isDone = false
  commit.afterCommit(1, () => {
    isDone = true
  })
  t.ok(isDone)
})

t.test('afterFlight waits for the commit in flight and not for staged records', async t => {
  const { store, clock, commit, append, log } = setting()
  append('a')
  commit.afterFlight(() => log.push('nothing is in flight'))
  clock.tick()
  append('b')
  commit.afterFlight(() => log.push('a has landed'))
  t.strictSame(log, ['nothing is in flight'])
  await store.release()
  t.strictSame(log, ['nothing is in flight', 'a', 'a has landed'])
})

t.test('the last stamp given is committed with every batch', async t => {
  const { store, clock, append } = setting()
  append('a')
  clock.tick()
  await store.release()
  t.equal(decodeNumber(store.get(stampKey())!), 77)
})

t.test('a tick in which nothing was appended commits nothing', async t => {
  const { store, clock, append } = setting()
  append('a')
  clock.tick()
  await store.release()
  clock.tick()
  t.strictSame(store.begun, [2])
})

t.test('of two changes of an id in one batch the later one is stored', async t => {
  const { store, clock, commit } = setting()
  const key = entityKey(0, '', '/', 'a')
  commit.append(recordOf('a'), key, Buffer.from('first'), undefined)
  commit.append(recordOf('a'), key, Buffer.from('second'), undefined)
  clock.tick()
  await store.release()
  t.equal(stored(store, 'a'), 'second')
})

t.test('when a commit fails all callers get the failure, those of the next batch too', async t => {
  const { store, clock, append, log } = setting()
  store.breakDown(new Error('disk full'))
  append('a')
  clock.tick()
  append('b')
  await store.release()
  t.strictSame(log, ['a: the store could not write: disk full', 'b: the store could not write: disk full'])
})

t.test('after a failure nothing is committed any more, and waiting callers get the failure at once', async t => {
  const { store, clock, append, log } = setting()
  store.breakDown(new Error('disk full'))
  append('a')
  clock.tick()
  await store.release()
  append('b')
  clock.tick()
  t.strictSame(store.begun, [2])
  t.match(log[1], /^b: .*disk full/)
})

t.test('the node gets one report of a failure', async t => {
  const { store, clock, commit, append, failures } = setting()
  store.breakDown(new Error('disk full'))
  append('a')
  clock.tick()
  append('b')
  await store.release()
  append('c')
  clock.tick()
  t.equal(failures.length, 1)
  t.equal(commit.failed, failures[0])
})

t.test('draining waits for the commit in flight and for staged records', async t => {
  const { store, clock, commit, append } = setting()
  append('a')
  clock.tick()
  append('b')
  let drained = false
  const draining = commit.drain().then(() => {
    drained = true
  })
  await store.release()
  await Promise.resolve()
  t.notOk(drained)
  clock.tick()
  await store.release()
  await draining
  t.equal(stored(store, 'b'), 'b')
})

t.test('draining ends at once when nothing is staged', async t => {
  const { commit } = setting()
  await t.resolves(commit.drain())
})

t.test('draining ends when the commit fails', async t => {
  const { store, clock, commit, append } = setting()
  store.breakDown(new Error('disk full'))
  append('a')
  const draining = commit.drain()
  clock.tick()
  await store.release()
  await t.resolves(draining)
})

t.test('a commit that has lost some shards continues with the others, and names the lost ones', async t => {
  const store = new MemoryStore()
  const clock = new FakeClock()
  const inner = new StoreLog(store, clock, () => 77)
  let deposed: DeposedError | undefined = new DeposedError(
    [{ shard: 5, node: 'b', epoch: 2, certainMs: 100 }],
    new Map(),
  )
  const commitInner = inner.commit.bind(inner)
  inner.commit = (batches, onDone) =>
    commitInner(batches, error => {
      const failure = deposed
      deposed = undefined
      onDone(error ?? failure)
    })
  const commit = new GroupCommit({
    log: inner,
    clock,
    directory: new Counts(store, entityCounts),
    attributes: new Counts(store, attributeCounts),
    onFailure: failure => t.fail(failure),
  })
  const followed: number[] = []
  commit.addFollower({ wants: () => true, follow: ({ shard }) => followed.push(shard) })
  const events: string[] = []
  const append = (shard: number): void => {
    const id = `in ${shard}`
    const record = { ...recordOf(id), shard }
    const number = commit.append(record, entityKey(shard, '', '/', id), Buffer.from(id), undefined)
    commit.afterCommit(number, failure => events.push(`${id} ${failure && hasLost(failure, shard) ? 'lost' : 'done'}`))
  }
  append(3)
  append(5)
  clock.tick()
  append(4)
  await new Promise<unknown>(resolve => commit.afterFlight(resolve))
  t.strictSame(events, ['in 3 done', 'in 5 lost'])
  t.strictSame(followed, [3], 'nobody follows what is lost')
  t.equal(commit.failed, undefined)
  clock.tick()
  await commit.drain()
  t.strictSame([events.at(-1), followed], ['in 4 done', [3, 4]], 'the next one is a commit like any other')
})

// The lane to the store: one write at a time, in the order of the calls, rows of several calls together.

import t from 'tap'
import type { Batch } from '../../../src/ports.js'
import { CommitLane } from '../../../src/shard/replicate/commit-lane.js'
import { MemoryStore } from '../../support/memory-store.js'

const key = (text: string): Buffer => Buffer.from(text)
const one = Buffer.from('1')

/** Records its calls. */
class NotingStore extends MemoryStore {
  readonly lengths: (number | 'sync')[] = []

  override commit(batch: Batch, onDone: (error?: Error) => void): void {
    this.lengths.push(batch.length)
    super.commit(batch, onDone)
  }

  override sync(onDone: (error?: Error) => void): void {
    this.lengths.push('sync')
    super.sync(onDone)
  }
}

function setting() {
  const store = new NotingStore()
  const lane = new CommitLane(store, sink => sink.put(key('along'), one))
  const log: string[] = []
  const noting = (name: string) => (failure?: Error) => log.push(failure ? `${name}: ${failure.message}` : name)
  return { store, lane, log, noting }
}

const settled = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

t.test('rows that come while the store is busy are written afterwards, in order, and together', async t => {
  const { store, lane, log, noting } = setting()
  const own = store.batch()
  own.put(key('own'), one)
  lane.write(sink => sink.put(key('a'), one), noting('a'))
  lane.write(sink => sink.put(key('b'), one), noting('b'))
  lane.write(sink => sink.put(key('c'), one), noting('c'))
  lane.commit(own, noting('own'))
  lane.write(sink => sink.put(key('d'), one), noting('d'))
  lane.sync(noting('sync'))
  lane.write(sink => sink.put(key('e'), one), noting('e'))
  t.strictSame(log, [])
  await settled()
  t.strictSame(log, ['a', 'b', 'c', 'own', 'd', 'sync', 'e'])
  t.strictSame(
    store.lengths,
    [2, 3, 1, 2, 'sync', 2],
    'b and c are one batch, and each but the own one has what goes along',
  )
})

t.test('a callback may write at once', async t => {
  const { lane, log, noting } = setting()
  lane.write(
    () => {},
    () => lane.write(() => {}, noting('after')),
  )
  lane.write(() => {}, noting('between'))
  await settled()
  t.strictSame(log, ['between', 'after'])
})

t.test('when the store fails all waiting callers get the failure', async t => {
  const { store, lane, log, noting } = setting()
  store.breakDown(new Error('no space'))
  for (const name of ['a', 'b']) lane.write(() => {}, noting(name))
  lane.sync(noting('sync'))
  lane.commit(store.batch(), noting('own'))
  await settled()
  t.strictSame(
    log,
    ['a', 'b', 'sync', 'own'].map(name => `${name}: the store could not write: no space`),
  )
})

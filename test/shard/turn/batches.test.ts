// Batches at their owner: they take their turns in slices, in order, and are answered together.

import t from 'tap'
import type { ShardReply, WriteRequest } from '../../../src/messages/messages.js'
import type { Waiter } from '../../../src/shard/commit/fillings.js'
import { Batches } from '../../../src/shard/turn/batches.js'
import { FakeClock } from '../../support/fake-clock.js'

/** Each turn takes the time of its item, which is the number that begins its id. */
class Scene {
  readonly clock = new SlowClock()
  readonly turns: string[] = []
  readonly replies: ShardReply[] = []
  readonly commit = {
    isDurable: () => false,
    failed: undefined as Error | undefined,
    waiters: [] as Waiter[],
    afterCommit(_commit: number, onDurable: Waiter): void {
      this.waiters.push(onDurable)
    },
    afterCommits(_commits: Iterable<number>, onDurable: Waiter): void {
      this.waiters.push(onDurable)
    },
  }
  readonly batches = new Batches({
    turn: ({ target: { id } }) => {
      this.turns.push(id)
      this.clock.pass(Number(id.split(' ')[0]))
      return { actor: undefined, reply: { kind: 'done' } }
    },
    concerns: tenant => tenant !== 'quiet',
    shards: [],
    commit: this.commit,
    clock: this.clock,
  })

  /** Ids begin with the time that the turn takes, in milliseconds. */
  ask(...ids: readonly string[]): void {
    this.askOf('', ...ids)
  }

  askOf(tenant: string, ...ids: readonly string[]): void {
    const items = ids.map(id => ({ target: { tenant, id } }) as WriteRequest)
    this.batches.onBatch({ kind: 'batch', items }, reply => this.replies.push(reply))
  }
}

/** A clock on which turns take time. */
class SlowClock extends FakeClock {
  private passedMs = 0
  /** Callbacks for the ends of ticks. */
  readonly ends: (() => void)[] = []

  pass(ms: number): void {
    this.passedMs += ms
  }

  override monoMs(): number {
    return super.monoMs() + this.passedMs
  }

  override endOfTick(run: () => void): void {
    this.ends.push(run)
  }

  /** Ends one tick, while the clock above also ends those that follow. */
  end(): void {
    for (const run of this.ends.splice(0)) run()
  }
}

t.test('a batch that is quick has all its turns at once', async t => {
  const scene = new Scene()
  scene.ask(...Array.from({ length: 128 }, (_, n) => `0.01 ${n}`))
  t.equal(scene.turns.length, 128)
  t.equal(scene.replies.length, 0)
  scene.commit.waiters[0]!()
  t.equal(scene.replies.length, 1)
})

t.test('a batch whose turns are slow gives the event loop back after 10 ms, and is answered as a whole', async t => {
  const scene = new Scene()
  scene.ask('6 a', '6 b', '6 c', '20 d', '1 e')
  t.strictSame(scene.turns, ['6 a', '6 b'])
  scene.clock.end()
  t.strictSame(scene.turns.slice(2), ['6 c', '20 d'])
  t.equal(scene.commit.waiters.length, 0)
  scene.clock.end()
  t.strictSame(scene.turns.slice(4), ['1 e'])
  scene.commit.waiters[0]!()
  t.match(scene.replies, [{ kind: 'batch', replies: { length: 5 } }])
})

t.test('where no subscription looks, the clock is asked after every fourth turn', async t => {
  const scene = new Scene()
  scene.askOf('quiet', ...Array.from({ length: 10 }, (_, n) => `3 ${n}`))
  t.equal(scene.turns.length, 4)
  scene.clock.end()
  t.equal(scene.turns.length, 8)
})

t.test('batches share the slice of a tick, and are taken one after the other', async t => {
  const scene = new Scene()
  scene.ask('6 a', '6 b', '6 c')
  scene.ask('1 d')
  scene.ask('1 e')
  t.strictSame(scene.turns, ['6 a', '6 b'])
  scene.clock.end()
  t.strictSame(scene.turns.slice(2), ['6 c', '1 d', '1 e'])
  scene.clock.end()
  scene.ask('1 f')
  t.strictSame(scene.turns.slice(5), ['1 f'])
})

t.test('a tenant whose batches are slow does not keep others waiting', async t => {
  const scene = new Scene()
  scene.askOf('slow', '20 a', '20 b', '20 c')
  scene.askOf('slow', '20 d')
  scene.askOf('quick', '1 e', '1 f')
  scene.askOf('quick', '1 g')
  scene.clock.end()
  t.strictSame(scene.turns, ['20 a', '20 b'])
  scene.clock.end()
  t.strictSame(scene.turns.slice(2), ['1 e', '1 f', '20 c'])
  scene.clock.end()
  t.strictSame(scene.turns.slice(5), ['1 g', '20 d'])
  t.equal(scene.commit.waiters.length, 4)
  await scene.batches.drained()
})

t.test('two quick batches after a long one in one tick wait for the next', async t => {
  const scene = new Scene()
  scene.ask('30 a')
  scene.ask('1 b')
  t.strictSame(scene.turns, ['30 a'])
  scene.clock.end()
  t.strictSame(scene.turns, ['30 a', '1 b'])
})

t.test('draining waits for the rest of batches', async t => {
  const scene = new Scene()
  let isDrained = false
  scene.ask('6 a', '6 b', '6 c')
  const drained = scene.batches.drained().then(() => {
    isDrained = true
  })
  await Promise.resolve()
  t.equal(isDrained, false)
  scene.clock.end()
  await drained
  t.equal(scene.turns.length, 3)
  await scene.batches.drained()
})

t.test('after the store has failed no more turns are taken, and items without one have failed', async t => {
  const scene = new Scene()
  scene.ask('6 a', '6 b', '6 c')
  scene.commit.failed = new Error('no disk')
  scene.clock.end()
  scene.commit.waiters[0]!()
  const done = { kind: 'done' }
  t.strictSame(scene.replies, [{ kind: 'batch', replies: [done, done, { kind: 'failed', reason: 'no disk' }] }])
  t.equal(scene.turns.length, 2)
})

t.test('when too many items wait, a batch is turned away as a whole', async t => {
  const scene = new Scene()
  for (let n = 0; n < 100; n++) scene.askOf('', '11 first', ...new Array<string>(999).fill('0 more'))
  scene.ask('0 other', '0 and another')
  t.strictSame(scene.replies, [{ kind: 'busy' }])
})

// The delay of the event loop, on a clock that the test advances.

import t from 'tap'
import { LoopDelay } from '../../src/observe/loop-delay.js'
import { FakeClock } from '../support/fake-clock.js'

/** A clock whose timers run late by the time that the test sets. */
const lateBy = (clock: FakeClock, lateMs: () => number) => ({
  monoMs: () => clock.monoMs(),
  after: (delayMs: number, run: () => void) => clock.after(delayMs + lateMs(), run),
})

t.test('each ring is observed, by how much it is late', async t => {
  const clock = new FakeClock()
  let lateMs = 0
  const loop = new LoopDelay(lateBy(clock, () => lateMs))
  loop.start()
  lateMs = 300
  clock.advance(50)
  clock.advance(350)
  t.equal(
    loop.seconds.counts.reduce((sum, count) => sum + count, 0),
    2,
  )
  t.ok(Math.abs(loop.seconds.sum - 0.3) < 1e-9, `${loop.seconds.sum} s`)
})

t.test('the longest recent delay is remembered for a while, and the one in progress counts', async t => {
  const clock = new FakeClock()
  let lateMs = 300
  const loop = new LoopDelay(lateBy(clock, () => lateMs))
  loop.start()
  clock.advance(200)
  t.equal(loop.latelyMs, 150, 'it has not rung yet')
  lateMs = 0
  clock.advance(10_000)
  t.equal(loop.latelyMs, 300)
  clock.advance(60_000)
  t.equal(loop.latelyMs, 0)
})

t.test('stopped, it rings no more', async t => {
  const clock = new FakeClock()
  const loop = new LoopDelay(clock)
  loop.start()
  loop.stop()
  t.equal(clock.waiting, 0)
})

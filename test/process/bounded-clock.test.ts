// The clock of a node in a cluster stays within the bound of the reference, also when the machine's clock is set.

import t from 'tap'
import { BoundedClock } from '../../src/process/bounded-clock.js'
import { FakeClock } from '../support/fake-clock.js'

const skewMaxMs = 500

function scene() {
  const machine = new FakeClock()
  const clock = new BoundedClock(machine, skewMaxMs)
  const startMs = machine.wallMs()
  return { machine, clock, startMs }
}

t.test('without a reference the clock is that of the machine', async t => {
  const { machine, clock, startMs } = scene()
  machine.jumpWall(60_000)
  t.equal(clock.wallMs(), startMs + 60_000)
})

t.test('a clock that is set far away is held at the bound at once, and runs on there', async t => {
  const { machine, clock, startMs } = scene()
  clock.follow(startMs)
  t.equal(clock.wallMs(), startMs)
  machine.jumpWall(10_000)
  t.equal(clock.wallMs(), startMs + skewMaxMs)
  machine.advance(1000)
  t.equal(clock.wallMs(), startMs + 1000 + skewMaxMs)
  machine.jumpWall(-20_000)
  t.equal(clock.wallMs(), startMs + 1000 - skewMaxMs)
  t.equal(clock.fineWallMs(), startMs + 1000 - skewMaxMs)
})

t.test('within the bound the clock is that of the machine', async t => {
  const { machine, clock, startMs } = scene()
  clock.follow(startMs)
  machine.jumpWall(skewMaxMs)
  t.equal(clock.wallMs(), startMs + skewMaxMs)
  machine.jumpWall(-2 * skewMaxMs + 1)
  t.equal(clock.wallMs(), startMs - skewMaxMs + 1)
})

t.test('when the reference is not known any more, nothing is held', async t => {
  const { machine, clock, startMs } = scene()
  clock.follow(startMs)
  machine.jumpWall(10_000)
  clock.follow(undefined)
  t.equal(clock.wallMs(), startMs + 10_000)
})

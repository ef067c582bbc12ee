// Long work in steps, with a clock that advances by a millisecond with every look.

import t from 'tap'
import { Pace, sorted } from '../../src/domain/pace.js'
import fc from '../support/properties.js'

/** A clock that advances with every look, and the number of turns of the event loop. */
function lookedAt(msPerLook: number) {
  let nowMs = 0
  const clock = {
    turns: 0,
    monoMs: () => (nowMs += msPerLook),
    endOfTick(run: () => void): void {
      clock.turns++
      setImmediate(run)
    },
  }
  return clock
}

t.test('a step ends after some milliseconds, and the next one begins with the turn', async t => {
  const clock = lookedAt(1)
  const pace = new Pace(clock)
  const looks = () => Array.from({ length: 8 }, () => pace.isOver).filter(isOver => !isOver).length
  t.equal(looks(), 4)
  await pace.breathe()
  t.equal(clock.turns, 1)
  t.equal(looks(), 4)
})

t.test('elements are sorted as a sort does that keeps the order of equal ones', async t => {
  const byKey = ([a]: readonly [number, number], [b]: readonly [number, number]): number => a - b
  const elements = fc.array(fc.nat(50), { maxLength: 6000, size: 'max' })
  const holds = fc.asyncProperty(elements, async keys => {
    const all = keys.map((key, at) => [key, at] as const)
    const pace = new Pace(lookedAt(0))
    return JSON.stringify(await sorted(all, byKey, pace)) === JSON.stringify([...all].sort(byKey))
  })
  t.ok((await fc.check(holds, { numRuns: 50 })).failed === false)
})

t.test('sorting lets the event loop have its turn', async t => {
  const clock = lookedAt(6)
  const numbers = Array.from({ length: 5000 }, (_, n) => 5000 - n)
  t.equal((await sorted(numbers, (a, b) => a - b, new Pace(clock)))[0], 1)
  t.ok(clock.turns > 5, `${clock.turns} turns`)
})

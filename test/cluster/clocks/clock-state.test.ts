// The decision about the clock of a node: schedules of clocks that are set, drift, and cannot be compared.

import t from 'tap'
import {
  type ClockState,
  clockUnknown,
  nextClockState,
  unsafeFactor,
  worseMs,
} from '../../../cluster/clocks/clock-state.js'
import fc from '../../support/properties.js'

const skewMaxMs = 500
const lookMs = 250

/** A node that looks at its own clock and those of others, all given as milliseconds ahead of the true time. */
class Scene {
  state: ClockState = clockUnknown
  private monoMs = 0

  look(ownMs: number, others: readonly number[], errorMs = 0): ClockState {
    this.monoMs += lookMs
    const ranges = others.map(ms => ({ earliestMs: ms - errorMs, latestMs: ms + errorMs }))
    this.state = nextClockState(this.state, { monoMs: this.monoMs, ownMs, others: ranges, skewMaxMs })
    return this.state
  }

  /** Looks until a difference counts. */
  lookLong(ownMs: number, others: readonly number[], errorMs = 0): ClockState {
    for (let ms = 0; ms <= worseMs; ms += lookMs) this.look(ownMs, others, errorMs)
    return this.look(ownMs, others, errorMs)
  }
}

t.test('of three clocks the one that is wrong is the one away from the median', async t => {
  t.match(new Scene().look(0, [10_000, 0]), { verdict: 'close', aheadMs: 0, originMs: 0 })
  t.match(new Scene().look(10_000, [0, 0]), { verdict: 'unsafe', aheadMs: 10_000, originMs: 0 })
  t.match(new Scene().look(-10_000, [0, 0]), { verdict: 'unsafe', aheadMs: -10_000, originMs: 0 })
  t.match(new Scene().look(700, [0, 10]), { verdict: 'apart', aheadMs: 690 })
  t.match(new Scene().look(490, [0, 0]), { verdict: 'close', aheadMs: 490 })
})

t.test('of two clocks both are apart, and the one ahead is unsafe', async t => {
  t.match(new Scene().look(10_000, [0]), { verdict: 'unsafe', aheadMs: 10_000, originMs: 0 })
  t.match(new Scene().look(0, [10_000]), { verdict: 'apart', aheadMs: 0, originMs: 0 })
  t.match(new Scene().look(700, [0]), { verdict: 'apart', aheadMs: 700 })
  t.match(new Scene().look(0, [700]), { verdict: 'apart', aheadMs: 0 })
})

t.test('some node is always safe, and two that are safe are close enough', async () => {
  const clocks = fc.array(fc.integer({ min: -20_000, max: 20_000 }), { minLength: 1, maxLength: 9 })
  fc.assert(
    fc.property(clocks, clocks => {
      const safe = clocks.filter((own, n) => {
        const { verdict } = new Scene().look(
          own,
          clocks.filter((_, other) => other !== n),
        )
        return verdict !== 'unsafe'
      })
      return safe.length > 0 && Math.max(...safe) - Math.min(...safe) <= 2 * unsafeFactor * skewMaxMs
    }),
  )
})

t.test('a slow network makes no clock wrong', async t => {
  t.match(new Scene().look(900, [0, 0], 500), { verdict: 'close', aheadMs: 400 })
  t.match(new Scene().look(10_000, [0, 0], 500), { verdict: 'unsafe', aheadMs: 9_500 })
})

t.test('a difference counts when it lasts, and the clock of the node is bounded at once', async t => {
  const scene = new Scene()
  scene.look(0, [0, 0])
  const set = scene.look(10_000, [0, 0])
  t.match(set, { verdict: 'close', originMs: 0, aheadMs: 10_000 })
  t.match(scene.look(0, [0, 0]), { verdict: 'close', worseSinceMs: undefined })
  t.match(scene.lookLong(10_000, [0, 0]), { verdict: 'unsafe' })
})

t.test('an unsafe clock is safe again within the bound, one that was apart well within it', async t => {
  const scene = new Scene()
  scene.lookLong(10_000, [0, 0])
  t.match(scene.look(600, [0, 0]), { verdict: 'unsafe' })
  t.match(scene.look(490, [0, 0]), { verdict: 'apart' })
  t.match(scene.look(390, [0, 0]), { verdict: 'close' })
})

t.test('a clock that drifts away is first apart, then unsafe', async t => {
  const scene = new Scene()
  const seen: string[] = []
  for (let ms = 0; ms < 3000; ms += 10) {
    const { verdict } = scene.look(ms, [0, 0])
    if (seen.at(-1) !== verdict) seen.push(verdict)
  }
  t.strictSame(seen, ['close', 'apart', 'unsafe'])
})

t.test('a wrong clock stays wrong while no other can be reached, until it is set', async t => {
  const scene = new Scene()
  scene.look(10_000, [0])
  t.match(scene.look(10_000, []), { verdict: 'unsafe', originMs: 0 })
  t.match(scene.look(0, []), { verdict: 'close' })
  t.match(scene.look(0, []), { verdict: 'unknown', originMs: undefined })
})

t.test('a clock that is right is not bounded while no other can be reached', async t => {
  const scene = new Scene()
  scene.look(0, [0, 0])
  t.match(scene.look(10_000, []), { verdict: 'unknown', originMs: undefined })
})

t.test('a node that reaches only a wrong clock for a moment raises no alarm', async t => {
  const scene = new Scene()
  scene.look(0, [0, 10_000])
  scene.look(0, [])
  t.match(scene.look(0, [10_000]), { verdict: 'unknown', originMs: 0 })
  t.match(scene.look(0, [0, 10_000]), { verdict: 'close' })
  t.match(scene.lookLong(0, [10_000]), { verdict: 'apart' })
})

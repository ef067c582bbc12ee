// The measured wall clock of another node: the range contains its origin, however unequal the two ways were.

import t from 'tap'
import { PeerOrigin, roundTripsMax } from '../../../cluster/clocks/peer-origin.js'
import fc from '../../support/properties.js'

/** How far the other clock is from our monotonic one. */
const originMs = 1_700_000_000_000

/** A round trip of so much there and back again, which ends at `nowMs`. */
function roundTrip(origin: PeerOrigin, nowMs: number, thereMs: number, backMs: number, setMs = 0): void {
  origin.learn(nowMs - thereMs - backMs, originMs + setMs + nowMs - backMs, nowMs)
}

t.test('the range contains the origin, and is as narrow as the shortest of the last round trips', async () => {
  const way = fc.integer({ min: 0, max: 5000 })
  const trips = fc.array(fc.tuple(way, way), { minLength: 1, maxLength: 20 })
  fc.assert(
    fc.property(trips, trips => {
      const origin = new PeerOrigin()
      for (const [n, [there, back]] of trips.entries()) roundTrip(origin, (n + 3) * 10_000, there, back)
      const { earliestMs, latestMs } = origin.range!
      const shortest = Math.min(...trips.slice(-roundTripsMax).map(([there, back]) => there + back))
      return earliestMs <= originMs && originMs <= latestMs && latestMs - earliestMs === shortest
    }),
  )
})

t.test('a clock that is set is noticed when no round trip is left from before', async t => {
  const origin = new PeerOrigin()
  roundTrip(origin, 1000, 0, 0)
  for (let n = 1; n <= roundTripsMax; n++) roundTrip(origin, 1000 + 250 * n, 5, 5, 10_000)
  t.strictSame(origin.range, { earliestMs: originMs + 10_000 - 5, latestMs: originMs + 10_000 + 5 })
})

t.test('nothing is known before the first echo, of another process, or from an echo of the future', async t => {
  const origin = new PeerOrigin()
  t.equal(origin.range, undefined)
  origin.learn(2000, originMs, 1000)
  t.equal(origin.range, undefined)
  roundTrip(origin, 1000, 1, 1)
  origin.forget()
  t.equal(origin.range, undefined)
})

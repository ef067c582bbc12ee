// What is there at start is found as if it had been taken in at once, and is taken in without being asked for.

import t from 'tap'
import type { Subscription } from '../../../src/domain/subscription.js'
import { LateMatcher } from '../../../src/shard/notifications/late-matcher.js'
import { eventAfter, room } from '../../support/events.js'
import { FakeClock } from '../../support/fake-clock.js'
import { subscription } from '../../support/subscriptions.js'

/** Of which each reading is later by this: to take in a subscription takes time. */
class BusyClock extends FakeClock {
  stepMs = 0
  readings = 0

  override monoMs(): number {
    return super.monoMs() + this.stepMs * this.readings++
  }
}

const numbered = (n: number, entity = 'R1'): Subscription => ({
  ...subscription(`{"subject":{"entities":[{"id":"${entity}"}]},"notification":{"http":{"url":"http://h"}}}`, '/#'),
  id: n.toString(16).padStart(24, '0'),
})
const inactive = (n: number): Subscription => ({ ...numbered(n), status: 'inactive' })

function touched(matcher: LateMatcher): number[] {
  const found: Subscription[] = []
  matcher.touched(eventAfter(room('{"temperature":20}'), 'PATCH', '{"temperature":21}'), found)
  return found.map(({ id }) => Number.parseInt(id, 16))
}

t.test('the first event finds all that waits, as it is by then', async t => {
  const matcher = new LateMatcher(new FakeClock(), true)
  for (const n of [4, 1, 3, 2, 5]) matcher.add(numbered(n))
  matcher.add(inactive(6))
  t.equal(matcher.size, 5, 'one that is never found does not count')
  matcher.remove('of none')
  matcher.remove(numbered(1).id)
  matcher.add(inactive(2))
  matcher.add(numbered(3, 'R2'))
  t.equal(matcher.size, 3)
  t.strictSame(touched(matcher), [4, 5])
  matcher.add(numbered(7))
  matcher.remove(numbered(4).id)
  t.strictSame(touched(matcher), [5, 7], 'also of what has come after an event')
})

t.test('what comes once it has begun takes the place of what waits', async t => {
  const clock = new FakeClock()
  const matcher = new LateMatcher(clock, true)
  for (const n of [1, 2, 3]) matcher.add(numbered(n))
  matcher.begin()
  matcher.add(numbered(1, 'R2'))
  matcher.add(inactive(2))
  matcher.add(numbered(4))
  t.equal(matcher.size, 3)
  t.strictSame(touched(matcher), [3, 4])
  clock.advance(60_000)
  t.strictSame(touched(matcher), [3, 4])
})

t.test('all of it is taken in bit by bit', async t => {
  const clock = new BusyClock()
  const matcher = new LateMatcher(clock, true)
  for (let n = 1; n <= 100; n++) matcher.add(numbered(n))
  matcher.begin()
  clock.advance(1_999)
  const before = clock.readings
  t.equal(clock.waiting, 1, 'later')
  clock.stepMs = 1
  clock.advance(1)
  t.ok(clock.readings - before < 10, 'a few at a time')
  t.equal(clock.waiting, 1, 'and then some more')
  clock.stepMs = 0
  clock.advance(10_000)
  t.equal(clock.waiting, 0, 'until nothing waits')
  t.equal(touched(matcher).length, 100)
})

t.test('nobody comes back to what has nothing that waits', async t => {
  const clock = new FakeClock()
  const matcher = new LateMatcher(clock, false)
  matcher.add(numbered(1))
  matcher.begin()
  t.equal(clock.waiting, 0)
  t.strictSame(touched(matcher), [1])
})

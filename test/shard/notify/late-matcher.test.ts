// Subscriptions that are stored at start are found as if they had been added at once, and are also added without an
// event.

import t from 'tap'
import type { Subscription } from '../../../src/domain/subscriptions/subscription.js'
import { LateMatcher } from '../../../src/shard/notify/late-matcher.js'
import { eventAfter, room } from '../../support/events.js'
import { FakeClock } from '../../support/fake-clock.js'
import { subscription } from '../../support/subscriptions.js'

/** Each reading of this clock is later by `stepMs`, because adding a subscription takes time. */
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

/** A matcher that has recalled these, in this order. */
function recalled(subscriptions: readonly Subscription[], clock = new FakeClock()) {
  const stored = new Map(subscriptions.map(one => [one.id, one]))
  const reads: string[] = []
  const matcher = new LateMatcher(clock, id => {
    reads.push(id)
    matcher.takeIn(stored.get(id)!)
  })
  for (const id of stored.keys()) matcher.recall(id)
  return { matcher, reads }
}

function touched(matcher: LateMatcher): number[] {
  const found: Subscription[] = []
  matcher.touched(eventAfter(room('{"temperature":20}'), 'PATCH', '{"temperature":21}'), found)
  return found.map(({ id }) => Number.parseInt(id, 16))
}

t.test('the first event finds all that waits, and reads each once', async t => {
  const { matcher, reads } = recalled([...[4, 1, 3, 2, 5].map(n => numbered(n)), inactive(6), numbered(7, 'R2')])
  t.equal(matcher.size, 7)
  t.strictSame(reads, [])
  t.strictSame(touched(matcher), [1, 2, 3, 4, 5])
  t.equal(matcher.size, 6, 'what is never found does not count')
  matcher.add(numbered(8))
  matcher.remove(numbered(4).id)
  t.strictSame(touched(matcher), [1, 2, 3, 5, 8])
  t.equal(reads.length, 7)
})

t.test('a subscription that changes or goes while it waits is not read', async t => {
  const clock = new FakeClock()
  const { matcher, reads } = recalled(
    [1, 2, 3, 4].map(n => numbered(n)),
    clock,
  )
  matcher.begin()
  matcher.add(numbered(1, 'R2'))
  matcher.remove(numbered(2).id)
  matcher.remove('of none')
  matcher.add(inactive(3))
  matcher.add(numbered(5))
  t.equal(matcher.size, 3)
  t.strictSame(touched(matcher), [4, 5])
  clock.advance(60_000)
  t.strictSame(touched(matcher), [4, 5])
  t.strictSame(reads, [numbered(4).id])
})

t.test('all of it is taken in bit by bit', async t => {
  const clock = new BusyClock()
  const { matcher, reads } = recalled(
    Array.from({ length: 100 }, (_, at) => numbered(at + 1)),
    clock,
  )
  matcher.begin()
  clock.advance(99)
  t.equal(reads.length, 0, 'later')
  clock.stepMs = 1
  clock.advance(1)
  t.ok(reads.length > 0 && reads.length < 10, 'a few at a time')
  t.equal(clock.waiting, 1, 'and then some more')
  clock.stepMs = 0
  clock.advance(10_000)
  t.equal(reads.length, 100, 'until nothing waits')
  t.equal(clock.waiting, 0)
  t.equal(touched(matcher).length, 100)
})

t.test('an empty queue of waiting subscriptions causes no further steps', async t => {
  const clock = new FakeClock()
  const { matcher } = recalled([], clock)
  matcher.begin()
  t.equal(clock.waiting, 0)
  matcher.add(numbered(1))
  t.strictSame(touched(matcher), [1])
})

t.test('patterns of waiting subscriptions are prepared bit by bit, and found meanwhile', async t => {
  const clock = new BusyClock()
  clock.stepMs = 4
  const patterned = (n: number): Subscription => ({
    ...subscription(
      `{"subject":{"entities":[{"idPattern":"^[A-Z]${n}?1$"}]},"notification":{"http":{"url":"http://h"}}}`,
      '/#',
    ),
    id: n.toString(16).padStart(24, '0'),
  })
  const { matcher, reads } = recalled([1, 2, 3, 4, 5].map(patterned), clock)
  matcher.begin()
  clock.advance(100)
  while (reads.length < 5) clock.advance(3)
  t.ok(clock.waiting > 0, 'there is more to do when all are taken in')
  t.strictSame(touched(matcher), [1, 2, 3, 4, 5])
  for (let n = 0; n < 20; n++) clock.advance(3)
  t.equal(clock.waiting, 0)
  t.strictSame(touched(matcher), [1, 2, 3, 4, 5])
})

// The use of other nodes' stamps at a node.

import t from 'tap'
import { HybridClock } from '../../../src/clock.js'
import { stampOf } from '../../../src/domain/stamp.js'
import { ObservedStamps } from '../../../src/shard/replicate/observed-stamps.js'

const nowMs = Date.UTC(2024, 0, 1)
const now = stampOf(nowMs)

function observing() {
  const own = new HybridClock({ wallMs: () => nowMs })
  const received: number[] = []
  const stamps = new ObservedStamps(own, { follow: stamp => received.push(stamp) })
  return { own, received: received, stamps }
}

t.test('stamps of others in a batch do not put this node’s part of it behind theirs', async t => {
  const { own, received, stamps } = observing()
  stamps.note(now + 9)
  t.equal(own.next(now + 5), now + 5)
  t.strictSame(received, [now + 9])
})

t.test('stamps are above all observed ones as soon as a shard is taken over', async t => {
  const { own, stamps } = observing()
  stamps.note(now + 9)
  stamps.note(now + 7)
  stamps.raise()
  t.equal(own.next(now + 5), now + 10)
})

t.test('the latest stamp is the later one of this node and of others', async t => {
  const { own, stamps } = observing()
  stamps.note(now + 3)
  t.equal(stamps.last, now + 3)
  own.next(now + 4)
  t.equal(stamps.last, now + 4)
})

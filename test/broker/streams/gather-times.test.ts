// The time for which events may be gathered is the shortest that any reader has asked for.

import t from 'tap'
import { GatherTimes } from '../../../src/broker/streams/gather-times.js'

t.test('the shortest time of all readers counts', async t => {
  const times = new GatherTimes()
  t.equal(times.leastMs, 0, 'nobody')
  times.add(200)
  times.add(200)
  times.add(50)
  t.equal(times.leastMs, 50)
  times.add(0)
  t.equal(times.leastMs, 0)
  times.remove(0)
  times.remove(200)
  t.equal(times.leastMs, 50)
  times.remove(50)
  t.equal(times.leastMs, 200, 'one of two is left')
  times.remove(200)
  t.equal(times.leastMs, 0)
})

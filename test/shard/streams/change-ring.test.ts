// The ring of the latest changes: what it keeps, for how long, and what it knows to be missing.

import t from 'tap'
import { ChangeRing, type RingChange } from '../../../src/shard/streams/change-ring.js'
import { FakeClock } from '../../support/fake-clock.js'

const limits = { bytesMax: 10_000, ageMsMax: 60_000 }

const changeOf = (tenant: string, bytes = 100): RingChange => ({
  shard: 1,
  stamp: 1,
  tenant,
  path: '/',
  class: 'change',
  alterations: [],
  correlator: 'c',
  encoded: Buffer.alloc(bytes),
  encodedBefore: undefined,
  found: [],
  left: [],
  isIncomplete: false,
})

function scene() {
  const clock = new FakeClock()
  const ring = new ChangeRing(clock, limits)
  ring.cover('a')
  clock.advance(600_000)
  return { clock, ring }
}

t.test('changes have positions that count up, and ticks that grow', async t => {
  const { ring } = scene()
  const before = ring.tick()
  for (let n = 0; n < 3; n++) ring.append(changeOf('a'))
  const ticks = [1, 2, 3].map(position => ring.at(position)?.tick as number)
  t.equal(ring.position, 3)
  t.strictSame(
    [...ticks].sort((a, b) => a - b),
    ticks,
  )
  t.ok(before < ticks[0]! && ticks[2]! < ring.tick())
  t.strictSame([ring.at(0), ring.at(4)], [undefined, undefined])
})

t.test('beyond its bytes the oldest changes go, and readers from before them miss something', async t => {
  const { ring } = scene()
  const begin = ring.tick()
  t.equal(ring.missing('a', begin), undefined)
  for (let n = 0; n < 100; n++) ring.append(changeOf('a', 1_000))
  t.ok(ring.bytes <= limits.bytesMax && ring.bytes > limits.bytesMax / 2, `${ring.bytes} bytes`)
  t.equal(ring.missing('a', begin), 'evicted')
  const oldest = ring.at(ring.lastGone + 1)!
  t.equal(ring.missing('a', oldest.tick - 1), undefined, 'what is kept can be read')
  t.equal(ring.position, 100)
})

t.test('a tenant that floods the ring does not shorten the known history of another tenant', async t => {
  const { ring } = scene()
  ring.cover('b')
  const begin = ring.tick()
  for (let n = 0; n < 100; n++) ring.append(changeOf('a', 1_000))
  t.strictSame([ring.missing('a', begin), ring.missing('b', begin)], ['evicted', undefined])
})

t.test('changes go by age as well', async t => {
  const { clock, ring } = scene()
  const begin = ring.tick()
  ring.append(changeOf('a'))
  clock.advance(limits.ageMsMax)
  ring.sweep()
  t.equal(ring.bytes > 0, true)
  clock.advance(1)
  ring.sweep()
  t.strictSame([ring.bytes, ring.ageMs, ring.missing('a', begin)], [0, 0, 'evicted'])
})

t.test('a tenant is known from when it is covered, but for the time in which several rings begin', async t => {
  const { clock, ring } = scene()
  const early = ring.tick()
  clock.advance(3_600_000)
  ring.cover('b')
  t.equal(ring.missing('b', early), 'begun')
  t.equal(ring.missing('b', ring.tick()), undefined)
  ring.uncover('b')
  t.equal(ring.missing('b', ring.tick()), 'begun')
  t.equal(ring.missing('c', ring.tick()), 'begun', 'a tenant without readers')
})

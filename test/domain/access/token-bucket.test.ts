// The token bucket, with times of the test.

import t from 'tap'
import { TokenBucket } from '../../../src/domain/access/token-bucket.js'

/** How many of `tries` at one moment get a token. */
const taken = (bucket: TokenBucket, perSecond: number, nowMs: number, tries: number): number =>
  Array.from({ length: tries }, () => bucket.take(perSecond, nowMs)).filter(waitMs => waitMs === 0).length

t.test('a burst has as many as a second, and then one comes after the other', async t => {
  const bucket = new TokenBucket(10, 0)
  t.equal(taken(bucket, 10, 0, 100), 10)
  t.equal(bucket.take(10, 0), 100, 'the next one comes in 100 ms')
  t.ok(bucket.take(10, 99) > 0)
  t.equal(bucket.take(10, 100), 0)
  t.ok(bucket.take(10, 100) > 0)
})

t.test('an idle bucket is full after a second, and never holds more', async t => {
  const bucket = new TokenBucket(10, 0)
  taken(bucket, 10, 0, 100)
  t.equal(taken(bucket, 10, 500, 100), 5)
  t.equal(taken(bucket, 10, 100_000, 100), 10)
})

t.test('over a long time as many are taken as the rate allows, however they come', async t => {
  for (const stepMs of [1, 7, 333, 1_000]) {
    const bucket = new TokenBucket(50, 0)
    let count = 0
    for (let nowMs = 0; nowMs <= 60_000; nowMs += stepMs) count += taken(bucket, 50, nowMs, 60)
    t.ok(Math.abs(count - 50 * 61) <= 50, `${count} with steps of ${stepMs} ms`)
  }
})

t.test('a new rate counts at once, and the bucket keeps its tokens', async t => {
  const bucket = new TokenBucket(10, 0)
  t.equal(taken(bucket, 10, 0, 4), 4)
  t.equal(taken(bucket, 100, 0, 100), 6, 'a higher rate fills no bucket')
  t.equal(taken(bucket, 100, 500, 100), 50)
  const full = new TokenBucket(100, 0)
  t.equal(taken(full, 5, 0, 100), 5, 'a lower one has less room')
})

t.test('a rate below one has room for one token', async t => {
  const bucket = new TokenBucket(0.25, 0)
  t.equal(taken(bucket, 0.25, 0, 10), 1)
  t.equal(bucket.take(0.25, 0), 4_000)
  t.equal(bucket.take(0.25, 4_000), 0)
})

t.test('a clock that goes back gives nothing', async t => {
  const bucket = new TokenBucket(1, 1_000)
  t.equal(bucket.take(1, 1_000), 0)
  t.ok(bucket.take(1, 500) > 0)
})

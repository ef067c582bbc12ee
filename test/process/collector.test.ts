// The settings of V8's garbage collector.

import t from 'tap'
import { collectorFlags, tuneCollector, youngFlags } from '../../src/process/collector.js'

const alone = ['--no-parallel-scavenge']

t.test('young objects are collected by the event loop alone where its helpers would find no free core', async t => {
  t.strictSame(collectorFlags(1, 1), alone)
  t.strictSame(collectorFlags(2, 1), alone)
  t.strictSame(collectorFlags(16, 8), alone)
})

t.test('helpers take part where there are cores for them', async t => {
  t.strictSame(collectorFlags(4, 1), [])
  t.strictSame(collectorFlags(16, 4), [])
})

t.test('the young generation of a node of a cluster begins small', async t => {
  t.strictSame(youngFlags(true), ['--min-semi-space-size=8', '--max-semi-space-size=64'])
  t.strictSame(youngFlags(false), ['--min-semi-space-size=64', '--max-semi-space-size=64'])
})

t.test('a running process takes the settings, and collects', async t => {
  tuneCollector(1_000)
  let kept: object[] = []
  for (let round = 0; round < 20; round++) kept = Array.from({ length: 100_000 }, (_, n) => ({ n }))
  t.match(kept[99_999], { n: 99_999 })
})

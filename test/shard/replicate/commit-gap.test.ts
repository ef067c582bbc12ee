// The gap between commits, by how busy a node is.

import t from 'tap'
import { commitGapMs, commitGapMsMax } from '../../../src/shard/replicate/commit-gap.js'

t.test('a node with time to spare has none, and a busy one the longest', async t => {
  t.equal(commitGapMs(0), 0)
  t.equal(commitGapMs(0.5), 0)
  t.ok(Math.abs(commitGapMs(0.65) - commitGapMsMax / 2) < 0.001)
  t.equal(commitGapMs(0.8), commitGapMsMax)
  t.equal(commitGapMs(1), commitGapMsMax)
})

// What operators read about the shards of a cluster.

import t from 'tap'
import { LogTeller } from '../../src/observe/tellers.js'

t.test('a takeover in the midst of a write is a line for each shard, and no alarm', async t => {
  const lines: string[] = []
  const teller = new LogTeller(
    { warn: line => lines.push(line) },
    { raise: () => t.fail('an alarm'), release: () => {}, isActive: () => false },
  )
  const losses = [
    { shard: 5, node: 'b', epoch: 9, certainMs: 4_321.4 },
    { shard: 7, node: undefined, epoch: 12, certainMs: 2_000 },
  ]
  teller.onDeposed(losses, 3_900.2)
  t.strictSame(lines, [
    'cluster: b has taken over shard 5 (epoch 9) in the midst of a write. ' +
      'This node was last certain to own it 4321 ms ago, and its event loop was late by up to 3900 ms',
    'cluster: nobody has taken over shard 7 (epoch 12) in the midst of a write. ' +
      'This node was last certain to own it 2000 ms ago, and its event loop was late by up to 3900 ms',
  ])
})

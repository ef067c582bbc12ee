// What operators read about the shards of a cluster.

import t from 'tap'
import { LogTeller } from '../../src/observe/tellers.js'

t.test('shards that were taken over at once are a line for each new owner, and no alarm', async t => {
  const lines: string[] = []
  const teller = new LogTeller(
    { warn: line => lines.push(line) },
    { raise: () => t.fail('an alarm'), release: () => {}, isActive: () => false },
  )
  const losses = [
    { shard: 5, node: 'b', epoch: 9, certainMs: 4_321.4 },
    { shard: 7, node: undefined, epoch: 12, certainMs: undefined },
    { shard: 8, node: 'b', epoch: 13, certainMs: 2_000 },
  ]
  teller.onLost(losses, 3_900.2)
  t.strictSame(lines, [
    'cluster: b has taken over 2 shards (5, 8) of this node, which was certain to own what it had until 4321 ms ago. ' +
      'The event loop of this node was late by up to 3900 ms',
    'cluster: nobody has taken over shard 7 of this node. The event loop of this node was late by up to 3900 ms',
  ])
})

// Log lines for operators about the shards of a cluster.

import t, { type Test } from 'tap'
import { LogReporter } from '../../src/observe/reporters.js'

/** A reporter, and the lines that it logs at a level. */
function telling(t: Test) {
  const lines = { warn: [] as string[], info: [] as string[] }
  const teller = new LogReporter(
    { warn: line => lines.warn.push(line), info: line => lines.info.push(line) },
    { raise: () => t.fail('an alarm'), release: () => {}, isActive: () => false },
  )
  return { teller, lines }
}

t.test('shards that were taken over at once are a line for each new owner, and no alarm', async t => {
  const { teller, lines } = telling(t)
  teller.onHealth(undefined)
  const losses = [
    { shard: 5, node: 'b', epoch: 9, certainMs: 4_321.4 },
    { shard: 7, node: undefined, epoch: 12, certainMs: undefined },
    { shard: 8, node: 'b', epoch: 13, certainMs: 2_000 },
  ]
  teller.onLost(losses, 3_900.2)
  t.strictSame(lines.warn, [
    'cluster: b has taken over 2 shards (5, 8) of this node, which was certain to own what it had until 4321 ms ago. ' +
      'The event loop of this node was late by up to 3900 ms',
    'cluster: nobody has taken over shard 7 of this node. The event loop of this node was late by up to 3900 ms',
  ])
})

t.test('shards that starting nodes take from each other cause no warning', async t => {
  const { teller, lines } = telling(t)
  const loss = { shard: 5, node: 'b', epoch: 9, certainMs: 185 }
  teller.onLost([loss], 110)
  teller.onHealth(undefined)
  teller.onLost([{ ...loss, certainMs: undefined }], 0.2)
  t.match(lines, { warn: [], info: [/b has taken over shard 5 .* 110 ms$/, /b has taken over shard 5 .* 0 ms$/] })
  teller.onLost([loss], 0.2)
  teller.onLost([{ ...loss, certainMs: undefined }], 3)
  t.match(lines, { warn: [/ 185 ms ago/, / 3 ms$/] }, 'a node that was ready has lost what it had')
})

// Log lines for operators about the shards of a cluster.

import t, { type Test } from 'tap'
import { LogReporter } from '../../src/observe/reporters.js'

/** A reporter, and the lines that it logs at a level. */
function reporting(t: Test) {
  const lines = { warn: [] as string[], info: [] as string[] }
  const reporter = new LogReporter(
    { warn: line => lines.warn.push(line), info: line => lines.info.push(line) },
    { raise: () => t.fail('an alarm'), release: () => {}, isActive: () => false },
  )
  return { reporter: reporter, lines }
}

t.test('shards that were taken over at once are a line for each new owner, and no alarm', async t => {
  const { reporter, lines } = reporting(t)
  reporter.onHealth(undefined)
  const losses = [
    { shard: 5, node: 'b', epoch: 9, certainMs: 4_321.4 },
    { shard: 7, node: undefined, epoch: 12, certainMs: undefined },
    { shard: 8, node: 'b', epoch: 13, certainMs: 2_000 },
  ]
  reporter.onLost(losses, 3_900.2)
  t.strictSame(lines.warn, [
    'cluster: b has taken over 2 shards (5, 8) of this node, which was certain to own what it had until 4321 ms ago. ' +
      'The event loop of this node was late by up to 3900 ms',
    'cluster: no node owns shard 7 of this node. The event loop of this node was late by up to 3900 ms',
  ])
})

t.test('shards that starting nodes take from each other cause no warning', async t => {
  const { reporter, lines } = reporting(t)
  const loss = { shard: 5, node: 'b', epoch: 9, certainMs: 185 }
  reporter.onLost([loss], 110)
  reporter.onHealth(undefined)
  reporter.onLost([{ ...loss, certainMs: undefined }], 0.2)
  t.match(lines, { warn: [], info: [/b has taken over shard 5 .* 110 ms$/, /b has taken over shard 5 .* 0 ms$/] })
  reporter.onLost([loss], 0.2)
  reporter.onLost([{ ...loss, certainMs: undefined }], 3)
  t.match(lines, { warn: [/ 185 ms ago/, / 3 ms$/] }, 'a node that was ready has lost what it had')
})

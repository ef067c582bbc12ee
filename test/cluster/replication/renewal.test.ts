// Renewals that are wanted by many shards at once share readings.

import t from 'tap'
import type { ShardLog } from '../../../cluster/logs/shard-log.js'
import { Holding } from '../../../cluster/replication/holding.js'
import { beginning } from '../../../cluster/replication/log-record.js'
import { Renewal } from '../../../cluster/replication/renewal.js'
import { Replica } from '../../../cluster/replication/replica.js'
import { completeReplicationOptions } from '../../../cluster/replication/replication-options.js'
import { Random } from '../../support/random.js'
import { CountingHost } from '../counting-host.js'
import { World } from '../simulated-world.js'

const answerMs = 10
const options = completeReplicationOptions({})

/** A node with one shard, the register, that `b` owns, over logs of which the first ones answer. */
function scene({ logs, silent = 0 }: { readonly logs: number; readonly silent?: number }) {
  const world = new World(new Random(1))
  const { clock } = world.process('a')
  /** When takeovers were asked for, at each log: in steps of 5 ms, since timers are not exact. */
  const asked: number[][] = Array.from({ length: logs }, () => [])
  const takeover = { epoch: 3, owner: 'b 1' }
  const logOf = (index: number): ShardLog => {
    const log: Pick<ShardLog, 'takeovers' | 'read'> = {
      takeovers: onDone => {
        asked[index]!.push(Math.round(world.nowMs / 5) * 5)
        if (index >= logs - silent) return
        clock.after(answerMs, () => onDone({ kind: 'read', takeovers: new Map([[0, takeover]]) }))
      },
      read: (_shard, _after, _bytesMax, onDone) => onDone({ kind: 'read', records: [], last: 0, takeover }),
    }
    return log as ShardLog
  }
  const all = Array.from({ length: logs }, (_, index) => logOf(index))
  const onFailure = (error: Error): void => {
    throw error
  }
  const parts = { log: all[0]!, host: new CountingHost(run => clock.endOfTick(run)), clock, options, onFailure }
  const replica = new Replica(0, beginning, { ...parts, onStopped: () => {}, onAhead: () => {} })
  const holding = new Holding(replica, {
    ...{ ...parts, self: 'a 1', onChange: () => {}, onLost: () => {} },
    whenRegisterIsKnown: (_sinceMs, run) => run(),
  })
  const renewal = new Renewal({
    ...{ logs: all, clock, options, holdings: [holding], register: 0 },
    check: { isLost: false },
    onTakeovers: () => {},
  })
  return { world, renewal, asked }
}

t.test('many that want a renewal while one is under way share the next one', async t => {
  const { world, renewal, asked } = scene({ logs: 1 })
  const known: number[] = []
  for (let n = 0; n < 40; n++) {
    renewal.renewSoon()
    renewal.whenRegisterIsKnown(world.nowMs, () => known.push(n))
    await world.run(0.2)
  }
  await world.run(100)
  t.strictSame(asked[0], [0, answerMs])
  t.equal(known.length, 40, 'each has a reading that was asked for after it')
  renewal.renewSoon()
  t.equal(asked[0]?.length, 3, 'at once, when none is under way')
})

t.test('a log that does not answer does not keep the shards of another one waiting for long', async t => {
  const { world, renewal, asked } = scene({ logs: 2, silent: 1 })
  renewal.renewSoon()
  renewal.renewSoon()
  await world.run(1000)
  t.strictSame(asked, [
    [0, 100],
    [0, 100],
  ])
})

t.test('nothing is asked after the end', async t => {
  const { world, renewal, asked } = scene({ logs: 1 })
  renewal.renewSoon()
  renewal.renewSoon()
  renewal.close()
  renewal.renewSoon()
  await world.run(1000)
  t.strictSame(asked[0], [0])
})

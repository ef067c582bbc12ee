// The order in which a node does its duties for many shards at once.

import t from 'tap'
import { logIndexOf } from '../../../cluster/logs/divided-log.js'
import type { ShardLog } from '../../../cluster/logs/shard-log.js'
import { Caretaker } from '../../../cluster/replication/caretaker.js'
import { Holding } from '../../../cluster/replication/holding.js'
import { beginning } from '../../../cluster/replication/log-record.js'
import { decodePeerRequest, encodePeerMessage, textOf } from '../../../cluster/replication/peer-messages.js'
import { Replica } from '../../../cluster/replication/replica.js'
import { completeReplicationOptions } from '../../../cluster/replication/replication-options.js'
import { Random } from '../../support/random.js'
import { CountingHost } from '../counting-host.js'
import { World } from '../simulated-world.js'

const shards = 30
const self = 'a 1'
const other = 'b 1'
const last = 9
const page = encodePeerMessage({ kind: 'page', position: textOf({ ...beginning, sequence: last }) }, Buffer.from('[]'))

const options = completeReplicationOptions({ fetchesMax: 2 })
const shouldOwn = (shard: number): boolean => shard % 3 === 2
const all = Array.from({ length: shards }, (_, shard) => shard)

/**
 * What a node that has no copy asks for, in 20 s: the shards in their order, and how many were under way at most.
 * `engines`: the number of engines, of which `away` answers no node that catches up with a log.
 */
async function fetched(engines: number, away?: number): Promise<{ asked: readonly number[]; mostAtOnce: number }> {
  const world = new World(new Random(1))
  const { clock } = world.process('a')
  const onFailure = (error: Error): void => {
    throw error
  }
  const asked: number[] = []
  let mostAtOnce = 0
  const underWay = new Set<number>()
  // The first records of each log are gone, so every copy needs a snapshot.
  const log: Pick<ShardLog, 'read'> = {
    read: (shard, after, _bytesMax, onDone) => {
      const answer = (): void => onDone({ kind: 'read', records: [], last, takeover: { epoch: 3, owner: other } })
      if (after === 0) return answer()
      if (logIndexOf(shard, engines) === away) return
      clock.after(5, () => {
        underWay.delete(shard)
        answer()
      })
    },
  }
  const host = new CountingHost(run => clock.endOfTick(run))
  const holdings = all.map(shard => {
    const parts = { log: log as ShardLog, host, clock, options, self, onFailure }
    const replica = new Replica(shard, undefined, { ...parts, onStopped: () => {}, onAhead: () => {} })
    return new Holding(replica, {
      ...parts,
      whenRegisterIsKnown: (_sinceMs, run) => run(),
      onChange: () => {},
      onLost: () => {},
    })
  })
  const logs = Array<ShardLog>(engines).fill(log as ShardLog)
  const caretaker = new Caretaker({
    ...{ self, logs, host, clock, options, onFailure, holdings },
    ask: (_node, request, _timeoutMs, onReply) => {
      const message = decodePeerRequest(request)?.message
      if (message?.kind !== 'snapshot') return
      asked.push(message.shard)
      underWay.add(message.shard)
      mostAtOnce = Math.max(mostAtOnce, underWay.size)
      clock.after(5, () => onReply(page))
    },
    onUnreadable: () => {},
    renew: shard => holdings[shard]!,
    keepers: shard => (shouldOwn(shard) ? ['a', 'b'] : ['b', 'a']),
    mayAct: () => true,
    checkFirst: (_shard, onChecked) => onChecked(true),
    onHandedOver: () => {},
  })
  for (const holding of holdings) holding.onTakeover({ epoch: 3, owner: other })
  for (const index of logs.keys()) caretaker.knowsTakeovers(index)
  const member = (name: string) => ({ name, life: '1', isJoined: true, isSuspect: false })
  caretaker.setView([member('a'), member('b')])
  caretaker.start()
  await world.run(20_000)
  caretaker.close()
  return { asked, mostAtOnce }
}

t.test('copies of the shards that a node should own are fetched first', async t => {
  const { asked, mostAtOnce } = await fetched(1)
  const owned = all.filter(shouldOwn)
  t.strictSame(asked.slice(0, owned.length), owned)
  t.equal(new Set(asked).size, shards, 'and then those that it only keeps')
  t.equal(mostAtOnce, options.fetchesMax, 'a copy counts until it has caught up with its log')
})

t.test('an engine that is away does not stop copies of the shards of another engine', async t => {
  const { asked } = await fetched(2, 1)
  const ofFirst = all.filter(shard => logIndexOf(shard, 2) === 0)
  t.strictSame(new Set(asked.filter(shard => logIndexOf(shard, 2) === 0)), new Set(ofFirst))
  t.equal(asked.length - ofFirst.length, options.fetchesMax)
})

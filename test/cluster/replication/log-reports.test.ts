// Every event of the log shows that its node lives, although gossip does not reach it.

import t from 'tap'
import { replicationOptionsDefault } from '../../../cluster/replication/replication-options.js'
import { SteeredCluster, type SteeredNode, shard } from './steered-nodes.js'

const { signMs } = replicationOptionsDefault

/** Whether the log has shown to a node, lately, that others live. */
const sees = (node: SteeredNode): boolean => node.replicator.mayHaveOthers(0)

/** Gossip reports no other node to b, which gets only one kind of events. Nothing has happened lately. */
async function lonely(heard: 'record' | 'takeover' | 'heartbeat' | 'nothing'): Promise<SteeredCluster> {
  const cluster = await SteeredCluster.of('a', 'b', 'c')
  await cluster.node('a').raise(shard)
  await cluster.settle()
  const b = cluster.node('b')
  b.isUnheard = () => true
  b.know(['b'])
  await cluster.world.run(signMs + 1)
  b.isUnheard = (_, kind) => kind !== heard
  return cluster
}

t.test('a record', async t => {
  const cluster = await lonely('record')
  t.notOk(sees(cluster.node('b')))
  t.ok(await cluster.node('a').raise(shard))
  await cluster.settle()
  t.ok(sees(cluster.node('b')))
  await cluster.world.run(signMs + 1)
  t.notOk(sees(cluster.node('b')), 'a sign counts for a while')
})

t.test('a takeover', async t => {
  const cluster = await lonely('takeover')
  t.notOk(sees(cluster.node('b')))
  cluster.node('c').holding(shard).claim()
  await cluster.settle()
  t.ok(sees(cluster.node('b')))
})

t.test('a heartbeat', async t => {
  const cluster = await lonely('heartbeat')
  t.ok(await cluster.until(() => sees(cluster.node('b'))))
})

t.test('without any event there is no sign', async t => {
  const cluster = await lonely('nothing')
  t.ok(await cluster.node('a').raise(shard))
  await cluster.world.run(signMs)
  t.notOk(sees(cluster.node('b')))
})

// A node whose lists wait asks for a rest, and no node begins a round of moves meanwhile.

import t from 'tap'
import { Random } from '../../support/random.js'
import { LoadedCluster, shards } from './loaded-nodes.js'

const random = Random.fromEnvironment()
t.comment(`seed ${random.seed}`)

/** Between two tries of a list that waits. */
const againMs = 100

/** A cluster of two nodes that a third one has just joined. */
async function joined(): Promise<LoadedCluster> {
  const cluster = await LoadedCluster.of(random, [{ name: 'a' }, { name: 'b' }], () => 5)
  await cluster.start({ name: 'c' })
  cluster.inform()
  return cluster
}

t.test('a node that joins gets its shards within some seconds', async t => {
  const cluster = await joined()
  await cluster.world.run(3_000)
  t.ok(cluster.counts[2]! > 0, `${cluster.counts}`)
  t.equal(cluster.nodes.get('a')!.rests, 0)
})

t.test('while lists of another node wait, it gets none, and later all', async t => {
  const cluster = await joined()
  const a = cluster.nodes.get('a')!
  for (let passedMs = 0; passedMs < 3_000; passedMs += againMs) {
    a.rest()
    await cluster.world.run(againMs)
    t.equal(cluster.counts[2], 0)
  }
  // Its clock may be a little slow, then every fourth try asks instead of every third.
  t.ok(a.rests >= 8 && a.rests <= 10, `it asks once in 300 ms: ${a.rests} times`)
  await cluster.world.run(15_000)
  t.equal(cluster.counts[2], Math.floor(shards / 3))
})

t.test('lists that wait without an end do not stop moves', async t => {
  const cluster = await joined()
  for (let passedMs = 0; passedMs < 60_000; passedMs += againMs) {
    cluster.nodes.get('a')!.rest()
    await cluster.world.run(againMs)
  }
  t.equal(cluster.counts[2], Math.floor(shards / 3))
})

// Hot shards move to other nodes, in simulated hours: loads become equal, and shards do not move without need or back.

import t from 'tap'
import { ownerText } from '../../../cluster/replication/owner.js'
import { decodePeerRequest, encodePeerMessage, replyOf } from '../../../cluster/replication/peer-messages.js'
import { Random } from '../../support/random.js'
import { LoadedCluster, type Loads, shards } from './loaded-nodes.js'

const random = Random.fromEnvironment()
const { seed } = random
t.comment(`seed ${seed}`)
t.setTimeout(300_000)

const three = ['a', 'b', 'c'].map(name => ({ name }))
const quiet = 5
const hot = 200

const distanceOf = (work: readonly number[]): number => {
  const mean = work.reduce((sum, one) => sum + one, 0) / work.length
  return Math.max(...work.map(one => Math.abs(one - mean) / mean))
}
const isEqualCount = (counts: readonly number[]): boolean => Math.max(...counts) - Math.min(...counts) <= 1

/** Quiet shards, except for those in a set that the test fills. */
function withHot(hotShards: ReadonlySet<number>): Loads {
  return shard => (hotShards.has(shard) ? hot : quiet)
}

/** A cluster in which one node has hot shards: six of the given node. */
async function skewed(nodes: Parameters<typeof LoadedCluster.of>[1], at = 'a'): Promise<LoadedCluster> {
  const hotShards = new Set<number>()
  const cluster = await LoadedCluster.of(random, nodes, withHot(hotShards))
  for (const shard of cluster.shardsOf(at).slice(0, 6)) hotShards.add(shard)
  return cluster
}

t.test('unequal loads become equal, with few moves, and then nothing moves', async t => {
  const cluster = await skewed(three)
  t.ok(distanceOf(cluster.work) > 0.25, `at first: ${cluster.work}`)
  const moves = await cluster.minutes(20)
  t.ok(distanceOf(cluster.work) <= 0.25, `20 minutes later: ${cluster.work}`)
  t.ok(moves >= 2 && moves <= 8, `${moves} moves`)
  t.ok(isEqualCount(cluster.counts), `shares are equal: ${cluster.counts}`)
  t.equal(cluster.chosen.length, moves / 2, 'each exchange is two moves')
  const exchanges = [...cluster.nodes.values()].reduce((sum, node) => sum + node.exchanges, 0)
  t.equal(exchanges, cluster.chosen.length, 'all were carried out')
  t.equal(await cluster.minutes(60), 0, 'an hour without a move')
})

t.test('nothing moves in the first minute of unequal loads, and one exchange in a pause', async t => {
  const cluster = await skewed(three)
  await cluster.minutes(1)
  t.same(cluster.chosen, [])
  await cluster.minutes(1.5)
  t.same(cluster.chosen, ['a'])
})

t.test('noise of a tenth moves nothing', async t => {
  const cluster = await LoadedCluster.of(random, three, () => 50 * (0.9 + 0.2 * random.fraction()))
  t.equal(await cluster.minutes(60), 0)
})

t.test('loads that change faster than a minute move nothing', async t => {
  let turn = 0
  const cluster = await LoadedCluster.of(random, three, shard => (shard % 3 === turn ? hot : quiet))
  let moves = 0
  for (let minutes = 0; minutes < 20; minutes += 0.5) {
    turn = (turn + 1) % 3
    moves += await cluster.minutes(0.5)
  }
  t.ok(moves <= 4, `${moves} moves`)
})

t.test('a shard that is hotter than all else stays where it is', async t => {
  const hottest = new Set<number>()
  const cluster = await LoadedCluster.of(random, three, shard => (hottest.has(shard) ? 5_000 : quiet))
  hottest.add(cluster.shardsOf('b')[3]!)
  t.equal(await cluster.minutes(30), 0)
})

t.test('hot shards whose load wanders from node to node: moves are bounded', async t => {
  const hotShards = new Set<number>()
  const cluster = await LoadedCluster.of(random, three, withHot(hotShards))
  let moves = 0
  let minutes = 0
  const pass = async (more: number): Promise<void> => {
    minutes += more
    moves += await cluster.minutes(more)
  }
  for (let round = 0; round < 12; round++) {
    hotShards.clear()
    for (const shard of cluster.shardsOf(random.pick(['a', 'b', 'c'])).slice(0, 6)) hotShards.add(shard)
    await pass(5)
    if (!isEqualCount(cluster.counts)) await pass(0.5)
    t.ok(isEqualCount(cluster.counts), `shares are equal: ${cluster.counts}`)
  }
  // A node pauses for a minute after an exchange, and of three nodes two are needed for one.
  t.ok(moves <= 2 * Math.ceil(minutes), `${moves} moves in ${minutes} minutes`)
})

for (const balance of ['count', 'off'] as const)
  t.test(`one node with -balance ${balance} keeps hot shards where they are at all nodes`, async t => {
    const cluster = await skewed([{ name: 'a' }, { name: 'b' }, { name: 'c', balance }])
    t.equal(await cluster.minutes(15), 0)
    for (const node of cluster.nodes.values()) t.equal(node.balance, balance)
  })

t.test('with -balance off a node that joins gets no shard, and later those of a node that has gone', async t => {
  const cluster = await LoadedCluster.of(
    random,
    ['a', 'b'].map(name => ({ name, balance: 'off' })),
    () => quiet,
  )
  await cluster.start({ name: 'c', balance: 'off' })
  cluster.inform()
  t.equal(await cluster.minutes(5), 0)
  t.same(cluster.counts, [shards / 2, shards / 2, 0])
  cluster.states.set('b', { isJoined: false })
  cluster.inform()
  await cluster.minutes(2)
  t.same(cluster.counts, [shards / 2, 0, shards / 2])
})

t.test('nothing moves to or from a node of the build before', async t => {
  const cluster = await skewed([{ name: 'a' }, { name: 'b' }, { name: 'c', isOld: true }])
  const before = cluster.shardsOf('c')
  await cluster.minutes(20)
  t.ok(cluster.chosen.length > 0, 'the others exchange shards')
  t.same(cluster.shardsOf('c'), before)
  t.equal(cluster.nodes.get('a')!.loadOf('c'), undefined)
  const other = await skewed([{ name: 'a', isOld: true }, { name: 'b' }, { name: 'c' }], 'b')
  const owned = other.shardsOf('a')
  await other.minutes(20)
  t.same(other.shardsOf('a'), owned)
})

t.test('a node that is suspect gets nothing', async t => {
  const cluster = await skewed(three)
  cluster.states.set('b', { isSuspect: true })
  cluster.inform()
  const before = cluster.shardsOf('b')
  await cluster.minutes(10)
  t.ok(cluster.chosen.length > 0, 'the others exchange shards')
  t.same(cluster.shardsOf('b'), before)
})

t.test('a node that has just joined gets its share, and takes part a minute later', async t => {
  const cluster = await skewed([{ name: 'a' }, { name: 'b' }])
  await cluster.start({ name: 'c' })
  cluster.inform()
  await cluster.minutes(15)
  t.ok(isEqualCount(cluster.counts), `shares are equal: ${cluster.counts}`)
  t.ok(distanceOf(cluster.work) <= 0.4, `${cluster.work}`)
  t.equal(await cluster.minutes(30), 0, 'half an hour without a move')
})

t.test('an exchange ends when a node leaves, so that nothing delays its shares when it comes back', async t => {
  const cluster = await skewed(three)
  for (let n = 0; n < 240_000 && cluster.chosen.length === 0; n++) await cluster.world.run(1)
  t.same(cluster.chosen, ['a'])
  const owners = cluster.owners()
  for (const isJoined of [false, true]) {
    cluster.states.set('a', { isJoined })
    cluster.inform()
    if (!isJoined) t.same(cluster.owners(), owners, 'the exchange is not carried out yet')
    await cluster.world.run(10_000)
  }
  t.ok(isEqualCount(cluster.counts), `shares are equal: ${cluster.counts}`)
})

t.test('an exchange does not begin if a node has left since it was asked for', async t => {
  const cluster = await skewed(three)
  let asked = 0
  cluster.onAnswered = request => {
    if (decodePeerRequest(request)?.message.kind !== 'exchange') return
    asked++
    cluster.states.set('c', { isJoined: false })
    cluster.inform()
  }
  for (let n = 0; n < 2_400 && asked === 0; n++) await cluster.world.run(100)
  t.equal(asked, 1)
  t.same(cluster.chosen, [])
  await cluster.world.run(10_000)
  t.same(cluster.counts, [shards / 2, shards / 2, 0])
})

t.test('the register is never exchanged, whoever asks', async t => {
  const cluster = await LoadedCluster.of(random, three, () => quiet)
  await cluster.minutes(2)
  const [gives] = cluster.shardsOf('b')
  for (const [one, other] of [
    [gives!, shards],
    [shards, gives!],
  ] as const) {
    const request = encodePeerMessage({ kind: 'exchange', from: ownerText('b', 'life'), gives: one, takes: other })
    const reply = await new Promise<Buffer>(resolve => cluster.nodes.get('a')?.onAsk(request, resolve))
    t.same(replyOf(reply), { kind: 'refused', reason: 'these are no shards of entities' })
  }
})

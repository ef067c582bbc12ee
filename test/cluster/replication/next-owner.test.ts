// Which node ought to own a shard, as each node knows it: the owner itself in peace, another node while shards move.

import t from 'tap'
import { ownerText } from '../../../cluster/replication/owner.js'
import { decodePeerReply, encodePeerMessage } from '../../../cluster/replication/peer-messages.js'
import { Random } from '../../support/random.js'
import { SimulatedCluster } from '../simulated-cluster.js'
import { shards } from '../simulated-node.js'

t.test('shards of a node that drains have another node to go to, and then that is the owner', async t => {
  const { seed } = Random.fromEnvironment()
  const cluster = new SimulatedCluster(new Random(seed), 3)
  const { world, nodes } = cluster
  const [drained, ...others] = nodes
  const moving = (): number =>
    others.flatMap(({ now }) => {
      const { replicator } = now!
      return [...replicator.standings()].filter(
        ({ shard }) => replicator.ownerOf(shard) !== replicator.ownerWanted(shard),
      )
    }).length
  await world.run(20_000)
  t.ok(drained!.now!.replicator.ownedCount > 0, `seed ${seed}: it owns some`)
  t.equal(moving(), 0, `seed ${seed}: nothing moves in peace`)
  drained!.isDraining = true
  let seen = 0
  for (let times = 0; times < 300 && drained!.now!.replicator.ownedCount > 0; times++) {
    await world.run(50)
    seen = Math.max(seen, moving())
  }
  t.ok(seen > 0, `seed ${seed}: shards are seen on their way`)
  await world.run(5_000)
  t.equal(moving(), 0, `seed ${seed}: they have arrived`)
  const wanted = [...others[0]!.now!.replicator.standings()].map(({ shard }) =>
    others[0]!.now!.replicator.ownerWanted(shard),
  )
  t.notOk(wanted.includes(drained!.name), `seed ${seed}: none ought to come back`)
})

t.test('nodes that come and go leave equal shares behind, and then nothing moves any more', async t => {
  const random = Random.fromEnvironment()
  const { seed } = random
  const cluster = new SimulatedCluster(new Random(seed), 5)
  const { world, nodes } = cluster
  await world.run(20_000)
  for (let round = 0; round < 6; round++) {
    const node = nodes[random.between(0, nodes.length - 1)]!
    node.isDraining = !node.isDraining && nodes.filter(({ isDraining }) => !isDraining).length > 1
    await world.run(20_000)
    const { replicator } = nodes[0]!.now!
    const owners = (): (string | undefined)[] => Array.from({ length: shards }, (_, shard) => replicator.ownerOf(shard))
    const before = owners()
    const counts = nodes.map(({ name }) => before.filter(owner => owner === name).length)
    const joined = counts.filter((_, index) => !nodes[index]!.isDraining)
    t.equal(
      joined.reduce((sum, count) => sum + count, 0),
      shards,
      `seed ${seed}: ${counts}`,
    )
    t.ok(Math.max(...joined) - Math.min(...joined) <= 1, `seed ${seed}: equal shares, ${counts}`)
    await world.run(5_000)
    t.same(owners(), before, `seed ${seed}: at rest`)
  }
})

t.test('a node that leaves gives its shards to any node that ought to keep them, others only to the first', async t => {
  const { seed } = Random.fromEnvironment()
  const cluster = new SimulatedCluster(new Random(seed), 3)
  const { world, nodes } = cluster
  await world.run(20_000)
  const owner = nodes.find(({ now }) => [...now!.replicator.standings()].some(isOwnedShard))!
  const { replicator } = owner.now!
  const { shard } = [...replicator.standings()].find(isOwnedShard)!
  // The owner has been informed that it leaves; the others have not.
  const ask = async (isJoined: boolean): Promise<string | undefined> => {
    const view = nodes.map(({ name, now }) => ({ name, life: now!.life, domain: '', isSuspect: false, isJoined: true }))
    replicator.setView(view.map(member => (member.name === owner.name ? { ...member, isJoined } : member)))
    const second = nodes.find(({ name }) => name !== owner.name && name !== replicator.ownerWanted(shard))!
    const request = encodePeerMessage({ kind: 'handOver', shard, to: ownerText(second.name, second.now!.life) })
    let reply: string | undefined
    replicator.onAsk(request, bytes => {
      reply = decodePeerReply(bytes)?.message.kind
    })
    for (let times = 0; times < 100 && reply === undefined; times++) await world.run(10)
    return reply
  }
  t.equal(await ask(true), 'refused', `seed ${seed}`)
  t.equal(await ask(false), 'handedOver', `seed ${seed}`)
})

const isOwnedShard = ({ shard, phase }: { readonly shard: number; readonly phase: string }): boolean =>
  shard < shards && phase === 'active'

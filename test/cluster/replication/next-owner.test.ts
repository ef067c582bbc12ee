// Which node ought to own a shard, as each node knows it: the owner itself in peace, another node while shards move.

import t from 'tap'
import { Random } from '../../support/random.js'
import { SimulatedCluster } from '../simulated-cluster.js'

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

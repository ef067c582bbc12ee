// Clusters whose shards are divided among two logs, with all faults of the simulation, and with one log away for longer
// than its shards are kept: the promises hold as with one log (replication-simulation.test.ts).

import t from 'tap'
import { Random } from '../support/random.js'
import { check, checkKept, checkPeace } from './replication-checker.js'
import { run } from './replication-run.js'
import { Clients } from './simulated-clients.js'
import { SimulatedCluster } from './simulated-cluster.js'

const seeds = Number(process.env.REPLICATIONS ?? 4)
const logs = 2

t.test('no promise is broken, and everything works again afterwards', async t => {
  const { seed } = Random.fromEnvironment()
  for (let number = 0; number < seeds; number++) {
    const { wrong, ill, done } = await run(seed + number, undefined, { logs })
    if (wrong.length > 0 || ill.length > 0 || done === 0)
      return t.fail(`SEED=${seed + number}: ${[...wrong, ...ill].slice(0, 5).join('; ')}, ${done} done`)
  }
  t.pass(`seed ${seed}, ${seeds} runs`)
})

t.test('while one log is away the shards of the other go on, and later those of both', async t => {
  const { seed } = Random.fromEnvironment()
  const random = new Random(seed)
  const cluster = new SimulatedCluster(random, 3, undefined, { logs })
  const clients = new Clients(cluster)
  const { world } = cluster
  const go = async (forMs: number): Promise<number> => {
    const before = clients.done
    const endMs = world.nowMs + forMs
    while (world.nowMs < endMs) {
      for (let asks = random.between(0, 5); asks > 0; asks--) clients.operate()
      await world.run(random.between(1, 100))
    }
    return clients.done - before
  }
  clients.begin()
  await go(8_000)
  t.ok((await go(5_000)) > 0, 'before')
  const { register } = cluster.nodes[0]!.now!.replicator
  cluster.cutLog(1 - (register % logs), 30_000)
  await go(10_000)
  const serving = (log: number): number =>
    cluster.nodes
      .flatMap(({ now }) =>
        Array.from({ length: register }, (_, shard) => shard % logs === log && now!.replicator.serves(shard)),
      )
      .filter(Boolean).length
  t.equal(serving(1 - (register % logs)), 0, 'no node answers for a shard of the log that is away')
  t.ok(serving(register % logs) > 0, 'the others have owners that answer')
  const forsaken = cluster.nodes.flatMap(({ now }) =>
    [...now!.replicator.standings()].filter(({ isForsaken }) => isForsaken).map(({ shard }) => shard),
  )
  const epochs = new Map(forsaken.map(shard => [shard, cluster.engine.takeoverOf(shard)?.epoch ?? 0]))
  t.ok(epochs.size > 0, 'shards with changes under way were given up')
  t.ok((await go(10_000)) > 0, 'changes are acknowledged')
  await world.run(20_000)
  t.ok(serving(1 - (register % logs)) > 0, 'its shards are answered for again')
  for (const [shard, epoch] of epochs)
    t.ok(cluster.engine.takeoverOf(shard)!.epoch > epoch, `shard ${shard} was taken over once more`)
  t.ok((await go(5_000)) > 0, 'afterwards')
  cluster.heal()
  await world.run(25_000)
  clients.readAll()
  await world.run(5_000)
  const wrong = [...check(cluster, clients), ...checkKept(cluster), ...(await checkPeace(cluster, clients))]
  t.strictSame(wrong.slice(0, 5), [], `SEED=${seed}`)
})

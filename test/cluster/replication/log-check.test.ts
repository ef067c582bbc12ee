// An engine that loses everything and gets it back, on the simulated network, with faults of the nodes meanwhile. No
// node replaces lost records, and afterwards no acknowledged change is missing.

import t from 'tap'
import { Random } from '../../support/random.js'
import { check, checkPeace } from '../replication-checker.js'
import { Clients } from '../simulated-clients.js'
import { SimulatedCluster } from '../simulated-cluster.js'

const seeds = 10
/** The time to notice a loss: two looks of the nodes, and an answer that comes late. */
const noticedMs = 5_000

t.test('every node misses records that the engine has lost, and nothing is lost when they are back', async t => {
  const { seed } = Random.fromEnvironment()
  for (let number = 0; number < seeds; number++) {
    const random = new Random(seed + number)
    const cluster = new SimulatedCluster(random, random.pick([3, 3, 5]))
    const clients = new Clients(cluster)
    const { world, engine } = cluster
    const go = async (forMs: number, hurt: boolean): Promise<void> => {
      const endMs = world.nowMs + forMs
      while (world.nowMs < endMs) {
        for (let asks = random.between(0, 5); asks > 0; asks--) clients.operate()
        if (hurt && random.fraction() < 0.03) cluster.disturb()
        await world.run(random.between(1, 100))
      }
    }
    clients.begin()
    await go(8_000, false)
    const bringBack = engine.lose()
    const known = clients.done
    await go(noticedMs, false)
    const noticed = new Set(cluster.losses.map(loss => loss.split(' ')[0]))
    if (noticed.size < cluster.nodes.length) return t.fail(`SEED=${seed + number}: noticed by ${[...noticed]}`)
    await go(8_000, true)
    if (engine.takeovers().size > 0) return t.fail(`SEED=${seed + number}: somebody has taken over`)
    bringBack()
    cluster.heal()
    await world.run(25_000)
    cluster.losses.length = 0
    const before = clients.done
    await go(1_000, false)
    await world.run(10_000)
    const after = clients.done
    const wrong = [...check(cluster, clients), ...(await checkPeace(cluster, clients))]
    if (wrong.length > 0) return t.fail(`SEED=${seed + number}: ${wrong.slice(0, 5).join('; ')}`)
    if (after === before || known === 0) return t.fail(`SEED=${seed + number}: nothing is done any more`)
  }
  t.pass(`seed ${seed}, ${seeds} runs`)
})

t.test('a node that drains gives nothing away to an engine that was put back older a moment ago', async t => {
  const { seed } = Random.fromEnvironment()
  for (let number = 0; number < seeds; number++) {
    const random = new Random(seed + number)
    const cluster = new SimulatedCluster(random, 3)
    const clients = new Clients(cluster)
    const { world, engine } = cluster
    const go = async (forMs: number): Promise<void> => {
      const endMs = world.nowMs + forMs
      while (world.nowMs < endMs) {
        clients.operate()
        await world.run(random.between(1, 100))
      }
    }
    clients.begin()
    await go(8_000)
    await world.run(3_000)
    const [node] = cluster.nodes
    const { replicator } = node!.now!
    const ends = [...replicator.standings()].map(({ replica }) => [replica.shard, replica.end.sequence] as const)
    const bringBack = ends.flatMap(([shard, last]) => (last > 0 ? [engine.shorten(shard, last)] : []))
    const before = `${[...engine.takeovers()].map(([shard, { epoch }]) => `${shard}:${epoch}`)}`
    if (replicator.ownedCount === 0) return t.fail(`SEED=${seed + number}: there is nothing to give away`)
    node!.isDraining = true
    await world.run(noticedMs)
    const after = `${[...engine.takeovers()].map(([shard, { epoch }]) => `${shard}:${epoch}`)}`
    if (after !== before) return t.fail(`SEED=${seed + number}: taken over: ${before} -> ${after}`)
    for (const one of bringBack) one()
    await world.run(25_000)
    if (replicator.ownedCount > 0) return t.fail(`SEED=${seed + number}: it has not drained when the log was back`)
    const wrong = check(cluster, clients)
    if (wrong.length > 0) return t.fail(`SEED=${seed + number}: ${wrong.slice(0, 5).join('; ')}`)
  }
  t.pass(`seed ${seed}, ${seeds} runs`)
})

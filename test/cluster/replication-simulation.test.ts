// What replication promises (cluster/README.md), with nodes, clocks, network and engine that do their worst, under many seeds.
//
// SEED=<number> REPLICATIONS=1 repeats one run; REPLICATIONS=<number> makes more of them.

import t from 'tap'
import { Random } from '../support/random.js'
import { check, checkPeace } from './replication-checker.js'
import { allRules, type NodeRules, SimulatedCluster } from './simulated-cluster.js'

const simulations = Number(process.env.REPLICATIONS ?? 200)

interface Told {
  readonly wrong: readonly string[]
  readonly done: number
}

/** One run: some time of trouble, and peace at the end. */
async function run(seed: number, rules: NodeRules = allRules): Promise<Told> {
  const random = new Random(seed)
  const cluster = new SimulatedCluster(random, random.pick([3, 3, 3, 5, 9]), rules)
  const { world } = cluster
  await world.run(random.between(0, 4000))
  Object.assign(cluster.engine.faults, {
    lost: random.pick([0, 0.02, 0.1]),
    late: random.pick([0, 0.02]),
  })
  Object.assign(cluster.faults, { lost: random.pick([0, 0.02, 0.1]), mistaken: random.pick([0, 0, 0.05]) })
  const endMs = world.nowMs + 20_000
  while (world.nowMs < endMs) {
    for (let asks = random.between(0, 12); asks > 0; asks--) cluster.operate()
    if (random.fraction() < 0.03) cluster.disturb()
    await world.run(random.between(1, 40))
  }
  cluster.heal()
  await world.run(25_000)
  const done = cluster.operations.filter(({ outcome }) => outcome === 'done').length
  return { wrong: [...check(cluster), ...checkPeace(cluster)], done }
}

t.test('nothing acknowledged is lost, nothing happens twice, and no read goes back, whatever happens', async t => {
  const { seed } = Random.fromEnvironment()
  let done = 0
  for (let number = 0; number < simulations; number++) {
    const told = await run(seed + number)
    done += told.done
    if (told.wrong.length > 0)
      return t.fail(`SEED=${seed + number} REPLICATIONS=1: ${told.wrong.slice(0, 5).join('; ')}`)
  }
  t.comment(`seed ${seed}, ${simulations} runs, ${done} operations done`)
  t.ok(done > simulations * 50, 'much was done')
})

// One run of a simulated cluster: some time of trouble, peace at the end, and what was wrong.

import { Random } from '../support/random.js'
import { check, checkPeace } from './replication-checker.js'
import { allRules, type NodeRules, SimulatedCluster } from './simulated-cluster.js'

export interface Told {
  /** What must never be. */
  readonly wrong: readonly string[]
  /** What is not well although everything works again. */
  readonly ill: readonly string[]
  readonly done: number
}

/** The same seed makes the same run. */
export async function run(seed: number, rules: NodeRules = allRules): Promise<Told> {
  try {
    return await live(seed, rules)
  } catch (error) {
    return { wrong: [(error as Error).message], ill: [], done: 0 }
  }
}

async function live(seed: number, rules: NodeRules): Promise<Told> {
  const random = new Random(seed)
  const cluster = new SimulatedCluster(random, random.pick([3, 3, 3, 5, 9]), rules)
  const { world } = cluster
  await world.run(random.between(0, 4000))
  Object.assign(cluster.engine.faults, {
    lost: random.pick([0, 0.01, 0.05]),
    answerLost: random.pick([0, 0.01, 0.05]),
    late: random.pick([0, 0.02]),
    followLost: random.pick([0, 0.005]),
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
  return { wrong: check(cluster), ill: checkPeace(cluster), done }
}

// One run of a simulated cluster: some time of trouble, peace at the end, and the errors.

import { Random } from '../support/random.js'
import { check, checkKept, checkPeace } from './replication-checker.js'
import { allRules, type NodeRules } from './replication-rules.js'
import { Clients } from './simulated-clients.js'
import { SimulatedCluster } from './simulated-cluster.js'

export interface RunFindings {
  /** Errors, which must never happen. */
  readonly wrong: readonly string[]
  /** Faults that remain although everything works again. */
  readonly ill: readonly string[]
  readonly done: number
  readonly notified: number
  /** A hash that differs between different runs. */
  readonly trace: string
}

/** The same seed makes the same run. `logs`: how many logs the shards are divided among. */
export async function run(seed: number, rules: NodeRules = allRules, logs = 1): Promise<RunFindings> {
  const random = new Random(seed)
  const cluster = new SimulatedCluster(random, random.pick([3, 3, 3, 5, 9]), rules, logs)
  const clients = new Clients(cluster)
  const findings = (wrong: readonly string[], ill: readonly string[]): RunFindings => ({
    wrong,
    ill,
    done: clients.done,
    notified: cluster.received.length,
    trace: cluster.trace,
  })
  try {
    await live(cluster, clients)
  } catch (error) {
    return findings([(error as Error).message], [])
  }
  return findings([...check(cluster, clients), ...checkKept(cluster)], await checkPeace(cluster, clients))
}

async function live(cluster: SimulatedCluster, clients: Clients): Promise<void> {
  const { world, random } = cluster
  clients.begin()
  await world.run(random.between(0, 4000))
  Object.assign(cluster.engine.faults, {
    lost: random.pick([0, 0.01, 0.05]),
    answerLost: random.pick([0, 0.01, 0.05]),
    late: random.pick([0, 0.02]),
    followLost: random.pick([0, 0.005]),
  })
  Object.assign(cluster.faults, { lost: random.pick([0, 0.02, 0.1]), mistaken: random.pick([0, 0, 0.05]) })
  /** Among many runs, some are so bad that hardly anything is done, and some are good enough to have much to check. */
  const badness = random.pick([0.01, 0.02, 0.04])
  const endMs = world.nowMs + 20_000
  while (world.nowMs < endMs) {
    for (let asks = random.between(0, 5); asks > 0; asks--) clients.operate()
    if (random.fraction() < badness) cluster.disturb()
    await world.run(random.between(1, 100))
  }
  cluster.heal()
  await world.run(25_000)
  clients.readAll()
  await world.run(5_000)
}

// One run of a simulated cluster: some time of trouble, peace at the end, and the errors.

import { Random } from '../support/random.js'
import { check, checkKept, checkPeace } from './replication-checker.js'
import { checkLinearity, type Linearity } from './replication-histories.js'
import { allRules, type NodeRules } from './replication-rules.js'
import { Clients } from './simulated-clients.js'
import { type ClusterForm, SimulatedCluster } from './simulated-cluster.js'
import { register } from './simulated-node.js'

export interface RunFindings {
  /** Errors, which must never happen. */
  readonly wrong: readonly string[]
  /** Faults that remain although everything works again. */
  readonly ill: readonly string[]
  readonly done: number
  readonly notified: number
  /** The entities whose answers were compared with all orders of their requests, and those with too many orders. */
  readonly linearity: Pick<Linearity, 'decided' | 'undecided'>
  /** A hash that differs between different runs. */
  readonly trace: string
}

/** Which of the things that not all runs have a run has. */
export interface RunForm extends ClusterForm {
  /** Clients set levels, besides raising numbers. */
  readonly hasLevels: boolean
  /** The engine loses everything once, and gets it back. */
  readonly losesLog: boolean
}

/** The form in which the seeds of controls and of former findings were found: with another one they are other runs. */
export const plainForm: RunForm = { views: 'detector', logs: 1, hasLevels: false, losesLog: false }

/** Of so many seeds one has the real gossip, one no levels, and one a loss of the log. */
const gossipEvery = 3
const plainEvery = 5
const lossEvery = 4

const formOf = (seed: number): RunForm => ({
  views: seed % gossipEvery === 0 ? 'gossip' : 'detector',
  logs: 1,
  hasLevels: seed % plainEvery !== 0,
  losesLog: seed % lossEvery === 0,
})

/** How long the engine has lost everything. */
const logLostMsMax = 6000

/** The same seed makes the same run, in the form that it decides, as far as none is given. */
export async function run(
  seed: number,
  rules: NodeRules = allRules,
  given: Partial<RunForm> = {},
): Promise<RunFindings> {
  const random = new Random(seed)
  const form = { ...formOf(seed), ...given }
  const cluster = new SimulatedCluster(random, random.pick([3, 3, 3, 5, 9]), rules, form)
  const clients = new Clients(cluster, form.hasLevels)
  const findings = (
    wrong: readonly string[],
    ill: readonly string[],
    { decided, undecided } = { decided: 0, undecided: 0 },
  ): RunFindings => ({
    wrong,
    ill,
    done: clients.done,
    notified: cluster.received.length,
    linearity: { decided, undecided },
    trace: cluster.trace,
  })
  try {
    await live(cluster, clients, form)
  } catch (error) {
    return findings([(error as Error).message], [])
  }
  const linearity = checkLinearity(clients.operations, register)
  const wrong = [...check(cluster, clients), ...checkKept(cluster), ...linearity.wrong]
  return findings(wrong, await checkPeace(cluster, clients), linearity)
}

async function live(cluster: SimulatedCluster, clients: Clients, { losesLog }: RunForm): Promise<void> {
  const { world, random } = cluster
  clients.begin()
  await world.run(random.between(0, 4000))
  Object.assign(cluster.engine.faults, {
    lost: random.pick([0, 0.01, 0.05]),
    answerLost: random.pick([0, 0.01, 0.05]),
    late: random.pick([0, 0.02]),
    followLost: random.pick([0, 0.005]),
  })
  cluster.network.faults.lost = random.pick([0, 0.02, 0.1])
  cluster.views.mistaken = random.pick([0, 0, 0.05])
  if (losesLog)
    world.at(world.nowMs + random.between(5_000, 9_000), () => cluster.loseLog(random.between(100, logLostMsMax)))
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

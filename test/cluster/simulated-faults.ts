// The faults of a simulated cluster: chance picks one, and all of them end when the cluster is healed.
//
// Faults of messages by probability are set by the run (replication-run.ts). Not here: what each fault does.

import type { SimulatedCluster } from './simulated-cluster.js'
import type { SimulatedLog } from './simulated-log.js'
import { way } from './simulated-network.js'
import type { Place } from './simulated-place.js'

const forMsMin = 200
const forMsMax = 6000
/** Where there are several logs, the probability that a fault concerns one of them for all nodes. */
const logAway = 0.25

/** Causes a random fault. */
export function disturb(cluster: SimulatedCluster): void {
  const { random, world, engine, network } = cluster
  const node = random.pick(cluster.nodes as [Place, ...Place[]])
  const other = random.pick(cluster.nodes as [Place, ...Place[]])
  const forMs = random.between(forMsMin, forMsMax)
  const soon = (run: () => void): void => world.at(world.nowMs + forMs, run)
  if (cluster.logs > 1 && random.fraction() < logAway)
    return cluster.cutLog(random.between(0, cluster.logs - 1), 2 * forMs)
  switch (random.between(0, 12)) {
    case 0:
    case 1: {
      cluster.kill(node, random.fraction() < 0.5)
      return soon(() => cluster.restart(node))
    }
    case 2:
    case 3: {
      const { process } = node
      process?.stop()
      return soon(() => process?.goOn())
    }
    case 4: {
      const both = [way(node.name, other.name), way(other.name, node.name)]
      return network.cut(random.pick([both, both.slice(1)]), forMs)
    }
    case 5:
      return hinder(cluster, node, random.pick(['cut', 'deaf', 'dumb']), forMs)
    case 6:
      engine.goAway()
      return soon(() => engine.comeBack())
    case 7:
      return cluster.views.mistake(node, other, forMs)
    case 8:
      return hinder(cluster, node, 'mute', forMs)
    case 9: {
      // The node is alone with its clients.
      hinder(cluster, node, 'cut', forMs)
      return network.cut(
        cluster.nodes.flatMap(({ name }) => [way(node.name, name), way(name, node.name)]),
        forMs,
      )
    }
    case 10:
      return cluster.views.drain(node, forMs)
    case 11: {
      // The power fails for all of them at once.
      for (const one of cluster.nodes) cluster.kill(one, true)
      return soon(() => {
        for (const one of cluster.nodes) cluster.restart(one)
      })
    }
    case 12:
      engine.isFull = true
      return soon(() => {
        engine.isFull = false
      })
  }
}

/** Ends all faults, except for those of the clocks. */
export function heal(cluster: SimulatedCluster): void {
  const { engine } = cluster
  cluster.network.heal()
  cluster.views.heal()
  engine.comeBack()
  engine.isFull = false
  Object.assign(engine.faults, { lost: 0, answerLost: 0, late: 0, followLost: 0 })
  for (const node of cluster.nodes) {
    node.isDraining = false
    node.process?.goOn()
    for (const connection of node.connections) connection.fault = 'none'
    cluster.restart(node)
  }
}

/** A fault between a node and the engine, on one of its connections. */
function hinder(cluster: SimulatedCluster, { connections }: Place, fault: SimulatedLog['fault'], forMs: number): void {
  const some =
    connections.length > 1 ? [cluster.random.pick(connections as [SimulatedLog, ...SimulatedLog[]])] : connections
  cluster.hinder(some, fault, forMs)
}

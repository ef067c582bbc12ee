// What each node of a simulated cluster knows of the others: from a detector, which this file has, or from the real
// gossip (simulated-membership.ts).
//
// The detector is late and sometimes wrong, in more ways than gossip can be: two nodes may each take the other for
// dead, and a living node may be gone for a moment, with nothing that announces it.

import type { ViewMember } from '../../cluster/replication/replicator.js'
import type { SimulatedNetwork } from './simulated-network.js'
import type { SimulatedNode } from './simulated-node.js'
import type { Place } from './simulated-place.js'
import type { World } from './simulated-world.js'

export interface Views {
  /** The probability of an error. */
  mistaken: number
  /** A life of a node has begun: it is informed from now on. */
  begin(place: Place, life: SimulatedNode): void
  /** The life of a node has ended. */
  end(place: Place): void
  /** A node takes another one for dead for some time, although it is not. */
  mistake(place: Place, other: Place, forMs: number): void
  /** A node gives its shards away, and takes some again within the given time. */
  drain(place: Place, forMs: number): void
  /** Ends all faults. */
  heal(): void
}

export interface ViewParts {
  readonly world: World
  readonly network: SimulatedNetwork
  readonly places: () => readonly Place[]
  /** Records that something has happened. */
  readonly note: (text: string) => void
  /** Reports what must not happen. */
  readonly onWrong: (text: string) => void
}

/** Between two reports to a node. */
const reportMsMin = 100
const reportMsMax = 400

/** Informs each node repeatedly about which nodes are alive. */
export class Detector implements Views {
  mistaken = 0
  private readonly parts: ViewParts
  /** Pairs of nodes: the first takes the second for dead. */
  private readonly wronged = new Set<string>()

  constructor(parts: ViewParts) {
    this.parts = parts
  }

  begin(place: Place, life: SimulatedNode): void {
    if (place.now !== life) return
    inform(place, life, this.viewOf(place))
    if (life.replicator.knowsRegister) life.isJoined = !place.isDraining
    life.process.clock.after(this.parts.world.random.between(reportMsMin, reportMsMax), () => this.begin(place, life))
  }

  end(): void {}

  mistake(place: Place, other: Place, forMs: number): void {
    const { world } = this.parts
    const pair = `${place.name} ${other.name}`
    this.wronged.add(pair)
    world.at(world.nowMs + forMs, () => this.wronged.delete(pair))
  }

  /** Until the next report to the node. */
  drain({ now }: Place): void {
    if (now) now.isJoined = false
  }

  heal(): void {
    this.mistaken = 0
    this.wronged.clear()
  }

  private viewOf(place: Place): ViewMember[] {
    const { world, network, places } = this.parts
    return places().flatMap(({ name, now }) => {
      if (!now) return []
      const isReachable =
        network.connects(place.name, name) && !now.process.isStopped && !this.wronged.has(`${place.name} ${name}`)
      if (name !== place.name && (!isReachable || world.chance(this.mistaken))) return []
      const isSuspect = world.chance(this.mistaken)
      return [{ name, life: now.life, domain: '', isJoined: now.isJoined, isSuspect }]
    })
  }
}

/** Passes a view to the replicator of a node, if it differs from the one before. Returns whether it does. */
export function inform(place: Place, { replicator }: SimulatedNode, view: readonly ViewMember[]): boolean {
  const text = JSON.stringify(view)
  if (text === place.view) return false
  place.view = text
  replicator.setView(view)
  return true
}

// The real gossip (cluster/gossip) between the nodes of a simulated cluster, over its network and on the clocks of its
// nodes. Each node's replicator gets what its own gossip reports: late, flapping, and different from node to node.
//
// Each life of a node begins its own gossip, at the address of the life before or at another one. The other places are
// its seeds, by their names. Messages of gossip may be lost while all others pass: then living nodes are dead to some.
//
// Not here: the promises of gossip itself (gossip/gossip.test.ts, simulated-gossip.ts).

import { Gossip, type GossipTrouble } from '../../cluster/gossip/gossip.js'
import type { GossipOptions } from '../../cluster/gossip/gossip-options.js'
import { isHere } from '../../cluster/gossip/member.js'
import type { Transport } from '../../cluster/ports.js'
import type { SimulatedNode } from './simulated-node.js'
import type { Place } from './simulated-place.js'
import { inform, type ViewParts, type Views } from './simulated-views.js'

/** Parts of a split cluster must find each other in the time of peace that a run has. */
const options: Partial<GossipOptions> = { exchangeMs: 3000, seekMsMax: 2000 }

/** Messages of gossip that are lost for each error that a detector would make. */
const lostPerMistake = 8
/** The probability that a node begins its next life at another address. */
const moves = 0.3
/** Between two looks of a node whether it should have shards. */
const lookMs = 100

export class GossipViews implements Views {
  mistaken = 0
  private readonly parts: ViewParts
  private readonly running = new Map<Place, Gossip>()
  /** Places whose messages of gossip do not arrive. */
  private readonly unheard = new Set<Place>()

  constructor(parts: ViewParts) {
    this.parts = parts
  }

  begin(place: Place, life: SimulatedNode): void {
    const { world, places } = this.parts
    if (world.chance(moves)) place.address = `${place.name}/${life.life}`
    const others = places().filter(other => other !== place)
    const gossip = new Gossip(
      {
        self: { name: place.name, address: place.address, domain: '', life: life.life, isJoined: false },
        clusterId: 'simulated',
        seeds: others.map(({ name }) => name),
        options,
      },
      this.wire(place, life),
      life.process.clock,
      () => world.random.fraction(),
      async seed => others.flatMap(({ name, address }) => (name === seed ? address : [])),
    )
    this.running.set(place, gossip)
    gossip.onChange(() => this.update(place, life, gossip))
    gossip.onTrouble(trouble => this.onTrouble(place, trouble))
    this.update(place, life, gossip)
    this.join(place, life, gossip)
  }

  end(place: Place): void {
    this.running.get(place)?.close()
    this.running.delete(place)
  }

  /** The other one is dead to all, since helpers would mend the way between two. */
  mistake(_: Place, other: Place, forMs: number): void {
    const { world } = this.parts
    this.unheard.add(other)
    world.at(world.nowMs + forMs, () => this.unheard.delete(other))
  }

  drain(place: Place, forMs: number): void {
    const { world } = this.parts
    place.isDraining = true
    world.at(world.nowMs + forMs, () => {
      place.isDraining = false
    })
  }

  heal(): void {
    this.mistaken = 0
    this.unheard.clear()
  }

  private update(place: Place, life: SimulatedNode, gossip: Gossip): void {
    const view = gossip
      .members()
      .filter(isHere)
      .map(({ name, life, domain, isJoined, status }) => ({
        name,
        life,
        domain,
        isJoined,
        isSuspect: status === 'suspect',
      }))
    if (inform(place, life, view)) this.parts.note(`${place.name} knows ${place.view}`)
  }

  /** A node takes shards once it knows the register, and until it drains. */
  private join(place: Place, life: SimulatedNode, gossip: Gossip): void {
    if (place.now !== life) return
    if (life.replicator.knowsRegister) gossip.setJoined(!place.isDraining)
    life.process.clock.after(lookMs, () => this.join(place, life, gossip))
  }

  /** A life is over before the next one of its name begins, so none may find its name taken. */
  private onTrouble({ name }: Place, { kind, reason }: GossipTrouble): void {
    if (kind === 'superseded' || kind === 'unreadable') this.parts.onWrong(`${name}: ${reason}`)
  }

  private wire(place: Place, { process }: SimulatedNode): Pick<Transport, 'call'> {
    const { network, places } = this.parts
    return {
      call: (address, message, waitMs, onReply) => {
        const bytes = Buffer.from(message)
        const to = places().find(other => other.address === address)
        network.carry(
          process,
          to?.name ?? address,
          (_, onAnswer) => {
            if (!to || to.address !== address || this.isLost(place)) return
            this.running.get(to)?.onCall(bytes, answer => this.isLost(to) || onAnswer(answer))
          },
          waitMs,
          outcome => {
            if (outcome.kind === 'reply') onReply(Buffer.from(outcome.reply), '')
            else if (outcome.kind === 'unavailable') onReply(undefined, outcome.reason, 'refused')
            else onReply(undefined, 'no answer')
          },
        )
      },
    }
  }

  private isLost(from: Place): boolean {
    return this.unheard.has(from) || this.parts.world.chance(this.mistaken * lostPerMistake)
  }
}

// Where those may be who should be members and are not heard of: seeds that nobody known answers for, and members taken for dead.
//
// They are tried one after the other, and then again after a pause that grows: all the time, for a cluster that was split is whole
// again only when one of one part asks one of the other.
//
// Not here: what is asked, and what becomes of the answer (membership.ts).

import { exchangeEveryMs, type GossipOptions, seedAddressesMax } from './gossip-options.js'
import { isHere, type Member } from './member.js'
import { pickSome } from './rounds.js'

export class Seeking {
  /** When to begin anew; infinite while it goes on. */
  dueMs: number
  private readonly options: GossipOptions
  private readonly chance: () => number
  private failures = 0
  private queue: string[] = []
  /** Who has answered at a seed's address, which members may know it under another one. */
  private readonly names = new Map<string, string>()

  constructor(options: GossipOptions, chance: () => number, nowMs: number) {
    this.options = options
    this.chance = chance
    this.dueMs = nowMs
  }

  /** Begins anew with these seeds, as far as they are worth asking. */
  begin(seeds: readonly string[], members: readonly Member[]): void {
    const present = members.filter(isHere)
    const addresses = new Set(present.map(({ address }) => address))
    const names = new Set(present.map(({ name }) => name))
    const dead = members.filter(({ status }) => status === 'dead').map(({ address }) => address)
    const lost = [...new Set([...seeds, ...dead])].filter(
      address => !addresses.has(address) && !names.has(this.names.get(address) ?? ''),
    )
    this.queue = pickSome(lost, seedAddressesMax, this.chance)
    for (const address of this.names.keys()) if (!seeds.includes(address)) this.names.delete(address)
  }

  /** The address to ask next; undefined when all have been asked. */
  next(): string | undefined {
    return this.queue.pop()
  }

  /** Who has answered there. */
  onAnswer(address: string, name: string): void {
    this.names.set(address, name)
  }

  /** Enough have answered: the others are not asked now. */
  stop(): void {
    this.queue = []
  }

  /** Until the next time: longer and longer. `isAlone`: this node has nobody, and is in more of a hurry. */
  pause(nowMs: number, members: number, isAlone: boolean): void {
    const mostMs = isAlone ? this.options.seekMsMax : exchangeEveryMs(this.options, members)
    const pauseMs = Math.min(mostMs, this.options.seekMsMin * 2 ** Math.min(this.failures++, 30))
    this.dueMs = nowMs + pauseMs * (0.5 + this.chance() / 2)
  }

  /** Somebody has just been lost: perhaps it can be found soon. */
  hurry(nowMs: number): void {
    this.failures = 0
    if (this.dueMs !== Number.POSITIVE_INFINITY) this.dueMs = Math.min(this.dueMs, nowMs + this.options.seekMsMin)
  }
}

// Which members have links for asks: all that are here, and for a while those that were declared dead.
//
// A member that is only too busy to answer pings counts as dead after some seconds, and may still answer what it was
// asked. With the end of its link, every ask under way would have an unknown outcome. Its link ends at once if it has
// left, or if its machine refuses connections: then nobody is there who could answer.
//
// Not here: the links themselves (asks/asks.ts), who is a member (gossip/).

import type { Asks } from './asks/asks.js'
import { isHere, type Member } from './gossip/member.js'
import type { ClusterClock } from './ports.js'

/** How long the link to a dead member remains. Longer than any ask about one shard waits. */
export const partMs = 15_000

export class MemberLinks {
  /** Dead members that still have links, each with a function that stops the wait for its end. */
  private readonly parting = new Map<string, () => void>()

  constructor(
    private readonly asks: Pick<Asks, 'meet' | 'part'>,
    private readonly clock: Pick<ClusterClock, 'after'>,
    /** Whether the machine of a dead member has refused connections. */
    private readonly isRefusing: (name: string) => boolean,
  ) {}

  /** Another member has changed. */
  note(member: Member): void {
    const { name, address, status } = member
    this.parting.get(name)?.()
    this.parting.delete(name)
    if (isHere(member)) this.asks.meet({ name, address })
    else if (status === 'left') this.asks.part(name, 'it has left')
    else if (this.isRefusing(name)) this.asks.part(name, silent)
    else
      this.parting.set(
        name,
        this.clock.after(partMs, () => {
          this.parting.delete(name)
          this.asks.part(name, silent)
        }),
      )
  }

  /** No link ends any more for what was noted. */
  close(): void {
    for (const stop of this.parting.values()) stop()
    this.parting.clear()
  }
}

const silent = 'it does not answer'

// Which members have links for asks: all that are here, and for a while those that are gone.
//
// A member that is only too busy to answer pings counts as dead after some seconds, and may still answer what it was
// asked. One that has left has answered everything before, but a busy node may read that it has left before it reads
// those answers, since they come over another connection. With the end of a link, every ask under way would have an
// unknown outcome. A link ends at once if the machine of a dead member refuses connections: nobody is there who could
// answer.
//
// Not here: the links themselves (asks/asks.ts), who is a member (gossip/).

import type { Asks } from './asks/asks.js'
import { isHere, type Member } from './gossip/member.js'
import type { ClusterClock } from './ports.js'

/** How long the link to a dead member remains. Longer than any ask about one shard waits. */
export const deadLinkMs = 15_000
/** How long the link to a member that has left remains. Nothing more is asked of it: it owns nothing. */
export const leftLinkMs = 2_000

/** Meets members for asks, and parts from those that are gone. */
export class MemberLinks {
  /** Members that are gone and still have links, each with a function that stops the wait for its end. */
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
    else if (status === 'left') this.partLater(name, leftLinkMs, 'it has left')
    else if (this.isRefusing(name)) this.asks.part(name, silent)
    else this.partLater(name, deadLinkMs, silent)
  }

  private partLater(name: string, delayMs: number, reason: string): void {
    const end = (): void => {
      this.parting.delete(name)
      this.asks.part(name, reason)
    }
    this.parting.set(name, this.clock.after(delayMs, end))
  }

  /** Ends no link any more: the asks are closed next. */
  close(): void {
    for (const stop of this.parting.values()) stop()
    this.parting.clear()
  }
}

const silent = 'it does not answer'

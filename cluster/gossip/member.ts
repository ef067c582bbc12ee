// A member of the cluster as gossip reports it, which of two reports to believe, and reports in transit (rumours).
//
// Belief moves in one order only, whatever the order of reports. So nodes that have received the same reports, in any
// order and however often, believe the same. Only the member itself raises its incarnation; other nodes can only report
// a worse status.
//
// Not here: who sends to whom (membership.ts), a node's knowledge of all members and the choice of rumours (roster.ts).

import assert from 'node:assert/strict'

/** From good to bad news. `left`: reported by the member itself, or by its operator through it. */
export const statuses = ['alive', 'suspect', 'dead', 'left'] as const

export type Status = (typeof statuses)[number]

export interface Member {
  readonly name: string
  readonly address: string
  /** Members of one domain fail together: a machine, a rack, a zone. Empty when none was configured. */
  readonly domain: string
  /** Raised by the member itself whenever it has something new to report about itself. */
  readonly incarnation: number
  readonly life: string
  readonly status: Status
  /** False: it is alive but should not get shards, since it is not ready or is being drained. */
  readonly isJoined: boolean
}

/** Of two reports about one member, the one to believe. Higher incarnation wins; at a tie, the worse news. */
export function believe(known: Member, received: Member): Member {
  assert.equal(known.name, received.name)
  if (received.incarnation !== known.incarnation) return received.incarnation > known.incarnation ? received : known
  const worse = statuses.indexOf(received.status) - statuses.indexOf(known.status)
  if (worse !== 0) return worse > 0 ? received : known
  // Two lives have one incarnation. Either may win, but every node must choose the same.
  return rank(received) > rank(known) ? received : known
}

/** Whether it is alive or suspected, as far as is known. */
export function isHere({ status }: Member): boolean {
  return status === 'alive' || status === 'suspect'
}

function rank({ life, address, domain, isJoined }: Member): string {
  return JSON.stringify([life, address, domain, isJoined])
}

export interface Rumour {
  readonly member: Member
  /** The members that could not reach it, when it is suspect or worse. With each of them the suspicion ends sooner. */
  readonly suspectedBy: readonly string[]
}

interface Waiting {
  readonly rumour: Rumour
  readonly bytes: number
}

/**
 * Each member has one rumour, the latest: a newer one replaces it and starts from zero. Each is sent a limited number
 * of times, the least sent first, so that fresh rumours overtake those that most nodes have. A few times log n
 * suffices, since every node that receives a rumour sends it on.
 */
export class Rumours {
  /** By how often they have been sent, and then by name. */
  private readonly byTransmissions: Map<string, Waiting>[] = []

  get size(): number {
    return this.byTransmissions.reduce((sum, waiting) => sum + waiting.size, 0)
  }

  /** Replaces the rumour about this member; `bytes` is its size in a message. */
  put(rumour: Rumour, bytes: number): void {
    this.drop(rumour.member.name)
    this.rank(0).set(rumour.member.name, { rumour, bytes })
  }

  drop(name: string): void {
    for (const waiting of this.byTransmissions) waiting.delete(name)
  }

  // [hot] Twice for each message; mostly there is nothing to send.
  /**
   * The rumours for one message of so many bytes, without those in `except`. Each is taken `transmissionsMax` times at
   * most.
   */
  take(bytesMax: number, transmissionsMax: number, except: ReadonlyMap<string, unknown> = new Map()): Rumour[] {
    const taken: Rumour[] = []
    let bytesLeft = bytesMax
    // All are chosen before any moves up a rank; otherwise a moved one would be chosen again.
    const chosen: [number, Waiting][] = []
    for (const [times, waiting] of this.byTransmissions.entries())
      for (const one of waiting.values()) {
        if (one.bytes > bytesLeft || except.has(one.rumour.member.name)) continue
        bytesLeft -= one.bytes
        chosen.push([times, one])
      }
    for (const [times, one] of chosen) {
      const { name } = one.rumour.member
      taken.push(one.rumour)
      this.byTransmissions[times]!.delete(name)
      if (times + 1 < transmissionsMax) this.rank(times + 1).set(name, one)
    }
    return taken
  }

  private rank(times: number): Map<string, Waiting> {
    while (this.byTransmissions.length <= times) this.byTransmissions.push(new Map())
    return this.byTransmissions[times]!
  }
}

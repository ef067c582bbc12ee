// A member of the cluster as it is told of, which of two tellings to believe, and tellings on their way (rumours).
//
// Belief only goes up in one order, whoever hears what first. So all who have heard the same tellings, in any order and
// however often, believe the same. Only the member itself raises its incarnation; others can but tell worse of it.
//
// Not here: who tells whom (membership.ts), what a node knows of all members, and what is worth telling (roster.ts).

import assert from 'node:assert/strict'

/** From good to bad news. `left`: it said so itself, or its operator through it. */
export const statuses = ['alive', 'suspect', 'dead', 'left'] as const

export type Status = (typeof statuses)[number]

export interface Member {
  readonly name: string
  readonly address: string
  /** What fails together: a machine, a rack, a zone. Empty when nobody has said. */
  readonly domain: string
  /** Raised by the member itself whenever it has something new to say of itself. */
  readonly incarnation: number
  readonly life: string
  readonly status: Status
  /** False: it is alive and not to be given shards, since it is not ready or is being drained. */
  readonly isJoined: boolean
}

/** Of two tellings about one member, the one to believe. Higher incarnation wins; at a tie, the worse news. */
export function believe(known: Member, heard: Member): Member {
  assert.equal(known.name, heard.name)
  if (heard.incarnation !== known.incarnation) return heard.incarnation > known.incarnation ? heard : known
  const worse = statuses.indexOf(heard.status) - statuses.indexOf(known.status)
  if (worse !== 0) return worse > 0 ? heard : known
  // Two lives with one incarnation: which one does not matter, but that all choose alike.
  return rank(heard) > rank(known) ? heard : known
}

/** Whether it is there, as far as is known. */
export function isHere({ status }: Member): boolean {
  return status === 'alive' || status === 'suspect'
}

function rank({ life, address, domain, isJoined }: Member): string {
  return JSON.stringify([life, address, domain, isJoined])
}

export interface Rumour {
  readonly member: Member
  /** The members that could not reach it, while it is suspect or after. With each of them the suspicion ends sooner. */
  readonly suspectedBy: readonly string[]
}

interface Waiting {
  readonly rumour: Rumour
  readonly bytes: number
}

/**
 * Each member has one rumour, the latest: a newer one takes its place and begins anew. Each is told a limited number of
 * times, the least told first, so that what is new overtakes what most have heard. A few times log n suffices, since
 * everybody who hears it tells it again.
 */
export class Rumours {
  /** By how often they have been told, and then by name. */
  private readonly told: Map<string, Waiting>[] = []

  get size(): number {
    return this.told.reduce((sum, waiting) => sum + waiting.size, 0)
  }

  /** Takes the place of what was to be told of this member; `bytes` of a message are what it needs. */
  put(rumour: Rumour, bytes: number): void {
    this.drop(rumour.member.name)
    this.rank(0).set(rumour.member.name, { rumour, bytes })
  }

  drop(name: string): void {
    for (const waiting of this.told) waiting.delete(name)
  }

  // [hot] Twice for each message; mostly there is nothing to tell.
  /** What goes into one message of so much room, each `tellingsMax` times at most, without those in `except`. */
  take(bytesMax: number, tellingsMax: number, except: ReadonlyMap<string, unknown> = new Map()): Rumour[] {
    const taken: Rumour[] = []
    let bytesLeft = bytesMax
    // All are chosen before any moves up a rank, where it would be met again.
    const chosen: [number, Waiting][] = []
    for (const [times, waiting] of this.told.entries())
      for (const one of waiting.values()) {
        if (one.bytes > bytesLeft || except.has(one.rumour.member.name)) continue
        bytesLeft -= one.bytes
        chosen.push([times, one])
      }
    for (const [times, one] of chosen) {
      const { name } = one.rumour.member
      taken.push(one.rumour)
      this.told[times]!.delete(name)
      if (times + 1 < tellingsMax) this.rank(times + 1).set(name, one)
    }
    return taken
  }

  private rank(times: number): Map<string, Waiting> {
    while (this.told.length <= times) this.told.push(new Map())
    return this.told[times]!
  }
}

// News of members on their way: what is still to be told, and how often it has been.
//
// There is one rumour for each member, the latest: a newer one takes its place and begins anew. Each is told a limited number of times,
// those told least first, so that what is new overtakes what most have heard; a message takes no more of them than it has room for.
// Telling each a few times log n suffices, since everybody who hears it tells it again.
//
// Not here: what is worth telling (roster.ts).

import type { Member } from './member.js'

/** What is told of a member. */
export interface Rumour {
  readonly member: Member
  /** Who found it out of reach, while it is suspect or after: the more there are, the less it is waited for. */
  readonly suspectedBy: readonly string[]
}

interface Waiting {
  readonly rumour: Rumour
  readonly bytes: number
}

export class Rumours {
  /** By how often they have been told, and then by name. */
  private readonly told: Map<string, Waiting>[] = []

  /** How many are still to be told. */
  get size(): number {
    return this.told.reduce((sum, waiting) => sum + waiting.size, 0)
  }

  /** Takes the place of what was to be told of this member; `bytes` of a message are what it needs. */
  put(rumour: Rumour, bytes: number): void {
    this.drop(rumour.member.name)
    this.rank(0).set(rumour.member.name, { rumour, bytes })
  }

  /** Nothing is to be told of this member any more. */
  drop(name: string): void {
    for (const waiting of this.told) waiting.delete(name)
  }

  // [hot] Twice for each message; mostly there is nothing to tell.
  /** What goes into one message of so much room, each for the `tellingsMax`th time at most, and nothing of those in `except`. */
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

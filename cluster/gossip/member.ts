// A member of the cluster as it is told of, and which of two tellings to believe.
//
// What is believed only ever goes up in one order, whoever hears what first: so all who have heard the same tellings, in any order and
// however often, believe the same. A member itself is the only one that raises its incarnation; others can but tell worse of it.
//
// Not here: who tells whom (membership.ts), what somebody knows of all members (roster.ts).

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
  /** Another word for each life of a process. */
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

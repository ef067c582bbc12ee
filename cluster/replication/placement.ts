// Which nodes ought to keep a copy of a shard: rendezvous hashing over the members that have joined.
//
// Every node computes a weight for each pair of shard and name, and ranks the members of each shard by it. The owner
// is chosen elsewhere (owner-shares.ts), since weights alone give some nodes half as much again as others. The standbys
// are the next ones of the ranking. A node that joins or leaves changes only the standbys of the shards that it gains
// or had. Standbys are in other failure domains than the nodes before them, as long as there are any.
//
// Placement is a wish: the log of a shard decides its real owner (shard-log.ts).

import { hash } from 'node:crypto'

export interface Candidate {
  readonly name: string
  /** Nodes of one domain may fail together; '': one of its own. */
  readonly domain: string
}

/** For each shard all candidates, the heaviest first. */
export type Ranking = readonly (readonly Candidate[])[]

export const rank = (shards: number, candidates: readonly Candidate[]): Ranking =>
  Array.from({ length: shards }, (_, shard) => rankOne(shard, candidates))

/** The same for one shard. */
export const rankOne = (shard: number, candidates: readonly Candidate[]): readonly Candidate[] =>
  candidates
    .map(candidate => ({ candidate, weight: weigh(shard, candidate.name) }))
    .sort((a, b) => b.weight - a.weight || (a.candidate.name < b.candidate.name ? -1 : 1))
    .map(({ candidate }) => candidate)

/** The names of a shard's owner and standbys, in that order, `replicas` at most. undefined: the heaviest is the owner. */
export function keepersOf(
  ranked: readonly Candidate[],
  owner: string | undefined,
  replicas: number,
): readonly string[] {
  const chosen: string[] = []
  const domains = new Set<string>()
  const choose = ({ name, domain }: Candidate): void => {
    chosen.push(name)
    if (domain !== '') domains.add(domain)
  }
  const takeFrom = (isFresh: boolean): void => {
    for (const candidate of ranked) {
      if (chosen.length >= replicas) return
      if (!chosen.includes(candidate.name) && !(isFresh && domains.has(candidate.domain))) choose(candidate)
    }
  }
  const first = ranked.find(({ name }) => name === owner)
  if (first) choose(first)
  takeFrom(true)
  takeFrom(false)
  return chosen
}

/** 48 bits: exact as a number. */
export const weigh = (number: number, name: string): number =>
  hash('sha256', `${number}\0${name}`, 'buffer').readUIntBE(0, 6)

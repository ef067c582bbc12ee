// Which nodes ought to keep a shard: rendezvous hashing over the members that have joined.
//
// Every node computes a weight for each pair of shard and name; the heaviest is the owner, the next ones are its
// standbys. A node that joins or leaves moves only the shards that it gains or had. Standbys are in other failure
// domains than the nodes before them, as long as there are any.
//
// Placement is a wish: the log of a shard decides its real owner (shard-log.ts).

import { hash } from 'node:crypto'

export interface Candidate {
  readonly name: string
  /** Nodes of one domain may fail together; '': one of its own. */
  readonly domain: string
}

/** For each shard the names of its owner and standbys, in that order, `replicas` at most. */
export function place(
  shards: number,
  candidates: readonly Candidate[],
  replicas: number,
): readonly (readonly string[])[] {
  return Array.from({ length: shards }, (_, shard) => placeOne(shard, candidates, replicas))
}

/** The same for one shard. */
export function placeOne(shard: number, candidates: readonly Candidate[], replicas: number): readonly string[] {
  const ranked = candidates
    .map(candidate => ({ ...candidate, weight: weigh(shard, candidate.name) }))
    .sort((a, b) => b.weight - a.weight || (a.name < b.name ? -1 : 1))
  const chosen: string[] = []
  const domains = new Set<string>()
  const takeFrom = (isFresh: boolean): void => {
    for (const { name, domain } of ranked) {
      if (chosen.length >= replicas) return
      if (chosen.includes(name) || (isFresh && domain !== '' && domains.has(domain))) continue
      chosen.push(name)
      if (domain !== '') domains.add(domain)
    }
  }
  takeFrom(true)
  takeFrom(false)
  return chosen
}

/** 48 bits: exact as a number. */
const weigh = (shard: number, name: string): number => hash('sha256', `${shard}\0${name}`, 'buffer').readUIntBE(0, 6)

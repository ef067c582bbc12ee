// Which shards two nodes ought to exchange so that their loads become more equal: pure functions.
//
// A hot shard goes to another node, and a cold one comes back, so that the numbers of shards stay equal. The node with
// the highest load chooses, and it chooses the exchange that makes the sum of the squares of all loads smallest: that
// brings two loads together, and prefers a node with a low load. The larger one of the two loads has to fall by
// `hotGain`. So under steady loads exchanges come to an end. A shard that is hotter than all else stays where it is:
// any other node would have its load.
//
// Not here: when to exchange, and with which agreement (balancer.ts); how loads are measured (shard-loads.ts).

import type { ReplicationOptions } from './replication-options.js'

export interface NodeLoad {
  readonly name: string
  /** The requests a second of each shard that it owns. */
  readonly shards: ReadonlyMap<number, number>
}

export interface ShardExchange {
  /** The node that gets `gives` and hands `takes` over. */
  readonly node: string
  readonly gives: number
  readonly takes: number
}

export type LoadLimits = Pick<ReplicationOptions, 'hotPart' | 'hotRequestsMin' | 'hotGain'>

export interface ExchangeGiven {
  readonly self: string
  /** The nodes that may take part, this one among them. */
  readonly nodes: readonly NodeLoad[]
  readonly limits: LoadLimits
  /** Whether this node may give a shard to a node, which has a copy then. */
  readonly mayGive: (shard: number, node: string) => boolean
  /** Whether this node may take a shard of another node. */
  readonly mayTake: (shard: number) => boolean
  /** Whether the plan of equal shares leaves the exchanged shards where they are. */
  readonly isStable: (exchange: ShardExchange) => boolean
}

/** Exchanges of which the plan of equal shares is computed, the best ones first. */
const plansMax = 32

export const loadOf = ({ shards }: NodeLoad): number => {
  let load = 0
  for (const one of shards.values()) load += one
  return load
}

export const meanLoad = (nodes: readonly NodeLoad[]): number =>
  nodes.reduce((sum, node) => sum + loadOf(node), 0) / Math.max(1, nodes.length)

/** Whether the load of some node is far from the mean. */
export function isUneven(nodes: readonly NodeLoad[], { hotPart, hotRequestsMin }: LoadLimits): boolean {
  const mean = meanLoad(nodes)
  const distance = Math.max(0, ...nodes.map(node => Math.abs(loadOf(node) - mean)))
  return distance > hotPart * mean && distance >= hotRequestsMin
}

/** The node with the highest load: the only one that chooses. */
export function hottest(nodes: readonly NodeLoad[]): string | undefined {
  const sorted = nodes.map(node => ({ name: node.name, load: loadOf(node) }))
  sorted.sort((a, b) => b.load - a.load || (a.name < b.name ? -1 : 1))
  return sorted[0]?.name
}

/** Whether an exchange of two shards lowers the larger one of two loads by enough. `difference`: between the shards. */
export const isGain = (from: number, to: number, difference: number, least: number): boolean =>
  Math.max(from - difference, to + difference) <= from - least

/** The best exchange for this node; undefined: none is good enough. */
export function exchangeFor(given: ExchangeGiven): ShardExchange | undefined {
  const candidates = given.nodes.flatMap(node => (node.name === given.self ? [] : candidatesWith(node, given)))
  // Of equally good ones the one that moves less work.
  candidates.sort((a, b) => b.gain - a.gain || a.difference - b.difference)
  return candidates.slice(0, plansMax).find(({ exchange }) => given.isStable(exchange))?.exchange
}

interface Candidate {
  readonly exchange: ShardExchange
  /** Half of that by which the sum of the squares falls. */
  readonly gain: number
  readonly difference: number
}

function candidatesWith(other: NodeLoad, given: ExchangeGiven): readonly Candidate[] {
  const own = given.nodes.find(({ name }) => name === given.self)
  if (!own) return []
  const least = given.limits.hotGain * meanLoad(given.nodes)
  const [from, to] = [loadOf(own), loadOf(other)]
  const taken = [...other.shards].filter(([shard]) => given.mayTake(shard))
  const candidates: Candidate[] = []
  for (const [gives, hot] of own.shards) {
    if (!given.mayGive(gives, other.name)) continue
    for (const [takes, cold] of taken) {
      const difference = hot - cold
      if (!isGain(from, to, difference, least)) continue
      const gain = difference * (from - to - difference)
      candidates.push({ exchange: { node: other.name, gives, takes }, gain, difference })
    }
  }
  return candidates
}

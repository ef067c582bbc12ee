// Asks all nodes for rests, for lists of this node that wait: no node begins a round of moves for a moment.
//
// Each list that waits calls again and again. One request in `holdEveryMs` serves them all.
//
// Not here: how long a rest lasts, and its bound (move-rounds.ts).

import type { ClusterClock } from '../ports.js'
import { type AskPeer, encodePeerMessage } from './peer-messages.js'
import type { ReplicationOptions } from './replication-options.js'

export interface RestsParts {
  readonly clock: Pick<ClusterClock, 'monoMs'>
  readonly options: Pick<ReplicationOptions, 'holdMs' | 'holdEveryMs'>
  readonly ask: AskPeer
  /** The shard that all nodes follow. */
  readonly register: number
  /** The names of the other nodes that gossip reports. */
  readonly others: () => Iterable<string>
  /** Makes this node rest, too. */
  readonly hold: () => void
}

export class Rests {
  private asked = 0
  private askedMs = Number.NEGATIVE_INFINITY

  constructor(private readonly parts: RestsParts) {}

  /** How often it has asked. */
  get count(): number {
    return this.asked
  }

  /** Asks all nodes for a rest, at most once in `holdEveryMs`. */
  ask(): void {
    const { clock, options, ask, register, others, hold } = this.parts
    const nowMs = clock.monoMs()
    if (nowMs - this.askedMs < options.holdEveryMs) return
    this.askedMs = nowMs
    this.asked++
    hold()
    // Builds before this one know the request, and answer it at once.
    const request = encodePeerMessage({ kind: 'reached', shard: register, sequence: 0, needsRest: true })
    for (const name of others()) ask(name, request, options.holdMs, () => {})
  }
}

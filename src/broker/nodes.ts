// The nodes of a cluster as the broker asks them. The process hands in what knows which nodes there are and what they own.

import type { AskOutcome } from '../wire/exchange.js'

/** The nodes of a cluster, and who of them owns which shard at this moment. */
export interface Nodes {
  /** This node's name. */
  readonly self: string
  /** undefined: nobody, as far as is known. */
  ownerOf(shard: number): string | undefined
  /** Whether this node may answer for a shard now. */
  serves(shard: number): boolean
  /** Whether the log lacks what this node knows: then it answers for no shard until the log is back. */
  readonly isLost: boolean
  /** Stands for all that a node owns, as far as is known here: another number whenever that is something else. Above 0. */
  viewOf(node: string): number
  /** The same of what this node may answer for now. */
  readonly ownView: number
  /**
   * Asks a node about one of its shards; `onOutcome` is called exactly once. Both buffers may be parts of larger ones. `waitMs`: for what takes its
   * time. `view`: what the asker believes that the node owns; 0: it does not matter.
   */
  ask(
    node: string,
    shard: number,
    request: Uint8Array,
    onOutcome: (outcome: AskOutcome) => void,
    waitMs: number | undefined,
    view: number,
  ): void
  /** Something that a node has sent could not be read: it is counted, and told to the log and to that node. */
  noteUndecodable(node: string, what: string): void
  /** Calls back when somebody owns something else than before. */
  onChange(listener: () => void): void
}

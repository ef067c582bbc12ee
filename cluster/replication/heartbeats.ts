// Heartbeats: each owner proves every `heartbeatMs` that the engine takes its appends, busy or idle, and all nodes see
// that.
//
// A heartbeat is one small transaction for all shards of a node. The engine writes it only while the node's takeovers
// are the latest, as it does with records. Its bytes name the shards that the node answers for under its lease. Other
// nodes get it through the log that they follow anyway, so no message between nodes is needed. A node that reaches the
// other nodes but not the engine therefore counts as silent.
//
// One record for each idle shard would prove the same. With 256 shards it would cost 256 writes and 256 trims instead
// of one write, and each standby would store it. A heartbeat replaces the one before, and the engine forgets that with
// its next compaction.
//
// The cost: 0.7 requests a second for each owner. A node that answers for other shards than before writes one sooner.
//
// Not here: conclusions from heartbeats (health.ts).

import type { HeartbeatOutcome, ShardLog, Unknown } from '../logs/shard-log.js'
import type { ClusterClock } from '../ports.js'
import type { ReplicationOptions } from './replication-options.js'

/**
 *   u8 version | bitmap of shards
 *
 * Nodes ignore heartbeats of a version that they do not know.
 */
const version = 1

/** How soon a heartbeat follows when the shards of a node change: several that move together go in one. */
const changedMs = 100

export interface HeartbeatParts {
  readonly name: string
  readonly log: Pick<ShardLog, 'heartbeat'>
  readonly clock: Pick<ClusterClock, 'after'>
  readonly options: Pick<ReplicationOptions, 'heartbeatMs'>
  /**
   * The shards that this node answers for, with the epochs in whose names it appends; none: there is nothing to prove.
   */
  readonly served: () => ReadonlyMap<number, number>
  /**
   * The engine has written a heartbeat of this node, or reports one of any node: its owner could answer for these
   * shards.
   */
  readonly onProven: (shards: Iterable<number>) => void
}

export class Heartbeats {
  private readonly parts: HeartbeatParts
  private isBeating = false
  private willBeat = false
  private isClosed = false
  private unknown: Unknown | undefined

  constructor(parts: HeartbeatParts) {
    this.parts = parts
  }

  start(): void {
    const { clock, options } = this.parts
    const beating = (): void => {
      if (this.isClosed) return
      this.beat()
      clock.after(options.heartbeatMs, beating)
    }
    beating()
  }

  close(): void {
    this.isClosed = true
  }

  /** Why the engine has not written the latest heartbeat, as far as is known; undefined: it has, or was not asked. */
  get trouble(): Unknown | undefined {
    return this.unknown
  }

  /** Writes a heartbeat soon, since this node answers for other shards than before. */
  beatSoon(): void {
    if (this.willBeat) return
    this.willBeat = true
    this.parts.clock.after(changedMs, () => {
      this.willBeat = false
      if (!this.isClosed) this.beat()
    })
  }

  /** The log reports a heartbeat of any node. Returns the shards that it names, none if it cannot be read. */
  onHeartbeat(bytes: Buffer): readonly number[] {
    const shards = decodeHeartbeat(bytes)
    if (!shards) return []
    this.parts.onProven(shards)
    return shards
  }

  private beat(): void {
    const { name, log, served } = this.parts
    if (this.isBeating) return
    const epochs = served()
    if (epochs.size === 0) {
      this.unknown = undefined
      return
    }
    this.isBeating = true
    log.heartbeat({ node: name, epochs, bytes: encodeHeartbeat(epochs.keys()) }, outcome => {
      this.isBeating = false
      if (!this.isClosed) this.learn(outcome, epochs.keys())
    })
  }

  private learn(outcome: HeartbeatOutcome, shards: Iterable<number>): void {
    this.unknown = outcome.kind === 'unknown' ? outcome : undefined
    if (outcome.kind === 'appended') this.parts.onProven(shards)
  }
}

export function encodeHeartbeat(shards: Iterable<number>): Buffer {
  const numbers = [...shards]
  const bytes = Buffer.alloc(2 + Math.floor(Math.max(0, ...numbers) / 8))
  bytes[0] = version
  for (const shard of numbers) bytes[1 + (shard >> 3)]! |= 1 << (shard & 7)
  return bytes
}

/** The shards that a heartbeat names; undefined: it is of a version that is not known here. */
export function decodeHeartbeat(bytes: Buffer): readonly number[] | undefined {
  if (bytes[0] !== version) return undefined
  const shards: number[] = []
  for (let shard = 0; shard < 8 * (bytes.length - 1); shard++)
    if ((bytes[1 + (shard >> 3)]! & (1 << (shard & 7))) !== 0) shards.push(shard)
  return shards
}

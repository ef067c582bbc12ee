// Whether every shard could answer in the last seconds, as far as one node knows, and if not, why.
//
// A shard counts as answered for if two things happened within `healthMs`: this node could reach the shard's owner (or
// is the owner and holds its lease), and a heartbeat has proven that the owner could append (heartbeats.ts). So neither
// a moving shard nor one lost message makes a node unhealthy. A node that has just begun is unhealthy until it has seen
// both for every shard: the first request that it takes then finds an owner.
//
// To become healthy takes more than to stay so: the node reaches every owner at this moment, and each has proven itself
// since the engine was last in trouble. An observation from before an outage proves nothing about the owner of a shard
// after it.
//
// Where there are several engines, the trouble of one concerns the shards whose logs it keeps. All shards need that of
// the register, since leases do.
//
// A loss, a diverged log or an error of the log engine comes first among the reasons, since all the others follow from
// it. A node with a copy that has diverged can answer, but it has changes that the log lacks, and only an operator can
// decide which are right.

import { logIndexOf } from '../logs/divided-log.js'
import type { Unknown } from '../logs/shard-log.js'
import type { ClusterClock } from '../ports.js'
import type { MissingRecords } from './log-check.js'
import type { ReplicationOptions } from './replication-options.js'

/** Why some shards cannot answer. */
export type Unhealthy =
  /** The engine lacks something that is known here (log-check.ts). */
  | { readonly kind: 'lost'; readonly loss: MissingRecords; readonly shards: readonly number[] }
  /** The log has other records than this node has applied, so its copies have stopped (replica.ts). */
  | { readonly kind: 'diverged'; readonly shards: readonly number[] }
  /** The engine takes no appends: `full`, its quota is exceeded; `away`, it does not answer, or cannot. */
  | {
      readonly kind: 'full' | 'away'
      /** The index of its log. */
      readonly log: number
      readonly reason: string
      readonly shards: readonly number[]
    }
  /** They have no owner. */
  | { readonly kind: 'unowned'; readonly shards: readonly number[] }
  /** `unreachable`: this node cannot reach their owners. `silent`: no heartbeat has proven that these can append. */
  | { readonly kind: 'unreachable' | 'silent'; readonly nodes: readonly string[]; readonly shards: readonly number[] }

export interface HealthParts {
  readonly clock: Pick<ClusterClock, 'monoMs' | 'after'>
  readonly options: Pick<ReplicationOptions, 'healthMs'>
  readonly self: string
  /** The register counted. */
  readonly shards: number
  readonly ownerOf: (shard: number) => string | undefined
  /** Whether this node answers for a shard. */
  readonly serves: (shard: number) => boolean
  readonly reachable: (node: string) => boolean
  readonly loss: () => MissingRecords | undefined
  /** The shards whose logs have other records than this node has applied. */
  readonly diverged: () => readonly number[]
  /** How many logs there are. */
  readonly logs: number
  /** The latest request of a kind that the engine of a log did not execute; undefined: it did. */
  readonly trouble: (log: number) => Unknown | undefined
  /** Called once for each change of state. */
  readonly onChange: (unhealthy: Unhealthy | undefined) => void
}

/** Between two checks. */
const lookMs = 500

export class Health {
  private readonly parts: HealthParts
  /**
   * For each shard, the last time when this node could reach its owner, and the last proof that the owner could append.
   */
  private readonly reachedMs: Float64Array
  private readonly provenMs: Float64Array
  private state: Unhealthy | undefined
  /** For each log, the last look at which something was lost or its engine did not execute a request. */
  private readonly troubledMs: Float64Array
  private isClosed = false

  constructor(parts: HealthParts) {
    this.parts = parts
    this.reachedMs = new Float64Array(parts.shards).fill(Number.NEGATIVE_INFINITY)
    this.provenMs = new Float64Array(parts.shards).fill(Number.NEGATIVE_INFINITY)
    this.troubledMs = new Float64Array(parts.logs).fill(Number.NEGATIVE_INFINITY)
    this.state = { kind: 'unowned', shards: this.all() }
  }

  start(): void {
    const looking = (): void => {
      if (this.isClosed) return
      this.look()
      this.parts.clock.after(lookMs, looking)
    }
    looking()
  }

  close(): void {
    this.isClosed = true
  }

  /** undefined: every shard could answer. */
  get unhealthy(): Unhealthy | undefined {
    return this.state
  }

  /** The owner of these shards has proven that it can append. */
  prove(shards: Iterable<number>): void {
    const nowMs = this.parts.clock.monoMs()
    for (const shard of shards) if (shard < this.provenMs.length) this.provenMs[shard] = nowMs
  }

  /** Determines the state, and reports a change. */
  look(): void {
    const found = this.find()
    const isOther = keyOf(found) !== keyOf(this.state)
    this.state = found
    if (isOther) this.parts.onChange(found)
  }

  private find(): Unhealthy | undefined {
    const { loss, diverged, clock, options } = this.parts
    const lost = loss()
    const nowMs = clock.monoMs()
    const troubles = this.troubles()
    for (const log of this.troubledMs.keys()) if (lost || troubles.has(log)) this.troubledMs[log] = nowMs
    if (lost) return { kind: 'lost', loss: lost, shards: lost.shards }
    for (const shard of this.all()) if (this.reaches(shard)) this.reachedMs[shard] = nowMs
    const other = diverged()
    if (other.length > 0) return { kind: 'diverged', shards: other }
    const enoughMs = nowMs - options.healthMs
    const reachedMs = this.state ? nowMs : enoughMs
    const provenMs = [...this.troubledMs].map(ms => (this.state ? Math.max(enoughMs, ms) : enoughMs))
    const shards = this.all().filter(
      shard => this.reachedMs[shard]! < reachedMs || this.provenMs[shard]! < provenMs[this.logOf(shard)]!,
    )
    if (shards.length === 0) return undefined
    for (const [log, { isFull, reason }] of troubles)
      if (shards.some(shard => this.logOf(shard) === log))
        return { kind: isFull ? 'full' : 'away', log, reason, shards }
    return this.reasonFor(shards, reachedMs)
  }

  private troubles(): ReadonlyMap<number, Unknown> {
    const troubles = new Map<number, Unknown>()
    for (const log of this.troubledMs.keys()) {
      const unknown = this.parts.trouble(log)
      if (unknown) troubles.set(log, unknown)
    }
    return troubles
  }

  private logOf(shard: number): number {
    return logIndexOf(shard, this.parts.logs)
  }

  /**
   * Why these shards cannot answer, where their engines are well as far as this node knows: the worst reason, with the
   * shards that have it. Owners count as reached from `reachedMs` on.
   */
  private reasonFor(shards: readonly number[], reachedMs: number): Unhealthy {
    const unowned = shards.filter(shard => this.parts.ownerOf(shard) === undefined)
    if (unowned.length > 0) return { kind: 'unowned', shards: unowned }
    const unreachable = shards.filter(shard => this.reachedMs[shard]! < reachedMs)
    if (unreachable.length > 0) return { kind: 'unreachable', nodes: this.ownersOf(unreachable), shards: unreachable }
    return { kind: 'silent', nodes: this.ownersOf(shards), shards }
  }

  private reaches(shard: number): boolean {
    const { ownerOf, self, serves, reachable } = this.parts
    const owner = ownerOf(shard)
    if (owner === undefined) return false
    return owner === self ? serves(shard) : reachable(owner)
  }

  private ownersOf(shards: readonly number[]): readonly string[] {
    return [...new Set(shards.map(shard => this.parts.ownerOf(shard) ?? ''))].sort()
  }

  private all(): number[] {
    return [...this.provenMs.keys()]
  }
}

/**
 * The part of a state by which two states differ. It leaves out single shards, since more and more fall silent, and the
 * engine's texts.
 */
function keyOf(state: Unhealthy | undefined): string {
  if (!state) return ''
  return state.kind === 'lost' ? `lost ${state.loss.isNameless} ${state.shards.join()}` : state.kind
}

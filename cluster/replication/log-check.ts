// Checks whether the engine of a log still has all records and takeovers that this node knows.
//
// An engine keeps what it has acknowledged, unless an operator deletes its keys, loses its disks or restores an older
// backup. Then a log ends before the records that nodes have applied, or its latest takeover is older than one that a
// node knows, or the cluster's name is gone. A node that continued with such a log would undo acknowledged changes. So
// meanwhile the node does nothing, for any shard: it answers no asks, takes nothing over, appends and trims nothing.
// Shards without a loss stop too: additions to an older log would be lost when the right one is restored. Every node
// finds out for itself.
//
// Both sides of a comparison come from the engine, and the node's side was known before the engine was asked. So
// changes in between do not look like a loss. Nothing is repaired: when the engine has everything again, the node
// continues.
//
// Not here: the stopped activities (replicator.ts, caretaker.ts, appender.ts).

import type { LackingOutcome, NamedOutcome, ShardLog, TakeoversOutcome } from '../logs/shard-log.js'
import type { ClusterClock } from '../ports.js'
import type { Holding } from './holding.js'
import type { ReplicationOptions } from './replication-options.js'

/** A name and value that the engine has as long as it keeps this cluster. */
export interface ClusterMark {
  readonly name: string
  readonly value: Buffer
}

/** The engine's losses, as far as this node knows. */
export interface MissingRecords {
  /** Whether it does not know the cluster any more, or has another one in its place. */
  readonly isNameless: boolean
  /** The shards whose logs miss something, in their order. */
  readonly shards: readonly number[]
}

/** `isWhole`: the engine has answered, and has everything that is known here. */
export type OnChecked = (isWhole: boolean) => void

export interface LogCheckParts {
  readonly log: Pick<ShardLog, 'named' | 'takeovers' | 'lacking' | 'keepHistory'>
  readonly clock: Pick<ClusterClock, 'after'>
  readonly options: Pick<ReplicationOptions, 'checkMs' | 'retryMs'>
  /** undefined: there is no mark by which to recognise this cluster. */
  readonly mark: ClusterMark | undefined
  /** By shard: of all logs. */
  readonly holdings: readonly Holding[]
  /** Whether this log keeps a shard. */
  readonly keeps: (shard: number) => boolean
  /** The epoch of the latest takeover that is known of a shard; 0: there is none. */
  readonly epochOf: (shard: number) => number
  /** Other shards are lost than before, or it is known for the first time that none is. */
  readonly onChange: (lost: MissingRecords | undefined) => void
}

/** The node's knowledge of a shard before the engine is asked. */
interface Known {
  readonly epoch: number
  readonly sequence: number
}

/** All answers of the engine to one check. */
interface Answers {
  named?: NamedOutcome
  takeovers?: TakeoversOutcome
  lacking?: LackingOutcome
}

export class LogCheck {
  private readonly parts: LogCheckParts
  private readonly lost = new Set<number>()
  private isNameless = false
  private isChecked = false
  private isAsking = false
  /** A check was requested while the engine was being asked. */
  private isStale = false
  private isClosed = false
  /** The callers that wait for the check in flight, and those that wait for the one after it. */
  private waiting: OnChecked[] = []
  private waitingNext: OnChecked[] = []

  constructor(parts: LogCheckParts) {
    this.parts = parts
  }

  start(): void {
    const { clock, options } = this.parts
    const checking = (): void => {
      if (this.isClosed) return
      for (const { replica } of this.holdings) replica.resume()
      this.check()
      clock.after(options.checkMs, checking)
    }
    checking()
  }

  close(): void {
    this.isClosed = true
  }

  /** Whether the engine was asked once, and has answered. */
  get hasChecked(): boolean {
    return this.isChecked
  }

  // [hot] Once per request.
  /** Whether something is missing. */
  get isLost(): boolean {
    return this.lost.size > 0
  }

  /** undefined: as far as is known, the engine has everything. */
  get loss(): MissingRecords | undefined {
    if (this.lost.size === 0) return undefined
    return { isNameless: this.isNameless, shards: [...this.lost].sort((a, b) => a - b) }
  }

  /**
   * Asks the engine from now on, and calls back once. A node asks before it takes a shard over or hands it over. An
   * engine with an older backup would accept that, and lose it again when the right one is restored.
   */
  checkFirst(onChecked: OnChecked): void {
    if (this.isClosed) return
    if (this.isAsking) this.waitingNext.push(onChecked)
    else this.waiting.push(onChecked)
    this.check()
  }

  /** Checks at once, since something was noticed. */
  check(): void {
    if (this.isClosed) return
    if (this.isAsking) {
      this.isStale = true
      return
    }
    this.isAsking = true
    const { log, mark } = this.parts
    const known = this.known()
    const ends = new Map([...known].flatMap(([shard, { sequence }]) => (sequence > 0 ? [[shard, sequence]] : [])))
    const answers: Answers = {}
    const settle = (): void => {
      if (answers.named && answers.takeovers && answers.lacking) this.compare(known, answers as Required<Answers>)
    }
    const nothing = { kind: 'read', value: undefined } as const
    log.takeovers(outcome => {
      answers.takeovers = outcome
      settle()
    })
    if (ends.size === 0) answers.lacking = { kind: 'read', shards: [] }
    else
      log.lacking(ends, outcome => {
        answers.lacking = outcome
        settle()
      })
    if (!mark) answers.named = nothing
    else
      log.named(mark.name, outcome => {
        answers.named = outcome
        settle()
      })
  }

  private get holdings(): readonly Holding[] {
    const { holdings, keeps } = this.parts
    return holdings.filter(({ shard }) => keeps(shard))
  }

  private known(): ReadonlyMap<number, Known> {
    const { epochOf } = this.parts
    const known = new Map<number, Known>()
    for (const { shard, replica } of this.holdings) {
      const { sequence, epoch } = replica.end
      known.set(shard, { sequence, epoch: Math.max(epoch, epochOf(shard)) })
    }
    return known
  }

  private compare(known: ReadonlyMap<number, Known>, { named, takeovers, lacking }: Required<Answers>): void {
    this.isAsking = false
    if (this.isClosed) return
    if (named.kind === 'unknown' || takeovers.kind === 'unknown' || lacking.kind === 'unknown') return this.later()
    const { mark } = this.parts
    const isNameless = mark !== undefined && !named.value?.equals(mark.value)
    const lost = new Set(lacking.shards)
    for (const { shard, replica } of this.holdings) {
      const epoch = takeovers.takeovers.get(shard)?.epoch ?? 0
      // A copy that follows may have found a loss that no single key shows, such as a gap.
      if (isNameless || epoch < known.get(shard)!.epoch || replica.state === 'ahead') lost.add(shard)
    }
    this.learn(lost, isNameless)
    const waiting = this.waiting
    this.waiting = this.waitingNext
    this.waitingNext = []
    for (const onChecked of waiting) onChecked(!this.isLost)
    if (!this.isStale) return
    this.isStale = false
    this.check()
  }

  private learn(lost: ReadonlySet<number>, isNameless: boolean): void {
    const isSame =
      isNameless === this.isNameless && lost.size === this.lost.size && [...lost].every(shard => this.lost.has(shard))
    const isFirst = !this.isChecked
    this.isChecked = true
    this.isNameless = isNameless
    if (isSame && !isFirst) return
    this.lost.clear()
    for (const shard of lost) this.lost.add(shard)
    this.parts.log.keepHistory(lost.size > 0)
    this.parts.onChange(this.loss)
  }

  /** The engine did not answer. Nothing begins before its first answer, so it is asked again soon. */
  private later(): void {
    const { clock, options } = this.parts
    this.isStale = false
    const waiting = [...this.waiting, ...this.waitingNext]
    this.waiting = []
    this.waitingNext = []
    for (const onChecked of waiting) onChecked(false)
    if (!this.isChecked) clock.after(options.retryMs, () => this.check())
  }
}

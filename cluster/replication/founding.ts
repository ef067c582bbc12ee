// The beginning of logs whose shards have content already: some stores are their first copies.
//
// Such a log begins with record 2. A node without a copy finds that the log does not reach back to its beginning, and
// fetches a snapshot. A node that has the content gets the position behind record 2, as if it had applied a first record
// with all of it. So the content never goes through the engine.
//
// An interrupted founding can be resumed: record 2 carries the mark of the command that founds. A shard with an owner,
// or with any other record, belongs to a cluster that runs already. Then the command ends with a sentence and changes
// nothing.

import type { AppendOutcome, LogReading, RetakeOutcome, ShardLog, TakeoverOutcome, Unknown } from '../logs/shard-log.js'
import type { ClusterClock } from '../ports.js'
import { beginning, decodeRecord, encodeRecord, positionOf } from './log-record.js'
import { nameOf, noOwner, ownerText } from './owner.js'
import type { LogPosition } from './shard-host.js'

/** An owner name that no node has. */
const founder = '(founding)'
/** The position before record 2. */
const content: LogPosition = { ...beginning, sequence: 1 }

export interface FoundingOptions {
  /** Between two tries when the engine does not answer. */
  readonly retryMs: number
  /** After so many tries in a row without an answer, the command gives up. */
  readonly triesMax: number
}

export const foundingOptionsDefault: FoundingOptions = { retryMs: 500, triesMax: 20 }

/**
 * Begins the logs of these shards, and returns the position at which each begins. `mark` is the same each time the same
 * content is tried again. Rejects with a sentence for the operator when one of them has begun otherwise, or when the
 * engine does not answer.
 */
export async function foundLogs(
  shards: Iterable<number>,
  mark: string,
  log: ShardLog,
  clock: Pick<ClusterClock, 'after'>,
  options: FoundingOptions = foundingOptionsDefault,
): Promise<ReadonlyMap<number, LogPosition>> {
  const positions = new Map<number, LogPosition>()
  for (const shard of shards) positions.set(shard, await new Founding(shard, mark, log, clock, options).found())
  return positions
}

/**
 * Rejects as `foundLogs` would for logs that have begun otherwise, and begins none: for callers with much work before
 * founding.
 */
export async function assertFoundable(
  shards: Iterable<number>,
  mark: string,
  log: ShardLog,
  clock: Pick<ClusterClock, 'after'>,
  options: FoundingOptions = foundingOptionsDefault,
): Promise<void> {
  for (const shard of shards) await new Founding(shard, mark, log, clock, options).look()
}

class Founding {
  private readonly shard: number
  private readonly mark: Buffer
  private readonly owner: string
  private readonly log: ShardLog
  private readonly clock: Pick<ClusterClock, 'after'>
  private readonly options: FoundingOptions

  constructor(
    shard: number,
    mark: string,
    log: ShardLog,
    clock: Pick<ClusterClock, 'after'>,
    options: FoundingOptions,
  ) {
    this.shard = shard
    this.mark = Buffer.from(mark)
    this.owner = ownerText(founder, mark)
    this.log = log
    this.clock = clock
    this.options = options
  }

  async found(): Promise<LogPosition> {
    const first = (await this.look()) ?? (await this.append())
    await this.release()
    return positionOf(first, decodeRecord(first)!)
  }

  /** The record with which the log has begun, if it has. Rejects when that was not ours. */
  async look(): Promise<Buffer | undefined> {
    const { last, takeover, records } = await this.read()
    if (takeover && takeover.owner !== noOwner && takeover.owner !== this.owner)
      throw this.begun(`it belongs to ${nameOf(takeover.owner)}`)
    if (last > 0 && !this.isOurs(last, records)) throw this.begun(`its log has ${last} records`)
    return last > 0 ? records[0]!.bytes : undefined
  }

  private isOurs(last: number, records: LogReading['records']): boolean {
    const record = records[0] && decodeRecord(records[0].bytes)
    return last === content.sequence + 1 && record?.sequence === last && record.payload.equals(this.mark)
  }

  private async append(): Promise<Buffer> {
    const { shard, mark, owner, log } = this
    const { epoch } = await this.answered<Known<TakeoverOutcome>>(onDone => log.takeOver(shard, owner, onDone))
    const bytes = encodeRecord(shard, epoch, content, mark, { continues: false, continuesPrevious: false })
    const appends = [{ shard, epoch, sequence: content.sequence + 1, bytes }]
    const outcome = await this.answered<Known<AppendOutcome>>(onDone => log.append(appends, onDone))
    if (outcome.kind === 'superseded') throw this.begun('another node has taken it over meanwhile')
    return bytes
  }

  /** Leaves the shard without an owner, so that the node with its content may take it at once. */
  private async release(): Promise<void> {
    const { takeover } = await this.read()
    if (takeover?.owner !== this.owner) return
    await this.answered<Known<RetakeOutcome>>(onDone => this.log.retake(this.shard, takeover.epoch, noOwner, onDone))
  }

  private read(): Promise<LogReading> {
    return this.answered<LogReading>(onDone => this.log.read(this.shard, 0, 1, onDone))
  }

  private answered<T extends { readonly kind: string }>(ask: Asking<T>): Promise<T> {
    return answered(ask, this.clock, this.options)
  }

  private begun(why: string): Error {
    return new Error(
      `the log engine keeps a cluster already, and shard ${this.shard} cannot begin with other content: ${why}`,
    )
  }
}

type Asking<T> = (onDone: (outcome: T | Unknown) => void) => void

/** Repeats a request that may safely be repeated, and returns its outcome once there is one. */
export async function answered<T extends { readonly kind: string }>(
  ask: Asking<T>,
  clock: Pick<ClusterClock, 'after'>,
  { retryMs, triesMax }: FoundingOptions,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    const outcome = await new Promise<T | Unknown>(ask)
    if (!isUnknown(outcome)) return outcome
    if (tries >= triesMax) throw new Error(`the log engine does not answer: ${outcome.reason}`)
    await new Promise<void>(resolve => clock.after(retryMs, resolve))
  }
}

/** An outcome that is not `unknown`. */
type Known<T> = Exclude<T, Unknown>

const isUnknown = (outcome: { readonly kind: string }): outcome is Unknown => outcome.kind === 'unknown'

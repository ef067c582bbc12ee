// Reports to operators about a cluster's shards and the disk, in words: lines, and alarms that begin and end.
//
// Of the cluster: shards that cannot answer, with the reason, and the end of that (docs/operations/cluster-health.md),
// and shards that other nodes have taken over in the midst of a write. A problem of the log engine is the alarm
// `ClusterLogError`. A problem of nodes is only a line, because another node raises the alarm, if there is one.
//
// Of the disk: one line for each change of its state, and an alarm while writes are refused
// (docs/operations/full-disk.md). States have hysteresis, so there cannot be many lines.

import type { HealthProblem, LogLoss, ShardLoss } from '../messages/cluster-status.js'
import type { DiskRoom, Logger } from '../ports.js'
import type { Alarms } from './alarms.js'

/** The loss of the log, as a clause. */
export const lossInWords = ({ isNameless, shards, total }: LogLoss): string =>
  isNameless
    ? 'the log engine does not keep this cluster any more: its data was deleted or replaced'
    : `the log engine has lost data: the logs of ${shards.length} of ${total} shards end before what this node has applied`

/** Shards that a text names; the others are only counted. */
const namedMax = 5

/** The reason why shards cannot answer, as a clause. */
export function problemInWords(problem: HealthProblem): string {
  switch (problem.kind) {
    case 'lost':
      return lossInWords(problem)
    case 'diverged':
      return `the log has other records than this node has applied: its copies of ${listed(problem.shards)} have stopped`
    case 'full':
      return `${engineOf(problem)} is full and takes no writes (etcd's alarm NOSPACE: its quota is exceeded): ${problem.reason}`
    case 'away':
      return `${engineOf(problem)} takes no writes: ${problem.reason}`
    case 'unowned':
      return `no node owns ${listed(problem.shards)}`
    case 'unreachable':
      return `this node gets no answer from ${problem.nodes.join(', ')} for ${listed(problem.shards)}`
    case 'silent':
      return `nothing has proven in the last seconds that ${problem.nodes.join(', ')} can write to ${listed(problem.shards)}`
  }
}

/** Where there are several, its name says which shards have the problem. */
const engineOf = ({ engine }: { readonly engine?: string }): string =>
  engine === undefined ? 'the log engine' : `the log engine ${engine}`

const inMs = (ms: number): string => `${Math.round(ms)} ms`

/** Names all shards: no other line may name them. */
const allListed = (shards: readonly number[]): string =>
  shards.length === 1 ? `shard ${shards[0]}` : `${shards.length} shards (${shards.join(', ')})`

const listed = (shards: readonly number[]): string =>
  shards.length === 1
    ? `shard ${shards[0]}`
    : `${shards.length} shards (${shards.slice(0, namedMax).join(', ')}${shards.length > namedMax ? ', …' : ''})`

/** A node that starts beside others may have this delay. With a longer one it was stopped, or lacks processor time. */
const startDelayMsMax = 1_000

const adviceOf: Readonly<Partial<Record<HealthProblem['kind'], string>>> = {
  lost: '. Requests are refused with 503 until the log is back; nothing is deleted here (docs/operations/log-lost.md)',
  diverged: '. It has changes that the log lacks: an operator must choose (docs/operations/disasters.md)',
  full: '. Writes are refused with 503 (docs/operations/cluster-health.md)',
  away: '. Writes are refused with 503 (docs/operations/cluster-health.md)',
}

export class LogReporter {
  /** A starting node has not seen every shard yet, so it reports no problem of nodes before it was ready once. */
  private hasBeenReady = false
  private reported: string | undefined

  constructor(
    private readonly logger: Pick<Logger, 'warn' | 'info'>,
    private readonly alarms: Pick<Alarms, 'raise' | 'release' | 'isActive'>,
  ) {}

  /** undefined: every shard can answer. */
  onHealth(problem: HealthProblem | undefined): void {
    if (problem) return this.report(problem)
    if (this.reported !== undefined) {
      this.alarms.release('ClusterLogError', '')
      this.logger.warn('cluster: every shard can answer again, requests are taken')
    }
    this.hasBeenReady = true
    this.reported = undefined
  }

  /**
   * Other nodes have taken over shards of this one: a line for each of them. `loopDelayMs`: the longest recent delay of
   * the event loop. Nodes that start together claim the same shards until they know each other, which is no reason for
   * a warning.
   */
  onLost(losses: readonly ShardLoss[], loopDelayMs: number): void {
    this.onForsaken(losses.filter(({ isForsaken }) => isForsaken))
    const taken = losses.filter(({ isForsaken }) => !isForsaken)
    for (const node of new Set(taken.map(loss => loss.node))) {
      const some = taken.filter(loss => loss.node === node)
      const certainMs = some.map(loss => loss.certainMs).filter(ms => ms !== undefined)
      const certain =
        certainMs.length === 0 ? '' : `, which was certain to own what it had until ${inMs(Math.max(...certainMs))} ago`
      const isBeginning = !this.hasBeenReady && loopDelayMs < startDelayMsMax
      const isExpected = isBeginning || (certainMs.length === 0 && Math.round(loopDelayMs) === 0)
      const shards = `${allListed(some.map(({ shard }) => shard))} of this node`
      const lost = node === undefined ? `no node owns ${shards}` : `${node} has taken over ${shards}`
      this.logger[isExpected ? 'info' : 'warn'](
        `cluster: ${lost}${certain}. ` + `The event loop of this node was late by up to ${inMs(loopDelayMs)}`,
      )
    }
  }

  private onForsaken(losses: readonly ShardLoss[]): void {
    if (losses.length === 0) return
    this.logger.warn(
      `cluster: the log of ${allListed(losses.map(({ shard }) => shard))} of this node does not answer. ` +
        'It has given up their latest changes, which may have happened or not, and takes the shards over when the log answers',
    )
  }

  private report(problem: HealthProblem): void {
    const advice = adviceOf[problem.kind]
    if (advice === undefined && !this.hasBeenReady) return
    const words = problemInWords(problem)
    // The list of shards grows while nodes notice the problem, or while a backup of the log is restored.
    if (words === this.reported) return
    this.reported = words
    if (advice === undefined) this.logger.warn(`cluster: not ready: ${words}`)
    else if (this.alarms.isActive('ClusterLogError')) this.logger.warn(`cluster: ${words}`)
    else this.alarms.raise('ClusterLogError', '', words + advice)
  }
}

/** The key of the alarm, besides that of the store itself. */
const diskKey = 'disk'

/** From much room to none. */
type DiskState = 'ample' | 'short' | 'scarce' | 'exhausted'

export class DiskReporter {
  constructor(
    private readonly logger: Pick<Logger, 'warn' | 'error'>,
    private readonly alarms: Pick<Alarms, 'raise' | 'release'>,
  ) {}

  onState(
    state: DiskState,
    before: DiskState,
    { freeBytes, reserveBytes }: Pick<DiskRoom, 'freeBytes' | 'reserveBytes'>,
  ): void {
    const room = `${megabytes(freeBytes)} MB free besides ${megabytes(reserveBytes)} MB reserved`
    if (before === 'ample')
      this.alarms.raise(
        'DatabaseError',
        diskKey,
        `the disk of the data directory is nearly full, ${room}: writes are refused with 507 until more than ${megabytes(2 * reserveBytes)} MB are free`,
      )
    if (state === 'exhausted')
      this.logger.error(`the disk of the data directory is full, the reserve is used up: deletions are refused as well`)
    else if (state === 'scarce' && before !== 'exhausted')
      this.logger.warn(`the disk of the data directory has ${room}: the reserve is given up, so that deletions go on`)
    else if (before === 'exhausted') this.logger.warn(`the disk of the data directory has room for deletions again`)
    if (state !== 'ample') return
    this.logger.warn(`the disk of the data directory has room again, ${room}: writes are taken`)
    this.alarms.release('DatabaseError', diskKey)
  }

  onFailure(what: string, error: Error): void {
    this.logger.warn(`${what}: ${error.message}`)
  }
}

const megabytes = (bytes: number): number => Math.floor(bytes / 1_048_576)

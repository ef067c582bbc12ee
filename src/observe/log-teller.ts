// Tells operators when a cluster's shards cannot answer, why, and that they can again
// (docs/operations/cluster-health.md). And which shards of this node other nodes have taken over without asking it.
//
// What is wrong with the log engine is an alarm, `ClusterLogError`. What is wrong with nodes is a line: another one of the cluster raises an alarm, or
// none is there. A node that begins has not seen every shard yet, so of that it tells nothing before it was ready once.

import type { HealthProblem, LogLoss, ShardLoss } from '../messages/cluster-status.js'
import type { Logger } from '../ports.js'
import type { Alarms } from './alarms.js'

/** What has been found, as a clause. */
export const lossInWords = ({ isNameless, shards, total }: LogLoss): string =>
  isNameless
    ? 'the log engine does not keep this cluster any more: its data was deleted or replaced'
    : `the log engine has lost data: the logs of ${shards.length} of ${total} shards end before what this node has applied`

/** Shards that a text names; the rest is counted. */
const namedMax = 5

/** Why shards cannot answer, as a clause. */
export function problemInWords(problem: HealthProblem): string {
  switch (problem.kind) {
    case 'lost':
      return lossInWords(problem)
    case 'full':
      return `the log engine is full and takes no writes (etcd's alarm NOSPACE: its quota is exceeded): ${problem.reason}`
    case 'away':
      return `the log engine takes no writes: ${problem.reason}`
    case 'unowned':
      return `no node owns ${listed(problem.shards)}`
    case 'unreachable':
      return `this node cannot reach ${problem.nodes.join(', ')}, owner of ${listed(problem.shards)}`
    case 'silent':
      return `nothing has proven in the last seconds that ${problem.nodes.join(', ')} can write to ${listed(problem.shards)}`
  }
}

const inMs = (ms: number): string => `${Math.round(ms)} ms`

/** All of them by number: there may be no other line that tells. */
const allListed = (shards: readonly number[]): string =>
  shards.length === 1 ? `shard ${shards[0]}` : `${shards.length} shards (${shards.join(', ')})`

const listed = (shards: readonly number[]): string =>
  shards.length === 1
    ? `shard ${shards[0]}`
    : `${shards.length} shards (${shards.slice(0, namedMax).join(', ')}${shards.length > namedMax ? ', …' : ''})`

/** What an operator ought to read. */
const adviceOf: Readonly<Partial<Record<HealthProblem['kind'], string>>> = {
  lost: '. Requests are refused with 503 until the log is back; nothing is deleted here (docs/operations/log-lost.md)',
  full: '. Writes are refused with 503 (docs/operations/cluster-health.md)',
  away: '. Writes are refused with 503 (docs/operations/cluster-health.md)',
}

export class LogTeller {
  private readonly logger: Pick<Logger, 'warn'>
  private readonly alarms: Pick<Alarms, 'raise' | 'release' | 'isActive'>
  private hasBeenReady = false
  private told: string | undefined

  constructor(logger: Pick<Logger, 'warn'>, alarms: Pick<Alarms, 'raise' | 'release' | 'isActive'>) {
    this.logger = logger
    this.alarms = alarms
  }

  /** undefined: every shard can answer. */
  onHealth(problem: HealthProblem | undefined): void {
    if (problem) return this.tell(problem)
    if (this.told !== undefined) {
      this.alarms.release('ClusterLogError', '')
      this.logger.warn('cluster: every shard can answer again, requests are taken')
    }
    this.hasBeenReady = true
    this.told = undefined
  }

  /** Other nodes have taken over shards of this one: a line for each of them. `loopDelayMs`: the longest of late. */
  onLost(losses: readonly ShardLoss[], loopDelayMs: number): void {
    for (const node of new Set(losses.map(loss => loss.node))) {
      const some = losses.filter(loss => loss.node === node)
      const certainMs = some.map(loss => loss.certainMs).filter(ms => ms !== undefined)
      const certain =
        certainMs.length === 0 ? '' : `, which was certain to own what it had until ${inMs(Math.max(...certainMs))} ago`
      this.logger.warn(
        `cluster: ${node ?? 'nobody'} has taken over ${allListed(some.map(({ shard }) => shard))} of this node${certain}. ` +
          `The event loop of this node was late by up to ${inMs(loopDelayMs)}`,
      )
    }
  }

  private tell(problem: HealthProblem): void {
    const advice = adviceOf[problem.kind]
    if (advice === undefined && !this.hasBeenReady) return
    const words = problemInWords(problem)
    // Which shards it is about grows while nodes notice, or while a backup comes back.
    if (words === this.told) return
    this.told = words
    if (advice === undefined) this.logger.warn(`cluster: not ready: ${words}`)
    else if (this.alarms.isActive('ClusterLogError')) this.logger.warn(`cluster: ${words}`)
    else this.alarms.raise('ClusterLogError', '', words + advice)
  }
}

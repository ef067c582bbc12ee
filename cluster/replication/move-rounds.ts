// When a node asks for further shards: in rounds, with a rest between two of them.
//
// A list needs all owners at rest. If shards moved without a pause, it would wait until the last one has arrived. So a
// node asks for some shards at once. It asks for the next ones when these have arrived, and no shard of the cluster has
// got an owner for a while. All nodes see the same takeovers, so nodes that take shards at the same time rest together.
// A shard that takes long, or a node that fails again and again, does not hold the others up.
//
// On a busy machine a list may take longer than that. Then its node asks all nodes for a longer rest, again and again
// while it has lists that wait. They may ask for `holdMsMax` after the latest takeover; then one round has its turn. So
// the rests of all nodes end together, and no node begins its round while the lists wait for the end of another one's.
// A node that takes shards over and over extends that by `moveRoundMs` at most.
//
// Not here: which shards to ask for (duties.ts), and how many at once (caretaker.ts).

import type { ClusterClock } from '../ports.js'
import type { ReplicationOptions } from './replication-options.js'

export class MoveRounds {
  /** When the present round, with the rest behind it, was first seen; undefined: nothing moves. */
  private beganMs: number | undefined
  private takenMs = Number.NEGATIVE_INFINITY
  private isTimed = false
  /** When the present longer rest has begun, and when it ends; undefined: there is none. */
  private held: { readonly beganMs: number; readonly untilMs: number } | undefined

  /** `onRested`: a rest is over. */
  constructor(
    private readonly clock: Pick<ClusterClock, 'monoMs' | 'after'>,
    private readonly options: Pick<ReplicationOptions, 'moveRestMs' | 'moveRoundMs' | 'holdMs' | 'holdMsMax'>,
    private readonly onRested: () => void,
  ) {}

  /** A node has taken a shard over. */
  noteTakeover(): void {
    const { clock, options } = this
    const nowMs = clock.monoMs()
    this.takenMs = nowMs
    this.beganMs ??= nowMs
    if (!this.isTimed) this.wait(options.moveRestMs)
  }

  /** Some node has lists that wait: no round begins for a moment. */
  hold(): void {
    const { clock, options } = this
    const nowMs = clock.monoMs()
    const beganMs = this.held?.beganMs ?? nowMs
    const sinceMs = Math.min(Math.max(beganMs, this.takenMs), beganMs + options.moveRoundMs)
    this.held = { beganMs, untilMs: Math.min(nowMs + options.holdMs, sinceMs + options.holdMsMax) }
  }

  /** Many shards get an owner at the same time, and one timer serves them all. */
  private wait(delayMs: number): void {
    const { clock, options, onRested } = this
    this.isTimed = true
    clock.after(delayMs, () => {
      this.isTimed = false
      const leftMs = this.takenMs + options.moveRestMs - clock.monoMs()
      if (leftMs > 0) this.wait(leftMs)
      else onRested()
    })
  }

  /** Whether the node may ask for shards now. `moving`: how many are on their way to it. */
  isOpen(moving: number): boolean {
    const { clock, options } = this
    const nowMs = clock.monoMs()
    if (this.held && nowMs < this.held.untilMs) return false
    this.held = undefined
    if (moving === 0 && nowMs - this.takenMs >= options.moveRestMs) {
      this.beganMs = undefined
      return true
    }
    this.beganMs ??= nowMs
    return nowMs - this.beganMs >= options.moveRoundMs
  }
}

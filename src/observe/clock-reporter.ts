// Reports to operators about the clock of a node of a cluster: the alarm `ClusterClockError` while it is apart from the
// clocks of the others, and a line when it becomes unsafe or is no longer (docs/operations/cluster.md#clocks).

import type { ClockStatus } from '../messages/cluster-status.js'
import type { Logger } from '../ports.js'
import type { Alarms } from './alarms.js'

const inSeconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`

/** Describes the fault of the clock. The text is a clause, which callers put into a sentence. */
export function clockInWords({ state, aheadMs, skewMaxMs }: ClockStatus): string {
  if (state === 'apart' && Math.abs(aheadMs) <= skewMaxMs)
    return `the clocks of the nodes differ by more than ${skewMaxMs} ms, and no majority of them agrees on the time`
  const difference = `the clock of this node is ${inSeconds(Math.abs(aheadMs))} ${aheadMs < 0 ? 'behind' : 'ahead of'} the clocks of the others`
  return state === 'unsafe'
    ? `${difference}, and the node takes no shards until it is within ${skewMaxMs} ms`
    : difference
}

const isWrong = (state: ClockStatus['state']): boolean => state === 'apart' || state === 'unsafe'

export class ClockReporter {
  private reported: ClockStatus['state'] = 'unknown'

  constructor(
    private readonly logger: Pick<Logger, 'warn'>,
    private readonly alarms: Pick<Alarms, 'raise' | 'release'>,
  ) {}

  /** The clocks were compared. */
  onClock(clock: ClockStatus): void {
    const before = this.reported
    if (clock.state === before) return
    this.reported = clock.state
    if (!isWrong(clock.state)) return this.alarms.release('ClusterClockError', '')
    if (isWrong(before)) this.logger.warn(`cluster: ${clockInWords(clock)}`)
    else this.alarms.raise('ClusterClockError', '', `${clockInWords(clock)} (docs/operations/cluster.md#clocks)`)
  }
}

// Tells operators of the room on the disk: one line for each other state, and an alarm while writes are refused (docs/operations/full-disk.md).
//
// States have hysteresis, so there cannot be many lines.

import type { DiskRoom, Logger } from '../ports.js'
import type { Alarms } from './alarms.js'

/** What the alarm is called, besides that of the store itself. */
const alarmKey = 'disk'

/** From much room to none. */
const states = ['ample', 'short', 'scarce', 'exhausted'] as const
type State = (typeof states)[number]

export class DiskTeller {
  private readonly logger: Pick<Logger, 'warn' | 'error'>
  private readonly alarms: Pick<Alarms, 'raise' | 'release'>

  constructor(logger: Pick<Logger, 'warn' | 'error'>, alarms: Pick<Alarms, 'raise' | 'release'>) {
    this.logger = logger
    this.alarms = alarms
  }

  onState(
    state: State,
    before: State,
    { freeBytes, reserveBytes }: Pick<DiskRoom, 'freeBytes' | 'reserveBytes'>,
  ): void {
    const room = `${megabytes(freeBytes)} MB free besides ${megabytes(reserveBytes)} MB reserved`
    if (before === 'ample')
      this.alarms.raise(
        'DatabaseError',
        alarmKey,
        `the disk of the data directory is nearly full, ${room}: writes are refused with 507 until more than ${megabytes(2 * reserveBytes)} MB are free`,
      )
    if (state === 'exhausted')
      this.logger.error(`the disk of the data directory is full, the reserve is used up: deletions are refused as well`)
    else if (state === 'scarce' && before !== 'exhausted')
      this.logger.warn(`the disk of the data directory has ${room}: the reserve is given up, so that deletions go on`)
    else if (before === 'exhausted') this.logger.warn(`the disk of the data directory has room for deletions again`)
    if (state !== 'ample') return
    this.logger.warn(`the disk of the data directory has room again, ${room}: writes are taken`)
    this.alarms.release('DatabaseError', alarmKey)
  }

  onFailure(what: string, error: Error): void {
    this.logger.warn(`${what}: ${error.message}`)
  }
}

const megabytes = (bytes: number): number => Math.floor(bytes / 1_048_576)

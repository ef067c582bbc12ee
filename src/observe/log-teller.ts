// Tells operators that the engine of a cluster's log has lost something of what this node knows, and that it has it again: an alarm, and one line for
// each (docs/operations/log-lost.md).

import type { Logger, LogLoss } from '../ports.js'
import type { Alarms } from './alarms.js'

/** What the alarm is called, besides that of the store itself. */
const alarmKey = 'log'

/** What has been found, as a clause. */
export const lossInWords = ({ isNameless, shards, total }: LogLoss): string =>
  isNameless
    ? 'the log engine does not keep this cluster any more: its data was deleted or replaced'
    : `the log engine has lost data: the logs of ${shards.length} of ${total} shards end before what this node has applied`

export class LogTeller {
  private readonly logger: Pick<Logger, 'warn'>
  private readonly alarms: Pick<Alarms, 'raise' | 'release'>
  private told: string | undefined

  constructor(logger: Pick<Logger, 'warn'>, alarms: Pick<Alarms, 'raise' | 'release'>) {
    this.logger = logger
    this.alarms = alarms
  }

  /** undefined: it has everything. */
  onLoss(loss: LogLoss | undefined): void {
    if (loss) {
      const words = lossInWords(loss)
      // Which shards it is about grows while nodes notice, or while a backup comes back: one line for the whole.
      if (this.told === undefined)
        this.alarms.raise(
          'DatabaseError',
          alarmKey,
          `${words}. Requests are refused with 503 until the log is back; nothing is deleted here (docs/operations/log-lost.md)`,
        )
      else if (this.told !== words) this.logger.warn(words)
      this.told = words
    } else if (this.told !== undefined) {
      this.told = undefined
      this.alarms.release('DatabaseError', alarmKey)
      this.logger.warn('the log engine has everything again that this node knows: requests are taken')
    }
  }
}

// The summary of `-logSummary`: six lines every so often, whatever the level (operations.md §6.5). "new" is since the one before. A node of a cluster adds a
// seventh once the log of the cluster has failed.

import type { Clock, Logger } from '../ports.js'
import { type AlarmKind, type AlarmNumbers, type Alarms, alarmKinds } from './alarms.js'

/** How each kind is called in the summary; the store's line has a form of its own. */
const names = {
  ClusterLogError: 'Cluster log failure active alarms',
  NotificationError: 'Notification failure active alarms',
  ForwardingError: 'Forwarding failure active alarms',
  MqttConnectionError: 'MQTT connection failure active alarms',
  BadInput: 'Bad input active alarms',
} as const satisfies Record<Exclude<AlarmKind, 'DatabaseError'>, string>

export class Summary {
  /** Requests, notifications and forwards since the start. */
  transactions = 0
  private readonly alarms: Alarms
  private readonly before = new Map<AlarmKind, AlarmNumbers>()
  private transactionsBefore = 0
  private cancel = (): void => {}

  constructor(alarms: Alarms) {
    this.alarms = alarms
  }

  /** Writes one every `periodS` from now on. */
  start(periodS: number, clock: Pick<Clock, 'after'>, logger: Pick<Logger, 'summary'>): void {
    this.cancel = clock.after(periodS * 1000, () => {
      for (const line of this.lines()) logger.summary(line)
      this.start(periodS, clock, logger)
    })
  }

  stop(): void {
    this.cancel()
  }

  private lines(): readonly string[] {
    const fresh = this.transactions - this.transactionsBefore
    this.transactionsBefore = this.transactions
    const kinds = alarmKinds.filter(kind => kind !== 'ClusterLogError' || this.alarms.numbers(kind).raised > 0)
    return [`Transactions: ${this.transactions} (new: ${fresh})`, ...kinds.map(kind => this.line(kind))]
  }

  private line(kind: AlarmKind): string {
    const { active, raised, released } = this.alarms.numbers(kind)
    const { raised: raisedBefore = 0, released: releasedBefore = 0 } = this.before.get(kind) ?? {}
    this.before.set(kind, { active, raised, released })
    const head =
      kind === 'DatabaseError' ? `DB status: ${active > 0 ? 'erroneous' : 'ok'}` : `${names[kind]}: ${active}`
    const total = (all: number, before: number): string => `(total: ${all}, new: ${all - before})`
    return `${head}, raised: ${total(raised, raisedBefore)}, released: ${total(released, releasedBefore)}`
  }
}

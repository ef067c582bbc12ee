// Alarms: conditions whose begin and end are reported to operators (docs/interface/administration.md#alarms), and the
// summary of them (docs/interface/administration.md#summary).
//
// A condition has a key: a client, a receiver. While it lasts, repetitions are silent unless they are asked for. Keys
// never expire by time, so each kind keeps `keysMax` of them at most and drops the oldest without a line. Clients and
// subscribers choose most keys. So each kind writes at most `linesPerMinuteMax` lines a minute, and later the number of
// omitted ones.
//
// Not here: the texts about the disk and the cluster (reporters.ts).

import { ownText } from '../domain/recent.js'
import type { Clock, LogContext, Logger } from '../ports.js'

/** Keys of one kind that are active at a time: some 200 bytes each. */
export const keysMax = 10_000

/** Lines about alarms of one kind in a minute. The rest is counted. */
export const linesPerMinuteMax = 100

const minuteMs = 60_000

const alarmKinds = [
  'DatabaseError',
  'NotificationError',
  'ForwardingError',
  'MqttConnectionError',
  'BadInput',
  'ClusterLogError',
  'ClusterClockError',
] as const
export type AlarmKind = (typeof alarmKinds)[number]

interface AlarmNumbers {
  readonly active: number
  /** Since the start. */
  readonly raised: number
  readonly released: number
}

interface Alarm {
  readonly keys: Set<string>
  raised: number
  released: number
  /** The present minute, the lines written in it, and those omitted in it. */
  sinceMs: number
  lines: number
  leftOut: number
}

export class Alarms {
  private readonly alarms: Readonly<Record<AlarmKind, Alarm>>

  /** `isRepeated`: repetitions are logged (`-relogAlarms`). */
  constructor(
    private readonly logger: Logger,
    private readonly isRepeated: boolean,
    private readonly clock: Pick<Clock, 'monoMs'>,
  ) {
    this.alarms = Object.fromEntries(
      alarmKinds.map(kind => [
        kind,
        { keys: new Set<string>(), raised: 0, released: 0, sinceMs: Number.NEGATIVE_INFINITY, lines: 0, leftOut: 0 },
      ]),
    ) as unknown as Record<AlarmKind, Alarm>
  }

  /** The condition has begun. `key` is '' for the store, and for the log and the clock of a cluster, of which there is one each. */
  raise(kind: AlarmKind, key: string, detail: string, context?: LogContext): void {
    const { keys } = this.alarms[kind]
    if (keys.has(key)) {
      if (this.isRepeated)
        this.logLine(
          kind,
          `Repeated ${kind === 'DatabaseError' ? 'Database Error' : named(kind, key)}: ${detail}`,
          context,
        )
      return
    }
    if (keys.size >= keysMax) {
      const [oldest = ''] = keys
      keys.delete(oldest)
    }
    // A client's name from a proxy's header is a part of that header, and would keep it in memory.
    keys.add(ownText(key))
    this.alarms[kind].raised++
    this.logLine(kind, `Raising alarm ${named(kind, key)}: ${detail}`, context)
  }

  release(kind: AlarmKind, key: string, context?: LogContext): void {
    const alarm = this.alarms[kind]
    if (!alarm.keys.delete(key)) return
    alarm.released++
    this.logLine(kind, `Releasing alarm ${named(kind, key)}`, context)
  }

  // [hot] Asked for each request.
  /** Whether there is an alarm of a kind: if not, nothing can be released. */
  isActive(kind: AlarmKind): boolean {
    return this.alarms[kind].keys.size > 0
  }

  numbers(kind: AlarmKind): AlarmNumbers {
    const { keys, raised, released } = this.alarms[kind]
    return { active: keys.size, raised, released }
  }

  private logLine(kind: AlarmKind, text: string, context: LogContext | undefined): void {
    if (kind === 'DatabaseError') return this.logger.error(text, context)
    const alarm = this.alarms[kind]
    const nowMs = this.clock.monoMs()
    if (nowMs - alarm.sinceMs >= minuteMs) {
      if (alarm.leftOut > 0) this.logger.warn(`${alarm.leftOut} more lines about ${kind} alarms were left out`)
      alarm.sinceMs = nowMs
      alarm.lines = 0
      alarm.leftOut = 0
    }
    if (alarm.lines < linesPerMinuteMax) {
      alarm.lines++
      this.logger.warn(text, context)
    } else alarm.leftOut++
  }
}

const named = (kind: AlarmKind, key: string): string => (key === '' ? kind : `${kind} ${key}`)

/** The name of each kind in the summary; the store's line has a form of its own. */
const names = {
  ClusterLogError: 'Cluster log failure active alarms',
  ClusterClockError: 'Cluster clock active alarms',
  NotificationError: 'Notification failure active alarms',
  ForwardingError: 'Forwarding failure active alarms',
  MqttConnectionError: 'MQTT connection failure active alarms',
  BadInput: 'Bad input active alarms',
} as const satisfies Record<Exclude<AlarmKind, 'DatabaseError'>, string>

/** The summary has a line of these kinds once there was such an alarm: only nodes of a cluster have them. */
const clusterKinds: ReadonlySet<AlarmKind> = new Set(['ClusterLogError', 'ClusterClockError'])

/**
 * The summary of `-logSummary`: six lines in each period, at any level; "new" is since the one before. A node of a
 * cluster adds a line once the log of the cluster has failed, and one once its clock was wrong.
 */
export class Summary {
  /** Requests, notifications and forwards since the start. */
  transactions = 0
  private readonly before = new Map<AlarmKind, AlarmNumbers>()
  private transactionsBefore = 0
  private cancel = (): void => {}

  constructor(private readonly alarms: Alarms) {}

  /** Writes a summary every `periodS` from now on. */
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
    const kinds = alarmKinds.filter(kind => !clusterKinds.has(kind) || this.alarms.numbers(kind).raised > 0)
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

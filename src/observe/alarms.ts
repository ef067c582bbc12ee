// Alarms: conditions that operators are told of when they begin and when they end (operations.md §6.4), and the numbers of the summary.
//
// A condition has a key: a client, a receiver. While it lasts, repetitions are silent unless they are asked for. Keys never expire by time,
// so each kind keeps `keysMax` of them at most; the oldest goes unsaid. Keys of `BadInput` are what clients say of themselves, those of receivers
// what subscribers say: so each kind writes `linesPerMinuteMax` lines a minute at most, and then how many it has left out.
//
// Not here: when the summary is written (summary.ts).

import { ownText } from '../domain/recent.js'
import type { Clock, LogContext, Logger } from '../ports.js'

/** Keys of one kind that are active at a time: some 200 bytes each. */
export const keysMax = 10_000

/** Lines about alarms of one kind in a minute. The rest is counted. */
export const linesPerMinuteMax = 100

const minuteMs = 60_000

export const alarmKinds = [
  'DatabaseError',
  'NotificationError',
  'ForwardingError',
  'MqttConnectionError',
  'BadInput',
  'ClusterLogError',
] as const
export type AlarmKind = (typeof alarmKinds)[number]

export interface AlarmNumbers {
  readonly active: number
  /** Since the start. */
  readonly raised: number
  readonly released: number
}

interface Alarm {
  readonly keys: Set<string>
  raised: number
  released: number
  /** The present minute, the lines written in it, and those left out in it. */
  sinceMs: number
  lines: number
  leftOut: number
}

export class Alarms {
  private readonly logger: Logger
  private readonly isRepeated: boolean
  private readonly clock: Pick<Clock, 'monoMs'>
  private readonly alarms: Readonly<Record<AlarmKind, Alarm>>

  /** `isRepeated`: repetitions are told (`-relogAlarms`). */
  constructor(logger: Logger, isRepeated: boolean, clock: Pick<Clock, 'monoMs'>) {
    this.logger = logger
    this.clock = clock
    this.isRepeated = isRepeated
    this.alarms = Object.fromEntries(
      alarmKinds.map(kind => [
        kind,
        { keys: new Set<string>(), raised: 0, released: 0, sinceMs: Number.NEGATIVE_INFINITY, lines: 0, leftOut: 0 },
      ]),
    ) as unknown as Record<AlarmKind, Alarm>
  }

  /** The condition is there. `key` is '' for the store and for the log of the cluster, of which there is one. */
  raise(kind: AlarmKind, key: string, detail: string, context?: LogContext): void {
    const { keys } = this.alarms[kind]
    if (keys.has(key)) {
      if (this.isRepeated)
        this.tell(
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
    // What a proxy says of a client is cut out of its header, and holds on to that.
    keys.add(ownText(key))
    this.alarms[kind].raised++
    this.tell(kind, `Raising alarm ${named(kind, key)}: ${detail}`, context)
  }

  /** The condition is not there. */
  release(kind: AlarmKind, key: string, context?: LogContext): void {
    const alarm = this.alarms[kind]
    if (!alarm.keys.delete(key)) return
    alarm.released++
    this.tell(kind, `Releasing alarm ${named(kind, key)}`, context)
  }

  // [hot] Asked for each request.
  /** Whether there is any of a kind: if not, nothing can be released. */
  isActive(kind: AlarmKind): boolean {
    return this.alarms[kind].keys.size > 0
  }

  numbers(kind: AlarmKind): AlarmNumbers {
    const { keys, raised, released } = this.alarms[kind]
    return { active: keys.size, raised, released }
  }

  private tell(kind: AlarmKind, text: string, context: LogContext | undefined): void {
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

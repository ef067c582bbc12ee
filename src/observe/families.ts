// The metrics of a process: every name that `GET /metrics` knows (README, "Metrics"), and where its value comes from.
//
// Values are read when somebody asks, from who keeps them anyway. Nothing here grows.

import { readdirSync } from 'node:fs'
import type { Family, Labels } from '../domain/exposition.js'
import type { Histogram } from '../domain/histogram.js'
import type { ClusterNumbers, DiskRoom } from '../ports.js'
import { clusterFamilies } from './cluster-families.js'
import type { ConnectionTallies } from './connection-tallies.js'
import type { LoopDelay } from './loop-delay.js'
import type { RequestTallies } from './request-tallies.js'

/** What the notifier tells. */
export interface NotifierNumbers {
  readonly queue: { readonly size: number }
  readonly transports: Readonly<Record<string, { readonly sent: number; readonly connections: number }>>
  readonly simulated: number
  readonly delivered: number
  readonly failed: number
  readonly retried: number
  readonly dead: number
  readonly dropped: number
  readonly heldBack: number
  readonly sending: number
  readonly retrying: number
  readonly lanes: number
}

/** What the shards tell. */
export interface ShardNumbers {
  /** That this process owns. */
  readonly shards: number
  /** undefined: still being counted. */
  readonly entities: number | undefined
  /** Of all tenants, which every process knows. */
  readonly subscriptions: number
  readonly outboxRows: number
  readonly outboxBytes: number
  /** Notifications that found no room in the outbox. */
  readonly outboxDropped: number
  readonly descendantsDropped: number
  readonly deadLetters: number
  readonly commits: { readonly write: Histogram; readonly sync: Histogram }
}

/** What is told of answers that are not small. */
export interface AnswerNumbers {
  readonly bytes: number
  readonly bytesMax: number
  /** Answers that were not sent, or not to their end, by cause. */
  readonly failures: Readonly<Record<string, number>>
}

export interface Sources {
  readonly requests: RequestTallies
  readonly answers: () => AnswerNumbers
  readonly connections: ConnectionTallies
  readonly notifier: () => NotifierNumbers
  readonly shards: () => ShardNumbers
  readonly loop: LoopDelay
  readonly version: string
  /** undefined: nobody looks at it. */
  readonly disk?: (() => DiskRoom) | undefined
  /** undefined: there is no cluster. */
  readonly cluster?: (() => ClusterNumbers) | undefined
}

/** All metrics of this process. */
export function familiesOf({
  requests,
  answers,
  connections,
  notifier,
  shards,
  loop,
  version,
  disk,
  cluster,
}: Sources): readonly Family[] {
  return [
    one('orrery_info', 'gauge', 'The version that runs.', 1, 'max', { version }),
    ...requests.families(),
    ...connections.families(),
    ...ofAnswers(answers()),
    ...ofNotifier(notifier()),
    ...ofShards(shards()),
    ...(disk ? ofDisk(disk()) : []),
    ...(cluster ? clusterFamilies(cluster()) : []),
    histogram('orrery_event_loop_delay_seconds', 'By how much timers are late.', loop.seconds, 'apart'),
    ...ofProcess(),
  ]
}

function ofAnswers({ bytes, bytesMax, failures }: AnswerNumbers): readonly Family[] {
  const failed = one(
    'orrery_http_answer_failures_total',
    'counter',
    'Answers not sent, or not to their end, by cause.',
    0,
  )
  return [
    one('orrery_http_answers_in_flight_bytes', 'gauge', 'Bytes of large answers under way.', bytes),
    one('orrery_http_answers_in_flight_bytes_max', 'gauge', 'Bytes that all of them may have.', bytesMax),
    { ...failed, samples: Object.entries(failures).map(([cause, value]) => ({ labels: { cause }, value })) },
  ]
}

function ofNotifier(numbers: NotifierNumbers): readonly Family[] {
  const count = (name: string, help: string, value: number): Family =>
    one(`orrery_notifications_${name}_total`, 'counter', help, value)
  const now = (name: string, help: string, value: number): Family =>
    one(`orrery_notification_${name}`, 'gauge', help, value)
  const byTransport = (what: 'sent' | 'connections'): Family['samples'] =>
    Object.entries(numbers.transports).map(([transport, { [what]: value }]) => ({ labels: { transport }, value }))
  return [
    {
      ...count('sent', 'Messages that went out, further tries included.', 0),
      samples: byTransport('sent'),
    },
    count('delivered', 'Notifications that ended well.', numbers.delivered),
    count('failed', 'Tries that failed and will be followed by another one.', numbers.failed),
    count('retried', 'Tries after the first one.', numbers.retried),
    count('dead', 'Notifications given up; they are kept as dead letters.', numbers.dead),
    count('dropped', 'Notifications lost: no room, or nothing that could be sent.', numbers.dropped),
    count('held_back', 'Tries failed at once, because the receiver does not answer.', numbers.heldBack),
    count('simulated', 'Notifications not sent on purpose.', numbers.simulated),
    now('queue_length', 'First tries that wait in memory.', numbers.queue.size),
    now('retry_queue_length', 'Failed notifications that wait in memory for another try.', numbers.retrying),
    now('sending', 'Tries under way.', numbers.sending),
    now('lanes', 'Receivers known.', numbers.lanes),
    {
      ...now('connections', 'Connections to receivers.', 0),
      samples: byTransport('connections'),
    },
  ]
}

function ofShards(numbers: ShardNumbers): readonly Family[] {
  const { entities, commits } = numbers
  const count = one('orrery_entities', 'gauge', 'Entities stored.', entities ?? 0)
  return [
    one('orrery_shards', 'gauge', 'Shards that are served.', numbers.shards),
    entities === undefined ? { ...count, samples: [] } : count,
    one('orrery_subscriptions', 'gauge', 'Subscriptions, of all tenants.', numbers.subscriptions, 'max'),
    one('orrery_outbox_rows', 'gauge', 'Changes that owe notifications, in the store.', numbers.outboxRows),
    one('orrery_outbox_bytes', 'gauge', 'Bytes of these.', numbers.outboxBytes),
    one('orrery_outbox_dropped_total', 'counter', 'Notifications the outbox had no room for.', numbers.outboxDropped),
    one(
      'orrery_notification_descendants_dropped_total',
      'counter',
      'Notifications not made because too many descend from their request.',
      numbers.descendantsDropped,
    ),
    one('orrery_dead_letters', 'gauge', 'Notifications given up and kept.', numbers.deadLetters),
    histogram('orrery_commit_write_seconds', 'Time of the write of a commit, on the main thread.', commits.write),
    histogram('orrery_commit_sync_seconds', 'Time from then until it was durable.', commits.sync),
  ]
}

/** Workers have one disk. Nothing is told of its room before the first look. */
function ofDisk(room: DiskRoom): readonly Family[] {
  const { freeBytes, reserveBytes, isShort, isScarce, isExhausted } = room
  const free = one(
    'orrery_disk_free_bytes',
    'gauge',
    'Free on the disk of the store, besides the reserve.',
    freeBytes,
    'max',
  )
  const state = Number(isShort) + Number(isScarce) + Number(isExhausted)
  return [
    Number.isFinite(freeBytes) ? free : { ...free, samples: [] },
    one('orrery_disk_reserve_bytes', 'gauge', 'Room that is kept for hard times.', reserveBytes, 'max'),
    one(
      'orrery_disk_state',
      'gauge',
      '0: room, 1: writes are refused, 2: the reserve is given up, 3: full.',
      state,
      'max',
    ),
  ]
}

function ofProcess(): readonly Family[] {
  const { user, system } = process.cpuUsage()
  const { rss, heapUsed, heapTotal, external } = process.memoryUsage()
  const startedS = performance.timeOrigin / 1000
  const gauge = (name: string, help: string, value: number): Family => one(name, 'gauge', help, value, 'apart')
  return [
    one('process_cpu_seconds_total', 'counter', 'Processor time.', (user + system) / 1e6, 'apart'),
    one('process_cpu_user_seconds_total', 'counter', 'Processor time outside the kernel.', user / 1e6, 'apart'),
    one('process_cpu_system_seconds_total', 'counter', 'Processor time in the kernel.', system / 1e6, 'apart'),
    gauge('process_start_time_seconds', 'When the process began, since 1970.', startedS),
    gauge('process_resident_memory_bytes', 'Memory of the process.', rss),
    gauge('nodejs_heap_size_used_bytes', 'Memory of JavaScript objects.', heapUsed),
    gauge('nodejs_heap_size_total_bytes', 'Memory set apart for these.', heapTotal),
    gauge('nodejs_external_memory_bytes', 'Memory of buffers.', external),
    { ...gauge('process_open_fds', 'Open files and sockets.', 0), samples: openFiles() },
  ]
}

/** Nothing where the system does not tell. */
function openFiles(): Family['samples'] {
  try {
    return [{ labels: {}, value: readdirSync('/proc/self/fd').length }]
  } catch {
    return []
  }
}

const one = (
  name: string,
  type: 'counter' | 'gauge',
  help: string,
  value: number,
  join: Family['join'] = 'sum',
  labels: Labels = {},
): Family => ({ name, type, help, join, samples: [{ labels, value }] })

const histogram = (name: string, help: string, value: Histogram, join: Family['join'] = 'sum'): Family => ({
  name,
  type: 'histogram',
  help,
  join,
  samples: [{ labels: {}, value }],
})

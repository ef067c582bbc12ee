// The metrics of a process: every name of `GET /metrics` (docs/operations/metrics.md), and the source of its value.
//
// A scrape reads the values from the objects that keep them anyway. Nothing here grows.
//
// Not here: how the metrics of several processes become one text (metric-family.ts).

import { readdirSync } from 'node:fs'
import type { Histogram } from '../domain/histogram.js'
import type { CertificateNumbers, MetricFamily, MetricLabels, MetricSample } from '../messages/admin.js'
import type { BackupNumbers, BackupOutcome } from '../messages/backup.js'
import type { ClusterNumbers } from '../messages/cluster-status.js'
import type { DiskRoom, StoreNumbers } from '../ports.js'
import type { AuditNumbers } from './audit/audit-log.js'
import type { LoopDelay } from './loop-delay.js'
import type { LoopUtilization } from './loop-utilization.js'
import { byLabel, counter, family, gauge, histograms } from './metric-family.js'
import { type QuotaNumbers, quotaFamilies } from './quota-metrics.js'
import type { ConnectionTallies, RequestTallies } from './request-tallies.js'

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

export interface ShardNumbers {
  /** Shards that this process owns. */
  readonly shards: number
  /** undefined: the count is not complete yet. */
  readonly entities: number | undefined
  /** Documents of all tenants, which every process has. */
  readonly subscriptions: number
  readonly registrations: number
  readonly tenantsDeleting: number
  readonly views: {
    readonly count: number
    readonly bytes: number
    readonly hits: number
    readonly misses: number
  }
  /** Filters of streams at this owner, and its latest changes. */
  readonly streams: { readonly filters: number; readonly ringBytes: number; readonly ringAgeMs: number }
  readonly outboxRows: number
  readonly outboxBytes: number
  /** Notifications that found no room in the outbox. */
  readonly outboxDropped: number
  readonly descendantsDropped: number
  readonly deadLetters: {
    readonly count: number
    readonly bytes: number
    /** 0: there is none. */
    readonly oldestAgeMs: number
    /** Dead letters that were deleted because of a limit, by cause. */
    readonly losses: Readonly<Record<string, number>>
    /** Dead letters that were sent again automatically, by outcome; undefined: that is off. */
    readonly replays: Readonly<Record<string, number>> | undefined
  }
  readonly commits: { readonly write: Histogram; readonly sync: Histogram }
}

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
  /** Counts under a bounded number of names. */
  readonly labelled: readonly { families(): readonly MetricFamily[] }[]
  /** undefined: the store has no numbers. */
  readonly store: () => StoreNumbers | undefined
  readonly notifier: () => NotifierNumbers
  readonly shards: () => ShardNumbers
  readonly loop: LoopDelay
  readonly loopUtilization: LoopUtilization
  readonly version: string
  /** The label of metrics about this process alone; undefined: there is no other worker. */
  readonly worker: number | undefined
  readonly disk?: (() => DiskRoom) | undefined
  readonly cluster?: (() => ClusterNumbers) | undefined
  readonly backup?: (() => BackupNumbers) | undefined
  readonly certificates?: (() => readonly CertificateNumbers[]) | undefined
  /** undefined: there is no access control. */
  readonly access?: (() => AccessNumbers) | undefined
  /** undefined: there is no audit log. */
  readonly audit?: (() => AuditNumbers) | undefined
  readonly quotas?: (() => QuotaNumbers) | undefined
}

/** Numbers of access control, of this process. */
export interface AccessNumbers {
  /** Requests that do not show who asks, by the reason. */
  readonly denied: Readonly<Record<string, number>>
  /** Requests that no rule allows. */
  readonly forbidden: number
  readonly tokens: { readonly remembered: number }
  readonly source: { readonly reloads: number; readonly reloadFailures: number }
}

export function familiesOf(sources: Sources): readonly MetricFamily[] {
  const { requests, connections, labelled, loop, loopUtilization, version, worker, disk, cluster } = sources
  const { backup, certificates, access, audit, quotas } = sources
  const store = sources.store()
  const own: MetricLabels = worker === undefined ? {} : { worker: String(worker) }
  return [
    gauge('orrery_info', 'The version that runs.', 1, 'max', { version }),
    ...requests.families(),
    ...connections.families(),
    ...labelled.flatMap(one => one.families()),
    ...ofAnswers(sources.answers()),
    ...ofNotifier(sources.notifier()),
    ...ofShards(sources.shards()),
    ...(store ? ofStore(store) : []),
    ...(disk ? ofDisk(disk()) : []),
    ...(cluster ? clusterFamilies(cluster()) : []),
    ...(backup ? backupFamilies(backup()) : []),
    ...(certificates ? certificateFamilies(certificates()) : []),
    ...(access ? accessFamilies(access()) : []),
    ...(audit ? auditFamilies(audit()) : []),
    ...(quotas ? quotaFamilies(quotas()) : []),
    histograms('orrery_event_loop_delay_seconds', 'By how much timers are late.', [
      { labels: own, histogram: loop.seconds },
    ]),
    gauge(
      'orrery_event_loop_utilization_ratio',
      'The share of time that it is not idle.',
      loopUtilization.share,
      'max',
      own,
    ),
    ...ofProcess(own),
  ]
}

function ofAnswers({ bytes, bytesMax, failures }: AnswerNumbers): readonly MetricFamily[] {
  const help = 'Answers not sent, or not to their end, by cause.'
  return [
    gauge('orrery_http_answers_in_flight_bytes', 'Bytes of large answers under way.', bytes),
    gauge('orrery_http_answers_in_flight_bytes_max', 'Bytes that all of them may have.', bytesMax),
    byLabel('orrery_http_answer_failures_total', 'counter', help, 'cause', failures),
  ]
}

function ofNotifier(numbers: NotifierNumbers): readonly MetricFamily[] {
  const sent = 'Messages that went out, further tries included.'
  const open = 'Connections to receivers.'
  const count = (name: string, help: string, value: number): MetricFamily =>
    counter(`orrery_notifications_${name}_total`, help, value)
  const now = (name: string, help: string, value: number): MetricFamily =>
    gauge(`orrery_notification_${name}`, help, value)
  const byTransport = (what: 'sent' | 'connections'): Readonly<Record<string, number>> =>
    Object.fromEntries(Object.entries(numbers.transports).map(([transport, counts]) => [transport, counts[what]]))
  return [
    byLabel('orrery_notifications_sent_total', 'counter', sent, 'transport', byTransport('sent')),
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
    byLabel('orrery_notification_connections', 'gauge', open, 'transport', byTransport('connections')),
  ]
}

function ofShards(numbers: ShardNumbers): readonly MetricFamily[] {
  const { entities, commits, views, streams } = numbers
  const counted = entities === undefined ? [] : [{ labels: {}, value: entities }]
  return [
    gauge('orrery_shards', 'Shards that are served.', numbers.shards),
    family('orrery_entities', 'gauge', 'Entities stored.', counted),
    gauge('orrery_subscriptions', 'Subscriptions, of all tenants.', numbers.subscriptions, 'max'),
    gauge('orrery_registrations', 'Registrations, of all tenants.', numbers.registrations, 'max'),
    gauge('orrery_tenants_deleting', 'Tenants that are being deleted.', numbers.tenantsDeleting, 'max'),
    gauge('orrery_views', 'Views in memory, each of one type in one service path.', views.count),
    gauge('orrery_view_bytes', 'Bytes of these.', views.bytes),
    counter('orrery_view_hits_total', 'Lists with a filter that found the views they needed.', views.hits),
    counter('orrery_view_misses_total', 'Lists with a filter that did not.', views.misses),
    gauge('orrery_stream_filters', 'Filters of streams that the owners of shards match.', streams.filters),
    gauge(
      'orrery_stream_ring_bytes',
      'Bytes of the latest changes, kept for readers that come back.',
      streams.ringBytes,
    ),
    gauge('orrery_stream_ring_age_seconds', 'Age of the oldest of them.', streams.ringAgeMs / 1000, 'max'),
    gauge('orrery_outbox_rows', 'Changes that owe notifications, in the store.', numbers.outboxRows),
    gauge('orrery_outbox_bytes', 'Bytes of these.', numbers.outboxBytes),
    counter('orrery_outbox_dropped_total', 'Notifications the outbox had no room for.', numbers.outboxDropped),
    counter(
      'orrery_notification_descendants_dropped_total',
      'Notifications not made because too many descend from their request.',
      numbers.descendantsDropped,
    ),
    ...ofDeadLetters(numbers.deadLetters),
    histograms('orrery_commit_write_seconds', 'Time of the write of a commit, on the main thread.', [
      { labels: {}, histogram: commits.write },
    ]),
    histograms('orrery_commit_sync_seconds', 'Time from then until it was durable.', [
      { labels: {}, histogram: commits.sync },
    ]),
  ]
}

function ofDeadLetters({ count, bytes, oldestAgeMs, losses, replays }: ShardNumbers['deadLetters']): MetricFamily[] {
  const replayed = 'Dead letters sent again automatically, by outcome.'
  const dropped = 'Dead letters deleted because of a limit.'
  return [
    gauge('orrery_dead_letters', 'Notifications given up and kept.', count),
    gauge('orrery_dead_letters_bytes', 'Bytes of these, in the store.', bytes),
    gauge('orrery_dead_letters_oldest_age_seconds', 'Since the oldest was given up.', oldestAgeMs / 1000, 'max'),
    byLabel('orrery_dead_letters_replayed_total', 'counter', replayed, 'result', replays ?? {}),
    byLabel('orrery_dead_letters_dropped_total', 'counter', dropped, 'reason', losses),
  ]
}

/** Numbers that RocksDB reports about itself. Each worker has its own store. */
function ofStore(numbers: StoreNumbers): readonly MetricFamily[] {
  const now = (name: string, help: string, value: number): MetricFamily => gauge(`orrery_store_${name}`, help, value)
  return [
    now('table_bytes', 'Bytes of the tables on the disk, without the log.', numbers.tableBytes),
    now('memtable_bytes', 'Memory of rows that are not in tables yet.', numbers.memtableBytes),
    now('cache_bytes', 'Memory of blocks that were read.', numbers.cacheBytes),
    now('compactions', 'Compactions under way.', numbers.compactions),
    now('flushes', 'Flushes to tables under way.', numbers.flushes),
    now('pending_compaction_bytes', 'Bytes that compactions have yet to rewrite.', numbers.pendingCompactionBytes),
    now('stalled', '1 while writes wait for compactions.', Number(numbers.isStalled)),
    now(
      'delayed_write_bytes_per_second',
      'Rate to which writes are slowed down; 0: they are not.',
      numbers.delayedBytesPerS,
    ),
    counter('orrery_store_background_errors_total', 'Compactions and flushes that failed.', numbers.backgroundErrors),
  ]
}

/** All workers have the same disk. Before the first look, its room is unknown. */
function ofDisk(room: DiskRoom): readonly MetricFamily[] {
  const { freeBytes, reserveBytes, isShort, isScarce, isExhausted } = room
  const looked = Number.isFinite(freeBytes) ? [{ labels: {}, value: freeBytes }] : []
  const state = Number(isShort) + Number(isScarce) + Number(isExhausted)
  const states = '0: room, 1: writes are refused, 2: the reserve is given up, 3: full.'
  return [
    family('orrery_disk_free_bytes', 'gauge', 'Free on the disk of the store, besides the reserve.', looked, 'max'),
    gauge('orrery_disk_reserve_bytes', 'Room that is kept for hard times.', reserveBytes, 'max'),
    gauge('orrery_disk_state', states, state, 'max'),
  ]
}

/** Metrics of the last backup, which all workers know. */
export function backupFamilies({ isRunning, last }: BackupNumbers): readonly MetricFamily[] {
  const ofLast = (name: string, help: string, of: (outcome: BackupOutcome) => number): MetricFamily =>
    family(`orrery_backup_last_${name}`, 'gauge', help, last ? [{ labels: {}, value: of(last) }] : [], 'max')
  return [
    gauge('orrery_backup_running', '1 while a backup is read.', Number(isRunning), 'max'),
    ofLast('timestamp_seconds', 'When the last backup ended, since 1970.', ({ endedMs }) => endedMs / 1000),
    ofLast('duration_seconds', 'What it took.', ({ durationMs }) => durationMs / 1000),
    ofLast('bytes', 'Bytes of it.', ({ bytes }) => bytes),
    ofLast('succeeded', '1 if it was sent to its end, else 0.', ({ succeeded }) => Number(succeeded)),
  ]
}

/** Metrics of access control. Of several workers the file of the one that has read it most often is reported. */
export function accessFamilies({ denied, forbidden, tokens, source }: AccessNumbers): readonly MetricFamily[] {
  const { reloads, reloadFailures } = source
  const deniedHelp = 'Requests refused by access control, by reason.'
  const read = (name: string, help: string, value: number): MetricFamily =>
    family(name, 'counter', help, [{ labels: {}, value }], 'max')
  return [
    byLabel('orrery_access_denied_total', 'counter', deniedHelp, 'reason', { ...denied, forbidden }),
    read('orrery_access_reloads_total', 'New access files that are in use.', reloads),
    read('orrery_access_reload_failures_total', 'New access files with a fault.', reloadFailures),
    gauge('orrery_access_tokens_remembered', 'Verified tokens that are remembered.', tokens.remembered),
  ]
}

/** Metrics of the audit log: each worker writes its own lines. */
export function auditFamilies({ written, lost, waitingBytes, isFailing }: AuditNumbers): readonly MetricFamily[] {
  return [
    counter('orrery_audit_lines_total', 'Lines of the audit log that were written.', written),
    counter('orrery_audit_lines_lost_total', 'Lines of the audit log that were lost.', lost),
    gauge('orrery_audit_waiting_bytes', 'Bytes of its lines that wait to be written.', waitingBytes),
    gauge('orrery_audit_failing', '1 while its lines cannot be written.', Number(isFailing), 'max'),
  ]
}

/** Metrics of the files of certificates. Of several workers the earliest end of a certificate is reported. */
export function certificateFamilies(all: readonly CertificateNumbers[]): readonly MetricFamily[] {
  const ends = all.flatMap(({ use, endMs }) => (endMs === undefined ? [] : [{ labels: { use }, value: endMs / 1000 }]))
  const reloads = all.flatMap(({ use, renewed, refused }) => [
    { labels: { use, result: 'renewed' }, value: renewed },
    { labels: { use, result: 'refused' }, value: refused },
  ])
  const endHelp = 'When the certificate ends that new connections get, since 1970.'
  const reloadHelp = 'Changes of certificate files that were noticed, by outcome.'
  return [
    family('orrery_certificate_expiry_timestamp_seconds', 'gauge', endHelp, ends, 'min'),
    family('orrery_certificate_reloads_total', 'counter', reloadHelp, reloads),
  ]
}

function ofProcess(own: MetricLabels): readonly MetricFamily[] {
  const { user, system } = process.cpuUsage()
  const { rss, heapUsed, heapTotal, external } = process.memoryUsage()
  const startedS = performance.timeOrigin / 1000
  const count = (name: string, help: string, value: number): MetricFamily => counter(name, help, value, own)
  const now = (name: string, help: string, value: number): MetricFamily => gauge(name, help, value, 'sum', own)
  const files = openFiles()
  return [
    count('process_cpu_seconds_total', 'Processor time.', (user + system) / 1e6),
    count('process_cpu_user_seconds_total', 'Processor time outside the kernel.', user / 1e6),
    count('process_cpu_system_seconds_total', 'Processor time in the kernel.', system / 1e6),
    now('process_start_time_seconds', 'When the process began, since 1970.', startedS),
    now('process_resident_memory_bytes', 'Memory of the process.', rss),
    now('nodejs_heap_size_used_bytes', 'Memory of JavaScript objects.', heapUsed),
    now('nodejs_heap_size_total_bytes', 'Memory set apart for these.', heapTotal),
    now('nodejs_external_memory_bytes', 'Memory of buffers.', external),
    ...(files === undefined ? [] : [now('process_open_fds', 'Open files and sockets.', files)]),
  ]
}

/** undefined if the system does not report it. */
function openFiles(): number | undefined {
  try {
    return readdirSync('/proc/self/fd').length
  } catch {
    return undefined
  }
}

/** Metrics of this node's place in its cluster: the members it sees, its copies of shards, the costs of the log. */
export function clusterFamilies({ status, log, stalledMs, rests, gossip }: ClusterNumbers): readonly MetricFamily[] {
  const { members, shards } = status
  const now = (name: string, help: string, value: number): MetricFamily => gauge(`orrery_cluster_${name}`, help, value)
  const logCounts = (name: string, help: string, of: (numbers: LogNumbers) => number): MetricFamily => {
    const values = log.map(numbers => {
      const { kind, engine } = numbers
      return { labels: { kind, ...(engine !== undefined && { engine }) }, value: of(numbers) }
    })
    return family(`orrery_cluster_log_${name}_total`, 'counter', help, values)
  }
  const undecodable = members.filter(({ name }) => name !== status.node).map(one => [one.name, one.undecodable])
  const ofNode = 'Messages that could not be read, by the node that sent them.'
  const unreadable = 'Messages of gossip that were ignored: no message, or of another version.'
  const copies = 'Shards, the register among them, by the state of the copy here.'
  const lag = Math.max(0, ...shards.map(shard => shard.lag))
  const clocks = members.flatMap(one =>
    one.clockAheadMs === undefined ? [] : [{ labels: { node: one.name }, value: one.clockAheadMs / 1000 }],
  )
  const loads = members.flatMap(one =>
    one.load === undefined ? [] : [{ labels: { node: one.name }, value: one.load }],
  )
  const loadOf = 'Requests a second for entities of the shards of a node, as known here.'
  const clockOf = 'How far the clock of another node is ahead of that of this node.'
  return [
    family('orrery_cluster_members', 'gauge', 'Nodes that this one knows of.', counted(members, 'status')),
    family('orrery_cluster_shards', 'gauge', copies, counted(shards, 'copy')),
    now('unowned_shards', 'Shards that no node owns.', shards.filter(({ owner }) => owner === undefined).length),
    now(
      'lost_shards',
      'Shards of which the log engine has lost records that this node knows.',
      status.log.shards.length,
    ),
    now(
      'unready_shards',
      'Shards that could not answer lately, as far as this node knows.',
      status.health.shards.length,
    ),
    now(
      'clock_ahead_seconds',
      'How far the clock of this node is ahead of the median of the clocks.',
      status.clock.aheadMs / 1000,
    ),
    family('orrery_cluster_load', 'gauge', loadOf, loads),
    counter(
      'orrery_cluster_load_exchanges_total',
      'Exchanges of shards for load that this node chose.',
      status.exchanges,
    ),
    counter(
      'orrery_cluster_rests_total',
      'Requests of this node, for lists that wait, that no node begins moves for a moment.',
      rests,
    ),
    family('orrery_cluster_clock_difference_seconds', 'gauge', clockOf, clocks),
    now('log_stalled_seconds', 'How long the append under way has waited for the engine.', stalledMs / 1000),
    now('lag_records', 'Records that are known and not applied here, of the shard that has most.', lag),
    logCounts('requests', 'Requests to the engine of the log.', ({ requests }) => requests),
    logCounts('failures', 'Requests to it without an answer.', ({ failures }) => failures),
    logCounts('records', 'Records in these.', ({ records }) => records),
    logCounts('bytes', 'Bytes of records in these.', ({ bytes }) => bytes),
    logCounts('seconds', 'Time of these.', ({ milliseconds }) => milliseconds / 1000),
    byLabel('orrery_cluster_gossip_bytes_total', 'counter', 'Bytes of gossip.', 'direction', {
      sent: gossip.bytesSent,
      received: gossip.bytesReceived,
    }),
    counter('orrery_cluster_gossip_unreadable_total', unreadable, gossip.messagesUnreadable),
    byLabel('orrery_cluster_undecodable_total', 'counter', ofNode, 'node', Object.fromEntries(undecodable)),
    counter('orrery_cluster_suspicions_total', 'Nodes that did not answer.', gossip.suspicions),
  ]
}

type LogNumbers = ClusterNumbers['log'][number]

function counted<K extends string>(all: readonly Readonly<Record<K, string>>[], by: K): readonly MetricSample[] {
  const counts = new Map<string, number>()
  for (const one of all) counts.set(one[by], (counts.get(one[by]) ?? 0) + 1)
  return [...counts].map(([word, value]) => ({ labels: { [by]: word }, value }))
}

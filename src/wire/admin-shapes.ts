// The shapes of the replies to operators (messages/admin.ts), which other processes send: metrics, counters by tenant,
// statistics, forwarded requests, and the state of the cache.
//
// A reply does not name its command, so it is checked to be one of these.

import type { ForwardingOutcome } from '../domain/providers/forwarding-outcome.js'
import type {
  AdminReply,
  CacheStatistics,
  MetricFamily,
  MetricSample,
  QueueStatistics,
  ServiceTally,
  Statistics,
  StatisticsCounters,
  Timing,
} from '../messages/admin.js'
import { type Check, flag, list, members, number, oneOf, optional, orNull, record, text, word } from './checks.js'

/** A check for each member of a message, so that a new member without one does not compile. */
type ChecksOf<T> = { readonly [K in keyof T]-?: Check }

const sample = members({
  labels: record(text),
  // JSON has null in place of a number that is not finite.
  value: orNull(number),
  metricName: optional(text),
} satisfies ChecksOf<MetricSample>)

const family = members({
  name: text,
  type: word('counter', 'gauge', 'histogram'),
  help: text,
  aggregator: word('sum', 'max', 'min'),
  values: list(sample),
} satisfies ChecksOf<MetricFamily>)

const tally = members({
  service: text,
  path: text,
  incomingTransactions: number,
  incomingTransactionErrors: number,
  incomingTransactionRequestSize: number,
  incomingTransactionResponseSize: number,
  serviceSeconds: number,
  outgoingTransactions: number,
  outgoingTransactionErrors: number,
  outgoingTransactionRequestSize: number,
  outgoingTransactionResponseSize: number,
} satisfies ChecksOf<ServiceTally>)

const counters = members({
  jsonRequests: number,
  textRequests: number,
  noPayloadRequests: number,
  requests: record(record(number)),
  missedVerb: number,
  invalidRequests: number,
  notificationsSent: number,
  deprecatedFeatures: record(number),
} satisfies ChecksOf<StatisticsCounters>)

const timing = members({ jsonV2Parse: number, mongoWriteWait: number, total: number } satisfies ChecksOf<Timing>)

const queue = members({
  in: number,
  out: number,
  reject: number,
  sentOk: number,
  sentError: number,
  timeInQueue: number,
  size: number,
} satisfies ChecksOf<QueueStatistics>)

const statistics = members({
  uptimeS: number,
  intervalS: number,
  counters: optional(counters),
  hasSemWait: flag,
  timing: optional(members({ accumulated: timing, last: timing })),
  notifQueue: optional(queue),
  simulatedNotifications: number,
} satisfies ChecksOf<Statistics>)

const cache = members({
  ids: text,
  refresh: number,
  inserts: number,
  removes: number,
  updates: number,
  items: number,
} satisfies ChecksOf<CacheStatistics>)

const outcome = members({
  registration: text,
  sent: number,
  failed: number,
  lastMs: number,
  lastSuccessMs: optional(number),
  lastFailure: optional(members({ ms: number, reason: text })),
} satisfies ChecksOf<ForwardingOutcome>)

const shapes = {
  metrics: list(family),
  statistics,
  cache,
  services: list(tally),
  forwarding: list(outcome),
  log: value => value === null,
} satisfies ChecksOf<AdminReply>

/** Whether a value has the shape of the reply to one of the commands of operators. */
export const isAdminReply: Check = oneOf(...Object.values(shapes))

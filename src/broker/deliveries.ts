// What several owners tell of a subscription's notifications, as one report: by time, the latest first.
//
// Not here: who is asked (shard-client), what an owner keeps (shard/notifications/deliveries).

import type { DeliveryRecord, DeliveryReport } from '../messages/messages.js'

/** The latest of all owners, `limit` in each list at most. */
export const mergeReports = (reports: readonly DeliveryReport[], limit: number): DeliveryReport => ({
  deliveries: latest(
    reports.flatMap(({ deliveries }) => deliveries),
    limit,
  ),
  deadLetters: latest(
    reports.flatMap(({ deadLetters }) => deadLetters),
    limit,
  ),
  deadCount: reports.reduce((sum, { deadCount }) => sum + deadCount, 0),
})

/** Of one moment those of one owner stay in their order. */
const latest = (records: readonly DeliveryRecord[], limit: number): readonly DeliveryRecord[] =>
  records.toSorted((a, b) => b.atMs - a.atMs).slice(0, limit)

// A report on a subscription's notifications as JSON:
//
//   {"deliveries":[{"time":"...Z","entity":{"id","type","servicePath"},"notificationId","attempt":1,"outcome":"failed","code":503,
//   "reason":"..."}],"deadLetters":[...],"deadLettersCount":0}
//
// `code` and `reason` are left out where there are none. Both lists begin with the latest and are of one form.

import { renderDateTime } from '../domain/date-time.js'
import type { DeliveryRecord, DeliveryReport } from '../messages/messages.js'

/** The JSON of a report. */
export const renderDeliveries = ({ deliveries, deadLetters, deadCount }: DeliveryReport): string =>
  JSON.stringify({
    deliveries: deliveries.map(shown),
    deadLetters: deadLetters.map(shown),
    deadLettersCount: deadCount,
  })

const shown = ({ atMs, id, type, path, notificationId, attempt, outcome, code, reason }: DeliveryRecord) => ({
  time: renderDateTime(atMs),
  entity: { id, type, servicePath: path },
  notificationId,
  attempt,
  outcome,
  code,
  reason: reason === '' ? undefined : reason,
})

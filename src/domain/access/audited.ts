// Which requests the audit log is about (docs/operations/audit.md#what-is-logged), by what rules have to allow for them.
// It counts without access control as well.
//
// Not here: the answers that are logged whatever the request was about (http/request-audit.ts), the form of a line
// (observe/audit/audit-line.ts).

import type { AccessAction } from './access-rule.js'
import type { RequestNeed } from './route-needs.js'

/**
 * `change`: it changes something, or would if it were allowed. `administration`: it shows what only administrators may
 * see. `other`: everything else.
 */
export type AuditedAs = 'change' | 'administration' | 'other'

/** The actions of a stream and of a notification to a page leave nothing behind. */
const changing: ReadonlySet<AccessAction> = new Set(['create', 'update', 'delete', 'notify', 'subscribe', 'register'])

// [hot] Once per request with an audit log.
export function auditedAs(need: RequestNeed, method: string): AuditedAs {
  if (typeof need === 'string') return 'other'
  const isReading = method === 'GET' || method === 'HEAD'
  if (need.about === 'broker') {
    if (!need.actions.includes('admin')) return 'other'
    return isReading ? 'administration' : 'change'
  }
  return !isReading && need.actions.some(action => changing.has(action)) ? 'change' : 'other'
}

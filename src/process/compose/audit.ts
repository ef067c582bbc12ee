// The audit log of a node. Without `-auditLog` there is none.
//
// It is opened before anything else, so a node that cannot keep it never serves. Workers append to the same file.

import type { Config } from '../../config/config.js'
import { AuditLog } from '../../observe/audit/audit-log.js'
import { AuditFile, standardOutputLines } from '../../observe/audit/line-file.js'
import type { Surroundings } from '../surroundings.js'

/** Opens the audit log. Throws an error with a sentence if that is not possible. */
export function openAudit(
  { audit, tenants: isMultitenant }: Config,
  { clock, logger }: Pick<Surroundings, 'clock' | 'logger'>,
): AuditLog | undefined {
  if (!audit) return undefined
  const { file: path, isRequired } = audit
  const file = path === undefined ? standardOutputLines : openFile(path)
  return new AuditLog({ file, isRequired, isMultitenant, clock, logger })
}

function openFile(path: string): AuditFile {
  try {
    return new AuditFile(path)
  } catch (cause) {
    throw new Error(`-auditLog: cannot append to ${path}: ${(cause as Error).message}`, { cause })
  }
}

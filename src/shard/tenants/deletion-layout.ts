// The mark of a tenant that is being deleted: a row of the register, so all owners have it, and it outlives every
// process.
//
// It is stored among the service paths of its tenant, under a name that no path can have. So it reaches other owners
// with the register. A build that does not know marks reads it as an empty service path.
//
// Not here: the effects of a mark (tenant-deletions.ts).

import { assertVersion } from '../../domain/unreadable.js'
import type { TenantDeletion } from '../../messages/messages.js'
import { prefix } from '../keys.js'
import { parsePathKey, pathKey } from '../replicate/replicated-layout.js'

/** In the place of a path, which begins with a slash. */
const markName = 'deleting'
/** The end of a mark's key: the end of the tenant's name, and a text. */
const markEnd = Buffer.from(`\0${markName}\0`)

export const markKey = (register: number, tenant: string): Buffer => pathKey(register, tenant, markName)

/** Whether a key is that of a mark. */
export const isMarkKey = (key: Buffer): boolean =>
  key[0] === prefix.path && key.length > markEnd.length && key.subarray(-markEnd.length).equals(markEnd)

const rowVersion = 1

export const encodeMark = (stamp: number): Buffer => Buffer.from(JSON.stringify({ version: rowVersion, stamp }))

/** The content of a mark. Fails with `Unreadable` for one of another version. */
export function decodeMark(key: Buffer, row: Buffer): TenantDeletion {
  const { version, stamp } = JSON.parse(row.toString()) as { readonly version: unknown; readonly stamp: number }
  assertVersion('the mark of a tenant that is being deleted', version, rowVersion)
  return { tenant: parsePathKey(key).tenant, stamp }
}

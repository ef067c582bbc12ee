// The mark of a tenant that is being deleted: a row of the register, so all owners have it, and it outlives every
// process.
//
// It stands among the service paths of its tenant, under a name that no path can have. So whatever brings the register
// to other owners brings the mark. A build that does not know marks takes it for a service path in which nothing is.
//
// Not here: what a mark causes (tenant-deletions.ts).

import { assertVersion } from '../../domain/unreadable.js'
import type { TenantDeletion } from '../../messages/messages.js'
import { prefix } from '../keys.js'
import { parsePathKey, pathKey } from '../replicate/replicated-layout.js'

/** In the place of a path, which begins with a slash. */
const markName = 'deleting'
/** How the key of a mark ends: the end of the tenant's name, and a text. */
const markEnd = Buffer.from(`\0${markName}\0`)

export const markKey = (register: number, tenant: string): Buffer => pathKey(register, tenant, markName)

/** Whether a key is that of a mark. */
export const isMarkKey = (key: Buffer): boolean =>
  key[0] === prefix.path && key.length > markEnd.length && key.subarray(-markEnd.length).equals(markEnd)

const rowVersion = 1

export const encodeMark = (stamp: number): Buffer => Buffer.from(JSON.stringify({ version: rowVersion, stamp }))

/** What a mark says. Fails with `Unreadable` where it has another version. */
export function decodeMark(key: Buffer, row: Buffer): TenantDeletion {
  const { version, stamp } = JSON.parse(row.toString()) as { readonly version: unknown; readonly stamp: number }
  assertVersion('the mark of a tenant that is being deleted', version, rowVersion)
  return { tenant: parsePathKey(key).tenant, stamp }
}

// Registrations as JSON text: as they are shown (subscriptions.md §12.4), and as they are stored and travel to other processes.
//
// Who decodes trusts: the text was written by `encodeRegistration`, perhaps by an older release, which the version in front tells.
//
// Not here: JSON of clients (registration-parser.ts).

import { renderDateTime } from '../date-time.js'
import { assertVersion } from '../unreadable.js'
import type { Registration } from './registration.js'

/** A registration as `GET` shows it (subscriptions.md §12.4). */
export function renderRegistration(registration: Registration): string {
  const { id, description, expiresMs, dataProvided, provider, status } = registration
  const { url, supportedForwardingMode, legacyForwarding } = provider
  return JSON.stringify({
    id,
    description: description === '' ? undefined : description,
    expires: expiresMs === undefined ? undefined : renderDateTime(expiresMs),
    dataProvided: {
      entities: dataProvided.entities.map(({ id, idPattern, type }) => ({ id, idPattern, type })),
      attrs: dataProvided.attrs,
    },
    provider: { http: { url }, supportedForwardingMode, legacyForwarding },
    status,
  })
}

/** Of the stored form; a new one is needed when an older text would be misread. */
const version = 1

/** The text under which a registration is stored, and sent to other processes. */
export const encodeRegistration = (registration: Registration): string => JSON.stringify({ version, ...registration })

// [hot] For each registration at start. Field by field: spreading what was parsed takes as long as parsing it.
/** The registration of a text that `encodeRegistration` wrote. */
export function decodeRegistration(stored: string): Registration {
  const found = JSON.parse(stored) as Registration & { readonly version: number }
  assertVersion('a stored registration', found.version, version)
  const { id, tenant, servicePath, description, expiresMs, dataProvided, provider, status } = found
  return { id, tenant, servicePath, description, expiresMs, dataProvided, provider, status }
}

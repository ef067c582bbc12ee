// One line of the audit log: a JSON object (docs/operations/audit.md#a-line).
//
// Clients choose most texts of a line. JSON escapes what could end the line or forge a member: quotes, control
// characters, lone surrogates. A long text is cut. A text that looks like a key or a token is not shown: a client may
// have put it into the wrong place. Of a query only parameters that hold no secret are kept.

import { parseTenant } from '../../domain/scope.js'
import type { AuditEntry } from '../../ports.js'

/** Characters of a text in a line; a longer one is cut. */
export const auditTextLengthMax = 1_024

/** Parameters without secrets that say what a request is about. */
export const keptParameters: ReadonlySet<string> = new Set(['options', 'type', 'tenant', 'path', 'level', 'reset'])

/** In place of a text that may be a secret. */
export const notShown = '(not shown)'

/** The line, without its end. `isMultitenant`: the tenant header has an effect. */
export function auditLine(entry: AuditEntry, atMs: number, isMultitenant: boolean): string {
  const { principal, shown, address, peer, method, path, query, servicePath, status, correlator } = entry
  return JSON.stringify({
    time: new Date(atMs).toISOString(),
    principal: principal && shownText(principal.name),
    proof: shown,
    issuer: principal?.proof === 'token' ? shownText(principal.issuer) : undefined,
    address: shownText(address),
    peer: peer && shownText(peer),
    method: shownText(method),
    path: shownText(path),
    query: query === '' ? undefined : keptOf(query),
    tenant: isMultitenant ? tenantOf(entry) : '',
    servicePath: servicePath === '' ? undefined : shownText(servicePath),
    status,
    correlator: shownText(correlator),
    entities: entry.entities,
    id: entry.id === undefined ? undefined : shownText(entry.id),
    via: entry.isMessage ? 'websocket' : undefined,
  })
}

/** As it counts; a text that is no tenant as it was sent. */
function tenantOf({ tenant }: AuditEntry): string {
  const sent = shownText(tenant)
  const parsed = parseTenant(tenant)
  return parsed.ok && sent !== notShown ? parsed.value : sent
}

/** undefined: nothing is kept. */
function keptOf(query: string): string | undefined {
  const kept = query.split('&').filter(parameter => {
    const end = parameter.indexOf('=')
    return end > 0 && keptParameters.has(parameter.slice(0, end))
  })
  return kept.length === 0 ? undefined : shownText(kept.join('&'))
}

function shownText(text: string): string {
  const cut = text.length > auditTextLengthMax ? `${text.slice(0, auditTextLengthMax)}…` : text
  return isLikeSecret(cut) ? notShown : cut
}

const keyForm = /ok_[\w-]{43}/

/** How base64url of JSON begins: both the head and the claims of a token do. */
const tokenPart = 'eyJ'

// [hot] Most texts have neither beginning.
function isLikeSecret(text: string): boolean {
  if (text.includes('ok_') && keyForm.test(text)) return true
  if (!text.includes(tokenPart)) return false
  const parts = text.split('.')
  return parts.some((part, at) => part.startsWith(tokenPart) && at > 0 && parts[at - 1]!.includes(tokenPart))
}

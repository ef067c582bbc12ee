// Masks that a client sends back, and the secrets that they stand for (docs/operations/secrets.md).
//
// A PATCH replaces a transport as a whole. So a client that reads a subscription, changes a field and sends it back sends masks, and a
// mask means "the value as it is". It does so only while the receiver stays the same: otherwise anybody could have secrets sent to a
// receiver of their own.

import { accepted, type Result, refusals, refused } from '../refusal.js'
import { isSecretName, mask } from './secrets.js'
import type { HttpCustomTransport, NamedText, Transport } from './subscription.js'

/** Whether a transport holds a mask where a secret belongs: it was copied from what a broker shows. */
export function hasMask(transport: Transport): boolean {
  if ('login' in transport) return transport.login?.passwd === mask
  return transport.kind === 'httpCustom' && [...transport.headers, ...transport.qs].some(isMasked)
}

const isMasked = ([name, value]: NamedText): boolean => value === mask && isSecretName(name)

/** The transport of a PATCH with the secrets of the present one in place of masks. Refused when they would go to another receiver. */
export function unmask(given: Transport, present: Transport): Result<Transport> {
  if (!hasMask(given)) return accepted(given)
  if ('login' in given) {
    const passwd = 'login' in present && given.login?.user === present.login?.user ? present.login?.passwd : undefined
    if (passwd === undefined) return accepted(given)
    if (!isSameReceiver(given.url, present.url)) return refused(refusals.maskForOtherReceiver('passwd'))
    return accepted({ ...given, login: { user: given.login!.user, passwd } })
  }
  return given.kind === 'httpCustom' && present.kind === 'httpCustom' ? unmaskNamed(given, present) : accepted(given)
}

function unmaskNamed(given: HttpCustomTransport, present: HttpCustomTransport): Result<Transport> {
  const isSame = isSameReceiver(given.url, present.url)
  const unmasked: Partial<Record<'headers' | 'qs', readonly NamedText[]>> = {}
  for (const field of ['headers', 'qs'] as const) {
    const known = new Map(present[field])
    const kept = given[field].find(text => isMasked(text) && known.has(text[0]))
    if (kept && !isSame) return refused(refusals.maskForOtherReceiver(`${field} ${kept[0]}`))
    unmasked[field] = given[field].map(text => [text[0], isMasked(text) ? (known.get(text[0]) ?? mask) : text[1]])
  }
  return accepted({ ...given, ...unmasked })
}

/** Whether two URLs have the same scheme, host and port. With macros they must be equal: what is filled in may be a host. */
function isSameReceiver(one: string, other: string): boolean {
  if (one === other) return true
  const [origin] = originForm.exec(one) ?? []
  return origin !== undefined && !origin.includes('$') && origin === originForm.exec(other)?.[0]
}

const originForm = /^[a-z]+:\/\/[^/?#]*/

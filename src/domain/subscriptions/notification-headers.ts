// The headers of a notification: the standard ones, and those with which its subscription replaces them
// (docs/interface/notifications.md#headers, docs/interface/notifications.md#request).
//
// A name is a token, and a value has no control characters, so no header can end its line or begin another one.
// Anything else is refused, never repaired. The sender adds `Host` and the headers that frame a message.
//
// Not here: macros and percent-decoding, which are applied before.

import { type NotificationInput, type NotificationOptions, type NotSent, notSent } from './message.js'
import type { AttrsFormat, NamedText } from './subscription.js'

export type Header = NamedText

/** The properties of the body that the headers depend on. */
export interface BodyDescription {
  /** undefined: there is no body. */
  readonly type: string | undefined
  /** The format of the subscription, or `custom`. */
  readonly format: AttrsFormat | 'custom'
  /** Whether it is an entity that the subscription has patched: then the format does not show that it is custom. */
  readonly isPatched?: boolean | undefined
}

export const jsonType = 'application/json; charset=utf-8'

const accept: Header = ['Accept', 'application/json']

/** Our own names, as constants: a new string would have to be looked up letter by letter by the sender. */
const namesIn = (vocabulary: NotificationOptions['vocabulary']) => ({
  service: `${vocabulary}-Service`,
  servicePath: `${vocabulary}-ServicePath`,
  correlator: `${vocabulary}-Correlator`,
  notificationId: `${vocabulary}-Notification-Id`,
  alteration: `${vocabulary}-Alteration`,
  notificationKind: `${vocabulary}-Notification-Kind`,
})
const ownNames = { Ctx: namesIn('Ctx'), Fiware: namesIn('Fiware') }

/**
 * The headers of a regular notification, in the order in which they are sent (docs/interface/notifications.md#headers).
 */
export function standardHeaders(
  input: NotificationInput,
  options: NotificationOptions,
  { type, format, isPatched }: BodyDescription,
): Header[] {
  const { tenant, authToken } = input
  const names = ownNames[options.vocabulary]
  const headers: Header[] = [['User-Agent', options.userAgent]]
  if (tenant !== '') headers.push([names.service, tenant])
  headers.push([names.servicePath, input.path])
  if (authToken) headers.push(['X-Auth-Token', authToken])
  headers.push(accept)
  if (type !== undefined) headers.push(['Content-Type', type])
  headers.push([names.correlator, `${input.correlator}; cbnotif=${input.number}`])
  headers.push([names.notificationId, input.notificationId])
  if (isPropagatedDelete(input)) headers.push([names.alteration, 'entityDelete'])
  if (isPatched) headers.push([names.notificationKind, 'custom'])
  if (format !== 'legacy') headers.push(['Ngsiv2-AttrsFormat', format])
  return headers
}

/**
 * Whether a broker that mirrors the entities shall delete this one (`notification.propagateDeletes`, ours; batch.ts
 * reads the header).
 */
const isPropagatedDelete = ({ alteration, subscription }: NotificationInput): boolean =>
  alteration === 'entityDelete' && subscription.notification.propagateDeletes === true

/**
 * Merges standard headers with those of a subscription (docs/interface/notifications.md#request). A header of the same
 * name replaces the standard one, or with an empty value removes it. The others follow, ordered by their lower-case
 * names. Of two names that differ only in case, the later one counts.
 */
export function withCustomHeaders(
  standard: readonly Header[],
  custom: readonly Header[],
  { vocabulary }: NotificationOptions,
): Header[] {
  const wanted = new Map<string, string>()
  for (const [name, value] of custom) {
    const key = inVocabulary(lowerCase(name), vocabulary)
    if (!isReserved(key)) wanted.set(key, value)
  }
  const headers: Header[] = []
  for (const [name, value] of standard) {
    const key = lowerCase(name)
    const text = wanted.get(key) ?? value
    wanted.delete(key)
    if (text !== '') headers.push([name, text])
  }
  const others = [...wanted].filter(([, value]) => value !== '')
  return [...headers, ...others.sort(([a], [b]) => (a < b ? -1 : 1))]
}

const scopeHeader = /^(?:ctx|fiware)-(service|servicepath)$/i

/** Whether two sets of headers name one tenant and one service path. */
export function namesSameScope(some: readonly Header[], others: readonly Header[]): boolean {
  return scopeIn(some) === scopeIn(others)
}

function scopeIn(headers: readonly Header[]): string {
  const named = headers.filter(([name]) => scopeHeader.test(name))
  return JSON.stringify(named.map(([name, value]) => [name.replace(scopeHeader, '$1').toLowerCase(), value]).sort())
}

/** Only ASCII letters: the kelvin sign must not become the letter k. */
const lowerCase = (name: string): string => name.replace(/[A-Z]+/g, letters => letters.toLowerCase())

const ownHeader = /^(?:ctx|fiware)-(service|servicepath|correlator|notification-id|notification-kind|alteration)$/

/** Our own headers match with either prefix. */
function inVocabulary(name: string, vocabulary: NotificationOptions['vocabulary']): string {
  const own = ownHeader.exec(name)
  return own ? `${vocabulary.toLowerCase()}-${own[1]}` : name
}

const reserved =
  /^(?:(?:ctx|fiware)-(?:correlator|notification-id|notification-kind)|ngsiv2-attrsformat|content-length|transfer-encoding|connection|keep-alive|proxy-connection|upgrade|te|trailer|expect)$/

/**
 * Headers that show the origin of a notification or frame it. A subscription cannot set them
 * (docs/interface/notifications.md#request, and ours).
 */
const isReserved = (name: string): boolean => reserved.test(name)

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/** Control characters, also those beyond ASCII. */
const control = /\p{Cc}/u

/** Whether a text may be used in a header value, a URL or a topic. */
export const isFreeOfControls = (text: string): boolean => !control.test(text)

/** The reason why these headers must not be sent; undefined: they may. */
export function checkHeaders(headers: readonly Header[]): NotSent | undefined {
  for (const [name] of headers) if (!token.test(name)) return unsafeHeaders
  return checkValues(headers)
}

/** The same for `standardHeaders`, whose names are ours. */
export function checkValues(headers: readonly Header[]): NotSent | undefined {
  for (const header of headers) if (!isFreeOfControls(header[1])) return unsafeHeaders
  return undefined
}

const unsafeHeaders = notSent('warn', 'Notification not sent: a header is malformed or holds control characters')

// The head of a request to ngsi-proxy's paths: the address by which the client has reached this broker, and the headers
// of a notification that its reader gets (docs/interface/live.md#ngsi-proxy).
//
// The answer's URLs begin with that address, since a browser reads the event source there, and a broker posts
// notifications there. Only the client that names an address gets it back. So the headers of a proxy are believed.

import type { Exchange } from './front.js'

export interface ProxyHead {
  /** Such as `https://broker.example:1026`; undefined: the request does not name a usable host. */
  readonly origin: string | undefined
  /** Whether it is a notification, whose body is passed on as it is. */
  readonly isNotification: boolean
  /** Of a notification: headers by their lower-case names. */
  readonly headers: Readonly<Record<string, string>>
}

/** The headers of a notification that are passed on, as far as it has them. Tokens and cookies are not. */
const passedHeaders = [
  'content-type',
  'user-agent',
  'ngsiv2-attrsformat',
  ...['ctx', 'fiware'].flatMap(prefix => [
    `${prefix}-service`,
    `${prefix}-servicepath`,
    `${prefix}-correlator`,
    `${prefix}-alteration`,
  ]),
  'ngsild-tenant',
  'link',
] as const

const noHeaders: Readonly<Record<string, string>> = {}

/** The head of a request to one of these paths; undefined: it is to another path. */
export function proxyHeadOf(
  exchange: Exchange,
  [first, id, ...more]: readonly string[],
  isTls: boolean,
): ProxyHead | undefined {
  if ((first !== 'eventsource' && first !== 'callbacks') || more.length > 0) return undefined
  const isNotification = first === 'callbacks' && id !== undefined && exchange.method === 'POST'
  return {
    origin: originOf(exchange, isTls),
    isNotification,
    headers: isNotification ? headersOf(exchange) : noHeaders,
  }
}

function headersOf(exchange: Exchange): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const name of passedHeaders) {
    const value = exchange.header(name)
    if (value !== '') headers[name] = value
  }
  return headers
}

const usableHost = /^(?:[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i

function originOf(exchange: Exchange, isTls: boolean): string | undefined {
  const host = firstOf(exchange.header('x-forwarded-host')) || exchange.header('host')
  if (!usableHost.test(host)) return undefined
  const forwarded = firstOf(exchange.header('x-forwarded-proto')).toLowerCase()
  const scheme = forwarded === 'https' || forwarded === 'http' ? forwarded : isTls ? 'https' : 'http'
  const origin = `${scheme}://${host}`
  return URL.canParse(origin) ? origin : undefined
}

/** Each proxy on the way adds its value; the first one is that of the proxy nearest to the client. */
const firstOf = (list: string): string => (list.split(',')[0] ?? '').trim()

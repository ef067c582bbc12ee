// Cross-origin requests: which answers a browser may show to a page from elsewhere (operations.md §8.6).
//
// Off unless an origin is configured. A request whose `Origin` is another one gets its answer all the same, but without the headers that
// let a page see it; who may do what is not decided here. Credentials are never allowed.

import type { Exchange } from './front.js'
import type { Vocabulary } from './vocabulary.js'

export interface CorsSettings {
  /** The one origin that matches, as text; `__ALL`: any. */
  readonly origin: string
  /** How long a browser may keep what a preflight has told. */
  readonly maxAgeS: number
}

/** Whether a path takes part. */
export const hasCors = (path: string): boolean => /^\/(v2(\/|$)|version\/?$)/.test(path)

/** The headers of every answer to a request that matches; undefined: it does not. */
export function corsHeaders(
  exchange: Exchange,
  vocabulary: Vocabulary,
  { origin }: CorsSettings,
): readonly string[] | undefined {
  if (!hasCors(exchange.path)) return undefined
  const asked = exchange.header('origin')
  if (asked === '' || (origin !== '__ALL' && origin !== asked)) return undefined
  return [
    'Access-Control-Allow-Origin',
    origin === '__ALL' ? '*' : origin,
    'Access-Control-Expose-Headers',
    `${vocabulary}-Correlator, ${vocabulary}-Total-Count, Location`,
  ]
}

/** What a preflight is told besides; `allow` are the methods of the route, in the order of its `Allow` header. */
export function preflightHeaders(allow: string, vocabulary: Vocabulary, { maxAgeS }: CorsSettings): readonly string[] {
  const methods = allow.split(', ').filter(method => method !== 'GET')
  const own = `${vocabulary}-Service, ${vocabulary}-Servicepath, Ngsiv2-AttrsFormat, ${vocabulary}-Correlator`
  return [
    'Access-Control-Allow-Methods',
    [...(allow.includes('GET') ? ['GET'] : []), ...methods, 'OPTIONS'].join(', '),
    'Access-Control-Allow-Headers',
    `Content-Type, ${own}, X-Forwarded-For, X-Real-IP, X-Auth-Token, Authorization`,
    'Access-Control-Max-Age',
    String(maxAgeS),
  ]
}

/** A preflight has no vendor headers yet: it names those that will come. */
export const asksForFiware = (exchange: Exchange): boolean =>
  /(^|[\s,])fiware-/i.test(exchange.header('access-control-request-headers'))

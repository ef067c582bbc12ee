// Content codings (RFC 9110, 8.4): the coding of an answer, and the coding of a request's body
// (docs/interface/compression.md).
//
// If a header occurs twice, or a part of it is malformed, that part counts as absent. So the client may get less, but
// never something that it did not ask for.
//
// Not here: the work itself (compressor.ts, inflater.ts), and the choice of answers that are compressed (routes.ts,
// reply.ts).

import { accepted, type Result, refusals, refused } from '../domain/refusal.js'
import type { Exchange } from './front.js'

export type Coding = 'gzip' | 'br'

/** In the order of our preference: at the levels of compressor.ts brotli takes as long and produces fewer bytes. */
const codings: readonly Coding[] = ['br', 'gzip']

const weightShape = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/

let lastHeader = ''
let lastCoding: Coding | undefined

// [hot] Clients send few different values, so the latest one is cached.
/** The preferred coding of an `Accept-Encoding`; undefined: none, or the unencoded body. */
export function preferredCoding(header: string): Coding | undefined {
  if (header !== lastHeader) {
    lastCoding = parse(header)
    lastHeader = header
  }
  return lastCoding
}

function parse(header: string): Coding | undefined {
  const weights = new Map<string, number>()
  for (const item of header.toLowerCase().split(',')) {
    const [name = '', ...parameters] = item.split(';').map(part => part.trim())
    const weight = weightOf(parameters)
    if (weight !== undefined) weights.set(name === 'x-gzip' ? 'gzip' : name, weight)
  }
  const others = weights.get('*') ?? 0
  let best: Coding | undefined
  let bestWeight = 0
  for (const coding of codings) {
    const weight = weights.get(coding) ?? others
    if (weight > bestWeight) {
      best = coding
      bestWeight = weight
    }
  }
  return bestWeight < (weights.get('identity') ?? 0) ? undefined : best
}

function weightOf(parameters: readonly string[]): number | undefined {
  if (parameters.length === 0) return 1
  const [name = '', value = ''] = parameters[0]!.split('=').map(part => part.trim())
  return parameters.length === 1 && name === 'q' && weightShape.test(value) ? Number(value) : undefined
}

const noTransform = /(?:^|[\s,])no-transform(?:[\s,]|$)/i

/** The coding of the answer to a request that has an `Accept-Encoding`; undefined: the body is sent unencoded. */
export function answerCoding(exchange: Pick<Exchange, 'header' | 'headerTimes'>): Coding | undefined {
  if (exchange.headerTimes('accept-encoding') > 1) return undefined
  const coding = preferredCoding(exchange.header('accept-encoding'))
  return coding && noTransform.test(exchange.header('cache-control')) ? undefined : coding
}

/** The codings that a client may send, for the answer to a request with another one. */
const supported = 'gzip, br'
const supportedWhenOff = 'identity'

// [hot] Once per write.
/**
 * The coding of a request's body, from its `Content-Encoding`; undefined: it has none. `isOn`: compressed bodies are
 * accepted.
 */
export function requestCoding(
  exchange: Pick<Exchange, 'header' | 'headerTimes'>,
  isOn: boolean,
): Result<Coding | undefined> {
  const times = exchange.headerTimes('content-encoding')
  if (times === 0) return accepted(undefined)
  const name = exchange.header('content-encoding').toLowerCase()
  if (times === 1 && (name === '' || name === 'identity')) return accepted(undefined)
  if (times === 1 && isOn) {
    if (name === 'br') return accepted('br')
    if (name === 'gzip' || name === 'x-gzip') return accepted('gzip')
  }
  return refused(refusals.contentCoding(name, isOn ? supported : supportedWhenOff))
}

/** Adds `Accept-Encoding` to the names of `Vary` in the headers of an answer. */
export function varying(headers: readonly string[]): string[] {
  const all = [...headers]
  for (let at = 0; at < all.length; at += 2) {
    if (all[at] !== 'Vary') continue
    all[at + 1] += ', Accept-Encoding'
    return all
  }
  all.push('Vary', 'Accept-Encoding')
  return all
}

// Content codings (RFC 9110 §8.4, docs/interface/updates.md#plain-values.3): which one an answer gets, and which one
// the body of a request has (docs/interface/compression.md).
//
// A header that is given twice, or that is malformed in part, gives the client less and never something that it did
// not ask for: the malformed part counts as absent.
//
// Not here: the work itself (compressor.ts, inflater.ts), and which answers take part (routes.ts, reply.ts).

import { accepted, type Result, refusals, refused } from '../domain/refusal.js'
import type { Exchange } from './front.js'

export type Coding = 'gzip' | 'br'

/** In the order of our preference: at the levels of compressor.ts brotli takes as long and makes less of it. */
const codings: readonly Coding[] = ['br', 'gzip']

const weightShape = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/

let lastHeader = ''
let lastCoding: Coding | undefined

// [hot] Clients send few different values: the latest one is remembered.
/** The coding that an `Accept-Encoding` likes best; undefined: none, or the body as it is. */
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

/** The coding of the answer to a request that has an `Accept-Encoding`; undefined: the body goes out as it is. */
export function answerCoding(exchange: Pick<Exchange, 'header' | 'headerTimes'>): Coding | undefined {
  if (exchange.headerTimes('accept-encoding') > 1) return undefined
  const coding = preferredCoding(exchange.header('accept-encoding'))
  return coding && noTransform.test(exchange.header('cache-control')) ? undefined : coding
}

/** What a client may send, for the answer to one that sends anything else. */
const supported = 'gzip, br'
const supportedWhenOff = 'identity'

// [hot] Once per write.
/**
 * The coding of the body of a request, by its `Content-Encoding`; undefined: it has none. `isOn`: compressed bodies are
 * taken.
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

/** Headers of an answer, with `Accept-Encoding` among the names of `Vary`. */
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

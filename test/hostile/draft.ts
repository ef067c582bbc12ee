// A request before it is bytes: the form that mutations change.
//
// A draft keeps the parts apart that HTTP puts into one text. `shotOf` writes it as bytes, and checks whether HTTP
// allows the head. If not, the library below the broker decides alone, and the judge expects less of the answer.
//
// Not here: heads that are wrong on purpose (raw-heads).

import { METHODS } from 'node:http'
import { writeJson } from './words.js'

export interface Draft {
  /** Route and operation, for the tally. */
  kind: string
  method: string
  /** Components, not yet percent-encoded. */
  path: string[]
  params: [name: string, value: string][]
  headers: [name: string, value: string][]
  /** A tree for writeJson. */
  json?: unknown
  /** Instead of `json`. */
  bytes?: Uint8Array
  /** Instead of `path`, unchanged. */
  target?: string
}

/** The bytes to send, and the facts by which the answer is judged. */
export interface Shot {
  readonly kind: string
  readonly pieces: readonly Uint8Array[]
  /**
   * strict: the broker answers, by all rules. mild: the library may answer as well, or close. none: the client expects
   * no answer, and keeps the connection half-used for a while.
   */
  readonly expects: 'strict' | 'mild' | 'none'
  readonly isHead: boolean
  /** The most answers that may come. */
  readonly answersMax: number
  /** The correlator that the answer must have. */
  readonly correlator: string | undefined
  /** The tenant that the request may have created. */
  readonly tenant: string | undefined
  /** The paths in which it may have created something. */
  readonly servicePaths: readonly string[]
  readonly path: string
}

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
/** Printable characters, and blanks between them. */
const fieldValue = /^(?:[\x21-\x7e]+(?:[ \t]+[\x21-\x7e]+)*)?$/
const target = /^\/[\x21-\x7e]*$/
/** Both libraries refuse longer heads, and more headers, before the broker sees them. */
const headBytesMax = 16_000
const headersMax = 80
/** Beyond this size the broker may close while the body still arrives. */
const bodyBytesMax = 1_000_000

const knownMethods = new Set(METHODS.filter(method => method !== 'CONNECT'))

/** Encodes all but the characters that a path component allows, so that the text arrives unchanged. */
export const encodeComponent = (text: string): string => {
  const wellFormed = Buffer.from(text, 'utf8').toString('utf8')
  return encodeURIComponent(wellFormed).replaceAll(/[!'()*]/g, mark => `%${mark.charCodeAt(0).toString(16)}`)
}

const targetOf = (draft: Draft): string => {
  const path = draft.target ?? `/${draft.path.map(encodeComponent).join('/')}`
  const query = draft.params.map(([name, value]) => `${encodeComponent(name)}=${encodeComponent(value)}`).join('&')
  return query === '' ? path : `${path}${path.includes('?') ? '&' : '?'}${query}`
}

/** The request as bytes, in one piece. */
export function shotOf(draft: Draft): Shot {
  const { kind, method } = draft
  const body = draft.bytes ?? (draft.json === undefined ? new Uint8Array() : Buffer.from(writeJson(draft.json), 'utf8'))
  const line = targetOf(draft)
  const headers: [string, string][] = [['Host', 'hostile.example'], ...draft.headers]
  if (body.length > 0) headers.push(['Content-Length', String(body.length)])
  const head = `${method} ${line} HTTP/1.1\r\n${headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`
  const isWellFormed =
    knownMethods.has(method) &&
    target.test(line) &&
    headers.length <= headersMax &&
    head.length <= headBytesMax &&
    body.length <= bodyBytesMax &&
    headers.every(([name, value]) => token.test(name) && fieldValue.test(value))
  const of = (name: string): string[] =>
    draft.headers.filter(([given]) => given.toLowerCase() === name).map(([, value]) => value)
  const correlators = [...of('ctx-correlator'), ...of('fiware-correlator')]
  const tenants = [...of('ctx-service'), ...of('fiware-service')]
  return {
    kind,
    pieces: [Buffer.concat([Buffer.from(head, 'utf8'), body])],
    expects: isWellFormed ? 'strict' : 'mild',
    isHead: method === 'HEAD',
    answersMax: 1,
    correlator: isWellFormed && correlators.length === 1 && correlators[0] !== '' ? correlators[0] : undefined,
    tenant: tenants[0]?.toLowerCase() ?? '',
    servicePaths: [...of('ctx-servicepath'), ...of('fiware-servicepath')].map(path => path.replace(/\/$/, '')),
    path: line,
  }
}

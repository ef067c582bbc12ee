// A request before it is bytes: what mutations change.
//
// A draft keeps apart what HTTP puts into one text. `bytesOf` writes it down, and finds out whether the head is one
// that HTTP allows: if it is not, the library below the broker decides alone, and less is expected of the answer.
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
  /** Instead of `path`, as it stands. */
  target?: string
}

/** What is sent, and what comes back is measured by. */
export interface Shot {
  readonly kind: string
  readonly pieces: readonly Uint8Array[]
  /**
   * strict: the broker answers, by all rules. mild: the library may answer as well, or close. none: nobody waits for an
   * answer, the connection is kept half-used for a while.
   */
  readonly expects: 'strict' | 'mild' | 'none'
  readonly isHead: boolean
  /** Answers that may come. */
  readonly answersMax: number
  /** Must come back. */
  readonly correlator: string | undefined
  /** The tenant that it may have made. */
  readonly tenant: string | undefined
  /** Those in which it may have made something. */
  readonly servicePaths: readonly string[]
  readonly path: string
}

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
/** Printable, and the blank inside. */
const fieldValue = /^(?:[\x21-\x7e]+(?:[ \t]+[\x21-\x7e]+)*)?$/
const target = /^\/[\x21-\x7e]*$/
/** Both libraries refuse longer heads without asking anybody, and more headers. */
const headBytesMax = 16_000
const headersMax = 80
/** Beyond it the broker may close while the body is on its way. */
const bodyBytesMax = 1_000_000

const knownMethods = new Set(METHODS.filter(method => method !== 'CONNECT'))

/** All but what is allowed in a path component by itself, so that what stands in it arrives. */
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

// Whether the interface documents allow an answer, for any request.
//
// Rules, not expected answers: a status of the documents, JSON where there is a body, errors as
// `{"error","description"}` without a character that a page could run, a 5xx only of the kinds that have a reason, the
// correlator of the request, and no fact about the machine.
//
// Not here: the stored data afterwards, other tenants' secrets (campaign).

import type { Shot } from './draft.js'
import type { Observed, ObservedAnswer } from './hostile-client.js'

const statuses = new Set([200, 201, 204, 400, 404, 405, 406, 409, 411, 413, 415, 422, 429, 431])
/** 5xx with a reason that the reference names: not implemented, no room, busy, too late, a loop. */
const reasoned = new Set([501, 503, 504, 507, 508])
/** The answers of the libraries themselves to bytes that are not a request (docs/operations/http-servers.md). */
const ofLibraries = new Set([400, 403, 404, 405, 408, 411, 413, 414, 417, 426, 431, 501, 505])
/**
 * Administration paths with forms of their own (docs/interface/administration.md,
 * docs/interface/administration.md#log-settings).
 */
const hasShortErrors = /^\/admin\/log/
const hasSilentErrors = /^\/(?:log\/trace|statistics|cache\/statistics)/
const ofMachine = /\bat [^\n]*\(?file:\/\/|node_modules|\/dist\/src\/|\bnode:internal\b|[A-Z]:\\\\/

/** The first fault of the answers, if any. No answer may contain one of `privateTexts`. */
export function judge(shot: Shot, observed: Observed, privateTexts: readonly string[]): string | undefined {
  for (const text of privateTexts) if (observed.raw.includes(text)) return `the answer tells ${text}`
  if (ofMachine.test(observed.raw)) return 'the answer tells of the machine'
  if (observed.problem !== undefined) return observed.problem
  for (const answer of observed.answers) {
    const wrong = shot.expects === 'strict' ? strictly(shot, answer) : mildly(answer)
    if (wrong !== undefined) return wrong
  }
  return undefined
}

function mildly({ status, text }: Pick<ObservedAnswer, 'status' | 'text'>): string | undefined {
  if (statuses.has(status) || ofLibraries.has(status)) return undefined
  if (reasoned.has(status) || isDocumented500({ status, text })) return wrongError(text)
  return `status ${status}`
}

/**
 * The two kinds of 500 that are documented: an update operator that does not fit the stored value
 * (docs/interface/updates.md#operators-that-do-not-fit), and a change whose outcome is unknown, because another worker
 * did not answer on a busy machine (docs/operations/workers.md).
 */
const documented500 = /^{"error":"InternalServerError","description":"(?:Database Error &#40;\$|the outcome is unknown)/

const isDocumented500 = ({ status, text }: Pick<ObservedAnswer, 'status' | 'text'>): boolean =>
  status === 500 && documented500.test(text)

function strictly(shot: Shot, answer: ObservedAnswer): string | undefined {
  const { status, headers, text } = answer
  if (isOfConsole(answer)) return undefined
  if (!statuses.has(status) && !reasoned.has(status) && !isDocumented500(answer)) return `status ${status}`
  const correlator = headers.get('ctx-correlator') ?? headers.get('fiware-correlator')
  if (status === 431) return undefined
  if (correlator === undefined && !text.includes('ambiguous')) return 'no correlator'
  if (shot.correlator !== undefined && status !== 400 && correlator !== shot.correlator) return 'another correlator'
  if (shot.isHead) return status >= 400 ? undefined : `status ${status} to HEAD`
  if (status === 204) return text === '' ? undefined : '204 with a body'
  if (status < 400) return wrongBody(answer)
  if (status === 405 && !headers.has('allow')) return '405 without Allow'
  if (text === '' && hasSilentErrors.test(shot.path)) return undefined
  if (headers.get('content-type') !== 'application/json') return `an error of type ${headers.get('content-type')}`
  return wrongError(text, hasShortErrors.test(shot.path))
}

/** A file for browsers, or the redirect to the page of the console (docs/operations/console.md). */
const isOfConsole = ({ status, headers }: ObservedAnswer): boolean =>
  (status === 308 && headers.get('location') === 'console/') || headers.has('content-security-policy')

function wrongBody({ headers, text }: ObservedAnswer): string | undefined {
  const type = headers.get('content-type')
  if (text === '') return type === undefined ? undefined : 'a type and no body'
  if (type?.startsWith('text/plain')) return undefined
  if (type !== 'application/json') return `a body of type ${type}`
  return parsed(text) === undefined ? 'a body that is no JSON' : undefined
}

function wrongError(text: string, isShort = false): string | undefined {
  const body = parsed(text)
  if (typeof body !== 'object' || body === null) return `an error that is no JSON: ${text.slice(0, 80)}`
  const names = Object.keys(body).join()
  if (names !== 'error,description' && !(isShort && names === 'error')) return `an error with members ${names}`
  for (const value of Object.values(body)) {
    if (typeof value !== 'string' || value === '') return 'an error whose members are no text'
    // The answer of /admin/log about a size has such a character by rule.
    if (!isShort && /[<>"'=()]/.test(value))
      return `an error with a character that must be escaped: ${value.slice(0, 80)}`
  }
  return undefined
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

// Reads the proof that a request shows: its headers, and the certificate of its connection
// (docs/interface/access.md#showing-a-proof).
//
//   Authorization: Bearer <key or token>     X-Auth-Token: <key or token>     X-Api-Key: <key>
//
// Several headers may have the same text. Headers with different texts, and a header that occurs twice, are a conflict.
// A header without a proof in it is malformed, not absent: its request must not count as `anonymous`.
//
// Not here: whether a proof is right (keys.ts, tokens.ts), and whether the file has the certificate (authenticator.ts).

import { keyPrefix } from './keys.js'
import { proofLengthMax } from './limits.js'

/** The headers of a request. Names are in lower case. */
export interface ProofHeaders {
  /** The value of the first header of this name; '' when it is absent or empty. */
  header(name: string): string
  /** How often it occurs. */
  headerTimes(name: string): number
}

/** The certificate that the client has shown, and that TLS has verified. */
export interface ShownCertificate {
  /** As OpenSSL prints it in the form of RFC 2253. */
  readonly subject: string
  /** `URI:...` and `DNS:...`, in the order of the certificate. */
  readonly otherNames: readonly string[]
  /** The instant from which on it is not accepted. */
  readonly endsMs: number
}

export type ShownProof =
  | { readonly kind: 'nothing' }
  /** `certificate`: it was shown, too. */
  | { readonly kind: 'key'; readonly text: string; readonly certificate: ShownCertificate | undefined }
  | { readonly kind: 'token'; readonly text: string; readonly certificate: ShownCertificate | undefined }
  | { readonly kind: 'certificate'; readonly certificate: ShownCertificate }
  /** Two different proofs. */
  | { readonly kind: 'conflict' }
  | { readonly kind: 'malformed' }

const nothing: ShownProof = { kind: 'nothing' }
const conflict: ShownProof = { kind: 'conflict' }
const malformed: ShownProof = { kind: 'malformed' }

// [hot] Once per request.
/** What a request shows. `certificate` undefined: the connection has none. */
export function shownProof(headers: ProofHeaders, certificate?: ShownCertificate): ShownProof {
  const inAuthorization = headers.headerTimes('authorization')
  const inAuthToken = headers.headerTimes('x-auth-token')
  const inApiKey = headers.headerTimes('x-api-key')
  if (inAuthorization + inAuthToken + inApiKey === 0)
    return certificate ? { kind: 'certificate', certificate } : nothing
  if (inAuthorization > 1 || inAuthToken > 1 || inApiKey > 1) return conflict

  const bearer = inAuthorization > 0 ? bearerIn(headers.header('authorization')) : undefined
  const authToken = inAuthToken > 0 ? headers.header('x-auth-token') : undefined
  const apiKey = inApiKey > 0 ? headers.header('x-api-key') : undefined
  const text = bearer ?? authToken ?? apiKey ?? ''
  if (isNoProof(bearer) || isNoProof(authToken) || isNoProof(apiKey)) return malformed
  if ((authToken ?? text) !== text || (apiKey ?? text) !== text) return conflict
  return proofOf(text, inApiKey > 0, certificate)
}

/** `text` undefined: the header is not there. */
const isNoProof = (text: string | undefined): boolean =>
  text !== undefined && (text === '' || text.length > proofLengthMax)

/** A key or token that was shown by other means than a header, as in a message over a WebSocket. */
export function proofInText(text: string, certificate?: ShownCertificate): ShownProof {
  return text === '' || text.length > proofLengthMax ? malformed : proofOf(text, false, certificate)
}

function proofOf(text: string, isKey: boolean, certificate: ShownCertificate | undefined): ShownProof {
  if (text.startsWith(keyPrefix)) return { kind: 'key', text, certificate }
  return isKey ? malformed : { kind: 'token', text, certificate }
}

const scheme = 'Bearer '

// [hot] Once per request with the header; most clients write the scheme like that.
/** The text behind the scheme, whose case has no meaning; '' for another scheme. */
function bearerIn(value: string): string {
  if (value.length > proofLengthMax + 16) return ''
  const isBearer = value.startsWith(scheme) || value.slice(0, scheme.length).toLowerCase() === scheme.toLowerCase()
  return isBearer ? value.slice(scheme.length).trim() : ''
}

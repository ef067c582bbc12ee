// The content of a token before its signature has been verified (RFC 7519).
//
// It serves to choose the issuer and the key, and to refuse a token that no signature could make valid. It must serve
// nothing else: the claims that count are those that jose returns.

import { isObject, type Json, type JsonObject } from '../domain/json.js'

export interface UnverifiedToken {
  readonly algorithm: string
  readonly kid: string | undefined
  readonly issuer: string | undefined
  /** Seconds since 1970; undefined: it is not there, or is no number. */
  readonly expires: number | undefined
}

/** Three parts. The last one must not be empty: that is a token without a signature. */
const tokenForm = /^([\w-]+)\.([\w-]+)\.[\w-]+$/

/** undefined: the text is no token. */
export function readUnverified(text: string): UnverifiedToken | undefined {
  const parts = tokenForm.exec(text)
  const header = parts && jsonIn(parts[1]!)
  const claims = header && jsonIn(parts[2]!)
  if (!header || !claims) return undefined
  const { alg, kid } = header
  if (typeof alg !== 'string' || !(kid === undefined || typeof kid === 'string')) return undefined
  const { iss, exp } = claims
  return {
    algorithm: alg,
    kid,
    issuer: typeof iss === 'string' ? iss : undefined,
    expires: typeof exp === 'number' ? exp : undefined,
  }
}

function jsonIn(part: string): JsonObject | undefined {
  try {
    const json = JSON.parse(Buffer.from(part, 'base64url').toString()) as Json
    return isObject(json) ? json : undefined
  } catch {
    return undefined
  }
}

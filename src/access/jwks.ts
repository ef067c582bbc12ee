// The public keys of an issuer: a JSON Web Key Set (RFC 7517), read from the answer of the issuer or from a file.
//
// Each key has an id, which is its own text. Keys that are in the next set as well stay the same objects, so a token
// that one of them has verified may stay remembered, and no key is imported twice.
//
// Whether a key may be used for an algorithm is decided by jose: type, curve, `use`, `key_ops`, `alg`. A set with a
// private or symmetric key is refused: somebody has published a secret.

import { createHash } from 'node:crypto'
import type { JSONWebKeySet, JWK, JWTVerifyGetKey } from 'jose'
import { isArray, isObject, type Json, type JsonObject } from '../domain/json.js'
import { jwksBytesMax, jwksKeysMax, keysOfTokenMax } from './limits.js'

/** One key. */
export interface TokenKey {
  /** Equal for equal keys. */
  readonly id: string
  readonly kid: string | undefined
  /** Whether it is a key for this algorithm. */
  fits(algorithm: string): boolean
  /** For `jwtVerify`. */
  readonly resolve: JWTVerifyGetKey
}

export class KeySet {
  /** `json`: as it was read. */
  constructor(
    readonly keys: readonly TokenKey[],
    readonly json: JsonObject,
  ) {}

  has(id: string): boolean {
    return this.keys.some(key => key.id === id)
  }

  /** The keys that may have signed a token. A token that does not name its key may have several. */
  keysFor(algorithm: string, kid: string | undefined): readonly TokenKey[] {
    const named = kid === undefined ? this.keys : this.keys.filter(key => key.kid === kid)
    return named.filter(key => key.fits(algorithm)).slice(0, keysOfTokenMax)
  }

  hasKid(kid: string): boolean {
    return this.keys.some(key => key.kid === kid)
  }

  isSame({ keys }: KeySet): boolean {
    return keys.length === this.keys.length && keys.every(({ id }) => this.has(id))
  }
}

/** The keys in a text. Throws an error with a sentence. `before`: a set whose keys are used again. */
export function readKeySet(text: string, before?: KeySet): KeySet {
  if (text.length > jwksBytesMax) throw new Error(`the keys have more than ${jwksBytesMax} bytes`)
  let json: Json
  try {
    json = JSON.parse(text) as Json
  } catch {
    // The message of JSON.parse may quote the text.
    throw new Error('the keys are not JSON')
  }
  if (!isObject(json) || !isArray(json.keys)) throw new Error('there is no member "keys" with a list')
  if (json.keys.length === 0) throw new Error('the list of keys is empty')
  if (json.keys.length > jwksKeysMax) throw new Error(`there are ${json.keys.length} keys, at most ${jwksKeysMax}`)
  const known = new Map(before?.keys.map(key => [key.id, key]))
  const keys = new Map<string, TokenKey>()
  for (const [at, jwk] of json.keys.entries()) {
    if (!isObject(jwk) || typeof jwk.kty !== 'string') throw new Error(`keys[${at}] is no key`)
    if (jwk.kty === 'oct' || privateMembers.some(name => Object.hasOwn(jwk, name)))
      throw new Error(`keys[${at}] is not public: it has been published and must not be used any more`)
    const id = idOf(jwk)
    keys.set(id, known.get(id) ?? tokenKey(id, jwk))
  }
  return new KeySet([...keys.values()], json)
}

const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv']

/** Members in the order of their names: an issuer may write them in another order the next time. */
function idOf(jwk: JsonObject): string {
  const members = Object.keys(jwk)
    .sort()
    .map(name => [name, jwk[name]])
  return createHash('sha256').update(JSON.stringify(members)).digest('base64url')
}

function tokenKey(id: string, jwk: JsonObject): TokenKey {
  const { kty, crv, kid } = jwk
  const set = { keys: [jwk as unknown as JWK] } satisfies JSONWebKeySet
  return {
    id,
    kid: typeof kid === 'string' ? kid : undefined,
    fits: algorithm => kty === typeOf(algorithm) && (kty === 'RSA' || crv === curves[algorithm]),
    resolve: keyOf(set),
  }
}

/** Imports the key when the first token needs it. */
function keyOf(set: JSONWebKeySet): JWTVerifyGetKey {
  let resolve: JWTVerifyGetKey | undefined
  return async (header, token) => {
    resolve ??= (await import('jose')).createLocalJWKSet(set)
    return resolve(header, token)
  }
}

const curves: Readonly<Record<string, string>> = {
  ES256: 'P-256',
  ES384: 'P-384',
  ES512: 'P-521',
  EdDSA: 'Ed25519',
}

const typeOf = (algorithm: string): string =>
  algorithm === 'EdDSA' ? 'OKP' : algorithm.startsWith('ES') ? 'EC' : 'RSA'

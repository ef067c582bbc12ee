// An issuer of tokens on this machine: it has keys, publishes them over HTTP, and signs whatever a test wants.

import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import type { Test } from 'tap'
import { fetchOver } from '../../src/access/fetch-keys.js'
import type { FetchKeys } from '../../src/access/issuer-keys.js'
import { openSockets } from '../../src/deliver/sockets/sockets.js'
import type { JsonObject } from '../../src/domain/json.js'

export interface SigningKey {
  readonly kid: string | undefined
  readonly algorithm: string
  readonly privateKey: CryptoKey
  /** Public. */
  readonly jwk: JWK
}

type CryptoKey = Awaited<ReturnType<typeof generateKeyPair>>['privateKey']

/** A new pair of keys. `kid` undefined: it has no name. */
export async function signingKey(algorithm: string, kid?: string): Promise<SigningKey> {
  const { publicKey, privateKey } = await generateKeyPair(algorithm, { extractable: true })
  const jwk = { ...(await exportJWK(publicKey)), use: 'sig', alg: algorithm, ...(kid !== undefined && { kid }) }
  return { kid, algorithm, privateKey, jwk }
}

/** A token with these claims, signed with the key. `header`: further members, or others than usual. */
export const signed = (
  { algorithm, kid, privateKey }: SigningKey,
  claims: JsonObject,
  header: JsonObject = {},
): Promise<string> =>
  new SignJWT({ ...claims })
    .setProtectedHeader({ alg: algorithm, ...(kid !== undefined && { kid }), ...header })
    .sign(privateKey)

/** A part of a token. */
export const encoded = (json: unknown): string => Buffer.from(JSON.stringify(json)).toString('base64url')

export class IdentityProvider {
  /** The keys that it publishes. */
  keys: readonly SigningKey[] = []
  /** The number of requests for them. */
  asked = 0
  /** Answers in another way; undefined: with the keys. */
  answer: ((response: ServerResponse) => void) | undefined
  private readonly server: Server
  private address = ''

  private constructor(readonly audience: string) {
    this.server = createServer((_request, response) => {
      this.asked++
      if (this.answer) return this.answer(response)
      response.setHeader('Content-Type', 'application/json').end(JSON.stringify(this.published))
    })
  }

  /** It listens until the test ends. */
  static async start(t: Test, keys: readonly SigningKey[], audience = 'orrery'): Promise<IdentityProvider> {
    const provider = new IdentityProvider(audience)
    provider.keys = keys
    await provider.listen(0)
    t.teardown(() => provider.close())
    return provider
  }

  get issuer(): string {
    return 'https://id.example.org/realms/city'
  }

  get url(): string {
    return `${this.address}/certs`
  }

  get published(): { readonly keys: readonly JWK[] } {
    return { keys: this.keys.map(({ jwk }) => jwk) }
  }

  /** The claims of a token of this issuer that is right at this time. */
  claims(nowMs: number, name = 'ada', others: JsonObject = {}): JsonObject {
    const nowS = Math.floor(nowMs / 1000)
    return { iss: this.issuer, aud: this.audience, sub: name, iat: nowS, exp: nowS + 3_600, ...others }
  }

  /** The members of its entry in an access file. */
  entry(others: JsonObject = {}): JsonObject {
    return {
      issuer: this.issuer,
      audience: this.audience,
      jwks: this.url,
      algorithms: [...new Set(this.keys.map(({ algorithm }) => algorithm))],
      ...others,
    }
  }

  close(): Promise<void> {
    this.server.closeAllConnections()
    return new Promise(resolve => this.server.close(() => resolve()))
  }

  private async listen(port: number): Promise<void> {
    await new Promise<void>(resolve => this.server.listen(port, '127.0.0.1', resolve))
    this.address = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }
}

/** Fetches as a broker without rules about destinations does. */
export const plainFetch = (): FetchKeys => fetchOver(openSockets({ insecure: false, caFile: undefined }))

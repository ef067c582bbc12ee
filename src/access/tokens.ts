// Tokens (JWT): verified by jose, and remembered (docs/interface/access.md#tokens).
//
//   text -> form, issuer, algorithm, end -> key of the issuer -> signature and claims -> PrincipalSource
//           at once                         may be fetched       150 to 350 us
//
// A remembered token costs one SHA-256 of its text, unless it was shown lately (recent-proofs.ts). It is forgotten when
// it ends, and when the key that has verified it is not among those of its issuer any more. When its issuer has changed
// in the access file, its claims are looked at again: 10,000 signatures at once would take seconds. Keys and files may
// change while a token is being verified: then it is verified again with what counts now.
//
// The number of tokens at work is limited, and requests with the same token share one verification. Tokens that wait
// for keys are counted apart, so an issuer that answers late does not keep out the tokens of others.
//
// Not here: where keys come from (issuer-keys.ts), the roles of a principal (domain/access/principal.ts).

import { hash } from 'node:crypto'
import { resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { errors } from 'jose'
import type { AccessFile } from '../domain/access/access-file.js'
import { type PrincipalSource, tokenShown } from '../domain/access/principal.js'
import type { TokenIssuer } from '../domain/access/proofs-parser.js'
import { isArray, type JsonObject } from '../domain/json.js'
import { ownText } from '../domain/recent.js'
import type { Clock, Logger } from '../ports.js'
import { FetchedKeys, type FetchKeys, FileKeys, type KeyRing } from './issuer-keys.js'
import type { TokenKey } from './jwks.js'
import { JwksStore, type KeysOwner } from './jwks-store.js'
import { rememberedTokensMax, tokenLeewayS, tokensWaitingMax, verificationsMax } from './limits.js'
import { RecentProofs } from './recent-proofs.js'
import { type Remembered, RememberedTokens } from './remembered-tokens.js'
import { readUnverified, type UnverifiedToken } from './token-form.js'

/** Why a token is not accepted. `busy` and `keysMissing`: it may be right. */
export type TokenFault = 'malformed' | 'expired' | 'unknown' | 'busy' | 'keysMissing'

/** A verified token. It is another object when it shows something else, because the file has changed. */
export interface VerifiedToken extends Remembered {
  readonly source: PrincipalSource
}

interface KeptToken extends VerifiedToken {
  readonly keyId: string
  /** The issuer, when the claims were looked at. */
  readonly state: IssuerState
  readonly algorithm: string
  /** The claims, as they are in the token: a third of the memory of an object. */
  readonly payload: string
}

export type TokenOutcome =
  | { readonly ok: true; readonly token: VerifiedToken }
  /** `reason`: for operators. No client may see it. */
  | { readonly ok: false; readonly fault: TokenFault; readonly reason: string }

export interface TokensGiven {
  readonly clock: Pick<Clock, 'wallMs' | 'monoMs' | 'after'>
  readonly logger: Pick<Logger, 'info' | 'warn'>
  readonly fetch: FetchKeys
  /** Where keys are kept; undefined: they are not. */
  readonly keysDirectory: string | undefined
}

export interface TokenNumbers {
  readonly remembered: number
  /** At work now, without those that wait for keys. */
  readonly verifying: number
  readonly waiting: number
  readonly verified: number
  readonly refused: number
  readonly fetches: number
  readonly fetchFailures: number
}

interface IssuerState {
  readonly settings: TokenIssuer
  readonly keys: KeyRing
}

type OnOutcome = (outcome: TokenOutcome) => void

type KeptOutcome = Extract<TokenOutcome, { ok: false }> | { readonly ok: true; readonly token: KeptToken }

/** Keys or files may change so often while one token is being verified. */
const triesMax = 5
/** Tokens that have ended are forgotten in these intervals. */
const sweepMs = 60_000

export class TokenVerifier {
  private readonly remembered = new RememberedTokens<KeptToken>(rememberedTokensMax)
  /** Some of those, under the present file and keys. */
  private readonly recent = new RecentProofs<KeptToken>()
  private readonly store: JwksStore
  private issuers: ReadonlyMap<string, IssuerState> = new Map()
  /** The requests that wait for a token, by its hash. */
  private readonly asking = new Map<string, OnOutcome[]>()
  private verifying = 0
  private waiting = 0
  private verified = 0
  private refused = 0
  private fetches = 0
  private fetchFailures = 0
  private cancel = (): void => {}
  private isStopped = false

  constructor(private readonly given: TokensGiven) {
    this.store = new JwksStore(given.keysDirectory)
    this.sweepLater()
  }

  /**
   * Accepts the tokens of this file from now on. `folder`: where its paths begin. Issuers that are as before keep their
   * keys.
   */
  use({ issuers }: Pick<AccessFile, 'issuers'>, folder: string): void {
    const before = this.issuers
    const now = new Map<string, IssuerState>()
    for (const [name, settings] of issuers) {
      const known = before.get(name)
      if (known && isDeepStrictEqual(known.settings, settings)) now.set(name, known)
      else if (known && isDeepStrictEqual(known.settings.keys, settings.keys))
        now.set(name, { settings, keys: known.keys })
      else now.set(name, { settings, keys: this.ringOf(settings, folder) })
    }
    this.issuers = now
    this.recent.clear()
    const rings = new Set([...now.values()].map(({ keys }) => keys))
    for (const { keys } of before.values()) if (!rings.has(keys)) keys.stop()
    this.remembered.keepOnly(({ state }) => rings.has(state.keys))
    this.tidyStore()
  }

  /** Resolves when the keys on disk were read. Keys of issuers may still be on their way. */
  async ready(): Promise<void> {
    await Promise.all([...this.issuers.values()].map(({ keys }) => keys.ready))
  }

  // [hot] Once per request with a token. Most of its time goes into SHA-256 (authenticator.ts has numbers).
  /**
   * Returns the outcome, if the token is remembered or refused at once. Otherwise calls `onOutcome` later, once, and
   * returns undefined.
   */
  verify(text: string, onOutcome: OnOutcome): TokenOutcome | undefined {
    const nowMs = this.given.clock.wallMs()
    const recent = this.recent.get(text)
    if (recent && recent.endsMs > nowMs) {
      recent.isUsed = true
      return { ok: true, token: recent }
    }
    const digest = hash('sha256', text, 'base64url')
    const kept = this.remembered.get(digest, nowMs)
    const token = kept && this.asOfNow(kept, digest)
    if (token) {
      this.recent.set(text, token)
      return { ok: true, token }
    }
    const asking = this.asking.get(digest)
    if (asking) {
      asking.push(onOutcome)
      return undefined
    }
    const unverified = readUnverified(text)
    const refusal = unverified ? this.refuseAtOnce(unverified) : refuse('malformed', 'it has not the form of a token')
    if (!unverified || refusal) {
      this.refused++
      return refusal
    }
    this.asking.set(digest, [onOutcome])
    this.verifying++
    this.verifyNow(text, digest, unverified, triesMax)
    return undefined
  }

  numbers(): TokenNumbers {
    const { remembered, verifying, waiting, verified, refused, fetches, fetchFailures } = this
    return { remembered: remembered.size, verifying, waiting, verified, refused, fetches, fetchFailures }
  }

  /** Ends fetches and timers. Tokens are refused from now on, unless they are remembered. */
  stop(): void {
    this.isStopped = true
    this.cancel()
    for (const { keys } of this.issuers.values()) keys.stop()
  }

  /** A remembered token under the present file; undefined: it has to be verified again. */
  private asOfNow(token: KeptToken, digest: string): KeptToken | undefined {
    const state = this.issuers.get(token.state.settings.issuer)
    if (state === token.state) return token
    const source = state?.settings.algorithms.some(one => one === token.algorithm)
      ? sourceOf(state.settings, JSON.parse(Buffer.from(token.payload, 'base64url').toString()) as JsonObject)
      : undefined
    if (!state || !source) return undefined
    const again: KeptToken = { ...token, source, state }
    this.remembered.set(digest, again)
    return again
  }

  private onOutcome(digest: string, outcome: KeptOutcome): void {
    this.verifying--
    if (outcome.ok) {
      this.verified++
      this.remembered.set(digest, outcome.token)
    } else this.refused++
    const asking = this.asking.get(digest) ?? []
    this.asking.delete(digest)
    for (const onOutcome of asking) onOutcome(outcome)
  }

  /** undefined: the signature decides. */
  private refuseAtOnce({ algorithm, issuer, expires }: UnverifiedToken): TokenOutcome | undefined {
    const state = issuer === undefined ? undefined : this.issuers.get(issuer)
    if (!state) return refuse('unknown', 'the file has no such issuer')
    if (!(state.settings.algorithms as readonly string[]).includes(algorithm))
      return refuse('unknown', 'the issuer does not sign with this algorithm')
    if (expires === undefined) return refuse('unknown', 'it has no end (exp)')
    if (expires * 1000 + tokenLeewayS * 1000 <= this.given.clock.wallMs()) return refuse('expired', 'exp has passed')
    if (this.verifying >= verificationsMax) return refuse('busy', 'too many tokens are being verified')
    return undefined
  }

  private verifyNow(text: string, digest: string, unverified: UnverifiedToken, tries: number): void {
    const state = this.issuers.get(unverified.issuer!)
    if (!state) return this.onOutcome(digest, refuse('unknown', 'the file has no such issuer'))
    this.outcomeOf(text, unverified, state).then(outcome => {
      // Keys or the file may have changed meanwhile, even in the same tick.
      const isOfNow =
        this.issuers.get(unverified.issuer!) === state &&
        (!outcome.ok || state.keys.current?.has(outcome.token.keyId) === true)
      if (isOfNow) this.onOutcome(digest, outcome)
      else if (tries > 1) this.verifyNow(text, digest, unverified, tries - 1)
      else this.onOutcome(digest, refuse('busy', 'keys or the file change all the time'))
    })
  }

  /** Never fails. */
  private async outcomeOf(text: string, unverified: UnverifiedToken, state: IssuerState): Promise<KeptOutcome> {
    const { algorithm, kid } = unverified
    const { keys } = state
    let outcome: KeptOutcome = refuse('unknown', '')
    await keys.ready
    // The keys may be fetched twice: a fetch that was under way may have begun before the key was there.
    for (let fetches = 0; ; fetches++) {
      const set = keys.current
      const candidates = set?.keysFor(algorithm, kid) ?? []
      for (const key of candidates) {
        outcome = await this.outcomeOfKey(text, key, state)
        if (outcome.ok) return outcome
        if (outcome.fault !== 'unknown' || outcome.reason !== signatureFails) return outcome
      }
      if (candidates.length === 0)
        outcome = set
          ? refuse('unknown', 'the issuer has no such key')
          : refuse('keysMissing', 'the keys of the issuer could not be had so far')
      // A key with its name is there, so newer keys would not help.
      if (set && kid !== undefined && (set.hasKid(kid) || keys.isWithdrawn(kid))) return outcome
      const asked = fetches < 2 ? keys.again() : undefined
      if (!asked) return outcome
      if (!(await this.waitFor(asked))) return refuse('busy', 'too many tokens wait for keys')
    }
  }

  /** False: too many tokens are waiting. */
  private async waitFor(asked: Promise<void>): Promise<boolean> {
    if (this.waiting >= tokensWaitingMax) return false
    this.waiting++
    this.verifying--
    await asked
    this.verifying++
    this.waiting--
    return true
  }

  private async outcomeOfKey(text: string, key: TokenKey, state: IssuerState): Promise<KeptOutcome> {
    const { settings } = state
    const { issuer, audience, algorithms } = settings
    try {
      // It takes 70 ms to load, which a start without issuers need not wait for.
      const { jwtVerify } = await import('jose')
      const { payload, protectedHeader } = await jwtVerify(text, key.resolve, {
        algorithms: [...algorithms],
        issuer,
        audience,
        clockTolerance: tokenLeewayS,
        currentDate: new Date(this.given.clock.wallMs()),
        requiredClaims: ['exp'],
      })
      const source = tokenShown(settings, payload as JsonObject)
      if (!source) return refuse('unknown', `the claim ${settings.subject} has no name`)
      const kept: KeptToken = {
        source,
        endsMs: (payload.exp! + tokenLeewayS) * 1000,
        isUsed: false,
        keyId: key.id,
        state,
        algorithm: protectedHeader.alg,
        payload: ownText(text.split('.')[1]!),
      }
      return { ok: true, token: kept }
    } catch (error) {
      return refusalOf(error as Error)
    }
  }

  private ringOf({ issuer, keys }: TokenIssuer, folder: string): KeyRing {
    const { clock, logger, fetch } = this.given
    const given = {
      clock,
      logger,
      onChange: () => this.onKeysChanged(issuer, ring),
      onFetched: (isDone: boolean) => {
        this.fetches++
        if (!isDone) this.fetchFailures++
      },
    }
    const ring: KeyRing =
      keys.kind === 'file'
        ? new FileKeys(issuer, resolve(folder, keys.path), given)
        : new FetchedKeys({ issuer, url: keys.url }, this.store, fetch, given)
    return ring
  }

  private onKeysChanged(issuer: string, { current }: KeyRing): void {
    this.recent.clear()
    this.remembered.keepOnly(({ state, keyId }) => state.settings.issuer !== issuer || current?.has(keyId) === true)
  }

  private tidyStore(): void {
    const owners: KeysOwner[] = []
    for (const [issuer, { settings }] of this.issuers)
      if (settings.keys.kind === 'url') owners.push({ issuer, url: settings.keys.url })
    this.store
      .keepOnly(owners, this.given.clock.wallMs())
      .catch((error: Error) => this.given.logger.warn(`access: old keys of issuers stay on disk: ${error.message}`))
  }

  private sweepLater(): void {
    this.cancel = this.given.clock.after(sweepMs, () => {
      const nowMs = this.given.clock.wallMs()
      this.remembered.keepOnly(({ endsMs }) => endsMs > nowMs)
      if (!this.isStopped) this.sweepLater()
    })
  }
}

/** What the claims of a verified token show; undefined: it is for another audience, or has no name. */
function sourceOf(settings: TokenIssuer, claims: JsonObject): PrincipalSource | undefined {
  const { aud = [] } = claims
  const isMeant = isArray(aud) ? aud.includes(settings.audience) : aud === settings.audience
  return isMeant ? tokenShown(settings, claims) : undefined
}

const refuse = (fault: TokenFault, reason: string): Extract<TokenOutcome, { ok: false }> => ({
  ok: false,
  fault,
  reason,
})

const signatureFails = 'the signature does not fit'

/** What jose says, in our words. Its messages may quote the token. */
function refusalOf(error: Error): Extract<TokenOutcome, { ok: false }> {
  switch ((error as Partial<errors.JOSEError>).code) {
    case 'ERR_JWT_EXPIRED':
      return refuse('expired', 'exp has passed')
    case 'ERR_JWT_CLAIM_VALIDATION_FAILED': {
      const { claim, reason } = error as errors.JWTClaimValidationFailed
      return refuse('unknown', `the claim ${claim} is ${reason === 'missing' ? 'missing' : 'another one'}`)
    }
    case 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED':
      return refuse('unknown', signatureFails)
    case 'ERR_JWS_INVALID':
    case 'ERR_JWT_INVALID':
      return refuse('malformed', 'it has not the form of a token')
    default:
      return refuse('unknown', 'the key cannot be used for it')
  }
}

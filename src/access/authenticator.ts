// Turns the proof of a request into a principal, or into a refusal (docs/interface/access.md#who-asks).
//
//   nothing     -> anonymous, if the file has it                     |
//   key         -> recent ones, or one SHA-256 and the file's map    |  in the same tick
//   certificate -> the file's map                                    |
//   token       -> recent ones, or one SHA-256 and those remembered  |
//                  otherwise its signature, perhaps a fetch of keys  |  later
//
// Principals are remembered for one file, so a request with a key costs one hash at most. Processor time with the
// reading of headers, in a loop over 1,000 keys and 1,000 tokens of RS256 with 0.9 KB, on a machine busy with other
// work: nothing 60 ns, certificate of one of 1,000 connections 270 ns, key with its hash 1,300 ns, remembered token with
// its hash 2,100 ns.
//
// Not here: what a principal may do (domain/access/grant.ts), statuses and headers (http).

import type { AccessFile } from '../domain/access/access-file.js'
import {
  certificateShown,
  isKeyExpired,
  keyShown,
  nothingShown,
  type Principal,
  type PrincipalSource,
  principalOf,
} from '../domain/access/principal.js'
import type { AccessKey } from '../domain/access/proofs-parser.js'
import { type Refusal, refusals } from '../domain/refusal.js'
import type { Clock, Logger } from '../ports.js'
import type { AccessSource } from './access-source.js'
import type { FetchKeys } from './issuer-keys.js'
import { isKeyForm, keyIn } from './keys.js'
import type { ShownCertificate, ShownProof } from './proof.js'
import { RecentProofs } from './recent-proofs.js'
import { type TokenFault, type TokenNumbers, type TokenOutcome, TokenVerifier, type VerifiedToken } from './tokens.js'

/** Why a request has no principal. `missing`: nothing is shown. `conflict`: two proofs are. */
export type ProofFault = TokenFault | 'missing' | 'conflict'

/** A principal was shown. */
export interface Identified {
  readonly ok: true
  readonly principal: Principal
  /** The instant from which on the proof is not accepted any more; undefined: it has no end. */
  readonly endsMs: number | undefined
}

/** No principal was shown. */
export interface Unidentified {
  readonly ok: false
  readonly fault: ProofFault
  readonly refusal: Refusal
  /** The value of the header `WWW-Authenticate`; undefined: the answer has none. */
  readonly challenge: string | undefined
}

export type Identification = Identified | Unidentified

export interface AuthenticatorGiven {
  readonly source: AccessSource
  readonly clock: Pick<Clock, 'wallMs' | 'monoMs' | 'after'>
  readonly logger: Pick<Logger, 'info' | 'warn' | 'debug'>
  readonly fetch: FetchKeys
  /** Where the keys of issuers are kept over a restart; undefined: they are not. */
  readonly keysDirectory: string | undefined
}

export interface AuthenticatorNumbers {
  readonly tokens: TokenNumbers
  /** Requests without a principal, by the reason. */
  readonly denied: Readonly<Record<ProofFault, number>>
}

const invalidToken = 'Bearer error="invalid_token"'

const answers: Readonly<Record<ProofFault, Unidentified>> = {
  // RFC 9110 wants a challenge in each 401, and RFC 6750 no error where nothing was shown.
  missing: { ok: false, fault: 'missing', refusal: refusals.proofMissing, challenge: 'Bearer' },
  malformed: { ok: false, fault: 'malformed', refusal: refusals.proofMalformed, challenge: invalidToken },
  expired: { ok: false, fault: 'expired', refusal: refusals.proofExpired, challenge: invalidToken },
  unknown: { ok: false, fault: 'unknown', refusal: refusals.proofUnknown, challenge: invalidToken },
  conflict: { ok: false, fault: 'conflict', refusal: refusals.proofsDiffer, challenge: undefined },
  busy: { ok: false, fault: 'busy', refusal: refusals.verificationsTooMany, challenge: undefined },
  keysMissing: { ok: false, fault: 'keysMissing', refusal: refusals.issuerKeysMissing, challenge: undefined },
}

/** A key of the file, with what it shows until it expires. */
interface KnownKey {
  readonly key: AccessKey
  readonly identification: Identification
}

/** Principals under one file. */
class KnownPrincipals {
  readonly anonymous: Identification
  /** By the text of a key of the file. */
  readonly recentKeys = new RecentProofs<KnownKey>()
  private readonly ofKeys = new Map<AccessKey, Identification>()
  private readonly ofCertificates = new WeakMap<ShownCertificate, Identification>()
  /** By the subject in the file: connections of one certificate share a principal, and so its grants. */
  private readonly ofSubjects = new Map<string, Identification>()
  private readonly ofTokens = new WeakMap<VerifiedToken, Identification>()

  constructor(readonly file: AccessFile) {
    this.anonymous = file.anonymous ? this.identify(nothingShown, undefined) : answers.missing
  }

  /** `key`: an entry of the file. */
  ofKey(key: AccessKey): Identification {
    const known = this.ofKeys.get(key)
    if (known) return known
    const found = this.identify(keyShown(key), key.expiresMs)
    this.ofKeys.set(key, found)
    return found
  }

  /** `source`: what the certificate shows under the file. */
  ofCertificate(certificate: ShownCertificate, source: PrincipalSource): Identification {
    const known = this.ofCertificates.get(certificate)
    if (known) return known
    const ofSubject = this.ofSubjects.get(source.name) ?? this.identify(source, undefined)
    this.ofSubjects.set(source.name, ofSubject)
    const found = ofSubject.ok ? { ...ofSubject, endsMs: certificate.endsMs } : ofSubject
    this.ofCertificates.set(certificate, found)
    return found
  }

  ofToken(token: VerifiedToken): Identification {
    const known = this.ofTokens.get(token)
    if (known) return known
    const found = this.identify(token.source, token.endsMs)
    this.ofTokens.set(token, found)
    return found
  }

  private identify(source: PrincipalSource, endsMs: number | undefined): Identification {
    const principal = principalOf(this.file, source)
    return principal ? { ok: true, principal, endsMs } : answers.unknown
  }
}

export class Authenticator {
  private readonly tokens: TokenVerifier
  private readonly denied: Record<ProofFault, number> = {
    missing: 0,
    malformed: 0,
    expired: 0,
    unknown: 0,
    conflict: 0,
    busy: 0,
    keysMissing: 0,
  }
  private known: KnownPrincipals
  private readonly unlisten: () => void

  constructor(private readonly given: AuthenticatorGiven) {
    const { source, clock, logger, fetch, keysDirectory } = given
    this.tokens = new TokenVerifier({ clock, logger, fetch, keysDirectory })
    this.known = new KnownPrincipals(source.file)
    this.tokens.use(source.file, source.folder)
    this.unlisten = source.on(file => {
      this.known = new KnownPrincipals(file)
      this.tokens.use(file, source.folder)
    })
  }

  /** The file that the principals of this moment are under. */
  get file(): AccessFile {
    return this.known.file
  }

  /** Resolves when the keys on disk were read, a matter of milliseconds. Never fails. */
  ready(): Promise<void> {
    return this.tokens.ready()
  }

  // [hot] Once per request.
  /**
   * Finds out who asks. undefined: a token has to be verified first, and `onLater` is called then. The principal is one
   * of `file` at the time of the answer.
   */
  authenticate(shown: ShownProof, onLater: (identification: Identification) => void): Identification | undefined {
    const now = this.identify(shown, onLater)
    return now && this.counted(now)
  }

  /** Whether a principal that was identified earlier may still act; undefined: not any more. */
  asOfNow({ principal: { source }, endsMs }: Identified): Principal | undefined {
    if (endsMs !== undefined && endsMs <= this.given.clock.wallMs()) return undefined
    return principalOf(this.known.file, source)
  }

  /** Counts a request that is refused because too much waits for verifications. */
  onBusy(): void {
    this.denied.busy++
  }

  numbers(): AuthenticatorNumbers {
    return { tokens: this.tokens.numbers(), denied: { ...this.denied } }
  }

  stop(): void {
    this.unlisten()
    this.tokens.stop()
  }

  /** undefined: `onLater` is called later. */
  private identify(shown: ShownProof, onLater: (identification: Identification) => void): Identification | undefined {
    switch (shown.kind) {
      case 'nothing':
        return this.known.anonymous
      case 'certificate': {
        const source = this.sourceOf(shown.certificate)
        return source ? this.identifyCertificate(shown.certificate, source) : answers.unknown
      }
      case 'key':
        // A certificate that the file does not have is a matter of the connection alone.
        return this.sourceOf(shown.certificate) ? answers.conflict : this.identifyKey(shown.text)
      case 'token':
        return this.sourceOf(shown.certificate) ? answers.conflict : this.identifyToken(shown.text, onLater)
      case 'conflict':
      case 'malformed':
        return answers[shown.kind]
    }
  }

  private sourceOf(certificate: ShownCertificate | undefined): PrincipalSource | undefined {
    return certificate && certificateShown(this.known.file, certificate.subject, certificate.otherNames)
  }

  private identifyCertificate(certificate: ShownCertificate, source: PrincipalSource): Identification {
    // Its connection may be older than its end.
    const isValid = this.given.clock.wallMs() < certificate.endsMs
    return isValid ? this.known.ofCertificate(certificate, source) : answers.expired
  }

  private identifyKey(text: string): Identification {
    const known = this.knownKey(text)
    if (!known) return isKeyForm(text) ? answers.unknown : answers.malformed
    return isKeyExpired(known.key, this.given.clock.wallMs()) ? answers.expired : known.identification
  }

  /** undefined: the file does not have the key. */
  private knownKey(text: string): KnownKey | undefined {
    const { file, recentKeys } = this.known
    const recent = recentKeys.get(text)
    if (recent) return recent
    const key = keyIn(file, text)
    if (!key) return undefined
    const known = { key, identification: this.known.ofKey(key) }
    recentKeys.set(text, known)
    return known
  }

  private identifyToken(text: string, onLater: (identification: Identification) => void): Identification | undefined {
    const outcome = this.tokens.verify(text, later => onLater(this.counted(this.identificationOf(later))))
    return outcome && this.identificationOf(outcome)
  }

  private identificationOf(outcome: TokenOutcome): Identification {
    if (outcome.ok) return this.known.ofToken(outcome.token)
    this.given.logger.debug(`access: a token is refused: ${outcome.reason}`)
    return answers[outcome.fault]
  }

  private counted(identification: Identification): Identification {
    if (!identification.ok) this.denied[identification.fault]++
    return identification
  }
}

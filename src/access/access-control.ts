// Access control for the HTTP front: finds the principal of a request, and the grants of that principal.
//
// A grant depends on the file, the principal, the action, the tenant and the paths alone, so it is remembered. It costs
// memory in proportion to the names in its rules and to the tenant and paths of the request. At the limit
// (`rememberedNamesMax`) all remembered grants are dropped at once.
//
// [hot] Once per request with access control, for proofs; grants only for requests unlike the one before
// (http/latest-permits.ts).
//
// Not here: proofs (authenticator.ts), how rules become a grant (domain/access/grant.ts).

import type { X509Certificate } from 'node:crypto'
import type { AccessFile } from '../domain/access/access-file.js'
import type { AccessAction } from '../domain/access/access-rule.js'
import {
  type BrokerAction,
  brokerGrantOf,
  type Grant,
  grantOf,
  grantWithin,
  isAdminOf,
} from '../domain/access/grant.js'
import {
  mayHandle,
  type OwnedDocument,
  type Principal,
  type PrincipalSource,
  principalOf,
  type ShownKind,
} from '../domain/access/principal.js'
import type { TenantLimits, TenantPace } from '../domain/access/quotas.js'
import { type Refusal, refusals } from '../domain/refusal.js'
import { tenantShown } from '../domain/scope.js'
import type { AccessSource, AccessSourceNumbers } from './access-source.js'
import type { Authenticator, AuthenticatorNumbers, Identification, Identified } from './authenticator.js'
import { shownCertificate } from './certificate.js'
import { rememberedNamesMax } from './limits.js'
import { type ProofHeaders, type ShownCertificate, shownProof } from './proof.js'

export interface AccessControlNumbers extends AuthenticatorNumbers {
  /** Requests that no rule allows. */
  readonly forbidden: number
  readonly source: AccessSourceNumbers
}

/** A principal with its rights, or the refusal of the proof that a request shows. */
export type RightsOrRefusal =
  | { readonly ok: true; readonly asker: PrincipalRights }
  | {
      readonly ok: false
      readonly refusal: Refusal
      readonly challenge: string | undefined
      readonly shown: ShownKind
    }

export class AccessControl {
  private readonly rights = new WeakMap<Identified, PrincipalRights>()
  private readonly grants = new RememberedGrants()
  /** What the certificates of open connections show. */
  private readonly certificates = new WeakMap<X509Certificate, ShownCertificate>()
  private forbidden = 0

  constructor(
    private readonly source: Pick<AccessSource, 'on' | 'numbers'>,
    private readonly authenticator: Authenticator,
    private readonly quotas: Pick<TenantLimits, 'of' | 'onRefused'>,
    private readonly requestRates: TenantPace,
  ) {}

  // [hot] Once per request.
  /**
   * Finds out who asks. undefined: a token has to be verified first, and `onLater` is called then. `certificate`: of
   * the connection, verified by TLS.
   */
  identify(
    headers: ProofHeaders,
    certificate: X509Certificate | undefined,
    onLater: (answer: RightsOrRefusal) => void,
  ): RightsOrRefusal | undefined {
    const shown = shownProof(headers, certificate && this.shownIn(certificate))
    const { kind } = shown
    const now = this.authenticator.authenticate(shown, later => onLater(this.answerTo(later, kind)))
    return now && this.answerTo(now, kind)
  }

  onForbidden(): void {
    this.forbidden++
  }

  onBusy(): void {
    this.authenticator.onBusy()
  }

  // [hot] Once per request.
  /** Takes one request from the rate of a tenant, or refuses it. */
  refusalByRate(tenant: string): Refusal | undefined {
    const waitMs = this.requestRates.take(tenant)
    if (waitMs === 0) return undefined
    this.quotas.onRefused(tenant, 'requestsPerSecond')
    const max = this.quotas.of(tenant).requestsPerSecond ?? 0
    return refusals.rateUsedUp(tenantShown(tenant), max, Math.max(1, Math.ceil(waitMs / 1_000)))
  }

  /** Calls the listener after each change of the file. Returns a function that ends it. */
  onChange(listener: () => void): () => void {
    return this.source.on(listener)
  }

  numbers(): AccessControlNumbers {
    return { ...this.authenticator.numbers(), forbidden: this.forbidden, source: this.source.numbers() }
  }

  private shownIn(certificate: X509Certificate): ShownCertificate {
    const known = this.certificates.get(certificate)
    if (known) return known
    const shown = shownCertificate(certificate)
    this.certificates.set(certificate, shown)
    return shown
  }

  private answerTo(identification: Identification, shown: ShownKind): RightsOrRefusal {
    if (!identification.ok) {
      const { refusal, challenge } = identification
      return { ok: false, refusal, challenge, shown }
    }
    const known = this.rights.get(identification)
    if (known) return { ok: true, asker: known }
    const asker = this.askerOf(identification)
    this.rights.set(identification, asker)
    return { ok: true, asker }
  }

  private askerOf(identified: Identified): PrincipalRights {
    const { file } = this.authenticator
    const { principal, endsMs } = identified
    const now = (): PrincipalRights | undefined => {
      const current = this.authenticator.asOfNow(identified)
      return (
        current && (file === this.authenticator.file ? asker : this.askerOf({ ok: true, principal: current, endsMs }))
      )
    }
    const asker = new PrincipalRights(file, principal, endsMs, this.grants, now)
    return asker
  }
}

/** What a principal may do under one file. */
export class PrincipalRights {
  constructor(
    private readonly file: AccessFile,
    private readonly principal: Principal,
    /** The instant from which on its proof is not accepted any more; undefined: it has no end. */
    readonly endsMs: number | undefined,
    private readonly grants: RememberedGrants,
    /** The same principal under the present file; undefined: it may not act any more. */
    readonly now: () => PrincipalRights | undefined,
  ) {}

  /** What its proof has shown. */
  get source(): PrincipalSource {
    return this.principal.source
  }

  grant(action: AccessAction, tenant: string, paths: readonly string[]): Grant {
    const known = this.grants.get(this.principal, action, tenant, paths)
    if (known) return known
    const grant = grantWithin(grantOf(this.file, this.principal, tenant, action), paths)
    this.grants.set(this.principal, action, tenant, paths, grant)
    return grant
  }

  /** Whether it sees and changes all subscriptions and registrations of a tenant. */
  isAdminOf(tenant: string): boolean {
    return isAdminOf(this.file, this.principal, tenant)
  }

  /** Whether it sees and changes a subscription or registration of a tenant. */
  maySee({ owner }: OwnedDocument, tenant: string): boolean {
    return mayHandle(this.principal, owner && principalOf(this.file, owner), this.isAdminOf(tenant))
  }

  /** What the owner of a document may do in its tenant. */
  grantOfOwner({ owner }: OwnedDocument, action: AccessAction, tenant: string): Grant {
    return grantOf(this.file, owner && principalOf(this.file, owner), tenant, action)
  }

  mayDoToBroker(action: BrokerAction): boolean {
    return brokerGrantOf(this.file, this.principal, action).kind === 'all'
  }
}

/** Grants by principal, which is one object for each file. */
class RememberedGrants {
  private readonly ofPrincipals = new Map<Principal, Map<string, Grant>>()
  private names = 0

  get(principal: Principal, action: AccessAction, tenant: string, paths: readonly string[]): Grant | undefined {
    return this.ofPrincipals.get(principal)?.get(keyOf(action, tenant, paths))
  }

  set(principal: Principal, action: AccessAction, tenant: string, paths: readonly string[], grant: Grant): void {
    const key = keyOf(action, tenant, paths)
    const names = namesIn(grant) + Math.ceil(key.length / nameLength)
    this.names += names
    if (this.names > rememberedNamesMax) {
      this.ofPrincipals.clear()
      this.names = names
    }
    let known = this.ofPrincipals.get(principal)
    if (!known) {
      known = new Map()
      this.ofPrincipals.set(principal, known)
    }
    known.set(key, grant)
  }
}

/** Neither a tenant nor a path has a blank. */
const keyOf = (action: AccessAction, tenant: string, paths: readonly string[]): string =>
  `${action} ${tenant} ${paths.join()}`

/** The size of a grant: the number of names in its clauses. A grant without any counts as some. */
function namesIn(grant: Grant): number {
  if (grant.kind !== 'narrowed') return grantNames
  const { clauses } = grant.condition
  return clauses.reduce(
    (sum, { paths, types, ids, attributes }) =>
      sum + paths.length + (types?.length ?? 0) + (ids?.length ?? 0) + attributes.length,
    grantNames,
  )
}

const grantNames = 10

/** Characters of a tenant and of paths that count as one name. */
const nameLength = 100

// Access control as the HTTP front needs it: who asks, and what its rules allow (docs/interface/access.md).
//
// Not here: proofs and the file (access/), the decision about a request (request-authorizer.ts).

import type { X509Certificate } from 'node:crypto'
import type { AccessAction } from '../domain/access/access-rule.js'
import type { AllowedGrant, BrokerAction, Grant } from '../domain/access/grant.js'
import type { OwnedDocument, PrincipalSource, ShownKind } from '../domain/access/principal.js'
import type { Refusal } from '../domain/refusal.js'

/** The headers that may show a proof. */
export interface ClientHeaders {
  header(name: string): string
  headerTimes(name: string): number
}

export interface AccessGuard {
  /**
   * Finds out who asks. undefined: a token has to be verified first, and `onLater` is called then. `certificate`: of
   * the connection, verified by TLS; one object for each connection. undefined: there is none.
   */
  identify(
    headers: ClientHeaders,
    certificate: X509Certificate | undefined,
    onLater: (identification: AskerResult) => void,
  ): AskerResult | undefined
  /** Counts a request that no rule allows. */
  onForbidden(): void
  /** Counts a request that is refused because too much waits for verifications. */
  onBusy(): void
  /** Takes one request from the rate of a tenant, or refuses it. */
  refusalByRate(tenant: string): Refusal | undefined
  /** Calls the listener after each change of the access file. Returns a function that ends it. */
  onChange(listener: () => void): () => void
}

export type AskerResult =
  | { readonly ok: true; readonly asker: Asker }
  /** `challenge`: the value of `WWW-Authenticate`; undefined: the answer has none. */
  | {
      readonly ok: false
      readonly refusal: Refusal
      readonly challenge: string | undefined
      readonly shown: ShownKind
    }

/** A principal, under the access file of the moment in which it was identified. */
export interface Asker {
  /** What its proof has shown. */
  readonly source: PrincipalSource
  /** The instant from which on its proof is not accepted any more; undefined: it has no end. */
  readonly endsMs: number | undefined
  /** What it may do in some paths of a tenant. */
  grant(action: AccessAction, tenant: string, paths: readonly string[]): Grant
  /** Whether it sees and changes all subscriptions and registrations of a tenant. */
  isAdminOf(tenant: string): boolean
  /** Whether it sees and changes a subscription or registration of a tenant. */
  maySee(document: OwnedDocument, tenant: string): boolean
  /** What the owner of a document may do in its tenant. */
  grantOfOwner(document: OwnedDocument, action: AccessAction, tenant: string): Grant
  mayDoToBroker(action: BrokerAction): boolean
  /**
   * The same principal under the present file; undefined: its proof has ended, or the file does not have it any more.
   */
  now(): Asker | undefined
}

/** A request that the rules allow, perhaps in part. */
export interface Permit {
  readonly asker: Asker
  /** By the actions that it needs, in the tenant and the paths of the request. */
  readonly grants: Readonly<Partial<Record<AccessAction, AllowedGrant>>>
  /** Whether each of these actions is allowed for everything in these paths. */
  readonly isWhole: boolean
  /** Counts that the rules do not allow what the request names in its body. */
  onForbidden(): void
}

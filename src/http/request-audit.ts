// The entry of one request in the audit log, collected on its way (docs/operations/audit.md).
//
// An entry is made with the answer, when the status is known. Requests that change something and those of
// administrators have one whatever the answer is, others only if they were refused for lack of rights or because of a
// quota.
//
// Not here: the form of a line and the file (observe/audit/), which requests change something
// (domain/access/audited.ts).

import { type AuditedAs, auditedAs } from '../domain/access/audited.js'
import type { PrincipalSource, ShownKind } from '../domain/access/principal.js'
import type { RequestNeed, RouteTemplate } from '../domain/access/route-needs.js'
import type { AuditEntry, AuditTrail } from '../ports.js'

/** The parts of an entry that the head of a request and its answer have. */
export type AuditedHead = Omit<AuditEntry, 'principal' | 'shown' | 'entities' | 'id' | 'isMessage'>

/** The refusals that have an entry whatever the request was about. */
const auditedStatuses: ReadonlySet<number> = new Set([401, 403, 429])

const ofEntity: RouteTemplate = '/v2/entities/{id}'
const ofDocuments: readonly RouteTemplate[] = ['/v2/subscriptions/{id}', '/v2/registrations/{id}']

/** The proof of a principal, as what was shown. */
const shownBy = ({ proof }: PrincipalSource): ShownKind => (proof === 'none' ? 'nothing' : proof)

export class RequestAudit {
  /** Whether the request is a message on a WebSocket. */
  isMessage = false
  /** Whether access control decides about it, perhaps in a later turn. */
  isGuarded = false
  private as: AuditedAs = 'other'
  private principal: PrincipalSource | undefined
  private shown: ShownKind | undefined
  private entities: number | undefined
  private id: string | undefined
  private isLeftOut = false

  constructor(private readonly trail: AuditTrail) {}

  /** The path of the request is known. `components`: those of the path, decoded. */
  routed(template: string, need: RequestNeed, method: string, components: readonly string[]): void {
    this.as = auditedAs(need, method)
    if (template.startsWith(ofEntity)) this.names(1, components[2])
    else if (ofDocuments.some(document => template.startsWith(document))) this.id = components[2]
  }

  identified(principal: PrincipalSource): void {
    this.principal = principal
    this.shown = shownBy(principal)
  }

  unidentified(shown: ShownKind): void {
    this.shown = shown
  }

  /** The entities that its body names. */
  names(entities: number, first: string | undefined): void {
    this.entities = entities
    this.id = first
  }

  /** It has created a subscription or registration. */
  created(id: string): void {
    this.id = id
  }

  /** Whether it must not be carried out, because its line could not be written. Then it has no entry either. */
  mustBeRefused(): boolean {
    this.isLeftOut ||= this.as === 'change' && this.trail.refusesChanges
    return this.isLeftOut
  }

  /** Whether it may still have an entry, as far as its head says. */
  get mayBeLogged(): boolean {
    return this.as !== 'other' || this.isGuarded
  }

  isLogged(status: number): boolean {
    return !this.isLeftOut && (this.as !== 'other' || auditedStatuses.has(status))
  }

  // [hot] Once per entry: without spreads, which copy all members one more time.
  add(head: AuditedHead): void {
    const { principal, shown, entities, id, isMessage } = this
    const { address, peer, method, path, query, tenant, servicePath, status, correlator } = head
    this.trail.add({
      principal,
      shown,
      address,
      peer,
      method,
      path,
      query,
      tenant,
      servicePath,
      status,
      correlator,
      entities,
      id,
      isMessage,
    })
  }
}

/** The entries of messages on one WebSocket that are no requests: new proofs, and watches that no rule allows. */
export class MessageAudit {
  constructor(
    private readonly trail: AuditTrail,
    private readonly head: Omit<AuditedHead, 'method' | 'status'>,
  ) {}

  /** `place`: what the message is about; undefined: the place of its connection. */
  add(
    op: 'token' | 'watch',
    status: number,
    who: PrincipalSource | ShownKind,
    place?: Pick<AuditEntry, 'tenant' | 'servicePath'>,
  ): void {
    const isKnown = typeof who !== 'string'
    const principal = isKnown ? who : undefined
    const shown = isKnown ? shownBy(who) : who
    const about = { principal, shown, entities: undefined, id: undefined, isMessage: true }
    this.trail.add({ ...this.head, ...place, method: op, status, ...about })
  }
}

// The document owner of registrations: it creates, changes, removes and reads those of a tenant.
//
// Not here: how a change is made (document-owner.ts), which providers are asked because of them (provider-book.ts,
// broker/forwarding.ts).

import type { TenantLimits } from '../../domain/access/quotas.js'
import { registrationBytesMax } from '../../domain/limits.js'
import { encodeRegistration, type Registration } from '../../domain/providers/registration.js'
import { patchRegistration } from '../../domain/providers/registration-parser.js'
import { accepted, type Result, refusals, refused } from '../../domain/refusal.js'
import type { RegistrationRequest, RegistrationWrite } from '../../messages/messages.js'
import { type Decided, type DocumentOwner, type OnReply, removal, wanted } from './document-owner.js'
import type { Registrations } from './forms.js'

export class RegistrationOwner {
  private readonly registrations: Registrations
  private readonly owner: DocumentOwner
  private readonly countMax: number

  /** `countMax`: for all tenants together, see `registrationsMax`. `quotas` undefined: tenants have none. */
  constructor(
    registrations: Registrations,
    owner: DocumentOwner,
    countMax: number,
    private readonly quotas?: Pick<TenantLimits, 'refusalFor'>,
  ) {
    this.registrations = registrations
    this.owner = owner
    this.countMax = countMax
  }

  onAsk(request: RegistrationRequest, onReply: OnReply): void {
    const { registrations, owner } = this
    switch (request.kind) {
      case 'findRegistration': {
        const { tenant, id } = request
        const found = registrations.of(tenant)?.get(id)
        const page = found ? [found] : []
        const reply = { kind: 'registrations', registrations: page, total: page.length } as const
        return owner.afterTold(registrations.changedIn(tenant, id), reply, onReply)
      }
      case 'listRegistrations': {
        const { tenant, servicePath, offset, limit, reader } = request
        const isVisible = owner.visibleFor(reader, tenant)
        const found = registrations.of(tenant)?.page(servicePath, offset, limit, isVisible)
        const { known, total } = found ?? { known: [], total: 0 }
        const page = known.map(({ document }) => document)
        return owner.afterTold(registrations.stagedIn, { kind: 'registrations', registrations: page, total }, onReply)
      }
      default:
        return owner.change(registrations, () => this.decide(request), onReply)
    }
  }

  private decide(request: RegistrationWrite): Result<Decided<Registration>> {
    if (request.kind === 'createRegistration') {
      const { tenant, id } = request.registration
      if (this.registrations.size >= this.countMax) return refused(refusals.registrationsTooMany(this.countMax))
      if (this.registrations.of(tenant)?.has(id))
        return refused(refusals.failure(`there is a registration ${id} already`))
      const refusal = this.quotas?.refusalFor(tenant, 'registrations', this.registrations.of(tenant)?.size ?? 0)
      if (refusal) return refused(refusal)
      return stored(request.registration)
    }
    const { tenant, id } = request
    const existing = this.registrations.of(tenant)?.get(id)
    if (!existing) return refused(refusals.registrationNotFound)
    if (request.kind === 'removeRegistration') return accepted(removal(tenant, id))
    const patched = patchRegistration(existing, request.payload)
    return patched.ok ? stored(patched.value) : patched
  }
}

const stored = (registration: Registration): Result<Decided<Registration>> =>
  wanted(registration, encodeRegistration(registration), registrationBytesMax, refusals.registrationTooLarge)

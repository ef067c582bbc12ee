// The registrations of each tenant in the form that forwarding needs: by the content of a request.
//
// A tenant without registrations has no entry, so its requests cost one lookup. Staged registrations are in it at once:
// to ask a provider a moment too early does no harm.

import { ProviderIndex } from '../../domain/providers/provider-index.js'
import type { Registrations } from './forms.js'

export class ProviderBook {
  private readonly tenants = new Map<string, ProviderIndex>()

  constructor(registrations: Registrations) {
    registrations.follow(tenant => {
      const index = new ProviderIndex()
      this.tenants.set(tenant, index)
      return {
        add: registration => index.add(registration),
        remove: id => {
          index.remove(id)
          if (index.size === 0) this.tenants.delete(tenant)
        },
      }
    })
  }

  /** Whether any tenant has registrations. */
  get hasAny(): boolean {
    return this.tenants.size > 0
  }

  /** The registrations of a tenant; undefined: it has none. */
  of(tenant: string): ProviderIndex | undefined {
    return this.tenants.get(tenant)
  }
}

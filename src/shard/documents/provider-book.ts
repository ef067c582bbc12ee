// The registrations of each tenant as whoever forwards needs them: by what a request is about.
//
// A tenant without registrations is not in it, so that its requests pay one look. What is staged is in it at once: a
// provider that is asked a moment too early is not asked too much.

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

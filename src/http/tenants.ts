// GET and DELETE /admin/tenants: the list of tenants, and the deletion of one (docs/operations/tenants.md).
//
// A deletion cannot be undone, so the client must name the tenant twice. The log has a line about each order, with the
// address of the client and the correlator.

import type { TenantOperations, TenantSummary } from '../broker/tenants.js'
import { renderDateTime } from '../domain/date-time.js'
import { accepted, type Result, refusals, refused } from '../domain/refusal.js'
import { tenantNamed, tenantShown } from '../domain/scope.js'
import type { Logger } from '../ports.js'
import { replyWithList } from './list-body.js'
import type { Reply } from './reply.js'
import type { Request } from './request.js'

export class TenantHandlers {
  constructor(
    private readonly operations: Pick<TenantOperations, 'list' | 'retrieve' | 'remove'>,
    private readonly logger: Pick<Logger, 'warn'>,
  ) {}

  list({ parameters: { offset, limit, options } }: Request, reply: Reply): void {
    this.operations.list(offset, limit, result => {
      if (!result.ok) return reply.refuse(result.refusal)
      const { tenants, total } = result.value
      const items = { length: tenants.length, render: (index: number) => rendered(tenants[index]!) }
      replyWithList(reply, items, options.has('count') ? total : undefined)
    })
  }

  retrieve(request: Request, reply: Reply): void {
    const named = tenantIn(request)
    if (!named.ok) return reply.refuse(named.refusal)
    this.operations.retrieve(named.value, result => {
      if (result.ok) reply.json(rendered(result.value))
      else reply.refuse(result.refusal)
    })
  }

  remove(request: Request, reply: Reply): void {
    const named = tenantIn(request)
    if (!named.ok) return reply.refuse(named.refusal)
    const tenant = named.value
    const name = tenantShown(tenant)
    if (request.parameters.values.get('confirm') !== name) return reply.refuse(refusals.tenantNotConfirmed(name))
    const { call } = request
    const context = { tenant: name, correlator: call?.correlator ?? '', from: call?.from() ?? '' }
    this.operations.remove(tenant, result => {
      if (!result.ok) return reply.refuse(result.refusal)
      const { entities, subscriptions, registrations } = result.value
      const has = `${entities} entities, ${subscriptions} subscriptions, ${registrations} registrations`
      this.logger.warn(`Deletion of tenant ${name} ordered: it has ${has}`, context)
      reply.begun(rendered(result.value))
    })
  }
}

/** The tenant in the path. */
function tenantIn({ components }: Request): Result<string> {
  const name = components[2] as string
  const tenant = tenantNamed(name)
  return tenant === undefined ? refused(refusals.tenantNotFound(name)) : accepted(tenant)
}

function rendered({ tenant, changedMs, deletingSinceMs, ...counts }: TenantSummary): string {
  const { entities, subscriptions, registrations, bytes } = counts
  return JSON.stringify({
    name: tenantShown(tenant),
    entities,
    subscriptions,
    registrations,
    bytes,
    lastChange: changedMs === undefined ? undefined : renderDateTime(changedMs),
    state: deletingSinceMs === undefined ? 'active' : 'deleting',
    deletingSince: deletingSinceMs === undefined ? undefined : renderDateTime(deletingSinceMs),
  })
}

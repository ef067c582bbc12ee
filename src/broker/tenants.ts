// Whole tenants, for operators: a list, one of them, and the deletion of one (docs/operations/tenants.md).
//
// Every owner of shards is asked for its part, and an answer covers all owners: if one does not answer, the request
// fails. A tenant exists as long as it has stored data, or its deletion is in progress.
//
// Not here: the sizes at an owner (shard/tenants/tenant-sizes.ts), the deletion itself
// (shard/tenants/tenant-deletions.ts).

import { accepted, type Result, refusals, refused } from '../domain/refusal.js'
import { tenantShown } from '../domain/scope.js'
import { stampMs } from '../domain/stamp.js'
import type { ShardReply, TenantSize, TenantsReply, TenantsStep } from '../messages/messages.js'
import { type OnResult, refusalOf } from './replies.js'
import type { ShardClient } from './shard-client.js'

/** A tenant, over all owners. */
export interface TenantSummary {
  readonly tenant: string
  readonly entities: number
  /** Bytes of the entities, an estimate. */
  readonly bytes: number
  readonly subscriptions: number
  readonly registrations: number
  /** Milliseconds since 1970; undefined: not known. */
  readonly changedMs: number | undefined
  /** The start of its deletion; undefined: it is not being deleted. */
  readonly deletingSinceMs: number | undefined
}

export interface TenantPage {
  readonly tenants: readonly TenantSummary[]
  /** The number on all pages. */
  readonly total: number
}

export class TenantOperations {
  constructor(private readonly client: Pick<ShardClient, 'askOwners' | 'askKeeper'>) {}

  /** A page in the order of names. */
  list(offset: number, limit: number, onResult: OnResult<TenantPage>): void {
    this.client.askOwners(tenants({ what: 'names' }), read('names'), names => {
      if (!names.ok) return onResult(names)
      const all = [...new Set(names.value.flatMap(part => part.tenants))].sort(byShownName)
      const page = all.slice(offset, offset + limit)
      if (page.length === 0) return onResult(accepted({ tenants: [], total: all.length }))
      this.summaries(page, summaries =>
        onResult(summaries.ok ? accepted({ tenants: summaries.value, total: all.length }) : summaries),
      )
    })
  }

  retrieve(tenant: string, onResult: OnResult<TenantSummary>): void {
    this.summaries([tenant], summaries => {
      if (!summaries.ok) return onResult(summaries)
      const [found] = summaries.value
      onResult(found && exists(found) ? accepted(found) : refused(refusals.tenantNotFound(tenantShown(tenant))))
    })
  }

  /** Begins to delete a tenant, unless a deletion has already begun. From then on no owner accepts its requests. */
  remove(tenant: string, onResult: OnResult<TenantSummary>): void {
    this.retrieve(tenant, found => {
      if (!found.ok) return onResult(found)
      this.client.askKeeper(tenants({ what: 'delete', tenant }), read('deletions'), begun => {
        if (!begun.ok) return onResult(begun)
        const [deletion] = begun.value.deletions
        onResult(accepted({ ...found.value, deletingSinceMs: deletion && stampMs(deletion.stamp) }))
      })
    })
  }

  private summaries(names: readonly string[], onResult: OnResult<readonly TenantSummary[]>): void {
    this.client.askOwners(tenants({ what: 'sizes', tenants: names }), read('sizes'), parts =>
      onResult(parts.ok ? accepted(summed(names, parts.value)) : parts),
    )
  }
}

const tenants = (step: TenantsStep) => ({ kind: 'tenants', step }) as const

/** Reads replies to a step. */
const read =
  <W extends TenantsReply['what']>(what: W) =>
  (reply: ShardReply): Result<Extract<TenantsReply, { what: W }>> =>
    reply.kind === 'tenants' && reply.content.what === what
      ? accepted(reply.content as Extract<TenantsReply, { what: W }>)
      : refusalOf(reply, 'read')

const exists = ({ entities, subscriptions, registrations, deletingSinceMs }: TenantSummary): boolean =>
  entities + subscriptions + registrations > 0 || deletingSinceMs !== undefined

const byShownName = (a: string, b: string): number => (tenantShown(a) < tenantShown(b) ? -1 : 1)

/** Entities are added up. Every owner has all rows of the register, some owners a moment later than others. */
function summed(
  names: readonly string[],
  parts: readonly { readonly sizes: readonly TenantSize[] }[],
): readonly TenantSummary[] {
  const ofName = new Map(names.map(name => [name, [] as TenantSize[]]))
  for (const { sizes } of parts) for (const size of sizes) ofName.get(size.tenant)?.push(size)
  return [...ofName].map(([tenant, sizes]) => {
    const sum = (of: (size: TenantSize) => number): number => sizes.reduce((total, size) => total + of(size), 0)
    const most = (of: (size: TenantSize) => number | undefined): number =>
      Math.max(0, ...sizes.map(one => of(one) ?? 0))
    const stamp = most(size => size.deletion)
    return {
      tenant,
      entities: sum(size => size.entities),
      bytes: sum(size => size.bytes),
      subscriptions: most(size => size.subscriptions),
      registrations: most(size => size.registrations),
      changedMs: most(size => size.changedMs) || undefined,
      deletingSinceMs: stamp > 0 ? stampMs(stamp) : undefined,
    }
  })
}

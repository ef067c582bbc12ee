// The tenants that are being deleted, as far as this owner has received their marks in the register.
//
// From the moment it has the mark until it receives the mark's deletion, an owner refuses requests about such a tenant.
// As long as no tenant is being deleted, that costs a request one look at a flag.
//
// Not here: the rows of marks (deletion-layout.ts), writing them (tenant-admin.ts).

import { type Refusal, refusals } from '../../domain/refusal.js'
import { tenantShown } from '../../domain/scope.js'
import type { ShardRequest, TenantDeletion, WriteRequest } from '../../messages/messages.js'
import type { StoreReader } from '../../ports.js'
import { readRow, rowsOf } from '../../rows.js'
import { parsePathKey, pathRange } from '../replicate/replicated-layout.js'
import { decodeMark, isMarkKey } from './deletion-layout.js'

export class TenantMarks {
  /** The stamp of each deletion, by tenant. */
  private readonly stamps = new Map<string, number>()

  private constructor(
    private readonly store: StoreReader,
    private readonly register: number,
  ) {}

  /** Reads the marks that the store has. */
  static async read(store: StoreReader, register: number): Promise<TenantMarks> {
    const marks = new TenantMarks(store, register)
    await marks.reconcile()
    return marks
  }

  /** Replaces all marks by those of the store, after rows have come or gone without a call. */
  async reconcile(): Promise<void> {
    const found = new Map<string, number>()
    for await (const rows of rowsOf(this.store, pathRange(this.register)))
      for (const { key, value } of rows) {
        if (!isMarkKey(key)) continue
        const { tenant, stamp } = readRow(key, () => decodeMark(key, value))
        found.set(tenant, stamp)
      }
    this.stamps.clear()
    for (const [tenant, stamp] of found) this.stamps.set(tenant, stamp)
  }

  /** Notes the row of a mark; without a value it was deleted. */
  follow(key: Buffer, value: Buffer | undefined): void {
    if (!value) return void this.stamps.delete(parsePathKey(key).tenant)
    const { tenant, stamp } = decodeMark(key, value)
    this.stamps.set(tenant, stamp)
  }

  get size(): number {
    return this.stamps.size
  }

  stampOf(tenant: string): number | undefined {
    return this.stamps.get(tenant)
  }

  all(): readonly TenantDeletion[] {
    return [...this.stamps].map(([tenant, stamp]) => ({ tenant, stamp }))
  }

  // [hot] Once per request to a shard, and once per entity of a batch.
  /** The refusal of a request; undefined: it is admitted. */
  refusalFor(request: ShardRequest): Refusal | undefined {
    if (this.stamps.size === 0) return undefined
    const tenant = tenantOf(request)
    return tenant !== undefined && this.stamps.has(tenant) ? refusals.tenantDeleting(tenantShown(tenant)) : undefined
  }
}

/** The tenant of a client's request; undefined: it has none, or it is a request between owners. */
function tenantOf(request: ShardRequest): string | undefined {
  switch (request.kind) {
    case 'batch':
      return request.items[0]?.target.tenant
    case 'createSubscription':
      return request.subscription.tenant
    case 'createRegistration':
      return request.registration.tenant
    case 'find':
    case 'list':
    case 'fetch':
    case 'types':
    case 'announce':
    case 'changeSubscription':
    case 'removeSubscription':
    case 'findSubscription':
    case 'listSubscriptions':
    case 'changeRegistration':
    case 'removeRegistration':
    case 'findRegistration':
    case 'listRegistrations':
    case 'deliveries':
    case 'retryDeliveries':
      return request.tenant
    case 'unused':
    case 'progress':
    case 'claim':
    case 'news':
    case 'handIn':
    case 'follow':
    case 'admin':
    case 'backup':
    case 'tenants':
    case 'stream':
      return undefined
    default:
      return (request satisfies WriteRequest).target.tenant
  }
}

// The tenants that are being deleted, as this owner has heard of them from the register.
//
// An owner lets in no request about such a tenant, from the moment it hears of the mark until it hears that the mark
// has gone. A request costs one look at a flag as long as no tenant is being deleted.
//
// Not here: which rows marks are (deletion-layout.ts), who writes them (tenant-desk.ts).

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

  /** With what the store has. */
  static async read(store: StoreReader, register: number): Promise<TenantMarks> {
    const marks = new TenantMarks(store, register)
    await marks.reconcile()
    return marks
  }

  /** Has what the store has, and nothing else: rows have come or gone without anybody having told of it. */
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

  /** Takes note of the row of a mark; without a value it has gone. */
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
  /** Why a request is not let in; undefined: it is. */
  refusalFor(request: ShardRequest): Refusal | undefined {
    if (this.stamps.size === 0) return undefined
    const tenant = tenantOf(request)
    return tenant !== undefined && this.stamps.has(tenant) ? refusals.tenantDeleting(tenantShown(tenant)) : undefined
  }
}

/** Which tenant a request of a client is about; undefined: none, or it is one that owners ask of each other. */
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
      return undefined
    default:
      return (request satisfies WriteRequest).target.tenant
  }
}

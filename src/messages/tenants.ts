// What is asked about whole tenants: which there are, how large they are, and the deletion of one
// (docs/operations/tenants.md).
//
// Every owner of shards is asked for its own part. The keeper of the register takes the order to delete a tenant, and
// knows which deletions are under way.

/** Asked of any shard of an owner; `delete` and `deletions` of the keeper of the register. */
export interface TenantsRequest {
  readonly kind: 'tenants'
  readonly step: TenantsStep
}

export type TenantsStep =
  /** Which tenants have anything. */
  | { readonly what: 'names' }
  /** What these have in the shards of the asked owner. */
  | { readonly what: 'sizes'; readonly tenants: readonly string[] }
  /** Begins to delete a tenant; a tenant that is being deleted already goes on. */
  | { readonly what: 'delete'; readonly tenant: string }
  /** Which deletions are under way. */
  | { readonly what: 'deletions' }
  /** For which of these deletions the asked owner has nothing left, and lets nothing new in. */
  | { readonly what: 'purged'; readonly deletions: readonly TenantDeletion[] }

/** A tenant that is being deleted. */
export interface TenantDeletion {
  readonly tenant: string
  /** When it began, as a stamp of the keeper's clock. It tells this deletion from an earlier one of the same name. */
  readonly stamp: number
}

export type TenantsReply =
  | { readonly what: 'names'; readonly tenants: readonly string[] }
  | { readonly what: 'sizes'; readonly sizes: readonly TenantSize[] }
  /** Also the reply to `delete`: the one that was asked for. */
  | { readonly what: 'deletions'; readonly deletions: readonly TenantDeletion[] }
  /** Their tenants. */
  | { readonly what: 'purged'; readonly tenants: readonly string[] }

/** What an owner knows of a tenant. */
export interface TenantSize {
  readonly tenant: string
  /** In the shards of this owner. */
  readonly entities: number
  /** Of these as they are stored, estimated from some of them. */
  readonly bytes: number
  /** Of all owners: every owner knows all of them. */
  readonly subscriptions: number
  readonly registrations: number
  /** The latest change that this owner knows of, wall clock; undefined: none. */
  readonly changedMs?: number | undefined
  /** The stamp of the deletion that is under way; undefined: there is none. */
  readonly deletion?: number | undefined
}

// Requests about whole tenants: their names, their sizes, and the deletion of one (docs/operations/tenants.md).
//
// Every owner of shards is asked for its own part. The keeper of the register receives the order to delete a tenant,
// and knows the deletions in progress.

/** Sent to any shard of an owner; `delete` and `deletions` to the keeper of the register. */
export interface TenantsRequest {
  readonly kind: 'tenants'
  readonly step: TenantsStep
}

export type TenantsStep =
  /** Which tenants exist here. */
  | { readonly what: 'names' }
  /** The sizes of these tenants in the shards of the asked owner. */
  | { readonly what: 'sizes'; readonly tenants: readonly string[] }
  /**
   * The entities of a tenant in the shards of the asked owner, for its quota. `needsRoom`: the asked owner gives back
   * its part of what is left of the quota. `missing`: which of these entities in a path would be created.
   */
  | {
      readonly what: 'creations'
      readonly tenant: string
      readonly needsRoom: boolean
      readonly missing?: MissingEntities | undefined
    }
  /** Begins to delete a tenant. A deletion that has already begun continues. */
  | { readonly what: 'delete'; readonly tenant: string }
  /** The deletions in progress. */
  | { readonly what: 'deletions' }
  /** Those of these deletions for which the asked owner has nothing left and accepts nothing new. */
  | { readonly what: 'purged'; readonly deletions: readonly TenantDeletion[] }

/** Entities that a batch would create unless they exist. An entity without a type is the only one of its id. */
export interface MissingEntities {
  readonly path: string
  readonly entities: readonly { readonly id: string; readonly type?: string | undefined }[]
}

/** A tenant that is being deleted. */
export interface TenantDeletion {
  readonly tenant: string
  /**
   * The start, as a stamp of the keeper's clock. It distinguishes this deletion from an earlier one of the same name.
   */
  readonly stamp: number
}

export type TenantsReply =
  | { readonly what: 'names'; readonly tenants: readonly string[] }
  | { readonly what: 'sizes'; readonly sizes: readonly TenantSize[] }
  /** `missing`: how many of the entities do not exist. */
  | { readonly what: 'creations'; readonly count: number; readonly missing: number }
  /** Also the reply to `delete`, with the requested deletion. */
  | { readonly what: 'deletions'; readonly deletions: readonly TenantDeletion[] }
  /** The tenants of these deletions. */
  | { readonly what: 'purged'; readonly tenants: readonly string[] }

/** What an owner knows of a tenant. */
export interface TenantSize {
  readonly tenant: string
  /** In the shards of this owner. */
  readonly entities: number
  /** The stored bytes of these entities, estimated from some of them. */
  readonly bytes: number
  /** Those of all owners: every owner knows all documents. */
  readonly subscriptions: number
  readonly registrations: number
  /** The latest change that this owner knows of, wall clock; undefined: none. */
  readonly changedMs?: number | undefined
  /** The stamp of the deletion in progress; undefined: there is none. */
  readonly deletion?: number | undefined
}

// A record: the outcome of one turn, which `apply` writes to the batch of a commit.
//
// It says what became of one entity and what the indexes must know of what was before, so `apply` reads nothing. It never leaves the process: a
// log that is elsewhere keeps the rows that it leads to (replicate/row-operations.ts).

/** What indexes know of the entity as it was. */
export interface Before {
  readonly created: number
  readonly expiresMs: number | undefined
}

export type AttributeDifference = readonly [name: string, type: string, difference: 1 | -1]

export interface ShardRecord {
  readonly shard: number
  readonly tenant: string
  readonly path: string
  readonly id: string
  readonly type: string
  /** undefined: the entity was created by this turn. */
  readonly before: Before | undefined
  /** Attributes, with their types, that the entity has got (1) or has no more (-1). */
  readonly attributes: readonly AttributeDifference[]
  /** The entity after the turn; undefined: it was deleted. */
  readonly image: Buffer | undefined
}

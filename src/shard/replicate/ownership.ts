// Which shards of the store are this node's own. Those of others are followed: their rows are there, and nobody is told
// of them.
//
// Two things are said of each shard: whether asks about it are let in, and whether reads of several shards count its
// rows. Both begin together; when a shard is sealed asks end first, and reads when its last commit has ended. Threads
// that read the store share what they need to know.

/**
 * Of each shard, by its number: whether it is this node's own. undefined in its place: all are, and nobody need look.
 */
export type Owned = Readonly<Uint8Array> | undefined

export class Ownership {
  /** In memory that threads share. */
  readonly owned: Uint8Array
  /** The shard that all nodes follow; those before it hold entities. */
  readonly register: number
  private readonly admitted: Uint8Array
  private changes = 0

  /** `shards`: those that hold entities. None is owned at first. */
  constructor(shards: number) {
    this.register = shards
    this.owned = new Uint8Array(new SharedArrayBuffer(shards + 1))
    this.admitted = new Uint8Array(shards + 1)
  }

  /**
   * Grows whenever the shards that reads count have changed: what was read before and after does not belong together.
   */
  get generation(): number {
    return this.changes
  }

  /** Whether asks about a shard are let in. */
  admits(shard: number): boolean {
    return this.admitted[shard] === 1
  }

  /** Whether reads count the rows of a shard. */
  owns(shard: number): boolean {
    return this.owned[shard] === 1
  }

  /** How many shards of entities are this node's own. */
  get count(): number {
    return this.owned.reduce((sum, one, shard) => (shard < this.register ? sum + one : sum), 0)
  }

  /** From now on the shard is this node's own. */
  begin(shard: number): void {
    this.admitted[shard] = 1
    this.owned[shard] = 1
    this.changes++
  }

  /** Lets no more asks in. */
  close(shard: number): void {
    this.admitted[shard] = 0
  }

  /** From now on the shard is not this node's own any more. */
  end(shard: number): void {
    this.admitted[shard] = 0
    this.owned[shard] = 0
    this.changes++
  }
}

// The shards of the store that are this node's own. Those of others are followed: the store has their rows, and no
// reader uses them.
//
// There are two flags for each shard: whether asks about it are admitted, and whether reads of several shards count its
// rows. Both are set together. When a shard is sealed, asks end first, and reads end after its last commit. Threads
// that read the store share the second flag.

/** For each shard, by its number: whether it is this node's own. undefined: all are, and no check is needed. */
export type Owned = Readonly<Uint8Array> | undefined

export class Ownership {
  /** In memory that threads share. */
  readonly owned: Uint8Array
  /** The shard that all nodes follow; those before it hold entities. */
  readonly register: number
  private readonly admitted: Uint8Array
  private readonly counts: Float64Array
  private readonly begun: Uint32Array
  private changes = 0

  /** `shards`: the number of shards that hold entities. None is owned at first. */
  constructor(shards: number) {
    this.register = shards
    this.owned = new Uint8Array(new SharedArrayBuffer(shards + 1))
    this.admitted = new Uint8Array(shards + 1)
    this.counts = new Float64Array(shards + 1)
    this.begun = new Uint32Array(shards + 1)
  }

  /** Grows whenever the set of shards for reads changes: results from before and after must not be combined. */
  get generation(): number {
    return this.changes
  }

  /** How often a shard has become this node's own. */
  terms(shard: number): number {
    return this.begun[shard]!
  }

  /** Whether asks about a shard are admitted. */
  admits(shard: number): boolean {
    return this.admitted[shard] === 1
  }

  // [hot] Once per write or read of an entity: one addition.
  /** Counts a request for an entity of a shard. */
  countRequest(shard: number): void {
    this.counts[shard]!++
  }

  /** How many requests were counted in a shard. */
  requests(shard: number): number {
    return this.counts[shard]!
  }

  /** Whether reads count the rows of a shard. */
  owns(shard: number): boolean {
    return this.owned[shard] === 1
  }

  /** The number of own shards that hold entities. */
  get count(): number {
    return this.owned.reduce((sum, one, shard) => (shard < this.register ? sum + one : sum), 0)
  }

  /** Makes a shard this node's own. */
  begin(shard: number): void {
    this.admitted[shard] = 1
    this.owned[shard] = 1
    this.begun[shard]!++
    this.changes++
  }

  /** Admits no more asks. */
  close(shard: number): void {
    this.admitted[shard] = 0
  }

  /** Makes a shard a followed one. */
  end(shard: number): void {
    this.admitted[shard] = 0
    this.owned[shard] = 0
    this.changes++
  }
}

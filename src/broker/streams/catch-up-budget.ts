// The memory for all readers of a process that catch up: keys of their snapshots, and changes that wait behind a
// snapshot or a replay (docs/interface/limits.md).
//
// Without it, many readers with large snapshots at a time would fill the memory. A snapshot waits until there is room.

/** Owners that list keys for snapshots at a time. */
export const listingsMax = 8
/** Keys of all snapshots: some 20 bytes each. Snapshots that are being listed may exceed it. */
export const keysTogetherMax = 4_000_000
/** Changes that wait for all readers together, some 50 bytes each; one more, and its reader gets a gap. */
export const changesTogetherMax = 1_000_000

export class CatchUpBudget {
  private listings = 0
  private keys = 0
  private changes = 0
  private readonly queue: (() => void)[] = []

  /** Calls `list` when there is room, perhaps at once. It has to call `listed` once. */
  whenRoom(list: () => void): void {
    this.queue.push(list)
    this.next()
  }

  /** The keys of an owner have come; 0: it has refused. */
  listed(keys: number): void {
    this.listings--
    this.keys += keys
    this.next()
  }

  /** Keys are not held any more. */
  release(keys: number): void {
    this.keys -= keys
    this.next()
  }

  /** Holds a change. False: there is no room. */
  holdChange(): boolean {
    if (this.changes >= changesTogetherMax) return false
    this.changes++
    return true
  }

  releaseChanges(count: number): void {
    this.changes -= count
  }

  private next(): void {
    while (this.listings < listingsMax && this.keys < keysTogetherMax) {
      const list = this.queue.shift()
      if (!list) return
      this.listings++
      list()
    }
  }
}

// How long the readers of a process let their events be gathered (docs/interface/live.md#request).
//
// All readers share the feeds, so the shortest time counts.

export class GatherTimes {
  /** Of each time, the number of readers. */
  private readonly counts = new Map<number, number>()
  private least = 0

  /** In milliseconds; 0: some reader wants its events at once, or there is none. */
  get leastMs(): number {
    return this.least
  }

  add(ms: number): void {
    const count = this.counts.get(ms) ?? 0
    this.counts.set(ms, count + 1)
    if (count === 0) this.note()
  }

  remove(ms: number): void {
    const count = this.counts.get(ms) ?? 0
    if (count > 1) return void this.counts.set(ms, count - 1)
    this.counts.delete(ms)
    this.note()
  }

  private note(): void {
    this.least = this.counts.size === 0 ? 0 : Math.min(...this.counts.keys())
  }
}

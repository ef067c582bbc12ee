// When readers get their bookmarks: each one every 15 s (docs/interface/live.md#events).
//
// Readers are divided among as many turns as there are in 15 s. So each look at the clock concerns only a few of them,
// and bookmarks of many readers that have come together do not come together. The watches of one connection share a
// turn: their bookmarks are sent at once.

import type { Chance } from '../../ports.js'

/** How often a reader gets a bookmark. */
const bookmarkMs = 15_000

export interface Bookmarked {
  /** The number of its turn (`anyTurn`). */
  readonly turn: number
  onBookmark(): void
}

export class BookmarkTurns {
  private readonly turns: readonly Set<Bookmarked>[]
  private current = 0

  /** `everyMs`: how often `go` is called. */
  constructor(
    private readonly chance: Pick<Chance, 'fraction'>,
    everyMs: number,
  ) {
    this.turns = Array.from({ length: Math.ceil(bookmarkMs / everyMs) }, () => new Set())
  }

  /** A turn for a new connection. */
  anyTurn(): number {
    return Math.floor(this.chance.fraction() * this.turns.length)
  }

  add(reader: Bookmarked): void {
    this.turns[reader.turn]!.add(reader)
  }

  remove(reader: Bookmarked): void {
    this.turns[reader.turn]!.delete(reader)
  }

  /** The next readers get their bookmarks. */
  go(): void {
    this.current = (this.current + 1) % this.turns.length
    for (const reader of this.turns[this.current]!) reader.onBookmark()
  }
}

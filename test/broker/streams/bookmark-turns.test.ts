// Bookmarks: each reader gets one in 15 s, and those of one connection come together.

import t from 'tap'
import { BookmarkTurns } from '../../../src/broker/streams/bookmark-turns.js'

class Counted {
  bookmarks = 0

  constructor(readonly turn: number) {}

  onBookmark(): void {
    this.bookmarks++
  }
}

/** 15 s have so many turns of 500 ms. */
const turns = 30

t.test('each reader gets one bookmark in 15 s, whichever its turn is', async t => {
  let drawn = 0
  const bookmarks = new BookmarkTurns({ fraction: () => (drawn++ % 100) / 100 }, 500)
  const readers = Array.from({ length: 100 }, () => new Counted(bookmarks.anyTurn()))
  for (const reader of readers) bookmarks.add(reader)
  let most = 0
  for (let turn = 0; turn < turns; turn++) {
    const before = readers.reduce((sum, one) => sum + one.bookmarks, 0)
    bookmarks.go()
    most = Math.max(most, readers.reduce((sum, one) => sum + one.bookmarks, 0) - before)
  }
  t.ok(readers.every(one => one.bookmarks === 1))
  t.ok(most <= 4, `a turn has ${most} of 100 readers at most`)
  for (let turn = 0; turn < turns; turn++) bookmarks.go()
  t.ok(readers.every(one => one.bookmarks === 2))
})

t.test('readers with the same turn get theirs together, and a removed one gets none', async t => {
  const bookmarks = new BookmarkTurns({ fraction: () => 0.5 }, 500)
  const turn = bookmarks.anyTurn()
  const [one, other, removed] = [new Counted(turn), new Counted(turn), new Counted(turn)]
  for (const reader of [one, other, removed]) bookmarks.add(reader)
  bookmarks.remove(removed)
  for (let go = 0; go < turns; go++) {
    bookmarks.go()
    t.equal(one.bookmarks, other.bookmarks)
  }
  t.equal(one.bookmarks, 1)
  t.equal(removed.bookmarks, 0)
})

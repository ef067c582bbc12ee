// The dead letters of one subscription, in the order of their changes.
//
//   oldest --> . --> . --> newest
//
// Memory has one object of each letter, linked into this list. Letters come nearly in order, so the search for the
// place of a new one begins at the newest. They are removed from anywhere.
//
// Not here: rows and limits (letters.ts), which letter is sent again (replays.ts).

import assert from 'node:assert/strict'

/** A dead letter, as memory has it: some 170 bytes. */
export interface Letter {
  readonly list: LetterList
  readonly shard: number
  /** When it was given up; no two of one owner have the same. */
  readonly stamp: number
  /** The stamp of its change. */
  readonly change: number
  /** A hash of the entity: equal for letters of the same entity, and hardly ever for others. */
  readonly entity: number
  /** Bytes of its row. */
  bytes: number
  /** Whether another try may succeed. */
  mayReplay: boolean
  /** Tries that have failed. */
  tries: number
  /** False once it was removed. */
  isKept: boolean
  /** Its replay is in flight. */
  isSending: boolean
  /** Replays that have failed although its receiver answers other notifications. */
  faults: number
  /** Monotonic time of the next automatic replay, at the earliest. */
  dueMs: number
  older: Letter | undefined
  newer: Letter | undefined
}

export class LetterList implements Iterable<Letter> {
  oldest: Letter | undefined
  newest: Letter | undefined
  size = 0
  /** Bytes of the rows. */
  bytes = 0

  constructor(
    readonly tenant: string,
    /** The id of the subscription. */
    readonly id: string,
  ) {}

  /** From the oldest on. The present letter may be removed meanwhile. */
  *[Symbol.iterator](): Iterator<Letter> {
    for (let letter = this.oldest; letter; ) {
      const { newer } = letter
      yield letter
      letter = newer
    }
  }

  insert(letter: Letter): void {
    assert.equal(letter.list, this, 'the dead letter belongs to another list')
    let older = this.newest
    while (older && compareLetters(older, letter) > 0) older = older.older
    this.link(older, letter)
  }

  /** Adds many, in any order. */
  insertAll(letters: readonly Letter[]): void {
    const all = [...this, ...letters].sort(compareLetters)
    this.oldest = this.newest = undefined
    this.size = this.bytes = 0
    for (const letter of all) this.link(this.newest, letter)
  }

  private link(older: Letter | undefined, letter: Letter): void {
    const newer = older ? older.newer : this.oldest
    letter.older = older
    letter.newer = newer
    if (older) older.newer = letter
    else this.oldest = letter
    if (newer) newer.older = letter
    else this.newest = letter
    this.size++
    this.bytes += letter.bytes
  }

  remove(letter: Letter): void {
    const { older, newer } = letter
    if (older) older.newer = newer
    else this.oldest = newer
    if (newer) newer.older = older
    else this.newest = older
    // If the old object kept these, it would keep its neighbours in memory until the next full collection.
    letter.older = letter.newer = undefined
    this.size--
    this.bytes -= letter.bytes
  }
}

const compareLetters = (a: Letter, b: Letter): number => a.change - b.change || a.stamp - b.stamp

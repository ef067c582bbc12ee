// What a home has to tell the other owners: its changes of documents of all kinds, in the order of their revisions.
//
// It begins with the latest state of everything, and grows with every change. A state that a later one has replaced is of no use to whoever
// has neither, so now and then the journal is made short again: it holds no more than twice what there is, and a little.
//
// A later change replaces an earlier one only when it is durable itself: else who was told of the later one alone would have what never
// happened, if the process dies.
//
// Not here: who is told when (sharing.ts).

import type { DocumentChange, DocumentKind } from '../../messages/messages.js'

export interface JournalEntry {
  readonly revision: number
  readonly kind: DocumentKind
  readonly tenant: string
  readonly id: string
  /** Gives the text of what it then was; undefined: it was removed. */
  readonly text: (() => string) | undefined
}

/** What of a journal is told at once. */
export interface Extract {
  readonly changes: readonly DocumentChange[]
  /** Whether nothing is left. */
  readonly isAll: boolean
}

/** Entries that may be there in vain besides as many as there are in use. */
const slack = 1000

export class Journal {
  private entries: JournalEntry[]
  private lengthMax: number

  /** `entries`: in any order. */
  constructor(entries: readonly JournalEntry[] = []) {
    this.entries = [...entries].sort((a, b) => a.revision - b.revision)
    this.lengthMax = 2 * this.entries.length + slack
  }

  get length(): number {
    return this.entries.length
  }

  /** Adds a change, whose revision is above all others. */
  append(entry: JournalEntry): void {
    this.entries.push(entry)
  }

  /** The changes behind a revision up to another, in order, until they have so many bytes. One at least, if there is any. */
  extract(after: number, upTo: number, bytesMax: number): Extract {
    const changes: DocumentChange[] = []
    let bytes = 0
    for (let at = this.placeAfter(after); at < this.entries.length; at++) {
      const { text: encode, ...change } = this.entries[at]!
      if (change.revision > upTo) break
      if (bytes >= bytesMax) return { changes, isAll: false }
      const text = encode?.()
      bytes += text?.length ?? 0
      changes.push({ ...change, text })
    }
    return { changes, isAll: true }
  }

  /** Drops what nobody needs, if that is much: what was replaced durably (`upTo`), and removals that all have been told of (`told`). */
  shorten(upTo: number, told: number): void {
    if (this.entries.length <= this.lengthMax) return
    const seen = new Set<string>()
    this.entries = this.entries
      .reverse()
      .filter(({ revision, kind, tenant, id, text }) => {
        if (revision > upTo) return true
        const key = `${kind}\0${tenant}\0${id}`
        if (seen.has(key)) return false
        seen.add(key)
        return text !== undefined || revision > told
      })
      .reverse()
    this.lengthMax = 2 * this.entries.length + slack
  }

  /** How many entries are not behind a revision. */
  private placeAfter(revision: number): number {
    let low = 0
    let high = this.entries.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.entries[middle]!.revision <= revision) low = middle + 1
      else high = middle
    }
    return low
  }
}

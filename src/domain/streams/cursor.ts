// Cursors: how far a reader of a stream has read (docs/interface/live.md#resuming).
//
// A cursor has a tick and the identity of the rings in which ticks count. Each owner of shards keeps its latest changes
// in a ring and numbers them with ticks, which grow with its clock. All changes up to the tick of a cursor were sent to
// the reader. With several owners the tick is the least of theirs: a reader that resumes may receive changes again, and
// misses none.
//
// A ring is lost with its process. So a cursor counts only where the same rings exist as when it was made; otherwise
// the reader gets a `gap`.

/** How far a reader has read. */
export interface StreamCursor {
  /** Identifies the rings of all owners together (`ringsDigest`). */
  readonly rings: string
  /** All changes up to this one were sent. */
  readonly tick: number
}

/** Characters of a cursor, at most: docs/interface/live.md promises 400. */
export const cursorLengthMax = 64

const syntax = /^1\.([0-9a-z]{1,16})\.([0-9a-z]{1,11})$/

export const renderCursor = ({ rings, tick }: StreamCursor): string => `1.${rings}.${tick.toString(36)}`

/** The cursor of a text; undefined: no server makes such a text. */
export function parseCursor(text: string): StreamCursor | undefined {
  const found = text.length <= cursorLengthMax ? syntax.exec(text) : null
  if (!found) return undefined
  const tick = Number.parseInt(found[2]!, 36)
  return Number.isSafeInteger(tick) ? { rings: found[1]!, tick } : undefined
}

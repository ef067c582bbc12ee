// Reads the rows of a store in a loop: some at a time, and with a cursor that is closed when the loop ends, however it
// ends.
//
// Not here: cursors themselves (storage), loops that read ahead or keep their place between requests (shard/read).

import { Unreadable } from './domain/unreadable.js'
import type { Range, Row, RowParts, StoreReader } from './ports.js'

export interface ReadOptions {
  /** Default: both. */
  readonly parts?: RowParts
  /**
   * Rows that are read at once, and in memory at a time. More are quicker, as long as they are small. Default: 1000.
   */
  readonly rowsPerRead?: number
}

/** The rows of a range as they stand when the loop begins, in key order. */
export async function* rowsOf(
  store: Pick<StoreReader, 'cursor'>,
  range: Range,
  { parts = 'both', rowsPerRead = 1000 }: ReadOptions = {},
): AsyncGenerator<Row[], void, void> {
  const cursor = store.cursor(range, parts)
  try {
    for (let rows = await cursor.next(rowsPerRead); rows.length > 0; rows = await cursor.next(rowsPerRead)) yield rows
  } finally {
    await cursor.close()
  }
}

/** All rows of a range at once: for ranges that are known to be short. */
export async function allRowsOf(
  store: Pick<StoreReader, 'cursor'>,
  range: Range,
  options: ReadOptions = {},
): Promise<Row[]> {
  const all: Row[] = []
  for await (const rows of rowsOf(store, range, options)) for (const row of rows) all.push(row)
  return all
}

/** Bytes of a key that a sentence shows. */
const shownBytesMax = 100

/** Gives what `read` makes of the row with a key. If it fails, the failure says which row that is. */
export function readRow<T>(key: Buffer, read: () => T): T {
  try {
    return read()
  } catch (error) {
    const place = JSON.stringify(key.toString('latin1', 0, shownBytesMax))
    throw new Unreadable(`${(error as Error).message} (the row with key ${place})`, { cause: error })
  }
}

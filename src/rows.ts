// Reads the rows of a store in a loop, some rows at a time. The cursor is closed whenever the loop ends, also after an
// error or a `break`.
//
// Not here: cursors themselves (storage), loops that read ahead or keep their place between requests (shard/read).

import { Unreadable } from './domain/unreadable.js'
import type { Range, Row, RowParts, StoreReader } from './ports.js'

export interface ReadOptions {
  /** Default: both. */
  readonly parts?: RowParts
  /**
   * Rows per read, which are in memory at the same time. More rows are faster while the rows are small. Default: 1000.
   */
  readonly rowsPerRead?: number
}

/** The rows of a range, in key order, in their state at the start of the loop. */
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

/** All rows of a range at once. Only for ranges that are known to be short. */
export async function allRowsOf(
  store: Pick<StoreReader, 'cursor'>,
  range: Range,
  options: ReadOptions = {},
): Promise<Row[]> {
  const all: Row[] = []
  for await (const rows of rowsOf(store, range, options)) for (const row of rows) all.push(row)
  return all
}

/** Bytes of a key that an error text shows. */
const shownBytesMax = 100

/** Returns the result of `read` for the row with this key. If `read` fails, the error text names the row. */
export function readRow<T>(key: Buffer, read: () => T): T {
  try {
    return read()
  } catch (error) {
    const place = JSON.stringify(key.toString('latin1', 0, shownBytesMax))
    throw new Unreadable(`${(error as Error).message} (the row with key ${place})`, { cause: error })
  }
}

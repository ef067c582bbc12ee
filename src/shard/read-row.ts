// Reading rows of a store that have to be understood: one that cannot be is told with its place, and ends what wanted to read it.

import { Unreadable } from '../domain/unreadable.js'

/** Bytes of a key that a sentence shows. */
const shownBytesMax = 100

/** Gives what `read` makes of the row with a key. */
export function readRow<T>(key: Buffer, read: () => T): T {
  try {
    return read()
  } catch (error) {
    const place = JSON.stringify(key.toString('latin1', 0, shownBytesMax))
    throw new Unreadable(`${(error as Error).message} (the row with key ${place})`, { cause: error })
  }
}

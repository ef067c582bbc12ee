// A RocksDB that another thread of this process has open, as far as it can be read.
//
// The database is neither opened nor closed here. Whoever opened it closes it, and waits until this thread has left.

import type { RocksLevel } from '@nxtedition/rocksdb'
import type { Cursor, Range, RowParts, SharedStore, StoreReader } from '../ports.js'
import { RocksCursor } from './rocks-cursor.js'

const none = Object.freeze({})

export async function attachRocksStore({ handle }: SharedStore): Promise<StoreReader> {
  const { RocksLevel } = (await import('@nxtedition/rocksdb')).default
  const db = new RocksLevel(handle, { keyEncoding: 'buffer', valueEncoding: 'buffer' })
  await db.open()
  return new AttachedStore(db)
}

class AttachedStore implements StoreReader {
  readonly #db: RocksLevel

  constructor(db: RocksLevel) {
    this.#db = db
  }

  get(key: Uint8Array): Buffer | undefined {
    return this.getMany([key])[0]
  }

  getMany(keys: readonly Uint8Array[]): (Buffer | undefined)[] {
    return this.#db._getManySync(keys, none)
  }

  cursor(range: Range, parts?: RowParts): Cursor {
    return new RocksCursor(this.#db, range, parts, () => {})
  }
}

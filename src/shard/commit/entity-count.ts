// How many entities there are: what the store had at the start, read in the background, and what has changed since.
//
// The rows are read as they stood when reading began, before the first change: so nothing is counted twice. There are as many of them as
// pairs of path and type, not as entities.

import type { Range, StoreReader } from '../../ports.js'
import { decodeNumber } from '../keys.js'
import { allDirectories } from '../layout.js'
import type { Directory } from './directory.js'

const rowsPerRead = 1000

export class EntityCount {
  private readonly directory: Pick<Directory, 'difference'>
  private readonly range: Range
  private before: number | undefined
  private reading: Promise<void> | undefined
  private isStopped = false

  /** `range`: the rows of the directory. */
  constructor(directory: Pick<Directory, 'difference'>, range = allDirectories()) {
    this.directory = directory
    this.range = range
  }

  /** undefined: not known yet. */
  get total(): number | undefined {
    return this.before === undefined ? undefined : this.before + this.directory.difference
  }

  /** Begins to read; to be called before any change. */
  begin(store: StoreReader): void {
    const cursor = store.cursor(this.range, 'values')
    const read = async (): Promise<void> => {
      let sum = 0
      try {
        while (!this.isStopped) {
          const rows = await cursor.next(rowsPerRead)
          for (const { value } of rows) sum += decodeNumber(value)
          if (rows.length > 0) continue
          this.before = sum
          return
        }
      } finally {
        await cursor.close()
      }
    }
    // A store that cannot be read fails for others, who tell; here a number stays unknown.
    this.reading = read().catch(() => undefined)
  }

  /** Reads no more; resolves when the store is not needed. */
  async stop(): Promise<void> {
    this.isStopped = true
    await this.reading
  }
}

// The first places of very many small ranges, in order of creation: one pass over the type index of the tenant.
//
// To open a cursor costs as much as to read a hundred rows. A tenant with 40,000 service paths would need as many
// cursors for one page, and the first-page cache does not hold so many ranges. So a pass reads their rows in the order
// of keys, and keeps the earliest places. Rows of other ranges cost the pass one portion at most: if a portion ends
// among them, a new cursor begins at the next wanted range.
//
//   keys     /a A   /a B   /b A .................   /c A
//   wanted   x                                      x
//   read     [ portion ]   [ portion ] ............ [ portion ]
//
// Not here: the merge with larger ranges (places.ts).

import { Pace, sorted } from '../../domain/pace.js'
import type { Clock, Cursor, Row, StoreReader } from '../../ports.js'
import { parseTypeKey, positionOfTypeKey, tenantTypeRange, typeRange } from '../layout.js'
import type { Owned } from '../replicate/ownership.js'
import { comparePlaces, type EntityPlace, type PlaceRange } from './entity-place.js'

/** A request for the first places of several ranges of a tenant. */
export interface SmallRangesPass {
  readonly tenant: string
  readonly ranges: readonly PlaceRange[]
  readonly placesMax: number
}

/** Index rows per read: so many are read on another thread. */
const rowsPerRead = 512

/** Returns the first places of the ranges, `placesMax` at most, in owned shards. */
export async function firstOfSmallRanges(
  store: StoreReader,
  clock: Clock,
  { tenant, ranges, placesMax }: SmallRangesPass,
  owned?: Owned,
): Promise<EntityPlace[]> {
  const pace = new Pace(clock)
  const names = new Set(ranges.map(nameOf))
  const earliest = new Earliest(placesMax, pace)
  let starts: readonly Buffer[] | undefined
  const all = tenantTypeRange(tenant)
  for (let gte: Buffer | undefined = all.gte; gte; ) {
    const last: Buffer | undefined = await readWanted(store.cursor({ gte, lt: all.lt }), names, owned, earliest, pace)
    if (!last) break
    starts ??= await sorted(
      ranges.map(({ path, type }) => typeRange(tenant, path, type).gte),
      Buffer.compare,
      pace,
    )
    gte = firstAfter(starts, last)
  }
  return earliest.end()
}

/** Reads up to a portion that ends outside the wanted ranges, and returns its last key; undefined: all is read. */
async function readWanted(
  cursor: Cursor,
  names: ReadonlySet<string>,
  owned: Owned,
  earliest: Earliest,
  pace: Pace,
): Promise<Buffer | undefined> {
  try {
    for (;;) {
      const rows = await cursor.next(rowsPerRead)
      const last = rows.at(-1)
      if (!last) return undefined
      for (const row of rows) earliest.see(row, names, owned)
      await earliest.shorten()
      if (pace.isOver) await pace.breathe()
      if (!names.has(nameOf(parseTypeKey(last.key)))) return last.key
    }
  } finally {
    await cursor.close()
  }
}

/** Places kept beyond those wanted before the surplus is dropped. */
const surplusMin = 1_000

/** Keeps the earliest places that it sees. */
class Earliest {
  private places: EntityPlace[] = []
  /** Places after this one are not among the earliest. */
  private bound: EntityPlace | undefined

  constructor(
    private readonly placesMax: number,
    private readonly pace: Pace,
  ) {}

  // [hot] For every row of a pass. Most rows are decided by their position alone.
  see({ key, value }: Row, names: ReadonlySet<string>, owned: Owned): void {
    const { created, shard } = positionOfTypeKey(key)
    if (owned && owned[shard] !== 1) return
    if (this.bound && comparePlaces({ created, shard }, this.bound) > 0) return
    const { path, type } = parseTypeKey(key)
    if (names.has(nameOf({ path, type }))) this.places.push({ created, shard, path, type, id: value.toString() })
  }

  /** Drops the surplus, if there is much. */
  async shorten(): Promise<void> {
    if (this.places.length < this.placesMax + Math.max(this.placesMax, surplusMin)) return
    this.places = await this.end()
    this.bound = this.places.at(-1)
  }

  async end(): Promise<EntityPlace[]> {
    return (await sorted(this.places, comparePlaces, this.pace)).slice(0, this.placesMax)
  }
}

const nameOf = ({ path, type }: PlaceRange): string => `${path}\0${type}`

/** The first of the sorted keys that comes after a key. */
function firstAfter(sortedKeys: readonly Buffer[], key: Buffer): Buffer | undefined {
  let low = 0
  let high = sortedKeys.length
  while (low < high) {
    const at = (low + high) >> 1
    if (Buffer.compare(sortedKeys[at]!, key) > 0) high = at
    else low = at + 1
  }
  return sortedKeys[low]
}

// The first-page cache: the first places of each type in each scope, in order of creation, kept in memory.
//
// Clients ask for the first page of a type again and again, and opening an iterator of the store costs more than all
// the other work for a page. A first page is read once, and follows creations and removals. When it becomes short,
// reading continues at its end, never from the beginning, where the store may have to pass a million deleted rows (the
// low-water mark). If that may happen at the first reading, a scan does it, because the store would block the event
// loop.
//
// Not here: the walk behind a first page (places).

import { encodedCreated } from '../../encoded-entity.js'
import type { StoreReader } from '../../ports.js'
import type { ChangeFollower } from '../commit/change-queue.js'
import type { GroupCommit } from '../commit/commit.js'
import type { TypePosition } from '../layout.js'
import type { Owned } from '../replicate/ownership.js'
import type { ShardRecord } from '../turn/apply.js'
import type { CountedRange, EntityPlace } from './entity-place.js'
import { type FirstPageScan, type FirstPageSource, type Head, readPlaces } from './places.js'
import type { Scanner } from './scans.js'

interface Kept {
  places: EntityPlace[]
  rest: TypePosition | undefined
  /** Entities of the range that were removed since it was read. */
  gone: number
}

/** A first page that is being read, and the changes meanwhile. */
interface Reading {
  readonly done: Promise<Kept>
  readonly changes: Change[]
}

interface Change {
  readonly place: EntityPlace
  readonly isThere: boolean
}

const headPlaces = 64
/** With fewer places, and more behind them, a first page is read on. */
const headPlacesMin = 32
/** The largest size of a first page that ends with its range. */
const headPlacesMax = 128
/** First pages kept, some 10 KB each at most; the least recently used one is removed. */
const firstPagesMax = 2000
/** The event loop reads when at most this many rows can have been deleted: passing them costs some 0.2 us each. */
const goneMax = 2000

export class FirstPages implements FirstPageSource, ChangeFollower {
  readonly pagesMax = firstPagesMax
  private readonly kept = new Map<string, Kept>()
  private readonly readings = new Map<string, Reading>()

  constructor(
    private readonly store: StoreReader,
    private readonly scanner: Pick<Scanner, 'head'>,
    private readonly commit: Pick<GroupCommit, 'drain'>,
    private readonly owned?: Owned,
  ) {}

  get size(): number {
    return this.kept.size
  }

  /** Forgets all first pages, those that are being read as well, because this owner has other shards from now on. */
  forget(): void {
    this.kept.clear()
    this.readings.clear()
  }

  /** The first page of a range, read if need be: some places, unless there are fewer. */
  async head(tenant: string, range: CountedRange): Promise<Head> {
    const name = nameOf(tenant, range.path, range.type)
    const known = this.kept.get(name)
    if (known && (known.places.length >= headPlacesMin || !known.rest)) {
      this.keep(name, known)
      return { places: [...known.places], rest: known.rest }
    }
    const reading = this.readings.get(name) ?? this.read(name, tenant, range, known)
    const { places, rest } = await reading.done
    return { places: [...places], rest }
  }

  // [hot] For every change.
  wants({ tenant, path, type, before, encoded }: ShardRecord): boolean {
    if ((before !== undefined && encoded) || (this.kept.size === 0 && this.readings.size === 0)) return false
    const name = nameOf(tenant, path, type)
    return this.kept.has(name) || this.readings.has(name)
  }

  follow({ tenant, path, type, id, shard, before, encoded }: ShardRecord): void {
    const name = nameOf(tenant, path, type)
    const created = encoded ? encodedCreated(encoded) : before!.created
    const change = { place: { created, shard, path, type, id }, isThere: encoded !== undefined }
    const kept = this.kept.get(name)
    // An empty one stays until others need its room: another reading would have to pass all deleted rows.
    if (kept) apply(kept, change)
    this.readings.get(name)?.changes.push(change)
  }

  private read(name: string, tenant: string, range: CountedRange, known: Kept | undefined): Reading {
    const scan: FirstPageScan = {
      tenant,
      range: { path: range.path, type: range.type },
      after: known?.rest,
      count: headPlaces,
    }
    // Entities may have been removed before this node started, and the number of those left does not show how many
    // there were. Nor does it show the number in shards that are not ours.
    const isNear = !this.owned && (known ? known.gone <= goneMax : range.count <= goneMax)
    const changes: Change[] = []
    // Staged changes are not followed, or only in part. So they must be durable when the reading begins. A reading from
    // the beginning sees all changes that were followed by then.
    const done = this.commit
      .drain()
      .then(() => {
        if (!known) changes.length = 0
        return isNear ? readPlaces(this.store, scan) : this.scanner.head(scan)
      })
      .then(found => this.learn(name, known, found, changes))
      .finally(() => {
        if (this.readings.get(name) === reading) this.readings.delete(name)
      })
    const reading = { done, changes }
    this.readings.set(name, reading)
    return reading
  }

  private learn(name: string, known: Kept | undefined, found: readonly EntityPlace[], changes: Change[]): Kept {
    const last = found.at(-1)
    const rest = found.length < headPlaces ? undefined : last && positionOf(last)
    const kept = { places: [...(known?.places ?? []), ...found], rest, gone: 0 }
    for (const change of changes) apply(kept, change)
    // It may have been forgotten meanwhile.
    if (this.readings.get(name)?.changes === changes) this.keep(name, kept)
    return kept
  }

  private keep(name: string, head: Kept): void {
    this.kept.delete(name)
    this.kept.set(name, head)
    if (this.kept.size <= firstPagesMax) return
    for (const oldest of this.kept.keys()) {
      this.kept.delete(oldest)
      return
    }
  }
}

function apply(kept: Kept, { place, isThere }: Change): void {
  const { places } = kept
  if (!isThere) {
    kept.gone++
    const at = places.findIndex(({ created, shard }) => created === place.created && shard === place.shard)
    if (at >= 0) places.splice(at, 1)
    return
  }
  if (kept.rest && !isBefore(place, kept.rest)) return
  if (!insert(places, place) || places.length < headPlacesMax) return
  places.length = headPlaces
  kept.rest = positionOf(places.at(-1) as EntityPlace)
}

/**
 * Puts a place among the others, nearly always at the end. A reading may have seen an entity, and not an older one that
 * was in flight. Returns false if the place is there already.
 */
function insert(places: EntityPlace[], place: EntityPlace): boolean {
  let at = places.length
  while (at > 0 && isBefore(place, places[at - 1]!)) at--
  const before = places[at - 1]
  if (before && !isBefore(before, place)) return false
  places.splice(at, 0, place)
  return true
}

const isBefore = (a: TypePosition, b: TypePosition): boolean =>
  a.created < b.created || (a.created === b.created && a.shard < b.shard)

const positionOf = ({ created, shard }: EntityPlace): TypePosition => ({ created, shard })

const nameOf = (tenant: string, path: string, type: string): string => `${tenant}\0${path}\0${type}`

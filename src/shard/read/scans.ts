// Scans: work that reads many entities, apart from the turns of the event loop. These are lists that no index or view
// answers, the building of views, and reading rows that are many or far away.
//
// Where another thread can read the store, a reader thread does it (scan-thread.ts). Elsewhere it is done here in short
// steps, between which the event loop has its turn. Both run the functions below.

import { meansIdentity } from '../../domain/queries/selection.js'
import { type Refusal, refusals } from '../../domain/refusal.js'
import type { ShardMap } from '../../domain/scope.js'
import { encodedCreated, encodedId, encodedType, hasType, Wanted } from '../../encoded-entity.js'
import type { ListRequest, ShardReply } from '../../messages/messages.js'
import type { Clock, Range, StoreReader } from '../../ports.js'
import { decodeRow, entityRange, parseEntityKey } from '../layout.js'
import { nested } from '../nested.js'
import type { Owned } from '../replicate/ownership.js'
import { type KeyHashes, type KeyScan, readKeys } from '../turn/key-filter.js'
import type { CountedRange, EntityPlace } from './entity-place.js'
import { encodedEntitiesAt, Matches, readEncoded, valuesIfMeant } from './matches.js'
import { keysReply, PageEntities, pageReply } from './pages.js'
import { type FirstPageScan, readPlaces } from './places.js'
import { cellsOf, type Layout, Table, type TableParts } from './views/table.js'

export interface ListScan {
  readonly request: ListRequest
  readonly ranges: readonly CountedRange[]
  readonly deadlineMs: number
}

export interface ViewPart extends CountedRange {
  readonly layout: Layout
}

export interface BuildScan {
  readonly tenant: string
  readonly parts: readonly ViewPart[]
}

/** Runs scans. A failure of the store, or of the thread, rejects. */
export interface Scanner {
  list(scan: ListScan): Promise<ShardReply>
  /** Returns a table for each part, in their order. */
  build(scan: BuildScan): Promise<readonly TableParts[]>
  head(scan: FirstPageScan): Promise<readonly EntityPlace[]>
  keys(scan: KeyScan): Promise<KeyHashes>
  /** Ends the present scans; no more may be requested. */
  close(): Promise<void>
}

export interface ScanSources {
  readonly store: StoreReader
  readonly shardMap: ShardMap
  readonly clock: Pick<Clock, 'monoMs'>
  readonly breathe: Breathe
  /** The shards whose rows count. */
  readonly owned?: Owned
}

/** The page of a list, and how many entities match. A page of many bytes has its first entities only, as a part. */
export async function scanList({ request, ranges, deadlineMs }: ListScan, sources: ScanSources): Promise<ShardReply> {
  const { store, clock } = sources
  const { tenant, selection } = request
  const endMs = clock.monoMs() + deadlineMs
  const matches = new Matches(request)
  let refusal: Refusal | undefined
  let looks = 0
  await visit(sources, tenant, ranges, ({ shard, range, encoded }) => {
    const { path, type } = ranges[range]!
    if (++looks % looksPerTimeCheck === 0 && clock.monoMs() > endMs) {
      refusal = refusals.scanTooLong(deadlineMs)
      return false
    }
    const id = encodedId(encoded)
    if (!meansIdentity(selection, id, type)) return true
    const values = valuesIfMeant(request, encoded, path)
    if (values) matches.add({ place: { created: encodedCreated(encoded), shard, path, type, id }, values })
    return true
  })
  if (refusal) return { kind: 'refused', refusal }
  const page = matches.page()
  if (request.part === 'keys') return keysReply(page)
  const { places } = page
  const bytesMax = Math.min(request.bytesMax ?? Number.POSITIVE_INFINITY, scannedBytesMax)
  const read = (from: number, count: number) => readEncoded(store, tenant, places.slice(from, from + count))
  const encodedEntities = new PageEntities(places.length, bytesMax, read).all()
  return pageReply(encodedEntities.length < places.length ? 'entities' : request.part, page, encodedEntities)
}

/**
 * Bytes of entities that a scan returns: they are counted only when they arrive. Of a larger page the reply has the
 * first entities, and the caller reads the others.
 */
const scannedBytesMax = 1024 * 1024

const looksPerTimeCheck = 64

/** Reads everything once and makes the tables. */
export async function buildTables({ tenant, parts }: BuildScan, sources: ScanSources): Promise<TableParts[]> {
  const tables = parts.map(part => new Table(part.layout))
  const wanted = parts.map(
    ({ layout: { columns, places } }) => new Wanted(new Set(columns.map(({ path }) => path.attribute)), places),
  )
  await visit(sources, tenant, parts, ({ shard, range, encoded }) => {
    const content = wanted[range]!.decode(encoded)
    tables[range]!.append(content.created, shard, cellsOf(parts[range]!.layout, content, parts[range]!.path))
    return true
  })
  for (const table of tables) {
    table.sort()
    await sources.breathe()
  }
  return tables.map(table => table.parts)
}

interface Seen {
  readonly shard: number
  /** The index of the range to which it belongs. */
  readonly range: number
  readonly encoded: Buffer
}

/**
 * A range with at most so many entities is read through the type index. A look costs three times as much, but a path
 * may have far more entities.
 */
const fewMax = 5_000
/** This applies as long as all such ranges together have at most so many. */
const fewMaxInAll = 20_000
const placesPerStep = 64
const bytesPerStep = 1024 * 1024

/** Passes every entity of the ranges to `take`, until that returns false. */
async function visit(
  sources: ScanSources,
  tenant: string,
  ranges: readonly CountedRange[],
  take: (seen: Seen) => boolean,
): Promise<void> {
  const isFew = ({ count }: CountedRange): boolean => count <= fewMax
  const isWorthIt = ranges.filter(isFew).reduce((sum, { count }) => sum + count, 0) <= fewMaxInAll
  const swept = new Finder()
  for (const [index, range] of ranges.entries()) {
    if (!isWorthIt || !isFew(range)) swept.add(range, index)
    else if (!(await walk(sources, tenant, range, index, take))) return
  }
  const { store, shardMap, breathe, owned } = sources
  const taken = ({ shard, path, encoded }: Swept): boolean => {
    const range = swept.rangeOf(path, encoded)
    return range === undefined ? true : take({ shard, range, encoded })
  }
  await sweep(store, shardMap, tenant, swept.paths, breathe, taken, owned)
}

/** Finds the range of an entity. [hot] For every entity of a sweep; most have the range of the one before. */
class Finder {
  private readonly ranges = new Map<string, Map<string, number>>()
  private path = ''
  private type: Uint8Array | undefined
  private last: number | undefined

  add({ path, type }: CountedRange, index: number): void {
    nested(this.ranges, path).set(type, index)
  }

  get paths(): readonly string[] {
    return [...this.ranges.keys()]
  }

  rangeOf(path: string, encoded: Buffer): number | undefined {
    if (this.type && path === this.path && hasType(encoded, this.type)) return this.last
    const type = encodedType(encoded)
    this.path = path
    this.type = Buffer.from(type)
    this.last = this.ranges.get(path)?.get(type)
    return this.last
  }
}

/** Passes the entities of one range, in order of creation, to `take`; false when that returned false. */
async function walk(
  { store, breathe, owned }: ScanSources,
  tenant: string,
  { path, type }: CountedRange,
  range: number,
  take: (seen: Seen) => boolean,
): Promise<boolean> {
  let after: EntityPlace | undefined
  for (;;) {
    const scan = { tenant, range: { path, type }, after, count: placesPerStep }
    const places = await readPlaces(store, scan, owned)
    let bytes = 0
    for (const { place, encoded } of encodedEntitiesAt(store, tenant, places)) {
      if (!take({ shard: place.shard, range, encoded })) return false
      bytes += encoded.length
      if (bytes < bytesPerStep) continue
      bytes = 0
      await breathe()
    }
    if (places.length < placesPerStep) return true
    after = places.at(-1)
    await breathe()
  }
}

export class StepwiseScanner implements Scanner {
  private readonly sources: ScanSources
  private readonly running = new Set<Promise<unknown>>()
  private closed = false

  constructor(store: StoreReader, shardMap: ShardMap, clock: Clock, owned?: Owned) {
    const breathe = (): Promise<void> =>
      new Promise((resolve, reject) =>
        clock.endOfTick(() => (this.closed ? reject(new Error('the node is stopping')) : resolve())),
      )
    this.sources = { store, shardMap, clock, breathe, ...(owned && { owned }) }
  }

  list(scan: ListScan): Promise<ShardReply> {
    return this.run(scanList(scan, this.sources))
  }

  build(scan: BuildScan): Promise<readonly TableParts[]> {
    return this.run(buildTables(scan, this.sources))
  }

  head(scan: FirstPageScan): Promise<readonly EntityPlace[]> {
    return this.run(readPlaces(this.sources.store, scan, this.sources.owned))
  }

  keys(scan: KeyScan): Promise<KeyHashes> {
    return this.run(readKeys(this.sources.store, scan, this.sources.breathe))
  }

  async close(): Promise<void> {
    this.closed = true
    await Promise.allSettled(this.running)
  }

  private run<T>(scan: Promise<T>): Promise<T> {
    this.running.add(scan)
    return scan.finally(() => this.running.delete(scan))
  }
}

/** Gives other work its turn; a sweep waits for it between steps. */
type Breathe = () => Promise<void>

interface Swept {
  readonly shard: number
  readonly path: string
  readonly encoded: Buffer
}

/** Rows read at a time, the next ones on another thread meanwhile: a quarter quicker with a free core. */
const rowsPerRead = 512
/** Rows between two pauses: some 0.5 ms of work on entities. */
const rowsPerStep = 128

/**
 * Passes every entity under the exact paths, of owned shards (`owned`), to `take`, until that returns false. It goes
 * shard by shard, and each has the state of the moment when the sweep reaches it. Reading rows in order is ten times
 * cheaper than finding each by its key.
 */
export async function sweep(
  store: StoreReader,
  shardMap: ShardMap,
  tenant: string,
  paths: readonly string[],
  breathe: Breathe,
  take: (swept: Swept) => boolean,
  owned?: Owned,
): Promise<void> {
  const wanted = new Set(paths)
  for (const { shard, range, path: known } of rangesToScan(shardMap, tenant, paths)) {
    if (owned && owned[shard] !== 1) continue
    const cursor = store.cursor(range, known === undefined ? 'both' : 'values')
    try {
      let reading = cursor.next(rowsPerRead)
      for (;;) {
        const rows = await reading
        if (rows.length === 0) break
        reading = cursor.next(rowsPerRead)
        reading.catch(() => {}) // the failure appears where it is awaited
        for (const [index, { key, value }] of rows.entries()) {
          const path = known ?? parseEntityKey(key).path
          if (!wanted.has(path)) continue
          for (const encoded of decodeRow(value)) if (!take({ shard, path, encoded })) return
          if (index % rowsPerStep === rowsPerStep - 1) await breathe()
        }
        await breathe()
      }
    } finally {
      await cursor.close()
    }
  }
}

interface ScanRange {
  readonly shard: number
  readonly range: Range
  /** The path of all its rows; undefined: they have several. */
  readonly path: string | undefined
}

/** The ranges to read: each path in each of its shards, or, when the paths are many, each shard of the tenant once. */
function rangesToScan(shardMap: ShardMap, tenant: string, paths: readonly string[]): ScanRange[] {
  const { shards, spread } = shardMap.placement
  if (paths.length * spread <= shards)
    return paths.flatMap(path =>
      shardMap.shardsOf(tenant, path).map(shard => ({ shard, range: entityRange(shard, tenant, path), path })),
    )
  return Array.from({ length: shards }, (_, shard) => ({ shard, range: entityRange(shard, tenant), path: undefined }))
}

// Scans: work that looks into many entities, apart from the turns of the event loop. Two kinds: a list that no index or view answers, and
// the building of views. And one of few rows behind many that are gone: the beginning of a type.
//
// Where the store can be read by another thread, a reader thread does it (scan-thread.ts); elsewhere it is done here in short steps between
// which the event loop has its turn. Both run the two functions below.

import { type Refusal, refusals } from '../domain/refusal.js'
import type { ShardMap } from '../domain/scope.js'
import { mayMeanType, meansIdentity } from '../domain/selection.js'
import { imageCreated, imageId, imageType, Wanted } from '../image.js'
import type { ListRequest, ShardReply } from '../messages.js'
import type { Clock, StoreReader } from '../ports.js'
import { fetchFound, Matches, valuesIfMeant } from './matches.js'
import { type HeadScan, type Place, readPlaces } from './places.js'
import { type Breathe, sweep } from './sweep.js'
import { cellsOf, type Layout, Table, type TableParts } from './views/table.js'

/** A list over everything under exact paths. */
export interface ListScan {
  readonly request: ListRequest
  readonly paths: readonly string[]
  readonly deadlineMs: number
}

/** The view of one type in one path. */
export interface ViewPart {
  readonly path: string
  readonly type: string
  readonly layout: Layout
}

export interface BuildScan {
  readonly tenant: string
  readonly parts: readonly ViewPart[]
}

/** Who runs scans. A failure of the store, or of the thread, rejects. */
export interface Scanner {
  list(scan: ListScan): Promise<ShardReply>
  /** Gives a table for each part, in their order. */
  build(scan: BuildScan): Promise<readonly TableParts[]>
  head(scan: HeadScan): Promise<readonly Place[]>
  /** Ends what is under way; nothing may be asked any more. */
  close(): Promise<void>
}

/** What a scan needs of whoever runs it. */
export interface Ground {
  readonly store: StoreReader
  readonly shardMap: ShardMap
  readonly clock: Pick<Clock, 'monoMs'>
  readonly breathe: Breathe
}

/** The page of a list, and how many entities fit. */
export async function scanList({ request, paths, deadlineMs }: ListScan, ground: Ground): Promise<ShardReply> {
  const { store, shardMap, clock, breathe } = ground
  const { tenant, selection } = request
  const endMs = clock.monoMs() + deadlineMs
  const matches = new Matches(request)
  let refusal: Refusal | undefined
  let looks = 0
  await sweep(store, shardMap, tenant, paths, breathe, ({ shard, path, image }) => {
    if (++looks % looksPerTimeCheck === 0 && clock.monoMs() > endMs) {
      refusal = refusals.scanTooLong(deadlineMs)
      return false
    }
    const type = imageType(image)
    if (!mayMeanType(selection, type)) return true
    const id = imageId(image)
    if (!meansIdentity(selection, id, type)) return true
    const values = valuesIfMeant(request, image, path)
    if (values) matches.add({ place: { created: imageCreated(image), shard, path, type, id }, values })
    return true
  })
  if (refusal) return { kind: 'refused', refusal }
  return { kind: 'listed', entities: fetchFound(store, tenant, matches.page()), total: matches.total }
}

const looksPerTimeCheck = 64

/** Reads everything once and makes the tables. */
export async function buildTables({ tenant, parts }: BuildScan, ground: Ground): Promise<TableParts[]> {
  const { store, shardMap, breathe } = ground
  const tables = parts.map(part => new Table(part.layout))
  const indexes = new Map(parts.map(({ path, type }, index) => [`${path}\0${type}`, index]))
  const wanted = parts.map(
    ({ layout: { columns, places } }) => new Wanted(new Set(columns.map(({ path }) => path.attribute)), places),
  )
  const paths = [...new Set(parts.map(part => part.path))]
  await sweep(store, shardMap, tenant, paths, breathe, ({ shard, path, image }) => {
    const index = indexes.get(`${path}\0${imageType(image)}`)
    if (index === undefined) return true
    const entity = wanted[index]!.decode(image)
    tables[index]!.append(entity.created, shard, cellsOf(parts[index]!.layout, entity, path))
    return true
  })
  for (const table of tables) {
    table.sort()
    await breathe()
  }
  return tables.map(table => table.parts)
}

/** Runs scans on the event loop, in steps. */
export class StepwiseScanner implements Scanner {
  private readonly ground: Ground
  private readonly running = new Set<Promise<unknown>>()
  private closed = false

  constructor(store: StoreReader, shardMap: ShardMap, clock: Clock) {
    const breathe = (): Promise<void> =>
      new Promise((resolve, reject) =>
        clock.endOfTick(() => (this.closed ? reject(new Error('the node is stopping')) : resolve())),
      )
    this.ground = { store, shardMap, clock, breathe }
  }

  list(scan: ListScan): Promise<ShardReply> {
    return this.run(scanList(scan, this.ground))
  }

  build(scan: BuildScan): Promise<readonly TableParts[]> {
    return this.run(buildTables(scan, this.ground))
  }

  head(scan: HeadScan): Promise<readonly Place[]> {
    return this.run(readPlaces(this.ground.store, scan))
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

// Reads: the entities of one id, and lists in order of creation.
//
// A read by id looks at actors, so it sees what turns have staged, and waits until that is durable. The path it lives under decides the
// key; when the request leaves paths open, the tenant's directory says which there are, and the id index which of many it is.
// A list reads the store only: it waits for the commit in flight, so that it tells nothing that may yet be lost. Streams of the
// type index, one for each path and type, each in order of creation, are merged.

import { anyCoversPath, type ShardMap } from '../domain/scope.js'
import { imageCreated, imageType } from '../image.js'
import type { FindRequest, Found, ListRequest, ShardReply } from '../messages.js'
import type { Clock, Range, Row, Store } from '../ports.js'
import type { Actor, Actors } from './actor.js'
import type { GroupCommit } from './commit.js'
import type { Directory, Paths } from './directory.js'
import { decodeRow, entityKey, idRange, parseIdKey } from './layout.js'
import { type Place, type PlaceRange, Places } from './places.js'

type OnReply = (reply: ShardReply) => void

/** Up to this many paths an id is looked up under each; above, its index row is read. */
const pathsLookedUpMax = 8
const rowsPerRead = 128

export class Lookup {
  private readonly store: Store
  private readonly actors: Actors
  private readonly commit: GroupCommit
  private readonly directory: Directory
  private readonly shardMap: ShardMap
  private readonly clock: Clock

  constructor(
    store: Store,
    actors: Actors,
    commit: GroupCommit,
    directory: Directory,
    shardMap: ShardMap,
    clock: Clock,
  ) {
    this.clock = clock
    this.store = store
    this.actors = actors
    this.commit = commit
    this.directory = directory
    this.shardMap = shardMap
  }

  // [hot] Once per read by id.
  /** All entities of an id. Synchronous when the paths are few and known. */
  find(request: FindRequest, onReply: OnReply): void {
    const { tenant, paths, id } = request
    const [only] = paths
    if (paths.length === 1 && !only!.endsWith('#'))
      return this.answer(request, [this.actor(tenant, only!, id)], onReply)
    const known = this.directory.paths(tenant)
    if (known) return this.findUnder(request, known, onReply)
    this.directory.load(tenant).then(
      paths => this.findUnder(request, paths, onReply),
      (error: Error) => onReply({ kind: 'failed', reason: error.message }),
    )
  }

  private findUnder(request: FindRequest, known: Paths, onReply: OnReply): void {
    const { tenant, paths, id } = request
    if (known.size <= pathsLookedUpMax) {
      const actors: Actor[] = []
      for (const path of known.keys()) if (anyCoversPath(paths, path)) actors.push(this.actor(tenant, path, id))
      return this.answer(request, actors, onReply, this.directory.emptied)
    }
    this.indexed(tenant, id).then(
      indexed => {
        const covered = ['/', ...indexed].filter(path => anyCoversPath(paths, path))
        this.answer(
          request,
          covered.map(path => this.actor(tenant, path, id)),
          onReply,
          true,
        )
      },
      (error: Error) => onReply({ kind: 'failed', reason: error.message }),
    )
  }

  /** The paths, other than the root, under which the id is stored. */
  private async indexed(tenant: string, id: string): Promise<string[]> {
    return (await this.readAll(idRange(tenant, id))).map(({ key }) => parseIdKey(key).path)
  }

  private actor(tenant: string, path: string, id: string): Actor {
    return this.actors.load(this.shardMap.shardOf(tenant, path, id), tenant, path, id)
  }

  /** `mayLack`: an actor may be missing because of a removal whose commit is in flight. */
  private answer(request: FindRequest, actors: readonly Actor[], onReply: OnReply, mayLack = false): void {
    const entities: Found[] = []
    let stagedIn = 0
    for (const actor of actors) {
      if (actor.stagedIn > stagedIn) stagedIn = actor.stagedIn
      for (const { type, image } of actor.variants)
        if (request.type === undefined || request.type === type) entities.push({ path: actor.place.path, image })
    }
    const reply: ShardReply = { kind: 'found', entities }
    const tell = (failure?: Error): void => onReply(failure ? { kind: 'failed', reason: failure.message } : reply)
    if (stagedIn > this.commit.durable) this.commit.afterCommit(stagedIn, tell)
    else if (mayLack) this.commit.afterFlight(tell)
    else onReply(reply)
  }

  /** A page of entities in order of creation, and how many there are. */
  list(request: ListRequest, onReply: OnReply): void {
    this.commit.afterFlight(failure => {
      if (failure) return onReply({ kind: 'failed', reason: failure.message })
      this.page(request).then(
        page => this.commit.afterFlight(late => onReply(late ? { kind: 'failed', reason: late.message } : page)),
        (error: Error) => onReply({ kind: 'failed', reason: error.message }),
      )
    })
  }

  private async page(request: ListRequest): Promise<ShardReply> {
    const { tenant, offset, limit } = request
    const known = await this.directory.load(tenant)
    if (request.ids) return this.pageOfIds(request, request.ids, known)
    const ranges = rangesOf(request, known)
    const total = ranges.reduce((sum, range) => sum + range.count, 0)
    const keys = limit === 0 || offset >= total ? [] : await this.places(tenant, ranges, offset, limit)
    const rows = this.store.getMany(keys.map(({ path, id, shard }) => entityKey(shard, tenant, path, id)))
    const entities = keys.flatMap(({ path, type }, index) => {
      const image = rows[index] && decodeRow(rows[index]!).find(candidate => imageType(candidate) === type)
      return image ? [{ path, image }] : []
    })
    return { kind: 'listed', entities, total }
  }

  /** Few ids are looked up one by one and put in order. */
  private async pageOfIds(request: ListRequest, ids: readonly string[], known: Paths): Promise<ShardReply> {
    const { tenant, paths, types, offset, limit } = request
    const found: Found[] = []
    for (const id of new Set(ids)) {
      const candidates = known.size <= pathsLookedUpMax ? [...known.keys()] : ['/', ...(await this.indexed(tenant, id))]
      const covered = candidates.filter(path => anyCoversPath(paths, path))
      const rows = this.store.getMany(
        covered.map(path => entityKey(this.shardMap.shardOf(tenant, path, id), tenant, path, id)),
      )
      for (const [index, row] of rows.entries())
        for (const image of row ? decodeRow(row) : [])
          if (!types || types.includes(imageType(image))) found.push({ path: covered[index]!, image })
    }
    found.sort((a, b) => imageCreated(a.image) - imageCreated(b.image))
    return { kind: 'listed', entities: found.slice(offset, offset + limit), total: found.length }
  }

  /** The places from `offset` on, `limit` at most. */
  private async places(tenant: string, ranges: readonly PlaceRange[], offset: number, limit: number): Promise<Place[]> {
    const places = new Places(this.store, this.clock, tenant, ranges)
    try {
      await places.skip(offset)
      return await places.next(limit)
    } finally {
      await places.close()
    }
  }

  private async readAll(range: Range): Promise<Row[]> {
    const cursor = this.store.cursor(range)
    const all: Row[] = []
    try {
      for (;;) {
        const rows = await cursor.next(rowsPerRead)
        if (rows.length === 0) return all
        all.push(...rows)
      }
    } finally {
      await cursor.close()
    }
  }
}

/** The parts of the type index that a list is about, each with its number of entities. */
function rangesOf({ paths, types }: ListRequest, known: Paths): (PlaceRange & { readonly count: number })[] {
  const ranges: (PlaceRange & { readonly count: number })[] = []
  for (const [path, counts] of known) {
    if (!anyCoversPath(paths, path)) continue
    for (const [type, count] of counts) if (!types || types.includes(type)) ranges.push({ path, type, count })
  }
  return ranges
}

// Reads: the entities of one id, and lists in order of creation.
//
// A read by id looks at actors, so it sees what turns have staged, and waits until that is durable. The path it lives under decides the
// key; when the request leaves paths open, the tenant's directory says which there are, and the id index which of many it is.
// A list reads the store only: it waits for the commit in flight, so that it tells nothing that may yet be lost. Streams of the
// type index, one for each path and type, each in order of creation, are merged.

import { anyCoversPath, type ShardMap } from '../domain/scope.js'
import { imageCreated, imageType } from '../image.js'
import type { FindRequest, Found, ListRequest, ShardReply } from '../messages.js'
import type { Cursor, Range, Row, Store } from '../ports.js'
import type { Actor, Actors } from './actor.js'
import type { GroupCommit } from './commit.js'
import type { Directory, Paths } from './directory.js'
import { decodeRow, entityKey, idRange, parseIdKey, parseTypeKey, typeRange } from './layout.js'

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

  constructor(store: Store, actors: Actors, commit: GroupCommit, directory: Directory, shardMap: ShardMap) {
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
    const streams = this.streams(request, known)
    const total = streams.reduce((sum, stream) => sum + stream.count, 0)
    const keys = limit === 0 || offset >= total ? [] : await merge(streams, offset, limit)
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

  private streams({ tenant, paths, types }: ListRequest, known: Paths): Stream[] {
    const streams: Stream[] = []
    for (const [path, counts] of known) {
      if (!anyCoversPath(paths, path)) continue
      for (const [type, count] of counts)
        if (!types || types.includes(type)) streams.push(new Stream(this.store, tenant, path, type, count))
    }
    return streams
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

/** The place of one entity in the order of creation. */
interface Place {
  readonly created: number
  readonly shard: number
  readonly path: string
  readonly type: string
  readonly id: string
}

/** The entities of one path and type, in order of creation. */
class Stream {
  readonly count: number
  private readonly path: string
  private readonly type: string
  private readonly open: () => Cursor
  private cursor: Cursor | undefined
  private rows: Row[] = []
  private at = 0
  private ended = false

  constructor(store: Store, tenant: string, path: string, type: string, count: number) {
    this.path = path
    this.type = type
    this.count = count
    this.open = () => store.cursor(typeRange(tenant, path, type))
  }

  /** The next place without taking it. `wanted` is how many more the reader may ask for. */
  async peek(wanted: number): Promise<Place | undefined> {
    if (this.at === this.rows.length && !this.ended) {
      const rowsMax = Math.min(Math.max(wanted, 1), rowsPerRead)
      this.cursor ??= this.open()
      this.rows = await this.cursor.next(rowsMax)
      this.at = 0
      this.ended = this.rows.length === 0
    }
    const row = this.rows[this.at]
    if (!row) return undefined
    const { created, shard } = parseTypeKey(row.key)
    return { created, shard, path: this.path, type: this.type, id: row.value.toString() }
  }

  take(): void {
    this.at++
  }

  async close(): Promise<void> {
    await this.cursor?.close()
  }
}

/** The places from `offset` on, `limit` at most, of all streams together. */
async function merge(streams: readonly Stream[], offset: number, limit: number): Promise<Place[]> {
  const places: Place[] = []
  try {
    const heads: { stream: Stream; place: Place }[] = []
    for (const stream of streams) {
      const place = await stream.peek(offset + limit)
      if (place) heads.push({ stream, place })
    }
    for (let taken = 0; taken < offset + limit && heads.length > 0; taken++) {
      let first = 0
      for (let i = 1; i < heads.length; i++) if (isBefore(heads[i]!.place, heads[first]!.place)) first = i
      const { stream, place } = heads[first]!
      if (taken >= offset) places.push(place)
      stream.take()
      const next = await stream.peek(offset + limit - taken - 1)
      if (next) heads[first]!.place = next
      else heads.splice(first, 1)
    }
    return places
  } finally {
    await Promise.all(streams.map(stream => stream.close()))
  }
}

const isBefore = (a: Place, b: Place): boolean =>
  a.created < b.created || (a.created === b.created && a.shard < b.shard)

// The entities with a location in the part of the world that the map shows, read by pages and kept up to date by the
// live feed.
//
// The feed begins first, so no change between a page and the feed is lost: what the feed has reported since counts more
// than a page. The feed has the same filter, so it reports an entity that leaves the part as well. Another part of the
// world is another object; the view shows the earlier one until this one has its pages.
//
// Not here: groups and colours (map-marks.ts), drawing (marks-layer.ts).

import type { JsonObject } from '../../domain/json.js'
import { ChangeFeed, type EntityNews, gatherMs, type LiveState } from '../interface/change-feed.js'
import type { ConsoleClient, RequestProblem } from '../interface/console-client.js'
import type { ConsoleRequest } from '../interface/console-request.js'
import { Observable } from '../state/observable.js'
import type { MapArea } from './map-area.js'
import { locationIn, valueIn } from './map-names.js'
import { type PlaceShape, shapeOf } from './place-shape.js'

export interface MapPlace {
  readonly id: string
  readonly type: string
  readonly path: string
  readonly shape: PlaceShape
  /** The number that gives the colour; undefined: it has none. */
  readonly value: number | undefined
}

export interface PlaceSelection {
  readonly tenant: string
  readonly path: string
  readonly type: string
  readonly q: string
  /** The part of the world that the map shows. */
  readonly area: MapArea
  /** The attributes that may be locations. */
  readonly locations: readonly string[]
  /** The attribute whose number gives the colour; an empty text: none. */
  readonly colour: string
}

/** Entities that are kept. Raising it costs memory and time of the browser. */
export const placesMax = 10_000
const pageEntities = 1_000
/** Least time between two questions about how many there are. */
const countMs = 5_000

export class MapPlaces {
  /** How many there are; undefined: not known yet. */
  readonly total = new Observable<number | undefined>(undefined)
  readonly problem = new Observable<RequestProblem | undefined>(undefined)
  /** Whether all pages have been read at least once. */
  readonly isRead = new Observable(false)
  /** Changes with each change of an entity. */
  readonly version = new Observable(0)
  readonly feed: Observable<LiveState>
  private readonly byKey = new Map<string, MapPlace>()
  private readonly ending = new AbortController()
  private readonly changes: ChangeFeed
  private readonly unfollow: readonly (() => void)[]
  /** Entities about which the feed has reported something since the reading began. */
  private reported = new Set<string>()
  private reading = 0
  private counting: ReturnType<typeof setTimeout> | undefined

  /** `onUnknown`: an entity has a location in an attribute that is not among `locations`. */
  constructor(
    private readonly client: ConsoleClient,
    readonly selection: PlaceSelection,
    private readonly onUnknown: () => void,
  ) {
    const again = (): void => void this.read()
    this.changes = new ChangeFeed(client, this.feedRequest(), news => this.apply(news), again)
    this.feed = this.changes.state
    const begin = ({ kind }: LiveState): void => {
      if (kind !== 'opening') again()
    }
    this.unfollow = [this.feed.follow(begin), client.returns.follow(again)]
  }

  close(): void {
    this.ending.abort()
    this.changes.close()
    clearTimeout(this.counting)
    for (const unfollow of this.unfollow) unfollow()
  }

  get shown(): number {
    return this.byKey.size
  }

  places(): IterableIterator<MapPlace> {
    return this.byKey.values()
  }

  pageRequest(page: number): ConsoleRequest {
    const attrs = [...this.names(), 'servicePath'].join()
    const limit = String(pageEntities)
    const offset = page === 0 ? '' : String(page * pageEntities)
    return this.list({ attrs, metadata: 'ignoreType', limit, offset, options: 'count' })
  }

  private feedRequest(): ConsoleRequest {
    const attrs = this.names().join()
    return {
      ...this.list({ attrs, metadata: 'ignoreType', options: 'leave', gather: String(gatherMs) }),
      path: 'v2/stream',
    }
  }

  private list(more: Readonly<Record<string, string>>): ConsoleRequest {
    const { tenant, path: servicePath, type, q, area } = this.selection
    return { method: 'GET', path: 'v2/entities', query: { type, q, ...area, ...more }, tenant, servicePath }
  }

  private names(): string[] {
    const { locations, colour } = this.selection
    return [...new Set([...locations, ...(colour === '' ? [] : [colour])])]
  }

  private async read(): Promise<void> {
    const reading = ++this.reading
    const found = new Map<string, MapPlace>()
    this.reported = new Set()
    for (let page = 0; page * pageEntities < placesMax; page++) {
      const answer = await this.client.ask<readonly JsonObject[]>(this.pageRequest(page), this.ending.signal)
      if (this.ending.signal.aborted || reading !== this.reading) return
      if (!answer.ok) {
        this.problem.set(answer.problem.status === undefined ? undefined : answer.problem)
        if (answer.problem.status !== undefined) this.isRead.set(true)
        return
      }
      this.problem.set(undefined)
      for (const entity of answer.json) this.keep(found, entity)
      this.total.set(answer.total)
      if (answer.json.length < pageEntities) break
    }
    for (const key of [...this.byKey.keys()]) if (!found.has(key) && !this.reported.has(key)) this.byKey.delete(key)
    for (const [key, place] of found) if (!this.reported.has(key)) this.byKey.set(key, place)
    this.isRead.set(true)
    this.draw()
  }

  private keep(found: Map<string, MapPlace>, entity: JsonObject): void {
    const path = textOf(valueIn(entity.servicePath ?? null)) || '/'
    const place = placeOf(entity, path, this.selection.colour)
    if (place) found.set(keyOf(place), place)
    else this.onUnknown()
  }

  private apply({ kind, servicePath, entity }: EntityNews): void {
    const key = keyOf({ id: textOf(entity.id), type: textOf(entity.type), path: servicePath })
    const isKnown = this.byKey.has(key)
    this.reported.add(key)
    if (kind === 'entityDelete' || kind === 'entityLeave') {
      this.byKey.delete(key)
      this.count(isKnown ? -1 : 0)
      return this.draw()
    }
    if (!isKnown && this.byKey.size >= placesMax) return this.count(0)
    const place = placeOf(entity, servicePath, this.selection.colour)
    if (!place) return this.onUnknown()
    this.byKey.set(key, place)
    if (!isKnown) this.count(1)
    this.draw()
  }

  /** While all entities are shown the number follows from the changes. Otherwise the broker is asked, now and then. */
  private count(difference: number): void {
    const { value: total } = this.total
    if (total === undefined || !this.isRead.value) return
    if (total <= placesMax && difference !== 0) this.total.set(this.byKey.size)
    if (total <= placesMax) return
    this.counting ??= setTimeout(async () => {
      this.counting = undefined
      const answer = await this.client.ask(this.list({ limit: '0', options: 'count' }), this.ending.signal)
      if (answer.ok && !this.ending.signal.aborted) this.total.set(answer.total)
    }, countMs)
  }

  private draw(): void {
    this.version.set(this.version.value + 1)
  }
}

const keyOf = ({ id, type, path }: Pick<MapPlace, 'id' | 'type' | 'path'>): string => `${path} ${type} ${id}`

const textOf = (value: JsonObject[string] | undefined): string => (typeof value === 'string' ? value : '')

function placeOf({ id, type, ...attributes }: JsonObject, path: string, colour: string): MapPlace | undefined {
  const location = Object.values(attributes)
    .map(locationIn)
    .find(one => one !== undefined)
  const shape = location && shapeOf(location.type, location.value)
  const number = Object.hasOwn(attributes, colour) ? valueIn(attributes[colour] ?? null) : undefined
  const value = typeof number === 'number' ? number : undefined
  return shape && { id: textOf(id), type: textOf(type), path, shape, value }
}

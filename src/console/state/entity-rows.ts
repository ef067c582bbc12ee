// The rows of the table of entities: pages of a list, read as they are needed, and kept up to date by the live feed.
//
// A table may have 100,000 rows and more, so only pages near the visible ones are kept. A change of a row that is there
// is applied at once. After a change that may move rows (a creation, a deletion, a change under an order or a filter)
// the visible pages are read again, at most once in `refreshMs`.
//
// Not here: drawing (views/entities.tsx), the feed (interface/change-feed.ts).

import type { Json, JsonObject } from '../../domain/json.js'
import { type EntityNews, gatherMs } from '../interface/change-feed.js'
import type { ConsoleClient, RequestProblem } from '../interface/console-client.js'
import type { ConsoleRequest } from '../interface/console-request.js'
import { Observable } from './observable.js'

/** The filters of the table; an empty text is no filter. */
export interface RowSelection {
  readonly tenant: string
  readonly path: string
  readonly type: string
  readonly idPattern: string
  readonly q: string
  /** The parts of a geographical query. */
  readonly georel: string
  readonly geometry: string
  readonly coords: string
  readonly orderBy: string
  /** The attributes that are shown. */
  readonly columns: readonly string[]
}

export interface EntityRow {
  readonly id: string
  readonly type: string
  readonly path: string
  readonly values: Readonly<Record<string, Json>>
  /** When each attribute has changed, by `performance.now()`. */
  readonly changedMs: Readonly<Record<string, number>>
}

export const pageRows = 100
/** Pages that are kept. */
const pagesMax = 30
const refreshMs = 1_000
/** Changes are drawn together, ten times a second at most: a person sees no more. */
const drawMs = 100
/** How long a change is marked. An animation instead would cost half a core with many changes. */
const flashMs = 1_500
/** A person who scrolls fast passes pages that need not be read. */
const settleMs = 60

export class EntityRows {
  /** undefined: not known yet. */
  readonly total = new Observable<number | undefined>(undefined)
  readonly problem = new Observable<RequestProblem | undefined>(undefined)
  /** The first and the last row that a person sees. */
  readonly window = new Observable<readonly [first: number, last: number]>([0, 0])
  /** Changes whenever a row may have. */
  readonly version = new Observable(0)
  private readonly pages = new Map<number, readonly EntityRow[]>()
  private readonly reading = new Set<number>()
  private readonly ending = new AbortController()
  private visible: readonly [first: number, last: number] = [0, 0]
  private generation = 0
  private refreshing: ReturnType<typeof setTimeout> | undefined
  private settling: ReturnType<typeof setTimeout> | undefined
  private fading: ReturnType<typeof setTimeout> | undefined
  private lastChangeMs = 0
  private drawing = false

  constructor(
    private readonly client: ConsoleClient,
    readonly selection: RowSelection,
  ) {
    this.read(0)
  }

  close(): void {
    this.ending.abort()
    clearTimeout(this.refreshing)
    clearTimeout(this.settling)
    clearTimeout(this.fading)
  }

  row(index: number): EntityRow | undefined {
    return this.pages.get(Math.floor(index / pageRows))?.[index % pageRows]
  }

  /** Rows from `first` to `last` are visible: reads those that are missing. */
  show(first: number, last: number): void {
    this.visible = [Math.floor(first / pageRows), Math.floor(last / pageRows)]
    this.settling ??= setTimeout(() => {
      this.settling = undefined
      this.readVisible()
    }, settleMs)
  }

  /** The request for a page. */
  pageRequest(page: number): ConsoleRequest {
    const { tenant, path, orderBy, columns } = this.selection
    const query = {
      ...filterOf(this.selection),
      orderBy,
      attrs: [...columns, 'servicePath'].join(),
      limit: String(pageRows),
      offset: String(page * pageRows),
      options: 'keyValues,count',
    }
    return { method: 'GET', path: 'v2/entities', query, tenant, servicePath: path }
  }

  /** The request for the changes. */
  feedRequest(): ConsoleRequest {
    const { tenant, path, columns } = this.selection
    const attrs = [...columns, 'servicePath'].join()
    const query = { ...filterOf(this.selection), attrs, options: 'keyValues,leave', gather: String(gatherMs) }
    return { method: 'GET', path: 'v2/stream', query, tenant, servicePath: path }
  }

  /** Applies a change that the feed reports. */
  apply({ kind, servicePath, entity, changed }: EntityNews): void {
    const { id, type } = rowOf(entity, servicePath)
    const place = this.find(servicePath, id, type)
    if (kind === 'entityDelete' || kind === 'entityLeave' || kind === 'entityCreate') return this.refreshSoon()
    if (place) this.replace(place, rowOf(entity, servicePath), changed)
    const { q, georel, orderBy } = this.selection
    if (orderBy !== '' || ((q !== '' || georel !== '') && !place)) this.refreshSoon()
  }

  /** Reads the visible pages again, soon: other pages are read when they become visible. */
  refreshSoon(): void {
    if (this.refreshing !== undefined || this.ending.signal.aborted) return
    this.refreshing = setTimeout(() => {
      this.refreshing = undefined
      this.generation++
      this.reading.clear()
      const [first, last] = this.visible
      for (const page of [...this.pages.keys()]) if (page < first || page > last) this.pages.delete(page)
      for (let page = first; page <= last; page++) this.read(page)
    }, refreshMs)
  }

  private readVisible(): void {
    const [first, last] = this.visible
    for (let page = first; page <= last; page++) if (!this.pages.has(page)) this.read(page)
  }

  private async read(page: number): Promise<void> {
    if (this.reading.has(page)) return
    this.reading.add(page)
    const { generation } = this
    const answer = await this.client.ask<readonly JsonObject[]>(this.pageRequest(page), this.ending.signal)
    if (this.ending.signal.aborted || generation !== this.generation) return
    this.reading.delete(page)
    // The rows stay while the broker is away.
    if (!answer.ok) return this.problem.set(answer.problem.status === undefined ? undefined : answer.problem)
    this.problem.set(undefined)
    const before = this.pages.get(page)
    const rows = answer.json.map((entity, at) => {
      const row = rowOf(entity, '/')
      const same = before?.[at]
      return same && isSame(same, row) ? { ...row, changedMs: same.changedMs } : row
    })
    this.pages.set(page, rows)
    this.forgetFar()
    this.total.set(answer.total ?? rows.length)
    this.draw()
  }

  /** An answer may be late: what counts is what is visible now. */
  private forgetFar(): void {
    const [near] = this.visible
    while (this.pages.size > pagesMax) {
      const [far] = [...this.pages.keys()].sort((a, b) => Math.abs(b - near) - Math.abs(a - near))
      this.pages.delete(far as number)
    }
  }

  private find(path: string, id: string, type: string): readonly [page: number, at: number] | undefined {
    for (const [page, rows] of this.pages) {
      const at = rows.findIndex(row => row.id === id && row.type === type && row.path === path)
      if (at >= 0) return [page, at]
    }
    return undefined
  }

  private replace([page, at]: readonly [number, number], row: EntityRow, changed: readonly string[]): void {
    const rows = [...(this.pages.get(page) ?? [])]
    const changedMs = { ...rows[at]?.changedMs }
    for (const name of changed) if (this.selection.columns.includes(name)) changedMs[name] = performance.now()
    this.lastChangeMs = performance.now()
    rows[at] = { ...row, changedMs }
    this.pages.set(page, rows)
    this.draw()
    this.fadeLater()
  }

  /** Draws again when the marks of the changes up to now are over. */
  private fadeLater(): void {
    this.fading ??= setTimeout(() => {
      this.fading = undefined
      this.draw()
      if (performance.now() - this.lastChangeMs < flashMs) this.fadeLater()
    }, flashMs + drawMs)
  }

  private draw(): void {
    if (this.drawing) return
    this.drawing = true
    setTimeout(() => {
      this.drawing = false
      this.version.set(this.version.value + 1)
    }, drawMs)
  }
}

/** Whether a change of the attribute is still marked. */
export const isFresh = ({ changedMs }: EntityRow, name: string): boolean =>
  performance.now() - (changedMs[name] ?? Number.NEGATIVE_INFINITY) < flashMs

const isSame = (a: EntityRow, b: EntityRow): boolean => a.id === b.id && a.type === b.type && a.path === b.path

const filterOf = ({ type, idPattern, q, georel, geometry, coords }: RowSelection) => ({
  type,
  idPattern,
  q,
  georel,
  geometry,
  coords,
})

function rowOf(entity: JsonObject, path: string): EntityRow {
  const { id, type, servicePath, ...values } = entity
  const isPath = typeof servicePath === 'string'
  return { id: textOf(id), type: textOf(type), path: isPath ? servicePath : path, values, changedMs: {} }
}

const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '')

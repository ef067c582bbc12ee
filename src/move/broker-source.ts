// Reads a running broker of any make by the public interface: entities of all tenants, registrations, then
// subscriptions.
//
// The items are in the order of creation, as the interface shows them: numbers with nine decimals, the geometry of a
// Feature, no correlators, no secrets. Times come as builtin attributes and metadata, the service path as a builtin
// attribute. A user's attribute with the name of a builtin one replaces it; it is recognized by its own times.
//
// Queries find out whether a `dateExpires` ends its entity: a filter matches only one that does, and only a plain one
// is shown without being named.
//
// The list of subscriptions does not show their paths. So it is requested for each path seen so far, with and without
// all paths below it; the remaining ones watch everything. Registrations likewise.
//
// Pages are cut by number. Items that are created or deleted meanwhile may come twice or not at all, so no client
// should write during the export.

import { parseDateTime } from '../domain/date-time.js'
import { isDateType } from '../domain/entities/entity.js'
import { isArray, isObject, type Json, type JsonObject } from '../domain/json.js'
import { refusalText } from '../domain/refusal.js'
import { hasMask } from '../domain/subscriptions/transport-parser.js'
import { parseJson } from '../http/body.js'
import type { BrokerClient } from './broker-client.js'
import {
  BrokerLists,
  candidatePaths,
  type DocumentListName,
  getOf,
  type ListName,
  listNames,
  nameOf,
  pageLimitMax,
  pathsMax,
} from './broker-lists.js'
import { readObject } from './lines.js'
import type { Source, SourceItem, SourcePage } from './moved.js'

export interface BrokerSourceOptions {
  readonly tenants: readonly string[]
  /** Paths whose entities are read; undefined: all, if the broker shows the path of each. */
  readonly paths: readonly string[] | undefined
  readonly warn: (line: string) => void
}

interface Position {
  readonly step: ListName
  /** Index of the scope, or of the tenant. */
  readonly scope: number
  readonly offset: number
  /** When the last entity was created, as the broker showed it; '' if it showed none. */
  readonly created: string
  readonly seen: { readonly [tenant: string]: readonly string[] }
}

interface Scope {
  readonly tenant: string
  readonly path: string
}

export class BrokerSource implements Source {
  readonly name: string
  readonly identity: JsonObject
  total: number | undefined
  private nowMs = 0
  private readonly scopes: readonly Scope[]
  private readonly lists: BrokerLists
  private seen = new Map<string, Set<string>>()
  private created = ''

  private constructor(
    private readonly client: BrokerClient,
    private readonly options: BrokerSourceOptions,
  ) {
    this.name = client.name
    this.lists = new BrokerLists(client)
    const { tenants, paths = ['/#'] } = options
    this.identity = { broker: client.name, tenants, paths }
    this.scopes = tenants.flatMap(tenant => paths.map(path => ({ tenant, path })))
  }

  /** Opens a broker, and requests its number of entities. */
  static async open(client: BrokerClient, options: BrokerSourceOptions): Promise<BrokerSource> {
    const source = new BrokerSource(client, options)
    let total = 0
    for (const scope of source.scopes) {
      const path = '/entities?limit=1&options=count&attrs=id'
      const what = `the number of entities of ${nameOf(scope)}`
      total += (await client.expect(getOf(path, scope, what), 200)).total ?? 0
    }
    source.total = total
    return source
  }

  async *pages(from: Json | undefined, nowMs: number): AsyncIterable<SourcePage> {
    this.nowMs = nowMs
    const begin = from as unknown as Position | undefined
    this.created = begin?.created ?? ''
    this.seen = new Map(Object.entries(begin?.seen ?? {}).map(([tenant, paths]) => [tenant, new Set(paths)]))
    for (const [index, step] of listNames.entries()) {
      const beginStep = begin ? listNames.indexOf(begin.step) : 0
      if (index < beginStep) continue
      const isFirst = index === beginStep
      const firstScope = isFirst ? (begin?.scope ?? 0) : 0
      const places = step === 'entities' ? this.scopes : this.options.tenants.map(tenant => ({ tenant, path: '/#' }))
      for (let scope = firstScope; scope < places.length; scope++) {
        const offset = isFirst && scope === firstScope ? (begin?.offset ?? 0) : 0
        const pages =
          step === 'entities'
            ? this.entities(places[scope]!, offset)
            : this.documents(step, places[scope]!.tenant, offset)
        for await (const { found, next } of pages)
          yield {
            found,
            after: {
              step,
              scope,
              offset: next,
              created: this.created,
              seen: this.seenJson(),
            } satisfies Position as unknown as Json,
          }
      }
    }
  }

  close(): Promise<void> {
    return this.client.close()
  }

  private seenJson(): Position['seen'] {
    return Object.fromEntries([...this.seen].map(([tenant, paths]) => [tenant, [...paths]]))
  }

  // Entities

  private async *entities(scope: Scope, from: number): AsyncIterable<{ found: SourceItem[]; next: number }> {
    for (let offset = from; ; ) {
      const list = await this.lists.page('entities', scope, offset, entityParameters)
      if (list.length === 0) return
      const plain = await this.plainDates(scope, list)
      const found = list.map((json, index) => this.entity(json, scope, plain, offset + index))
      offset += list.length
      yield { found, next: offset }
    }
  }

  private entity(json: Json, scope: Scope, plain: ReadonlySet<string>, number: number): SourceItem {
    const where = `entity ${number + 1} of ${nameOf(scope)}`
    if (!isObject(json)) return { where, item: undefined, fault: 'it is not an object' }
    const line = entityLine(json, scope, plain, this.created)
    if (typeof line === 'string') return { where, item: undefined, fault: line }
    if (typeof line.dateCreated === 'string') this.created = line.dateCreated
    const item = readObject(line, true, this.nowMs)
    if (!item.ok) return { where, item: undefined, fault: refusalText(item.refusal) }
    if (item.value.kind === 'entity') this.see(item.value.tenant, item.value.path)
    return { where, item: item.value, fault: '' }
  }

  private see(tenant: string, path: string): void {
    let paths = this.seen.get(tenant)
    if (!paths) {
      paths = new Set()
      this.seen.set(tenant, paths)
    }
    if (paths.has(path)) return
    if (paths.size === pathsMax)
      this.options.warn(
        `tenant "${tenant}" has more than ${pathsMax} service paths: which of them subscriptions and registrations belong to is asked for so many only`,
      )
    // One more than is used, so that the warning comes once.
    if (paths.size <= pathsMax) paths.add(path)
  }

  /** The labels (`labelOf`) of those entities of a page whose `dateExpires` is an attribute like any other. */
  private async plainDates(scope: Scope, list: readonly Json[]): Promise<Set<string>> {
    const dated = list
      .filter(isObject)
      .filter(json => isObject(json.dateExpires) && isDateType(String(json.dateExpires.type)))
    if (dated.length === 0) return new Set()
    const entities = dated.map(({ id, type }) => ({ id, type }))
    const transient = await this.query(scope, { entities, expression: { q: 'dateExpires' }, attrs: ['servicePath'] })
    const shown = await this.query(scope, { entities, attrs: ['*', 'servicePath'] })
    // A broker that cannot answer has no builtin dateExpires, or is unreliable: keeping an entity is the lesser evil.
    if (!transient || !shown) return new Set(dated.map(labelOf))
    const expiring = new Set(transient.map(labelOf))
    for (const json of shown) if ('dateExpires' in json) expiring.delete(labelOf(json))
    return new Set(dated.map(labelOf).filter(label => !expiring.has(label)))
  }

  /** undefined: the broker cannot answer it. */
  private async query(scope: Scope, body: object): Promise<JsonObject[] | undefined> {
    const what = `which entities of ${nameOf(scope)} expire`
    const answer = await this.client.ask({
      method: 'POST',
      path: `/op/query?limit=${pageLimitMax}`,
      tenant: scope.tenant,
      servicePath: scope.path,
      body,
      isRepeatable: true,
      what,
    })
    const payload = answer.status === 200 ? parseJson(answer.body) : undefined
    return payload?.ok && isArray(payload.value.value) ? payload.value.value.filter(isObject) : undefined
  }

  // Subscriptions and registrations

  private async *documents(
    step: DocumentListName,
    tenant: string,
    from: number,
  ): AsyncIterable<{ found: SourceItem[]; next: number }> {
    const paths = await this.pathsOf(step, tenant)
    for (let offset = from; ; ) {
      const list = await this.lists.page(step, { tenant, path: undefined }, offset)
      if (list.length === 0) return
      const found = list.map((json, index) => this.document(step, tenant, json, paths, offset + index))
      offset += list.length
      yield { found, next: offset }
    }
  }

  private document(
    step: DocumentListName,
    tenant: string,
    json: Json,
    paths: ReadonlyMap<string, string>,
    number: number,
  ): SourceItem {
    const where = `${singular[step]} ${number + 1} of tenant "${tenant}"`
    if (!isObject(json)) return { where, item: undefined, fault: 'it is not an object' }
    const servicePath = paths.get(String(json.id)) ?? defaultPath[step]
    const item = readObject({ [singular[step]]: json, tenant, servicePath }, true, this.nowMs)
    if (!item.ok) return { where, item: undefined, fault: refusalText(item.refusal) }
    if (item.value.kind === 'subscription' && hasMask(item.value.subscription.notification.transport))
      this.options.warn(
        `subscription ${item.value.subscription.id}: the broker masks its passwords or tokens, set them anew`,
      )
    return { where, item: item.value, fault: '' }
  }

  /** The paths of documents by their ids, as far as they can be found. */
  private async pathsOf(step: DocumentListName, tenant: string): Promise<Map<string, string>> {
    const found = new Map<string, string>()
    for (const path of candidatePaths(step, this.seen.get(tenant) ?? []))
      for (const id of await this.lists.idsAt(step, { tenant, path })) found.set(id, path)
    return found
  }
}

const singular = { registrations: 'registration', subscriptions: 'subscription' } as const
const defaultPath = { registrations: '/', subscriptions: '/#' } as const

const builtins = ['dateCreated', 'dateModified', 'servicePath'] as const
const entityParameters = `&attrs=*,${builtins.join()},dateExpires&metadata=*,dateCreated,dateModified`

/** The label that distinguishes the entities of a tenant. */
const labelOf = ({ id, type, servicePath }: JsonObject): string =>
  JSON.stringify([id, type, isObject(servicePath) ? servicePath.value : null])

/**
 * The line that an entity would have in an export, or the reason why there is none. `scope`: the scope of the request.
 * An entity without a time of creation keeps its place in the order: it gets the time of the one before it.
 */
export function entityLine(
  json: JsonObject,
  scope: Scope,
  plain: ReadonlySet<string>,
  createdBefore: string,
): JsonObject | string {
  const shown: [string, Json][] = []
  const builtins = new Map<string, Json>()
  const times: [string, readonly [string, string]][] = []
  let expires: Json | undefined
  for (const [name, attribute] of Object.entries(json)) {
    if (name === 'id' || name === 'type') {
      shown.push([name, attribute])
      continue
    }
    const { own, pair } = withoutTimes(attribute)
    if (builtinSet.has(name) && !pair && isObject(own)) {
      builtins.set(name, own.value ?? null)
      continue
    }
    const isExpiry = name === 'dateExpires' && isObject(own) && isDateType(String(own.type))
    if (isExpiry && !plain.has(labelOf(json))) expires = own
    else shown.push([name, own])
    if (pair) times.push([name, pair])
  }
  const servicePath = builtins.get('servicePath') ?? (scope.path.endsWith('#') ? undefined : scope.path)
  if (servicePath === undefined)
    return `the broker does not show the service path of ${JSON.stringify(json.id)}: name the paths one by one with -path`
  const line: [string, Json | undefined][] = [
    ['entity', Object.fromEntries(shown)],
    ['tenant', scope.tenant],
    ['servicePath', servicePath],
    ['dateCreated', builtins.get('dateCreated') ?? (createdBefore || undefined)],
    ['dateModified', builtins.get('dateModified') ?? latest(times)],
    ['times', Object.fromEntries(times)],
    ['expires', expires],
  ]
  return Object.fromEntries(line.filter((member): member is [string, Json] => member[1] !== undefined))
}

/** The latest change of an attribute: all times have the same form, so they sort as texts. */
const latest = (times: readonly (readonly [string, readonly [string, string]])[]): string | undefined =>
  times
    .map(([, [, modified]]) => modified)
    .sort()
    .at(-1)

const builtinSet: ReadonlySet<string> = new Set(builtins)

/** An attribute without the builtin metadata for its times, and these times; undefined: it has none. */
function withoutTimes(attribute: Json): { readonly own: Json; readonly pair: readonly [string, string] | undefined } {
  if (!isObject(attribute) || !isObject(attribute.metadata)) return { own: attribute, pair: undefined }
  const { dateCreated, dateModified, ...metadata } = attribute.metadata
  const created = timeOf(dateCreated)
  const modified = timeOf(dateModified)
  if (created === undefined || modified === undefined) return { own: attribute, pair: undefined }
  return { own: { ...attribute, metadata }, pair: [created, modified] }
}

function timeOf(element: Json | undefined): string | undefined {
  if (!isObject(element) || element.type !== 'DateTime' || typeof element.value !== 'string') return undefined
  return parseDateTime(element.value) === undefined ? undefined : element.value
}

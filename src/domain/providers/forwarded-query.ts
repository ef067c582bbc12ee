// A forwarded query: its requests, and the merging of their answers with stored entities into one page
// (docs/interface/registrations.md#queries).
//
// Local attributes, and those of earlier providers, take precedence. Requests are sent one after the other, and each is
// built just before it is sent: attributes of a named entity that are known by then are not requested again.
//
//   page            local entities first, then those of the providers, in the order of the requests
//   limit, offset   the free places of the page and the entities yet to skip; for an entity that is already on the
//                   page, at least 1 and no offset
//   total           the local number plus the number that each provider reports
//
// Not here: sending, bytes to JSON (broker/forwarding.ts).

import type { AccessCondition } from '../access/condition.js'
import {
  type Attribute,
  defaultType,
  type Entity,
  hasIdentifierCharacters,
  isTooDeep,
  type Metadata,
} from '../entities/entity.js'
import { isArray, isObject, type Json } from '../json.js'
import { identifierLengthMax, pageLimitMax } from '../limits.js'
import { meansIdentity, type Selection } from '../queries/selection.js'
import { anyCoversPath } from '../scope.js'
import type { Provided, ProviderIndex } from './provider-index.js'
import { isOpenTo, type Registration } from './registration.js'

/** The parts of a query that matter for providers. */
export interface Sought {
  readonly selection: Selection
  /** The requested paths, perhaps with wildcards. */
  readonly paths: readonly string[]
  /** The requested attributes; empty: all. */
  readonly attrs: readonly string[]
  /** The grant of the reader (docs/interface/access.md#registrations); undefined: everything. */
  readonly grant?: AccessCondition | undefined
}

export interface PageWindow {
  readonly limit: number
  readonly offset: number
}

/** An entity and its service path. */
export interface LocatedEntity {
  readonly entity: Entity
  readonly path: string
}

/** The entities that a provider is asked for: an id or a pattern of ids, and a type. Without a type, all types. */
export interface AskedEntity {
  readonly id?: string | undefined
  readonly idPattern?: string | undefined
  readonly type?: string | undefined
}

/** One request to a provider. */
export interface QueryRequest extends PageWindow {
  readonly registration: Registration
  readonly entity: AskedEntity
  /** Empty: all. */
  readonly attrs: readonly string[]
}

/** A planned request. Its attributes are those that are missing locally. */
interface Planned {
  readonly registration: Registration
  readonly entity: AskedEntity
  /** undefined: all. */
  attrs: Set<string> | undefined
  /** Whether it comes from a registration of whole entities. */
  readonly isWhole: boolean
}

export class ForwardedQuery {
  private readonly limit: number
  private offset: number
  private readonly plan: Planned[]
  /** Entities by id, and all in the order of the page. */
  private readonly byId = new Map<string, Merged[]>()
  private readonly page: Merged[] = []
  private sum: number

  /**
   * `local`: the local part of the page, and the total number. `path`: the service path that is reported for entities
   * of providers.
   */
  constructor(
    index: ProviderIndex,
    private readonly sought: Sought,
    { limit, offset }: PageWindow,
    local: { readonly entities: readonly LocatedEntity[]; readonly total: number },
    private readonly path: string,
    nowMs: number,
    requestsMax: number,
  ) {
    this.limit = limit
    this.offset = Math.max(0, offset - local.total)
    this.sum = local.total
    for (const placed of local.entities) this.append(placed, true)
    this.plan = limit === 0 ? [] : planOf(index, sought, this, nowMs, requestsMax).reverse()
  }

  /** The entities of the page with this id, as far as they are known by now. */
  known(id: string): readonly LocatedEntity[] {
    return this.byId.get(id) ?? []
  }

  /** Whether the page has room for further entities. */
  get hasRoom(): boolean {
    return this.page.length < this.limit
  }

  /** The local entities. */
  *local(): Iterable<LocatedEntity> {
    for (const one of this.page) if (one.isLocal) yield one
  }

  /** The next request; undefined: there is none. */
  next(): QueryRequest | undefined {
    for (;;) {
      const planned = this.plan.pop()
      if (!planned) return undefined
      const { registration, entity } = planned
      const known = knownEntity(this, entity)
      const attrs = planned.attrs && lacking(planned.attrs, known)
      if (attrs?.length === 0) continue
      const room = this.limit - this.page.length
      const window = known ? { limit: Math.max(1, room), offset: 0 } : this.windowOf(room)
      return { registration, entity, attrs: attrs ?? [], ...window }
    }
  }

  /** A provider does not know which of its entities the reader may see: what is to be skipped is skipped here. */
  private windowOf(room: number): PageWindow {
    const { offset } = this
    return this.sought.grant ? { limit: Math.min(room + offset, pageLimitMax), offset: 0 } : { limit: room, offset }
  }

  /**
   * Takes an answer. `total`: the number that the provider reports; by default the number that it has sent. `path`:
   * that of its registration.
   */
  take(entities: readonly Entity[], total = entities.length, path = this.path): void {
    const { grant } = this.sought
    if (grant) return this.takeSeen(grant, entities, path)
    this.sum += total
    this.offset = Math.max(0, this.offset - total)
    for (const entity of entities) {
      if (!meansIdentity(this.sought.selection, entity.id, entity.type)) continue
      const known = this.byId.get(entity.id)?.find(one => one.entity.type === entity.type)
      if (known) join(known, entity)
      else if (this.hasRoom) this.append({ entity, path: this.path }, false)
    }
  }

  /** The same for a reader that may not see everything: the rest is not there. */
  private takeSeen(grant: AccessCondition, entities: readonly Entity[], path: string): void {
    for (const entity of entities) {
      const seen = meansIdentity(this.sought.selection, entity.id, entity.type) ? grant.seen(entity, path) : undefined
      if (!seen) continue
      this.sum++
      const known = this.byId.get(entity.id)?.find(one => one.entity.type === entity.type)
      // A stored entity may be in another path, where less is allowed.
      const added = known?.isLocal ? grant.seen(seen, known.path) : seen
      if (known) {
        if (added) join(known, added)
      } else if (this.offset > 0) this.offset--
      else if (this.hasRoom) this.append({ entity: seen, path: this.path }, false)
    }
  }

  private append({ entity, path }: LocatedEntity, isLocal: boolean): void {
    const merged = { entity, path, isLocal, isJoined: !isLocal }
    this.page.push(merged)
    const same = this.byId.get(entity.id)
    if (same) same.push(merged)
    else this.byId.set(entity.id, [merged])
  }

  /** The page as it is now. `isJoined`: it is not only the stored entity. */
  result(): { readonly entities: readonly Merged[]; readonly total: number } {
    return { entities: this.page, total: this.sum }
  }
}

interface Merged {
  entity: Entity
  readonly path: string
  readonly isLocal: boolean
  isJoined: boolean
}

/** Adds the attributes that an entity lacks. */
function join(known: Merged, { attributes: added }: Entity): void {
  let attributes: Map<string, Attribute> | undefined
  for (const [name, attribute] of added) {
    if (known.entity.attributes.has(name)) continue
    attributes ??= new Map(known.entity.attributes)
    attributes.set(name, attribute)
  }
  if (!attributes) return
  known.entity = { ...known.entity, attributes }
  known.isJoined = true
}

/** The names that an entity lacks; all names if it is unknown. */
const lacking = (names: Iterable<string>, known: Entity | undefined): string[] =>
  known ? [...names].filter(name => !known.attributes.has(name)) : [...names]

/** The entity on the page with the requested id; undefined when there is none, or more than one. */
function knownEntity(page: Pick<ForwardedQuery, 'known'>, { id, type }: AskedEntity): Entity | undefined {
  if (id === undefined) return undefined
  const same = page.known(id).filter(({ entity }) => type === undefined || entity.type === type)
  return same.length === 1 ? same[0]!.entity : undefined
}

// Planning

type Page = Pick<ForwardedQuery, 'known' | 'hasRoom' | 'local'>

/**
 * Requests in their order: those of attributes before those of whole entities, each by registration. Providers that
 * could only add entities are not asked when the local ones fill the page. A query without id and type checks all
 * registrations: 20 ms for a hundred thousand.
 */
function planOf(index: ProviderIndex, sought: Sought, page: Page, nowMs: number, requestsMax: number): Planned[] {
  const plan = new Map<string, Planned>()
  for (const isWhole of [false, true])
    for (const { registration, entity, attrs } of hits(index, sought.selection, page)) {
      if ((attrs.size === 0) !== isWhole || !isOpenTo(registration, 'query', nowMs)) continue
      if (!anyCoversPath(sought.paths, registration.servicePath)) continue
      const wanted = wantedAttributes(sought.attrs, attrs, knownEntity(page, entity))
      if (wanted?.length === 0) continue
      const key = JSON.stringify([registration.provider.url, entity.id, entity.idPattern, entity.type])
      const known = plan.get(key)
      if (known) known.attrs = wanted && known.attrs && new Set([...known.attrs, ...wanted])
      else if (plan.size >= requestsMax) break
      else plan.set(key, { registration, entity, attrs: wanted && new Set(wanted), isWhole })
    }
  return [...plan.values()].sort((a, b) => Number(a.isWhole) - Number(b.isWhole) || compareIds(a, b))
}

const compareIds = ({ registration: a }: Planned, { registration: b }: Planned): number =>
  a.id < b.id ? -1 : a.id > b.id ? 1 : 0

/** Attributes that a query requests, a registration provides, and the known entity lacks; undefined: all. */
function wantedAttributes(
  named: readonly string[],
  provided: ReadonlySet<string>,
  known: Entity | undefined,
): readonly string[] | undefined {
  if (named.length === 0) return provided.size === 0 ? undefined : lacking(provided, known)
  return lacking(provided.size === 0 ? named : named.filter(name => provided.has(name)), known)
}

interface Hit {
  readonly registration: Registration
  readonly attrs: ReadonlySet<string>
  readonly entity: AskedEntity
}

type Selector = Selection['unnamed'][number]

const everything: Selector = { idPattern: undefined, types: undefined, typePattern: undefined }

/** Whether any registration may match a selection. If not, there is nothing to plan. */
export function mayBeProvided(index: ProviderIndex, { source, named, unnamed }: Selection): boolean {
  for (const id of named.keys()) if (index.mayProvide(id)) return true
  for (const { types } of source.selectors.length === 0 ? [everything] : unnamed)
    for (const _ of index.ofTypes(types)) return true
  return false
}

/** Registrations that match a query, each with the entities to request from it. */
function* hits(index: ProviderIndex, selection: Selection, page: Page): Iterable<Hit> {
  const { source, named, unnamed } = selection
  if (!page.hasRoom) return yield* hitsOfLocal(index, selection, page)
  for (const [id, selectors] of named)
    for (const selector of selectors)
      for (const provided of index.ofId(id, selector.types)) yield* hitsOf(provided, { id }, selector, page)
  for (const selector of source.selectors.length === 0 ? [everything] : unnamed)
    for (const provided of index.ofTypes(selector.types)) {
      const { id } = provided.entity
      if (id === undefined) yield* hitsOf(provided, { idPattern: selector.idPattern?.source ?? '.*' }, selector, page)
      else if (selector.idPattern?.test(id) ?? true) yield* hitsOf(provided, { id }, selector, page)
    }
}

/** Those for entities on the page: by their ids, or those of every id when the query names their id. */
function* hitsOfLocal(index: ProviderIndex, { named }: Selection, page: Page): Iterable<Hit> {
  for (const { entity } of page.local()) {
    const { id, type } = entity
    for (const { registration, attrs, entity: provided } of index.ofId(id, new Set([type]))) {
      if (provided.type !== undefined && provided.type !== type) continue
      if (provided.id !== undefined || named.has(id)) yield { registration, attrs, entity: { id, type } }
    }
  }
}

function* hitsOf(
  { registration, attrs, entity }: Provided,
  asked: AskedEntity,
  { types, typePattern }: Selector,
  page: Page,
): Iterable<Hit> {
  const { type } = entity
  if (type !== undefined) {
    if ((types?.has(type) ?? true) && (typePattern?.test(type) ?? true))
      yield { registration, attrs, entity: { ...asked, type } }
  } else if (types) for (const one of types) yield { registration, attrs, entity: { ...asked, type: one } }
  else yield { registration, attrs, entity: { ...asked, type: knownEntity(page, asked)?.type } }
}

// Entities in the answers of providers. An element that could not be an entity here, or could not be rendered, is left
// out; the others count. Their times are unknown, so they have no builtin attributes and metadata.

/** The entities of an answer to a forwarded query; undefined: it is not a list. `type`: for entities without a type. */
export function readProvidedEntities(json: Json, type: string): readonly Entity[] | undefined {
  if (!isArray(json)) return undefined
  return json.flatMap(item => {
    const entity = readEntity(item, type)
    return entity ? [entity] : []
  })
}

const unknown = Number.NaN

function readEntity(json: Json, defaultEntityType: string): Entity | undefined {
  if (!isObject(json)) return undefined
  const { id, type = defaultEntityType } = json
  if (!isName(id) || !isName(type)) return undefined
  const attributes = new Map<string, Attribute>()
  for (const name of Object.keys(json)) {
    if (name === 'id' || name === 'type' || !isName(name)) continue
    const attribute = readAttribute(json[name]!)
    if (attribute) attributes.set(name, attribute)
  }
  return { id, type, attributes, created: unknown, modifiedMs: unknown }
}

function readAttribute(json: Json): Attribute | undefined {
  const element = readElement(json)
  if (!element) return undefined
  const { metadata: given } = json as { readonly metadata?: Json }
  const metadata = new Map<string, Metadata>()
  if (isObject(given))
    for (const name of Object.keys(given)) {
      const one = isName(name) ? readElement(given[name]!) : undefined
      if (one) metadata.set(name, one)
    }
  return { ...element, metadata, createdMs: unknown, modifiedMs: unknown }
}

/** Type and value of an attribute or of its metadata. */
function readElement(json: Json): Metadata | undefined {
  if (!isObject(json) || !Object.hasOwn(json, 'value')) return undefined
  const { value = null, type = defaultType(value) } = json
  return isName(type) && !isTooDeep(value) && hasNumbersOnly(value) ? { type, value } : undefined
}

/** Whether it is a valid name or type here (docs/interface/entities.md#identifiers). */
const isName = (json: Json | undefined): json is string =>
  typeof json === 'string' && json !== '' && json.length <= identifierLengthMax && hasIdentifierCharacters(json)

/** Whether all numbers of a value are finite. JSON text can hold others (`1e999`), which cannot be written again. */
function hasNumbersOnly(value: Json): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || value === null) return true
  for (const item of isArray(value) ? value : Object.values(value)) if (!hasNumbersOnly(item)) return false
  return true
}

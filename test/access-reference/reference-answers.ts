// The answer of a broker with an access file, written from docs/interface/access.md as plainly as possible: one
// function for each section. It is slow: each request looks at every entity and at every rule.
//
// A principal gets the answer of a broker that has only what it may see. So reads are answered by the plain reference
// of lists (reference-query) about the visible parts of the entities. Writes are decided before anything happens, by
// the request and the file alone; then the plain reference of entities carries them out (reference-entities).
//
// Where the document leaves something open, the stricter reading holds; `// Open:` marks the place.
//
// Not here: principals (reference-principal), the meaning of rules (reference-grant), events (reference-events).

import { type Change, type Entity, type Json, type Outcome, Reference } from '../support/reference-entities.js'
import { answerTo, coversPath, type Query, shownEntity } from '../support/reference-query.js'
import { statusOf } from '../support/reference-requests.js'
import { type Happening, happeningOf, type Subscription } from '../support/reference-subscriptions.js'
import { type ProvidedUpdate, providedTenant } from './access-provider.js'
import {
  type AccessRequest,
  type RequestOf,
  selectorOf,
  type WantedChange,
  type WantedRegistration,
} from './access-request.js'
import type { AccessFile, AccessRule } from './random-access-file.js'
import {
  allows,
  allowsAction,
  allowsAll,
  allowsAllUntyped,
  allowsFilter,
  allowsProviding,
  allowsUntyped,
  coversAny,
  coversEveryType,
  coversUntyped,
  inPaths,
  isWhole,
  rulesFor,
  visiblePart,
} from './reference-grant.js'
import { type Asking, type RolesOfAsking, recognize, rolesNow } from './reference-principal.js'

export interface ExpectedAnswer {
  readonly status: number
  /** Other statuses, where the document leaves it open. */
  readonly orStatuses?: readonly number[]
  /** The body to the byte. */
  readonly text?: string
  /** The body, where the order of members is open. */
  readonly json?: Json
  /** The ids of the listed documents, by their numbers. */
  readonly documents?: readonly number[]
  /** The header with the count. */
  readonly total?: number
}

/** An effect of the request on one entity. */
export interface Effect {
  readonly tenant: string
  readonly happening: Happening
}

export interface Judged {
  readonly answer: ExpectedAnswer
  readonly effects: readonly Effect[]
  /** The number of the subscription or registration that the request has created. */
  readonly created?: number
  /** What goes to the provider. */
  readonly passedOn?: readonly ProvidedUpdate[]
}

interface StoredDocument {
  readonly at: number
  readonly tenant: string
  readonly path: string
  readonly owner: Asking
}

export interface StoredSubscription extends StoredDocument {
  readonly subscription: Subscription
  readonly isCustom: boolean
}

interface StoredRegistration extends StoredDocument {
  readonly registration: WantedRegistration
}

const forbidden: ExpectedAnswer = { status: 403 }
const notFound: ExpectedAnswer = { status: 404 }
const plainly = (answer: ExpectedAnswer): Judged => ({ answer, effects: [] })

export class AccessReference {
  file: AccessFile
  readonly subscriptions: StoredSubscription[] = []
  readonly registrations: StoredRegistration[] = []
  /** The entity of a provider, if there is one: it is in no tenant's entities. */
  provided: Entity | undefined
  readonly #tenants = new Map<string, Reference>()
  #documents = 0
  #nowMs = 0

  constructor(file: AccessFile) {
    this.file = file
  }

  entitiesOf(tenant: string): Reference {
    const known = this.#tenants.get(tenant) ?? new Reference()
    this.#tenants.set(tenant, known)
    return known
  }

  /** The answer to a request with these headers. If it writes, it is carried out. */
  judge(request: AccessRequest, headers: Readonly<Record<string, string>>): Judged {
    if (request.kind === 'plain' && request.needs === 'nothing') return plainly({ status: 200 })
    const asking = recognize(this.file, headers, Date.now())
    if ('status' in asking) return plainly({ status: asking.status })
    return this.#answer(request, asking.principal)
  }

  #answer(request: AccessRequest, principal: RolesOfAsking): Judged {
    switch (request.kind) {
      case 'plain':
        return plainly(this.#plain(request, principal))
      case 'entities':
      case 'entity':
      case 'attribute':
      case 'types':
      case 'type':
        return plainly(this.#read(request, principal))
      case 'provided':
        return plainly(this.#provided(request, principal))
      case 'change':
      case 'batch':
      case 'notify':
        return this.#write(request, principal)
      case 'look':
        return plainly(this.#look(request, principal))
      case 'subscribe':
      case 'subscription':
      case 'unsubscribe':
      case 'change subscription':
      case 'list subscriptions':
        return this.#subscriptionRequest(request, principal)
      default:
        return this.#registrationRequest(request, principal)
    }
  }

  rules(asking: Pick<RolesOfAsking, 'roles'>, action: string, tenant: string): readonly AccessRule[] {
    return rulesFor(this.file, asking.roles, action, tenant)
  }

  // docs/interface/access.md#administration, docs/interface/access.md#showing-a-proof

  #plain({ needs }: RequestOf<'plain'>, { roles }: RolesOfAsking): ExpectedAnswer {
    if (needs === 'nothing' || needs === 'principal') return { status: 200 }
    const rules = roles.flatMap(role => this.file.roles[role] ?? [])
    const isAllowed = rules.some(rule => allowsAction(rule, needs) && isWhole(rule) && rule.tenants?.includes('*'))
    return isAllowed ? { status: 200 } : forbidden
  }

  // docs/interface/access.md#reads

  #read(
    request: RequestOf<'entities' | 'entity' | 'attribute' | 'types' | 'type'>,
    principal: RolesOfAsking,
  ): ExpectedAnswer {
    const { tenant } = request
    const paths = request.kind === 'entities' ? (request.query.paths ?? ['/#']) : (request.paths ?? ['/#'])
    const rules = inPaths(this.rules(principal, 'read', tenant), paths)
    if (rules.length === 0) return forbidden
    const visible = [...this.entitiesOf(tenant).entities].flatMap(entity => visiblePart(rules, entity) ?? [])
    const inPath = visible.filter(({ path }) => coversPath(paths, path))
    switch (request.kind) {
      case 'entities':
        return listAnswer(rules, request.query, visible)
      case 'types':
        return typesAnswer(inPath, request.detail)
      case 'type':
        return typeAnswer(inPath, request.type)
      default:
        return oneAnswer(inPath, request)
    }
  }

  // docs/interface/access.md#registrations: the answers of a provider

  #provided({ form, tenant, paths = ['/#'] }: RequestOf<'provided'>, principal: RolesOfAsking): ExpectedAnswer {
    const rules = inPaths(this.rules(principal, 'read', tenant), paths)
    if (rules.length === 0) return forbidden
    const visible = this.provided && visiblePart(rules, this.provided)
    if (!visible) return form === 'entity' ? notFound : { status: 200, text: '[]' }
    // Open: whether an entity of which no attribute may be seen is there, since nothing of it is stored here.
    if (visible.attributes.size === 0) return { status: 200, ...(form === 'entity' && { orStatuses: [404] }) }
    const json = JSON.parse(shownEntity(visible, { mode: 'normalized' })) as Json
    return { status: 200, json: form === 'entity' ? json : [json] }
  }

  // docs/interface/access.md#writes

  #write(request: RequestOf<'change' | 'batch' | 'notify'>, principal: RolesOfAsking): Judged {
    const { tenant } = request
    const wanted = request.kind === 'change' ? [request] : request.changes
    const needsOf = (change: Change) =>
      request.kind === 'notify' ? notifyNeeds(change, request.deletes) : needs(change)
    const isAllowed = wanted.every(one =>
      needsOf(one.change).every(need => this.#allowsWrite(principal, tenant, one, need, request.kind)),
    )
    if (!isAllowed) return plainly(forbidden)
    if (tenant === providedTenant) return this.#passOn(wanted, principal)
    const effects: Effect[] = []
    const outcomes = wanted.map(one => {
      const rules = needsOf(one.change).map(({ action }) => this.rules(principal, action, tenant))
      return this.#carryOut(tenant, one, rules, request.kind, effects)
    })
    return { answer: writeAnswer(request, outcomes), effects }
  }

  /** docs/interface/access.md#registrations, where nothing is stored and the provider accepts everything. */
  #passOn(wanted: readonly WantedChange[], principal: RolesOfAsking): Judged {
    const passed = wanted.filter(
      ({ change, isTyped }) =>
        isTyped ||
        needs(change).every(({ action }) =>
          coversEveryType(this.rules(principal, action, providedTenant), change.path, change.id),
        ),
    )
    const passedOn = passed.map(({ change, isTyped }) => ({
      id: change.id,
      type: isTyped ? change.type : undefined,
      values: givenValues(change),
    }))
    return { ...plainly({ status: passed.length === wanted.length ? 204 : 404 }), passedOn }
  }

  #allowsWrite(
    principal: RolesOfAsking,
    tenant: string,
    { change, isTyped }: WantedChange,
    { action, names }: Need,
    kind: string,
  ): boolean {
    const { path, id } = change
    const rules = inPaths(this.rules(principal, action, tenant), [path])
    if (action === 'create' || hasType(change, isTyped, kind)) {
      // A write without a type creates a `Thing`, also in a batch, where the entity is stored with another type perhaps.
      const entity = isTyped || kind === 'notify' ? change : { ...change, type: 'Thing' }
      if (names === 'all') return allowsAll(rules, entity)
      return coversAny(rules, entity) && names.every(name => allows(rules, entity, name))
    }
    if (names === 'all') return allowsAllUntyped(rules, path, id)
    return coversUntyped(rules, path, id) && names.every(name => allowsUntyped(rules, path, id, name))
  }

  /** In its turn only covered entities of the id exist for a write without a type. */
  #carryOut(
    tenant: string,
    { change, isTyped }: WantedChange,
    rules: readonly (readonly AccessRule[])[],
    kind: string,
    effects: Effect[],
  ): Outcome | 'several' {
    const target = hasType(change, isTyped, kind) ? change : this.#untyped(tenant, change, rules)
    if (typeof target === 'string') return target
    const reference = this.entitiesOf(tenant)
    const before = reference.get(target)
    const outcome = reference.apply(target, ++this.#nowMs)
    const after = reference.get(target)
    if (outcome === 'done' || outcome === 'partly') {
      const isNothing = before === undefined && after === undefined
      if (!isNothing) effects.push({ tenant, happening: happeningOf(target, before, after) })
    }
    return outcome
  }

  #untyped(
    tenant: string,
    change: Change,
    rules: readonly (readonly AccessRule[])[],
  ): Change | 'no entity' | 'several' {
    // Open: a write that needs two actions sees the entities that the rules of both cover.
    const isCovered = (entity: Pick<Entity, 'path' | 'id' | 'type'>) => rules.every(some => coversAny(some, entity))
    const { path, id } = change
    const all = [...this.entitiesOf(tenant).entities]
    const found = all.filter(entity => entity.path === path && entity.id === id && isCovered(entity))
    if (found.length > 1) return 'several'
    const [only] = found
    if (only) return { ...change, type: only.type }
    const creation = { ...change, type: 'Thing' }
    // Where rules for `update` do not cover a `Thing`, the entity is missing.
    return 'creates' in change && change.creates && isCovered(creation) ? creation : 'no entity'
  }

  // docs/interface/access.md#subscriptions

  #subscriptionRequest(
    request: RequestOf<'subscribe' | 'subscription' | 'unsubscribe' | 'change subscription' | 'list subscriptions'>,
    principal: RolesOfAsking,
  ): Judged {
    const { tenant } = request
    const [path] = request.paths ?? ['/#']
    const rules = inPaths(this.rules(principal, 'subscribe', tenant), [path as string])
    if (rules.length === 0) return plainly(forbidden)
    const visible = this.subscriptions.filter(one => one.tenant === tenant && this.#isSeen(one, principal))
    if (request.kind === 'list subscriptions') return plainly(listedDocuments(visible, request.paths))
    if (request.kind === 'subscribe') {
      const { subscription, isCustom } = request
      const owner = askingOf(principal)
      const stored = { at: ++this.#documents, tenant, path: path as string, owner, subscription, isCustom }
      if (!allowsSubscription(rules, stored)) return plainly(forbidden)
      this.subscriptions.push(stored)
      return { answer: { status: 201 }, effects: [], created: stored.at }
    }
    if (request.kind === 'change subscription') return plainly(this.#changeSubscription(request, visible, rules))
    const one = visible.find(({ at }) => at === request.at)
    if (!one) return plainly(notFound)
    if (request.kind === 'subscription') return plainly({ status: 200, documents: [one.at] })
    this.subscriptions.splice(this.subscriptions.indexOf(one), 1)
    return plainly({ status: 204 })
  }

  /** The explanation and the deliveries of a subscription: the content is checked for foreign values only. */
  #look({ at, part, tenant }: RequestOf<'look'>, principal: RolesOfAsking): ExpectedAnswer {
    if (inPaths(this.rules(principal, 'subscribe', tenant), ['/#']).length === 0) return forbidden
    const one = this.subscriptions.find(stored => stored.at === at)
    if (!one || !this.#isSeen(one, principal)) return notFound
    // Open: whether the entity of an explanation has to be visible for the owner, for who asks, or for both.
    return { status: 200, ...(part === 'explain' && { orStatuses: [404, 409] }) }
  }

  /** A change is decided with the rules of the principal that makes it, and with those of the creator. */
  #changeSubscription(
    request: RequestOf<'change subscription'>,
    visible: readonly StoredSubscription[],
    rules: readonly AccessRule[],
  ): ExpectedAnswer {
    const [path = '/#'] = request.paths ?? []
    const { subscription, isCustom } = request
    if (!allowsSubscription(rules, { path, subscription })) return forbidden
    const one = visible.find(({ at }) => at === request.at)
    if (!one) return notFound
    const changed = { ...one, path, isCustom, subscription: { ...subscription, path } }
    // Open: a subscription without an owner notifies of nothing, so its change is refused.
    if (this.rulesOfOwner(changed).length === 0) return forbidden
    this.subscriptions[this.subscriptions.indexOf(one)] = changed
    return { status: 204 }
  }

  /** The present rules of the creator; none if the subscription would be refused now. */
  rulesOfOwner(stored: StoredSubscription): readonly AccessRule[] {
    const roles = rolesNow(this.file, stored.owner)
    if (!roles) return []
    const rules = inPaths(this.rules({ roles }, 'subscribe', stored.tenant), [stored.path])
    return allowsSubscription(rules, stored) ? rules : []
  }

  // docs/interface/access.md#owners

  #isSeen({ owner, tenant }: StoredDocument, principal: RolesOfAsking): boolean {
    // Open: `admin` does not replace `subscribe` or `register`, which the caller has checked.
    if (this.rules(principal, 'admin', tenant).some(isWhole)) return true
    const roles = rolesNow(this.file, owner)
    if (!roles) return false
    if (owner.kind === principal.kind && owner.name === principal.name) return true
    return roles.length > 0 && roles.every(role => principal.roles.includes(role))
  }

  // docs/interface/access.md#registrations

  #registrationRequest(
    request: RequestOf<'register' | 'registration' | 'unregister' | 'list registrations'>,
    principal: RolesOfAsking,
  ): Judged {
    const { tenant } = request
    const [path = request.kind === 'list registrations' ? '/#' : '/'] = request.paths ?? []
    const rules = inPaths(this.rules(principal, 'register', tenant), [path])
    if (rules.length === 0) return plainly(forbidden)
    const visible = this.registrations.filter(one => one.tenant === tenant && this.#isSeen(one, principal))
    if (request.kind === 'list registrations') return plainly(listedDocuments(visible, request.paths))
    if (request.kind === 'register') {
      const { registration } = request
      const isAllowed = registration.elements.every(({ id, type }) =>
        allowsProviding(
          rules,
          { path, ...(id !== undefined && { id }), ...(type !== undefined && { type }) },
          registration.attrs,
        ),
      )
      if (!isAllowed) return plainly(forbidden)
      const stored = { at: ++this.#documents, tenant, path, owner: askingOf(principal), registration }
      this.registrations.push(stored)
      return { answer: { status: 201 }, effects: [], created: stored.at }
    }
    const one = visible.find(({ at }) => at === request.at)
    if (!one) return plainly(notFound)
    if (request.kind === 'registration') return plainly({ status: 200, documents: [one.at] })
    this.registrations.splice(this.registrations.indexOf(one), 1)
    return plainly({ status: 204 })
  }
}

const askingOf = ({ kind, name }: RolesOfAsking): Asking => ({ kind, name })

// Lists (docs/interface/access.md#reads, docs/interface/access.md#filters)

function listAnswer(rules: readonly AccessRule[], query: Query, visible: readonly Entity[]): ExpectedAnswer {
  const about = { paths: query.paths ?? ['/#'], selectors: query.selectors }
  if (!filterNames(query).every(name => allowsFilter(rules, about, name))) return forbidden
  const expected = answerTo(query, visible)
  if (!expected) throw new Error('the reference does not know the answer')
  const { text, total } = expected
  return { status: 200, text, ...(query.counted && { total }) }
}

/** Attributes on which the result depends. The location does not count: a hidden one is no location. */
function filterNames({ q = [], mq = [], orderBy = [], attributes = [] }: Query): readonly string[] {
  const statements = [...q, ...mq].map(({ tokens }) => tokens[0] as string)
  return [...statements, ...orderBy.map(({ name }) => name), ...attributes].filter(name => !isBuiltin(name))
}

const isBuiltin = (name: string): boolean =>
  ['id', 'type', 'servicePath', 'dateCreated', 'dateModified', 'geo:distance'].includes(name)

function oneAnswer(inPath: readonly Entity[], request: RequestOf<'entity' | 'attribute'>): ExpectedAnswer {
  const { id, type } = request
  const found = inPath.filter(entity => entity.id === id && (type === undefined || entity.type === type))
  const [entity] = found
  if (!entity) return notFound
  if (found.length > 1) return { status: 409 }
  if (request.kind === 'attribute') return attributeAnswer(entity, request.name, request.part)
  const { attrs } = request
  const text = shownEntity(entity, { mode: 'normalized', ...(attrs && { attrs }) })
  if (request.part === 'entity') return { status: 200, text }
  const { id: _id, type: _type, ...rest } = JSON.parse(text) as Record<string, Json>
  return { status: 200, json: rest }
}

function attributeAnswer(entity: Entity, name: string, part: 'attribute' | 'value'): ExpectedAnswer {
  const attribute = entity.attributes.get(name)
  if (!attribute) return notFound
  if (part === 'value') return { status: 200, text: JSON.stringify(attribute.value) }
  const shown = JSON.parse(shownEntity(entity, { mode: 'normalized', attrs: [name] })) as Record<string, Json>
  return { status: 200, json: shown[name] as Json }
}

/** docs/interface/types.md, about the visible parts. */
function typesAnswer(inPath: readonly Entity[], detail: 'all' | 'values' | 'noAttrDetail'): ExpectedAnswer {
  const names = [...new Set(inPath.map(({ type }) => type))].sort()
  if (detail === 'values') return { status: 200, json: names, total: names.length }
  const json = names.map(type => ({ type, ...describedType(inPath, type, detail === 'all') }))
  return { status: 200, json, total: names.length }
}

function typeAnswer(inPath: readonly Entity[], type: string): ExpectedAnswer {
  const isThere = inPath.some(one => one.type === type)
  return isThere ? { status: 200, json: describedType(inPath, type, true) } : notFound
}

function describedType(inPath: readonly Entity[], type: string, isDetailed: boolean) {
  const all = inPath.filter(one => one.type === type)
  const types = new Map<string, Set<string>>()
  for (const { attributes } of all)
    for (const [name, attribute] of attributes) types.set(name, new Set([...(types.get(name) ?? []), attribute.type]))
  const attrs = Object.fromEntries(
    [...types].map(([name, some]) => [name, { types: isDetailed ? [...some].sort() : [] }]),
  )
  return { attrs, count: all.length }
}

// Writes (docs/interface/access.md#writes)

interface Need {
  readonly action: 'create' | 'update' | 'delete' | 'notify'
  readonly names: readonly string[] | 'all'
}

/** The table of docs/interface/access.md#writes. */
function needs(change: Change): readonly Need[] {
  switch (change.action) {
    case 'create':
      return [{ action: 'create', names: givenNames(change) }]
    case 'append':
    case 'appendStrict': {
      const names = givenNames(change)
      const updates: Need = { action: 'update', names }
      return change.creates ? [{ action: 'create', names }, updates] : [updates]
    }
    case 'update':
      return [{ action: 'update', names: givenNames(change) }]
    case 'updateOne':
    case 'updateValue':
      return [{ action: 'update', names: [change.name] }]
    case 'replace':
      return [
        { action: 'update', names: 'all' },
        { action: 'delete', names: 'all' },
      ]
    case 'deleteSome':
      return [{ action: 'delete', names: change.names }]
    case 'deleteEntity':
      return [{ action: 'delete', names: 'all' }]
  }
}

const notifyNeeds = (change: Change, deletes: boolean): readonly Need[] => [
  { action: 'notify', names: deletes ? 'all' : givenNames(change) },
]

const givenNames = (change: Change): readonly string[] =>
  'given' in change && Array.isArray(change.given) ? change.given.map(([name]) => name as string) : []

function givenValues(change: Change): ProvidedUpdate['values'] {
  switch (change.action) {
    case 'update':
    case 'replace':
      return Object.fromEntries(change.given.map(([name, { value }]) => [name, value as Json]))
    case 'updateOne':
      return { [change.name]: change.given.value as Json }
    case 'updateValue':
      return { [change.name]: change.value as Json }
    default:
      return {}
  }
}

/**
 * Whether the type is known from the request: an entity that is created without one, by itself or by `op/notify`, has
 * the type `Thing`.
 */
const hasType = (change: Change, isTyped: boolean, kind: string): boolean =>
  isTyped ||
  kind === 'notify' ||
  (kind === 'change' && (change.action === 'create' || ('creates' in change && change.creates)))

/** docs/interface/batch.md#outcome, docs/interface/updates.md */
function writeAnswer(
  request: RequestOf<'change' | 'batch' | 'notify'>,
  outcomes: readonly (Outcome | 'several')[],
): ExpectedAnswer {
  if (request.kind === 'notify') return { status: 200 }
  if (request.kind === 'change') {
    const [outcome] = outcomes as [Outcome | 'several']
    return { status: outcome === 'several' ? 409 : statusOf(request.change, outcome) }
  }
  if (outcomes.includes('several')) return { status: 409 }
  if (outcomes.every(one => one === 'done')) return { status: 204 }
  return { status: outcomes.every(one => one === 'no entity') ? 404 : 422 }
}

// Documents

function listedDocuments(visible: readonly StoredDocument[], paths: readonly string[] | undefined): ExpectedAnswer {
  const listed = visible.filter(({ path }) => paths === undefined || path === paths[0])
  return { status: 200, documents: listed.map(({ at }) => at), total: listed.length }
}

/** docs/interface/access.md#filters: `condition.attrs`, `q` and `mq` of a subscription. */
export function allowsSubscription(
  rules: readonly AccessRule[],
  { path, subscription }: Pick<StoredSubscription, 'path' | 'subscription'>,
): boolean {
  const { elements, attrs, q = [], mq = [] } = subscription
  const about = { paths: [path], selectors: elements.map(selectorOf) }
  const names = [...attrs, ...[...q, ...mq].map(({ tokens }) => tokens[0] as string)]
  return rules.length > 0 && names.every(name => isBuiltin(name) || allowsFilter(rules, about, name))
}

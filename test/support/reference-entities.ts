// The expected content of a broker's tenant after a sequence of changes, written from docs/interface/README.md and
// docs/interface/entities.md and from nothing else.
//
// Plain on purpose: one Map, whose order is the order of creation; each change is decided from the words of
// docs/interface/updates.md#one-entity to docs/interface/entities.md#expiry. It shares no line with src/, so that a
// mistake there has no twin here. Of refusals it knows only the kind.
//
// Not here: the result of a query (reference-query), where an entity lies (reference-geo), how a change is sent
// (reference-requests).

export type Json = null | boolean | number | string | readonly Json[] | JsonObject

export interface JsonObject {
  readonly [key: string]: Json
}

export interface Metadata {
  readonly type: string
  /** Of a date the text as it is rendered. */
  readonly value: Json
}

export interface Attribute extends Metadata {
  readonly metadata: ReadonlyMap<string, Metadata>
  readonly createdMs: number
  readonly modifiedMs: number
}

export interface Entity {
  readonly path: string
  readonly id: string
  readonly type: string
  /** In the order in which they were added. */
  readonly attributes: ReadonlyMap<string, Attribute>
  readonly createdMs: number
  readonly modifiedMs: number
}

export interface GivenMetadata {
  readonly type?: string
  readonly value?: Json
}

/** An attribute as a request gives it. */
export interface GivenAttribute extends GivenMetadata {
  readonly metadata?: Named<GivenMetadata>
}

/** Members of an object: a list, so that `__proto__` is a name like others. */
export type Named<T> = readonly (readonly [name: string, one: T])[]

export type Target = Pick<Entity, 'path' | 'id' | 'type'>

interface UpdateOptions {
  readonly override: boolean
  readonly forced: boolean
}

export type Change = Target &
  (
    | { readonly action: 'create'; readonly given: Named<GivenAttribute> }
    | ({
        /** `creates`: upsert, and the batches that create absent entities. */
        readonly action: 'append' | 'appendStrict'
        readonly given: Named<GivenAttribute>
        readonly creates: boolean
      } & UpdateOptions)
    | ({ readonly action: 'update'; readonly given: Named<GivenAttribute> } & UpdateOptions)
    | { readonly action: 'replace'; readonly given: Named<GivenAttribute> }
    | ({ readonly action: 'updateOne'; readonly name: string; readonly given: GivenAttribute } & UpdateOptions)
    | { readonly action: 'updateValue'; readonly name: string; readonly value: Json; readonly forced: boolean }
    | { readonly action: 'deleteSome'; readonly names: readonly string[] }
    | { readonly action: 'deleteEntity' }
  )

/** The outcome of a change; `partly` and `done` have changed something, the others nothing. */
export type Outcome = 'done' | 'partly' | 'exists' | 'no entity' | 'no attribute' | 'second location'

export class Reference {
  /** The entities that were removed. */
  readonly gone: Target[] = []
  readonly #entities = new Map<string, Entity>()

  /** In order of creation. */
  get entities(): IterableIterator<Entity> {
    return this.#entities.values()
  }

  get size(): number {
    return this.#entities.size
  }

  get(target: Target): Entity | undefined {
    return this.#entities.get(keyOf(target))
  }

  /** Makes the change at an instant and returns its outcome. */
  apply(change: Change, nowMs: number): Outcome {
    const before = this.get(change)
    const creates = change.action === 'create' || ('creates' in change && change.creates)
    if (!before && !creates) return 'no entity'
    if (before && change.action === 'create') return 'exists'
    if (change.action === 'deleteEntity') {
      this.#remove(change)
      return 'done'
    }
    const draft = new Draft(change.action === 'replace' ? undefined : before, nowMs)
    const outcome = draft.take(change)
    if (outcome !== 'done' && outcome !== 'partly') return outcome
    if (draft.located && locationsOf(draft.attributes).length > 1) return 'second location'
    if (before && !draft.changed) return outcome
    const { path, id, type } = change
    const { attributes } = draft
    const entity = { path, id, type, attributes, createdMs: before?.createdMs ?? nowMs, modifiedMs: nowMs }
    this.#entities.set(keyOf(change), entity)
    return outcome
  }

  /** Removes expired entities, and returns how many there were (docs/interface/entities.md#expiry). */
  expire(nowMs: number): number {
    const due = [...this.entities].filter(entity => isDue(entity, nowMs))
    for (const entity of due) this.#remove(entity)
    return due.length
  }

  /** Sets an entity to the state that was found, when the outcome of a change is unknown. */
  restore(target: Target, found: Entity | undefined): void {
    if (found) this.#entities.set(keyOf(target), found)
    else if (this.get(target)) this.#remove(target)
  }

  #remove(target: Target): void {
    this.#entities.delete(keyOf(target))
    this.gone.push(target)
  }
}

/** The identity of an entity as a text. */
export const keyOf = ({ path, id, type }: Target): string => `${path} ${id} ${type}`

/** Whether the entity has expired. */
export function isDue(entity: Entity, nowMs: number): boolean {
  const expires = entity.attributes.get('dateExpires')
  return typeof expires?.value === 'string' && Date.parse(expires.value) <= nowMs
}

export const isDateType = (type: string): boolean => type === 'DateTime' || type === 'ISO8601'

const locationTypes = ['geo:json', 'geo:point', 'geo:line', 'geo:box', 'geo:polygon']

export const isLocationType = (type: string): boolean => locationTypes.includes(type)

/** The location attributes of an entity; a stored entity has one at most (docs/interface/geography.md#location). */
export function locationsOf(attributes: ReadonlyMap<string, Attribute>): Attribute[] {
  return [...attributes.values()].filter(
    ({ type, value, metadata }) => isLocationType(type) && value !== null && metadata.get('ignoreType')?.value !== true,
  )
}

/** The attributes of one entity while a change works on them. */
class Draft {
  readonly attributes: Map<string, Attribute>
  changed: boolean
  /** Whether an attribute of a location type was given. */
  located = false
  readonly #nowMs: number

  constructor(before: Entity | undefined, nowMs: number) {
    this.attributes = new Map(before?.attributes)
    this.changed = before === undefined
    this.#nowMs = nowMs
  }

  take(change: Exclude<Change, { readonly action: 'deleteEntity' }>): Outcome {
    switch (change.action) {
      case 'create':
      case 'replace':
        for (const [name, given] of change.given) this.#put(name, given, plainly)
        return 'done'
      case 'append':
        for (const [name, given] of change.given) this.#put(name, given, change)
        return 'done'
      case 'appendStrict':
        return this.#some(change.given, change, ([name]) => !this.attributes.has(name), 'exists')
      case 'update':
        return this.#some(change.given, change, ([name]) => this.attributes.has(name), 'no attribute')
      case 'updateOne':
        if (!this.attributes.has(change.name)) return 'no attribute'
        this.#put(change.name, change.given, change)
        return 'done'
      case 'updateValue': {
        const stored = this.attributes.get(change.name)
        if (!stored) return 'no attribute'
        this.#put(change.name, { type: stored.type, value: change.value }, { override: false, forced: change.forced })
        return 'done'
      }
      case 'deleteSome': {
        const there = change.names.filter(name => this.attributes.has(name))
        for (const name of there) this.attributes.delete(name)
        if (there.length === 0) return 'no attribute'
        this.changed = true
        return there.length === change.names.length ? 'done' : 'partly'
      }
    }
  }

  /**
   * Puts the given attributes that fit, and refuses the others (docs/interface/updates.md#append,
   * docs/interface/updates.md#update).
   */
  #some(
    given: Named<GivenAttribute>,
    options: UpdateOptions,
    fits: (one: readonly [string, GivenAttribute]) => boolean,
    otherwise: Outcome,
  ): Outcome {
    const fitting = given.filter(fits)
    if (fitting.length === 0 && given.length > 0) return otherwise
    for (const [name, one] of fitting) this.#put(name, one, options)
    return fitting.length === given.length ? 'done' : 'partly'
  }

  /**
   * Adds or updates one attribute (docs/interface/entities.md#default-types,
   * docs/interface/updates.md#metadata-in-updates, docs/interface/entities.md#changes).
   */
  #put(name: string, given: GivenAttribute, { override, forced }: UpdateOptions): void {
    const stored = this.attributes.get(name)
    const { type, value: argument } = completed(given)
    if (isLocationType(type)) this.located = true
    const increment = incrementOf(argument)
    const value = increment === undefined ? argument : increment + ((stored?.value ?? 0) as number)
    const wanted = given.metadata?.map(([key, one]) => [key, completed(one)] as const)
    const metadata = metadataAfter(stored?.metadata ?? new Map(), wanted, override)
    const nowMs = this.#nowMs
    if (!stored) this.attributes.set(name, { type, value, metadata, createdMs: nowMs, modifiedMs: nowMs })
    else if (forced || increment !== undefined || !isSame(stored, { type, value, metadata }))
      this.attributes.set(name, { type, value, metadata, createdMs: stored.createdMs, modifiedMs: nowMs })
    else return
    this.changed = true
  }
}

const plainly: UpdateOptions = { override: false, forced: false }

/** Type and value, with defaults for missing ones; dates as they are rendered. */
function completed({ type, value = null }: GivenMetadata): Metadata {
  const known = type ?? defaultType(value)
  return isDateType(known) && typeof value === 'string'
    ? { type: known, value: new Date(instantOf(value)).toISOString() }
    : { type: known, value }
}

function defaultType(value: Json): string {
  if (typeof value === 'string') return 'Text'
  if (typeof value === 'number') return 'Number'
  if (typeof value === 'boolean') return 'Boolean'
  return value === null ? 'None' : 'StructuredValue'
}

/**
 * Milliseconds since 1970. Only the forms of docs/interface/entities.md#dates that JavaScript parses, too; a missing
 * zone is UTC.
 */
export function instantOf(text: string): number {
  const hasZone = /Z$|[+-]\d\d:\d\d$/.test(text) || !text.includes('T')
  const ms = Date.parse(hasZone ? text : `${text}Z`)
  if (Number.isNaN(ms)) throw new Error(`no date: ${text}`)
  return ms
}

/** The argument of `$inc`, the one operator that is mirrored (docs/interface/updates.md#update-operators). */
function incrementOf(value: Json): number | undefined {
  if (typeof value !== 'object' || value === null || !('$inc' in value)) return undefined
  return value.$inc as number
}

function metadataAfter(
  stored: ReadonlyMap<string, Metadata>,
  wanted: Named<Metadata> | undefined,
  override: boolean,
): ReadonlyMap<string, Metadata> {
  if (override) return new Map(wanted)
  if (wanted === undefined) return stored
  return wanted.length === 0 ? new Map() : new Map([...stored, ...wanted])
}

const isSame = (a: Omit<Attribute, 'createdMs' | 'modifiedMs'>, b: typeof a): boolean =>
  a.type === b.type &&
  isEqual(a.value, b.value) &&
  a.metadata.size === b.metadata.size &&
  [...a.metadata].every(([name, one]) => {
    const other = b.metadata.get(name)
    return other !== undefined && one.type === other.type && isEqual(one.value, other.value)
  })

/** Deep equality; the order of keys does not count, that of elements does (docs/interface/entities.md#changes). */
export function isEqual(a: Json, b: Json): boolean {
  return canonical(a) === canonical(b)
}

function canonical(value: Json): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  const members = Object.entries(value as JsonObject).map(([key, one]) => `${JSON.stringify(key)}:${canonical(one)}`)
  return `{${members.sort().join()}}`
}

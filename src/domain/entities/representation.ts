// Entities as JSON text: the modes, the `attrs` and `metadata` filters, the builtins (docs/interface/errors.md#form,
// docs/interface/representations.md).
//
// Text is built piece by piece, so that attributes keep their order and any name is an ordinary name. `writeStored...`
// write the form on disk. When the writer has `asIs`, that text is also the normalized answer.

import { renderDateTime } from '../date-time.js'
import { type Json, type JsonWriter, renderJson } from '../json.js'
import { renderedLocation } from '../places/location.js'
import { stampMs } from '../stamp.js'
import { type Attribute, type Entity, expiryAttribute, ignoresType, isDateType, noMetadata } from './entity.js'

export type Mode = 'normalized' | 'keyValues' | 'values' | 'unique'

/** The parts of an entity that are answered, and their form. */
export interface View {
  readonly mode: Mode
  /** Names of the `attrs` parameter; undefined: all user attributes (docs/interface/representations.md#attributes). */
  readonly attrs: readonly string[] | undefined
  /** Names of the `metadata` parameter; undefined: all user metadata. */
  readonly metadata: readonly string[] | undefined
}

/** Everything, in its stored form. */
export const fullView: View = { mode: 'normalized', attrs: undefined, metadata: undefined }

/** Whether the view is the plain normalized one, for which stored text may be the answer. */
export const isFullView = (view: View): boolean =>
  view.mode === 'normalized' && view.attrs === undefined && view.metadata === undefined

/** Builtin attributes in the fixed order in which they follow `*` (docs/interface/representations.md#attributes). */
const builtinAttributes = ['dateCreated', 'dateModified', 'servicePath'] as const

/** Writes the beginning of a stored entity: its id and type. */
export function writeStoredIdentity({ id, type }: Entity, writer: JsonWriter): void {
  writer.raw('{"id":')
  writer.string(id)
  writer.raw(',"type":')
  writer.string(type)
}

/** Writes an attribute with its name, after other members. */
export function writeStoredMember(name: string, attribute: Attribute, writer: JsonWriter): void {
  writer.raw(',')
  writer.string(name)
  writer.raw(':')
  writeStoredAttribute(attribute, writer)
  if (attribute.type === 'geo:json' && renderedValue(attribute) !== attribute.value) writer.asIs = false
}

/** Writes one attribute in its stored form. */
export function writeStoredAttribute(attribute: Attribute, writer: JsonWriter): void {
  writer.raw('{"type":')
  writer.string(attribute.type)
  writer.raw(',"value":')
  writer.value(attribute.value)
  writer.raw(',"metadata":{')
  let first = true
  for (const [name, element] of attribute.metadata) {
    if (!first) writer.raw(',')
    first = false
    writer.string(name)
    writer.raw(':{"type":')
    writer.string(element.type)
    writer.raw(',"value":')
    writer.value(element.value)
    writer.raw('}')
  }
  writer.raw('}}')
}

/**
 * Whether an attribute is the `dateExpires` of a transient entity. It is shown only on request
 * (docs/interface/entities.md#builtin-attributes, docs/interface/entities.md#expiry).
 */
export const isHidden = (name: string, attribute: Attribute): boolean =>
  name === expiryAttribute && isDateType(attribute.type) && !attribute.isPlain

/** An entity of a list or of `GET /v2/entities/{id}`. */
export function renderEntity(entity: Entity, path: string, view: View): string {
  return renderSelected(entity, path, view, `"id":${quoted(entity.id)},"type":${quoted(entity.type)}`)
}

/** `GET .../attrs`: like the entity, without id and type. */
export function renderAttributes(entity: Entity, path: string, view: View): string {
  return renderSelected(entity, path, view, '')
}

/**
 * The text of `renderEntity` in pieces, one for each attribute, perhaps empty. So a large entity is rendered in steps.
 */
export function entityPieces(entity: Entity, path: string, view: View): IterableIterator<string> {
  return selectedPieces(entity, path, view, `"id":${quoted(entity.id)},"type":${quoted(entity.type)}`)
}

/** The same for `renderAttributes`. */
export function attributesPieces(entity: Entity, path: string, view: View): IterableIterator<string> {
  return selectedPieces(entity, path, view, '')
}

function* selectedPieces(entity: Entity, path: string, view: View, head: string): Generator<string> {
  const { mode, metadata } = view
  const isObject = mode === 'normalized' || mode === 'keyValues'
  const seen = new Set<string>()
  let separator = isObject && head !== '' ? ',' : ''
  yield isObject ? `{${head}` : '['
  for (const [name, attribute] of selectAttributes(entity, path, view)) {
    const text = mode === 'normalized' ? renderAttribute(attribute, metadata) : renderJson(renderedValue(attribute))
    if (mode === 'unique') {
      if (seen.has(text)) {
        yield ''
        continue
      }
      seen.add(text)
    }
    yield isObject ? `${separator}${quoted(name)}:${text}` : `${separator}${text}`
    separator = ','
  }
  yield isObject ? '}' : ']'
}

function renderSelected(entity: Entity, path: string, view: View, head: string): string {
  const selected = selectAttributes(entity, path, view)
  switch (view.mode) {
    case 'normalized':
      return `{${joined(head, selected, attribute => renderAttribute(attribute, view.metadata))}}`
    case 'keyValues':
      return `{${joined(head, selected, attribute => renderJson(renderedValue(attribute)))}}`
    case 'values':
      return `[${selected.map(([, attribute]) => renderJson(renderedValue(attribute))).join(',')}]`
    case 'unique':
      return `[${[...new Set(selected.map(([, attribute]) => renderJson(renderedValue(attribute))))].join(',')}]`
  }
}

function joined(head: string, selected: readonly Named[], render: (attribute: Attribute) => string): string {
  const members = selected.map(([name, attribute]) => `${quoted(name)}:${render(attribute)}`)
  return head === '' ? members.join(',') : [head, ...members].join(',')
}

/** `{"type":..,"value":..,"metadata":{..}}` (docs/interface/updates.md#single-attributes). */
export function renderAttribute(attribute: Attribute, metadata: readonly string[] | undefined): string {
  return renderWithMetadata(attribute, selectMetadata(attribute, metadata))
}

/** The same with these elements instead of the attribute's own metadata. The own metadata still decide the value. */
export function renderWithMetadata(attribute: Attribute, metadata: readonly NamedMetadata[]): string {
  const elements = metadata.map(
    ([name, element]) => `${quoted(name)}:{"type":${quoted(element.type)},"value":${renderJson(element.value)}}`,
  )
  const value = renderJson(renderedValue(attribute))
  return `{"type":${quoted(attribute.type)},"value":${value},"metadata":{${elements.join(',')}}}`
}

/** The rendered value: the Feature of a location is shown as its geometry (docs/interface/geography.md#geojson). */
export function renderedValue(attribute: Attribute): Json {
  if (attribute.type !== 'geo:json' || ignoresType(attribute.metadata)) return attribute.value
  return renderedLocation(attribute.value)
}

type Named = readonly [name: string, attribute: Attribute]

/** The attributes that `attrs` selects, in the order of the answer (docs/interface/representations.md#attributes). */
function selectAttributes(entity: Entity, path: string, { attrs: names, mode }: View): Named[] {
  if (names === undefined) {
    const all = [...entity.attributes].filter(([name, attribute]) => !isHidden(name, attribute))
    // Bare values have no names. The reference orders them by name, and docs/interface/README.md leaves the order open.
    return mode === 'values' || mode === 'unique' ? all.sort(([a], [b]) => (a < b ? -1 : 1)) : all
  }
  if (!isNamed(names, '*')) {
    return inOrderOf(names, entity.attributes, builtinAttributes).flatMap(name => {
      const attribute = entity.attributes.get(name) ?? builtinAttribute(name, entity, path)
      return attribute ? [[name, attribute] as const] : []
    })
  }
  const all = [...entity.attributes].filter(
    ([name, attribute]) => !isHidden(name, attribute) || names.includes(name),
  ) as Named[]
  for (const name of builtinAttributes) {
    if (!names.includes(name) || entity.attributes.has(name)) continue
    const attribute = builtinAttribute(name, entity, path)
    if (attribute) all.push([name, attribute])
  }
  return all
}

/**
 * The builtin attribute of that name; undefined: there is none, or not for this entity
 * (docs/interface/entities.md#builtin-attributes).
 */
export function builtinAttribute(name: string, entity: Entity, path: string): Attribute | undefined {
  // The times of an entity that only providers have are unknown.
  if (Number.isNaN(entity.created) && name !== 'servicePath') return undefined
  switch (name) {
    case 'dateCreated':
      return builtin('DateTime', renderDateTime(stampMs(entity.created)))
    case 'dateModified':
      return builtin('DateTime', renderDateTime(entity.modifiedMs))
    case 'servicePath':
      return builtin('Text', path)
    default:
      return undefined
  }
}

/** A builtin attribute has no metadata, and no times of its own. */
const noTimeMs = Number.NaN

/** An attribute that is shown but not stored: it has no metadata, not even builtin ones. */
export const builtin = (type: string, value: Json): Attribute => ({
  type,
  value,
  metadata: noMetadata,
  createdMs: noTimeMs,
  modifiedMs: noTimeMs,
})

/** Up to this number of names, a search is used instead of a map of positions. */
const fewNamesMax = 16
/** The first position of each name of a long list. Each attribute of each entity of an answer looks it up. */
const positionsOfNames = new WeakMap<readonly string[], ReadonlyMap<string, number>>()

function positionsOf(names: readonly string[]): ReadonlyMap<string, number> {
  const known = positionsOfNames.get(names)
  if (known) return known
  const positions = new Map<string, number>()
  for (const [at, name] of names.entries()) if (!positions.has(name)) positions.set(name, at)
  positionsOfNames.set(names, positions)
  return positions
}

const isNamed = (names: readonly string[], name: string): boolean =>
  names.length <= fewNamesMax ? names.includes(name) : positionsOf(names).has(name)

/** The names, each once; of a long list only those in `there` or in `builtins`. */
function inOrderOf(
  names: readonly string[],
  there: ReadonlyMap<string, unknown>,
  builtins: readonly string[],
): readonly string[] {
  if (names.length <= fewNamesMax) return [...new Set(names)]
  const positions = positionsOf(names)
  const found = new Set<string>()
  for (const name of there.keys()) if (positions.has(name)) found.add(name)
  for (const name of builtins) if (positions.has(name)) found.add(name)
  return [...found].sort((a, b) => positions.get(a)! - positions.get(b)!)
}

export type NamedMetadata = readonly [name: string, element: { readonly type: string; readonly value: Json }]

/** Builtin metadata in queries (docs/interface/entities.md#builtin-metadata), in the order in which they follow `*`. */
const builtinMetadata = ['dateCreated', 'dateModified'] as const

/**
 * The metadata that the names select, in the order of the answer (docs/interface/entities.md#builtin-metadata).
 * `builtins`: the builtin names in the order in which they follow `*`; notifications have more of them than queries.
 */
export function selectMetadata(
  attribute: Attribute,
  names: readonly string[] | undefined,
  builtins: readonly string[] = builtinMetadata,
  builtinOf = builtinElement,
): NamedMetadata[] {
  if (names === undefined) return [...attribute.metadata]
  const wanted = isNamed(names, '*')
    ? new Set([...attribute.metadata.keys(), ...builtins.filter(n => isNamed(names, n))])
    : inOrderOf(names, attribute.metadata, builtins)
  return [...wanted].flatMap(name => {
    const element = attribute.metadata.get(name) ?? builtinOf(name, attribute)
    return element ? [[name, element] as const] : []
  })
}

/** The builtin metadata of that name in queries; undefined: there is none. */
export function builtinElement(name: string, attribute: Attribute): NamedMetadata[1] | undefined {
  if (Number.isNaN(attribute.createdMs)) return undefined
  if (name === 'dateCreated') return { type: 'DateTime', value: renderDateTime(attribute.createdMs) }
  if (name === 'dateModified') return { type: 'DateTime', value: renderDateTime(attribute.modifiedMs) }
  return undefined
}

const plain = /^[ !#-[\]-~]*$/

/** A name as a JSON string. Nearly all names need no escaping. */
export const quoted = (text: string): string => (plain.test(text) ? `"${text}"` : JSON.stringify(text))

// The content of a notification: attributes and metadata of an entity, in one of the six formats
// (docs/interface/notifications.md#content).
//
// The entity after the change passes through the lists of the subscription (`attrs`, `exceptAttrs`, `metadata`), then
// `covered`, then the format. The same holds for an entity that a template has patched (notification.ts).
//
// Not here: headers, macros, whether to notify at all.

import { type Attribute, type Entity, expiryAttribute } from '../entities/entity.js'
import {
  builtin,
  builtinAttribute,
  builtinElement,
  isHidden,
  type NamedMetadata,
  quoted,
  renderedValue,
  renderWithMetadata,
  selectMetadata,
} from '../entities/representation.js'
import { type Json, renderJson } from '../json.js'
import type { NamedAttribute, NotificationInput } from './message.js'
import type { AttrsFormat, NotificationSettings } from './subscription.js'

// [hot] The plain case, everything and normalized, once per notification.
/** The body of a regular notification in the format of its subscription (docs/interface/notifications.md#formats). */
export function renderBody(input: NotificationInput): string {
  const { subscription, entity, normalizedText } = input
  const { notification } = subscription
  const { attrsFormat } = notification
  if (normalizedText === undefined || !showsEverything(notification)) return renderBodyOf(input, entity, attrsFormat)
  if (attrsFormat === 'normalized') return enveloped(subscription.id, normalizedText)
  if (attrsFormat === 'simplifiedNormalized') return normalizedText
  return renderBodyOf(input, entity, attrsFormat)
}

/** Whether a notification may be built from the entity's normalized text (`normalizedText`). */
export const isOfText = (settings: NotificationSettings): boolean =>
  (settings.attrsFormat === 'normalized' || settings.attrsFormat === 'simplifiedNormalized') &&
  showsEverything(settings)

/** The same for an entity, perhaps patched, in any format. */
export function renderBodyOf(input: NotificationInput, entity: Entity, format: AttrsFormat): string {
  const { id, notification } = input.subscription
  const shown = shownAttributes(input, entity)
  switch (format) {
    case 'normalized':
      return enveloped(id, renderNormalized(input, entity, shown))
    case 'simplifiedNormalized':
      return renderNormalized(input, entity, shown)
    case 'keyValues':
      return enveloped(id, renderKeyValues(entity, shown))
    case 'simplifiedKeyValues':
      return renderKeyValues(entity, shown)
    case 'values':
      return enveloped(id, `[${shown.map(([, attribute]) => renderJson(renderedValue(attribute))).join(',')}]`)
    case 'legacy':
      return renderLegacy(id, entity, shown, metadataOf(input, notification))
  }
}

const showsEverything = (settings: NotificationSettings): boolean =>
  settings.attrs.length === 0 &&
  settings.exceptAttrs.length === 0 &&
  settings.metadata.length === 0 &&
  !settings.onlyChangedAttrs

const enveloped = (subscription: string, data: string): string =>
  `{"subscriptionId":"${subscription}","data":[${data}]}`

const identity = ({ id, type }: Entity): string => `"id":${quoted(id)},"type":${quoted(type)}`

function renderNormalized(input: NotificationInput, entity: Entity, shown: readonly Named[]): string {
  const metadata = metadataOf(input, input.subscription.notification)
  let text = `{${identity(entity)}`
  for (const [name, attribute] of shown)
    text += `,${quoted(name)}:${renderWithMetadata(attribute, metadata(name, attribute))}`
  return `${text}}`
}

function renderKeyValues(entity: Entity, shown: readonly Named[]): string {
  let text = `{${identity(entity)}`
  for (const [name, attribute] of shown) text += `,${quoted(name)}:${renderJson(renderedValue(attribute))}`
  return `${text}}`
}

/**
 * The form of the first version of the interface (docs/interface/notifications.md#legacy-format): lists instead of
 * members, without empty lists.
 */
function renderLegacy(subscription: string, entity: Entity, shown: readonly Named[], metadata: MetadataOf): string {
  const attributes = shown.map(([name, attribute]) => {
    const metadatas = metadata(name, attribute).map(([key, { type, value }]) => `{${legacyMember(key, type, value)}}`)
    return `{${legacyMember(name, attribute.type, renderedValue(attribute))}${listMember('metadatas', metadatas)}}`
  })
  const element =
    `{"type":${quoted(entity.type)},"isPattern":"false","id":${quoted(entity.id)}` +
    `${listMember('attributes', attributes)}}`
  const response = `{"contextElement":${element},"statusCode":{"code":"200","reasonPhrase":"OK"}}`
  return `{"subscriptionId":"${subscription}","originator":"localhost","contextResponses":[${response}]}`
}

const legacyMember = (name: string, type: string, value: Json): string =>
  `"name":${quoted(name)},"type":${quoted(type)},"value":${renderJson(value)}`

const listMember = (name: string, items: readonly string[]): string =>
  items.length === 0 ? '' : `,"${name}":[${items.join(',')}]`

// Attributes

type Named = readonly [name: string, attribute: Attribute]

/** Builtin attributes in the order in which they follow `*`; `dateExpires` is stored with the others. */
const builtinAttributes = ['dateCreated', 'dateModified', 'alterationType', 'servicePath']

/**
 * Listed attributes that are sent even if the request did not name them
 * (docs/interface/notifications.md#only-changed-attributes).
 */
const alwaysChanged = new Set(['dateCreated', 'dateModified', 'alterationType'])

/** The attributes to send, in their order (docs/interface/notifications.md). */
function shownAttributes(input: NotificationInput, entity: Entity): readonly Named[] {
  const { attrs, exceptAttrs, onlyChangedAttrs } = input.subscription.notification
  const changed = onlyChangedAttrs ? new Set(namedBy(input).map(({ name }) => name)) : undefined
  const isSent = (name: string): boolean =>
    !changed || changed.has(name) || (alwaysChanged.has(name) && attrs.includes(name))
  if (attrs.length > 0 && !attrs.includes('*'))
    return listedAttributes(input, entity, changed ? attrs.filter(isSent) : attrs)

  const listed = attrs.filter(name => name !== '*' && isSent(name))
  const except = new Set(exceptAttrs)
  const user = [...entity.attributes].filter(
    ([name, attribute]) => isSent(name) && !except.has(name) && (!isHidden(name, attribute) || attrs.includes(name)),
  )
  const builtins = builtinAttributes.filter(name => listed.includes(name))
  const others = [...new Set([...builtins, ...listed])].filter(name => !entity.attributes.has(name))
  return [...user, ...listedAttributes(input, entity, others)]
}

/** The existing attributes among these names. */
function listedAttributes(input: NotificationInput, entity: Entity, names: readonly string[]): readonly Named[] {
  const shown: Named[] = []
  for (const name of names) {
    const attribute = listedAttribute(input, entity, name)
    if (attribute) shown.push([name, attribute])
  }
  return shown
}

/** The attribute of a name in `attrs`: the entity's, a builtin one, or null if the subscription wants that. */
function listedAttribute(input: NotificationInput, entity: Entity, name: string): Attribute | undefined {
  return (
    entity.attributes.get(name) ??
    builtinOf(input, entity, name) ??
    (input.subscription.notification.covered && canBeCovered(name) ? coveredNull : undefined)
  )
}

/** The builtin attribute of that name, in the form for notifications (docs/interface/notifications.md#attributes). */
export const builtinOf = (
  { path, alteration }: NotificationInput,
  entity: Entity,
  name: string,
): Attribute | undefined =>
  name === 'alterationType' ? builtin('Text', alteration) : builtinAttribute(name, entity, path)

const coveredNull = builtin('None', null)

/**
 * Whether a name of `attrs` may be missing in the entity (docs/interface/notifications.md#missing-attributes). Other
 * builtin attributes always exist.
 */
const canBeCovered = (name: string): boolean => name !== '*' && name !== expiryAttribute

/** The names that are sent as null if the entity lacks them (docs/interface/notifications.md#missing-attributes). */
export const coveredNames = ({ covered, attrs }: NotificationSettings): ReadonlySet<string> =>
  new Set(covered ? attrs.filter(canBeCovered) : [])

/**
 * The attributes that the request named; a deletion of the whole entity names none
 * (docs/interface/notifications.md#only-changed-attributes).
 */
const namedBy = ({ alteration, named }: NotificationInput): readonly NamedAttribute[] =>
  alteration === 'entityDelete' ? [] : named

// Metadata

type MetadataOf = (name: string, attribute: Attribute) => readonly NamedMetadata[]

/** Builtin metadata in the order in which they follow `*` (docs/interface/notifications.md#metadata). */
const builtinMetadata = ['dateCreated', 'dateModified', 'actionType', 'previousValue']

/** Returns a function for the metadata to send of an attribute. */
function metadataOf(input: NotificationInput, { metadata: names }: NotificationSettings): MetadataOf {
  if (names.length === 0) return (_name, attribute) => selectMetadata(attribute, undefined)
  const named = new Map(namedBy(input).map(one => [one.name, one]))
  return (name, attribute) =>
    selectMetadata(attribute, names, builtinMetadata, (element, { createdMs }) =>
      // An attribute that is not stored was not named by the request, whatever its name.
      Number.isNaN(createdMs)
        ? undefined
        : (builtinElement(element, attribute) ?? metadataOfRequest(element, named.get(name))),
    )
}

/**
 * The builtin metadata about the request. An attribute that existed before counts as updated, even in a request that
 * replaces all.
 */
function metadataOfRequest(element: string, named: NamedAttribute | undefined): NamedMetadata[1] | undefined {
  if (!named) return undefined
  const { action, previous } = named
  if (element === 'actionType')
    return { type: 'Text', value: action === 'append' && previous === undefined ? 'append' : 'update' }
  if (element === 'previousValue' && previous) return { type: previous.type, value: renderedValue(previous) }
  return undefined
}

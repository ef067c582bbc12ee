// The transport of a subscription: parses the members `http`, `httpCustom`, `mqtt` and `mqttCustom` of a payload
// (docs/interface/subscriptions.md, docs/interface/errors.md#subscriptions), and replaces masks in them
// (docs/operations/secrets.md).
//
// The refusal names the first mistake, in the order of the tables: fields of the URL, those of the transport, the
// custom content. The text after macros is known only when they are filled in: a URL with a macro is checked then, and
// so are headers.

import {
  checkIdentifier,
  defaultType,
  hasIdentifierCharacters,
  isTooDeep,
  refuseAttributes,
} from '../entities/entity.js'
import { hasForbiddenCharacters, isArray, isInteger, isObject, type Json, type JsonObject } from '../json.js'
import { identifierLengthMax, listLengthMax, notificationTimeoutMsMax, valueDepthMax } from '../limits.js'
import { accepted, allOf, type Result, refusals, refused } from '../refusal.js'
import { optional } from './payload-fields.js'
import { parseReceiverUrl } from './receiver-url.js'
import { isSecretName, mask } from './secrets.js'
import {
  type CustomBody,
  type HttpCustomTransport,
  type HttpMethod,
  type HttpTransport,
  httpMethods,
  type MqttCustomTransport,
  type MqttTransport,
  type NamedText,
  type PatchAttribute,
  type SubscriptionTransport,
} from './subscription.js'

const transportKinds = [
  'http',
  'httpCustom',
  'mqtt',
  'mqttCustom',
] as const satisfies readonly SubscriptionTransport['kind'][]

/**
 * The one transport of a `notification` (docs/interface/errors.md#subscriptions). `deep`: its values must be measured.
 */
export function parseTransport(notification: JsonObject, deep: boolean): Result<SubscriptionTransport> {
  const given = transportKinds.filter(kind => notification[kind] !== undefined)
  if (given.length > 1) return refused(refusals.transportTwice)
  const kind = given[0]
  if (kind === undefined) return refused(refusals.fieldMissing('http, httpCustom, mqtt or mqttCustom'))
  const json = notification[kind]
  if (!isObject(json)) return refused(refusals.fieldNotObject(`${kind} notification`))
  switch (kind) {
    case 'http':
      return parseHttp(json)
    case 'httpCustom':
      return parseHttpCustom(json, deep)
    case 'mqtt':
      return parseMqtt(json)
    case 'mqttCustom':
      return parseMqttCustom(json, deep)
  }
}

// HTTP

function parseHttp(json: JsonObject): Result<HttpTransport> {
  const { url } = json
  if (url === undefined) return refused(refusals.fieldMissing('url http notification'))
  if (typeof url !== 'string') return refused(refusals.fieldNotString('url http notification'))
  if (hasForbiddenCharacters(url)) return refused(refusals.charactersIn('http field /url/'))
  const parts = parseReceiverUrl(url)
  if (!parts) return refused(refusals.httpUrl)
  if (parts.scheme === 'mqtt') return refused(refusals.httpUrlIsMqtt)
  const timeoutMs = parseTimeout(json)
  return timeoutMs.ok ? accepted({ kind: 'http', url, timeoutMs: timeoutMs.value }) : timeoutMs
}

function parseHttpCustom(json: JsonObject, deep: boolean): Result<HttpCustomTransport> {
  const { url } = json
  if (url === undefined) return refused(refusals.fieldMissing('url httpCustom notification'))
  if (typeof url !== 'string') return refused(refusals.fieldNotString('url httpCustom notification'))
  if (hasForbiddenCharacters(url)) return refused(refusals.charactersIn('custom /url/'))
  if (!url.includes(macroStart) && !parseReceiverUrl(url)) return refused(refusals.httpCustomUrl)
  if (url.startsWith('mqtt:')) return refused(refusals.httpUrlIsMqtt)
  const fields = allOf<Omit<HttpCustomTransport, 'kind' | 'url'>>({
    timeoutMs: () => parseTimeout(json),
    method: () => optional(json.method, parseMethod),
    qs: () => parseNamedTexts('qs', json.qs),
    headers: () => parseNamedTexts('headers', json.headers),
    body: () => parseCustomBody(json, deep),
  })
  return fields.ok ? accepted({ kind: 'httpCustom', url, ...fields.value }) : fields
}

function parseMethod(json: Json): Result<HttpMethod> {
  if (typeof json !== 'string') return refused(refusals.fieldNotString('method httpCustom notification'))
  return isHttpMethod(json) ? accepted(json) : refused(refusals.httpMethod)
}

const macroStart = '${'

const isHttpMethod = (text: string): text is HttpMethod => (httpMethods as readonly string[]).includes(text)

function parseTimeout({ timeout }: JsonObject): Result<number> {
  if (timeout === undefined) return accepted(0)
  if (!isInteger(timeout)) return refused(refusals.fieldNotInteger('timeout'))
  if (timeout < 0 || timeout > notificationTimeoutMsMax) return refused(refusals.timeoutRange(notificationTimeoutMsMax))
  return accepted(timeout)
}

/** A map of texts, in the order of its names, which is also the order in answers. */
function parseNamedTexts(field: 'qs' | 'headers', json: Json | undefined): Result<readonly NamedText[]> {
  if (json === undefined) return accepted([])
  const label = `notification httpCustom ${field}`
  if (!isObject(json)) return refused(refusals.fieldNotObject(label))
  const named = Object.entries(json)
  if (named.length > listLengthMax) return refused(refusals.tooMany('names', named.length, listLengthMax))
  if (named.length === 0) return refused(refusals.fieldEmpty(label))
  for (const [name, text] of named) {
    if (typeof text !== 'string') return refused(refusals.fieldNotString(`${label} element`))
    if (hasForbiddenCharacters(name) || hasForbiddenCharacters(text))
      return refused(refusals.charactersIn(`custom ${label}`))
  }
  return accepted((named as [string, string][]).sort(([a], [b]) => (a < b ? -1 : 1)))
}

// MQTT. Both kinds have the same refusals.

function parseMqtt(json: JsonObject): Result<MqttTransport> {
  const fields = parseMqttFields(json)
  return fields.ok ? accepted({ kind: 'mqtt', ...fields.value }) : fields
}

function parseMqttCustom(json: JsonObject, deep: boolean): Result<MqttCustomTransport> {
  const fields = parseMqttFields(json)
  if (!fields.ok) return fields
  const body = parseCustomBody(json, deep)
  return body.ok ? accepted({ kind: 'mqttCustom', ...fields.value, body: body.value }) : body
}

type MqttFields = Omit<MqttTransport, 'kind'>

function parseMqttFields(json: JsonObject): Result<MqttFields> {
  const fields = allOf<MqttFields>({
    url: () => parseMqttUrl(json.url),
    login: () => parseLogin(json),
    qos: () => parseQos(json),
    retain: () => parseRetain(json),
    topic: () => parseTopic(json.topic),
  })
  if (!fields.ok) return fields
  const { url, topic, qos, retain, login } = fields.value
  return accepted({ url, topic, qos, retain, login })
}

function parseQos({ qos = 0 }: JsonObject): Result<MqttFields['qos']> {
  if (!isInteger(qos)) return refused(refusals.fieldNotInteger('qos'))
  return qos === 0 || qos === 1 || qos === 2 ? accepted(qos) : refused(refusals.mqttQos)
}

const parseRetain = ({ retain = false }: JsonObject): Result<boolean> =>
  typeof retain === 'boolean' ? accepted(retain) : refused(refusals.fieldNotBoolean('retain'))

function parseMqttUrl(url: Json | undefined): Result<string> {
  if (url === undefined) return refused(refusals.fieldMissing('url mqtt notification'))
  if (typeof url !== 'string') return refused(refusals.fieldNotString('url mqtt notification'))
  if (hasForbiddenCharacters(url)) return refused(refusals.charactersIn('mqtt field /url/'))
  const parts = parseReceiverUrl(url)
  if (!parts) return refused(refusals.mqttUrl)
  if (parts.scheme !== 'mqtt') return refused(refusals.mqttUrlIsHttp)
  if (parts.path !== '/') return refused(refusals.mqttUrlPath)
  return accepted(url)
}

function parseLogin({ user, passwd }: JsonObject): Result<MqttTransport['login']> {
  if (user !== undefined && typeof user !== 'string') return refused(refusals.fieldNotString('user mqtt notification'))
  if (passwd !== undefined && typeof passwd !== 'string')
    return refused(refusals.fieldNotString('passwd mqtt notification'))
  if (user !== undefined && hasForbiddenCharacters(user)) return refused(refusals.charactersIn('mqtt /user/'))
  if (user !== undefined && passwd !== undefined) return accepted({ user, passwd })
  return user === undefined && passwd === undefined ? accepted(undefined) : refused(refusals.mqttLogin)
}

function parseTopic(topic: Json | undefined): Result<string> {
  if (topic === undefined) return refused(refusals.fieldMissing('topic mqtt notification'))
  if (typeof topic !== 'string') return refused(refusals.fieldNotString('topic mqtt notification'))
  if (topic === '') return refused(refusals.mqttTopicEmpty)
  if (topic.includes('+') || topic.includes('#')) return refused(refusals.mqttTopicWildcard)
  return hasForbiddenCharacters(topic) ? refused(refusals.charactersIn('mqtt field /topic/')) : accepted(topic)
}

// Custom content

function parseCustomBody(json: JsonObject, deep: boolean): Result<CustomBody | undefined> {
  const { payload, json: template, ngsi } = json
  // A payload of null counts as given.
  if ([payload, template, ngsi].filter(one => one !== undefined).length > 1) return refused(refusals.customBodyTwice)
  if (payload !== undefined) return parsePayloadText(payload)
  if (template !== undefined) return parseJsonTemplate(template, deep)
  if (ngsi !== undefined) return parseEntityPatch(ngsi, deep)
  return accepted(undefined)
}

function parsePayloadText(text: Json): Result<CustomBody | undefined> {
  if (text !== null && typeof text !== 'string') return refused(refusals.fieldNotString('payload custom notification'))
  if (text === '') return accepted(undefined)
  if (text !== null && hasForbiddenCharacters(text)) return refused(refusals.charactersIn('custom /payload/'))
  return accepted({ kind: 'payload', text })
}

function parseJsonTemplate(template: Json, deep: boolean): Result<CustomBody> {
  if (!isArray(template) && !isObject(template)) return refused(refusals.customJson)
  if (deep && isTooDeep(template)) return refused(refusals.customNestedTooDeep(valueDepthMax))
  return accepted({ kind: 'json', template })
}

function parseEntityPatch(json: Json, deep: boolean): Result<CustomBody> {
  if (!isObject(json)) return refused(refusals.fieldNotObject('ngsi'))
  const id = parsePatchIdentifier('id', json.id)
  if (!id.ok) return id
  const type = parsePatchIdentifier('type', json.type)
  if (!type.ok) return type
  const attributes: (readonly [string, PatchAttribute])[] = []
  const keys = Object.keys(json)
  const tooMany = refuseAttributes(json, keys.length)
  if (tooMany) return refused(tooMany)
  for (const name of keys) {
    if (name === 'id' || name === 'type') continue
    const refusal = checkIdentifier('attribute name', name)
    if (refusal) return refused(refusal)
    const attribute = parsePatchAttribute(json[name] as Json, deep)
    if (!attribute.ok) return attribute
    attributes.push([name, attribute.value])
  }
  return accepted({ kind: 'ngsi', patch: { id: id.value, type: type.value, attributes } })
}

/** An empty text means the entity's own, like none. The characters of macros are allowed in identifiers anyway. */
function parsePatchIdentifier(field: 'id' | 'type', json: Json | undefined): Result<string | undefined> {
  if (json === undefined || json === '') return accepted(undefined)
  if (typeof json !== 'string') return refused(field === 'id' ? refusals.entityIdKind : refusals.entityTypeKind)
  const place = `entity ${field}` as const
  if (!hasIdentifierCharacters(json)) return refused(refusals.identifierCharacters(place))
  if (json.length > identifierLengthMax)
    return refused(refusals.identifierTooLong(place, json.length, identifierLengthMax))
  return accepted(json)
}

/**
 * An attribute of a patch. Unlike a stored attribute, its value may contain forbidden characters, and need not fit its
 * type: a date or a location may be a macro.
 */
function parsePatchAttribute(json: Json, deep: boolean): Result<PatchAttribute> {
  if (!isObject(json)) return refused(refusals.attributeNotObject)
  const { value = null, type, metadata = {} } = json
  if (Object.keys(json).some(key => key !== 'value' && key !== 'type' && key !== 'metadata'))
    return refused(refusals.attributeUnknownKey)
  if (type !== undefined && typeof type !== 'string') return refused(refusals.attributeTypeNotString)
  const refusal = type === undefined ? undefined : checkIdentifier('attribute type', type)
  if (refusal) return refused(refusal)
  if (!isObject(metadata)) return refused(refusals.metadataNotObject)
  if (Object.keys(metadata).length > 0) return refused(refusals.customMetadata)
  if (deep && isTooDeep(value)) return refused(refusals.customNestedTooDeep(valueDepthMax))
  return accepted({ type: type ?? defaultType(value), value })
}

// Masks. A client that reads a subscription, changes a field and sends it back sends masks. A mask means "the stored
// value", while the receiver stays the same. Otherwise any client could have secrets sent to its own receiver.

/** Whether a transport has a mask in the place of a secret: it was copied from an answer of a broker. */
export function hasMask(transport: SubscriptionTransport): boolean {
  if ('login' in transport) return transport.login?.passwd === mask
  return transport.kind === 'httpCustom' && [...transport.headers, ...transport.qs].some(isMasked)
}

const isMasked = ([name, value]: NamedText): boolean => value === mask && isSecretName(name)

/**
 * The transport of a PATCH, with masks replaced by the present secrets. Refused when they would go to another receiver.
 */
export function unmask(given: SubscriptionTransport, present: SubscriptionTransport): Result<SubscriptionTransport> {
  if (!hasMask(given)) return accepted(given)
  if ('login' in given) {
    const passwd = 'login' in present && given.login?.user === present.login?.user ? present.login?.passwd : undefined
    if (passwd === undefined) return accepted(given)
    if (!isSameReceiver(given.url, present.url)) return refused(refusals.maskForOtherReceiver('passwd'))
    return accepted({ ...given, login: { user: given.login!.user, passwd } })
  }
  return given.kind === 'httpCustom' && present.kind === 'httpCustom' ? unmaskNamed(given, present) : accepted(given)
}

function unmaskNamed(given: HttpCustomTransport, present: HttpCustomTransport): Result<SubscriptionTransport> {
  const isSame = isSameReceiver(given.url, present.url)
  const unmasked: Partial<Record<'headers' | 'qs', readonly NamedText[]>> = {}
  for (const field of ['headers', 'qs'] as const) {
    const known = new Map(present[field])
    const kept = given[field].find(text => isMasked(text) && known.has(text[0]))
    if (kept && !isSame) return refused(refusals.maskForOtherReceiver(`${field} ${kept[0]}`))
    unmasked[field] = given[field].map(text => [text[0], isMasked(text) ? (known.get(text[0]) ?? mask) : text[1]])
  }
  return accepted({ ...given, ...unmasked })
}

/**
 * Whether two URLs have the same scheme, host and port. With macros they must be equal: a filled-in value may be a
 * host.
 */
function isSameReceiver(one: string, other: string): boolean {
  if (one === other) return true
  const [origin] = originForm.exec(one) ?? []
  return origin !== undefined && !origin.includes('$') && origin === originForm.exec(other)?.[0]
}

const originForm = /^[a-z]+:\/\/[^/?#]*/

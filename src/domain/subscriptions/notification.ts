// Notifications: builds the message of one change for one subscription.
//
// A regular one has the selected content of the entity, in the format of the subscription. A custom one
// (docs/interface/notifications.md#custom-notifications, docs/interface/notifications.md#mqtt) is built from templates:
// macros come first, then percent-decoding, then the checks, so that the checked texts are the sent ones.
//
//   url, qs, topic     unchanged; blanks in a URL are percent-encoded, since a request line has none
//   payload, headers   percent-decoded: so they can contain characters that are forbidden in a subscription
//   json, ngsi         JSON; the body stays valid for any value
//
// A text that would break the request (a control character, a bad header name, a bad URL) is refused. The notification
// is not sent, and the log gives the reason without the text, which may be a secret.
//
// The message depends only on the input and the options: rendered again after a crash, it is the same.
//
// [hot] Once per notification. For an entity of five attributes and 380 bytes: 1.3 us when its normalized text is
// given, nearly all of it headers; 6 us when it has to be rendered, 12 us with templates. Two cores shared with others,
// best of seven.
//
// Not here: whether to notify, the outcome, the syntax of macros (macros.ts), bytes and sockets.

import type { Attribute, Entity } from '../entities/entity.js'
import { builtin, renderedValue } from '../entities/representation.js'
import { type Json, renderJson } from '../json.js'
import { topicLengthMax } from '../limits.js'
import { MacroFiller } from './macros.js'
import {
  type HttpMessage,
  type MqttMessage,
  type NotificationInput,
  type NotificationOptions,
  type NotSent,
  notSent,
} from './message.js'
import { builtinOf, coveredNames, renderBody, renderBodyOf } from './notification-body.js'
import {
  type BodyDescription,
  checkHeaders,
  checkValues,
  type Header,
  isFreeOfControls,
  jsonType,
  namesSameScope,
  standardHeaders,
  withCustomHeaders,
} from './notification-headers.js'
import { parseReceiverUrl } from './receiver-url.js'
import { withoutUserinfo } from './secrets.js'
import type {
  AttrsFormat,
  CustomBody,
  EntityPatch,
  HttpCustomTransport,
  HttpTransport,
  MqttCustomTransport,
  MqttTransport,
  NamedText,
  SubscriptionTransport,
} from './subscription.js'

/** Builds the message of a notification, or returns why there is none (docs/interface/notifications.md). */
export function messageOf(input: NotificationInput, options: NotificationOptions): HttpMessage | MqttMessage | NotSent {
  const { transport } = input.subscription.notification
  const isRegular = options.disableCustomNotifications
  switch (transport.kind) {
    case 'http':
      return regularHttp(input, transport, options)
    case 'httpCustom':
      if (!isRegular) return customHttp(input, transport, options)
      // A URL that looks like a template was not checked before.
      if (requestUrl(transport.url, []) === undefined) return malformedUrl(transport.url)
      return regularHttp(input, transport, options)
    case 'mqtt':
      return regularMqtt(input, transport)
    case 'mqttCustom':
      return isRegular ? regularMqtt(input, transport) : customMqtt(input, transport, options)
  }
}

function regularHttp(
  input: NotificationInput,
  { url, timeoutMs }: HttpTransport | HttpCustomTransport,
  options: NotificationOptions,
): HttpMessage | NotSent {
  const content = { type: jsonType, format: input.subscription.notification.attrsFormat }
  const headers = standardHeaders(input, options, content)
  const refusal = checkValues(headers)
  return refusal ?? { transport: 'http', method: 'POST', url, headers, body: renderBody(input), timeoutMs }
}

function regularMqtt(input: NotificationInput, to: MqttTransport | MqttCustomTransport): MqttMessage | NotSent {
  const { url, topic, qos, retain, login } = to
  return checkTopic(topic) ?? { transport: 'mqtt', url, topic, body: renderBody(input), qos, retain, login }
}

/**
 * A message to the receiver of such notifications, without content. From it a sender knows where to connect before the
 * first notification.
 */
export function emptyMessage(to: SubscriptionTransport): HttpMessage | MqttMessage {
  const { url } = to
  if (to.kind === 'http' || to.kind === 'httpCustom')
    return { transport: 'http', method: 'POST', url, headers: [], body: undefined, timeoutMs: 0 }
  const { topic, qos, retain, login } = to
  return { transport: 'mqtt', url, topic, body: undefined, qos, retain, login }
}

/** The request of an `httpCustom` subscription (docs/interface/notifications.md#request). */
function customHttp(
  input: NotificationInput,
  transport: HttpCustomTransport,
  options: NotificationOptions,
): HttpMessage | NotSent {
  const filler = fillerOf(input, options)
  const url = filler.text(transport.url)
  const body = customBody(input, transport.body, filler)
  const qs = fillNamed(transport.qs, filler)
  const custom = fillNamed(transport.headers, filler)
  if (url === undefined || !body || !qs || !custom) return macroWithoutEnd
  if (filler.isExceeded) return tooLong
  const decoded = custom.map(([name, value]): Header => [name, percentDecoded(value)])
  const standard = standardHeaders(input, options, body.content)
  const headers = withCustomHeaders(standard, decoded.filter(isNamed), options)
  const refusal = checkHeaders(headers)
  if (refusal) return refusal
  const address = requestUrl(url, qs)
  if (address === undefined) return malformedUrl(transport.url)
  return {
    transport: 'http',
    method: transport.method ?? 'POST',
    url: address,
    headers,
    body: body.text,
    timeoutMs: transport.timeoutMs,
    ...(namesSameScope(standard, headers) ? {} : { leavesScope: true }),
  }
}

/** The message of an `mqttCustom` subscription (docs/interface/notifications.md#mqtt). */
function customMqtt(
  input: NotificationInput,
  transport: MqttCustomTransport,
  options: NotificationOptions,
): MqttMessage | NotSent {
  const filler = fillerOf(input, options)
  const topic = filler.text(transport.topic)
  const body = customBody(input, transport.body, filler)
  if (topic === undefined || !body) return macroWithoutEnd
  if (filler.isExceeded) return tooLong
  const refusal = checkTopic(topic)
  if (refusal) return refusal
  const { url, qos, retain, login } = transport
  return { transport: 'mqtt', url, topic, body: body.text, qos, retain, login }
}

/**
 * The reason why a topic cannot be used; undefined: it can. Any MQTT broker would refuse a wildcard
 * (docs/interface/notifications.md#mqtt).
 */
function checkTopic(topic: string): NotSent | undefined {
  if (topic === '' || topic.length > topicLengthMax)
    return notSent('warn', 'Notification not sent: the MQTT topic is empty or too long')
  if (/[+#]/.test(topic)) return notSent('warn', 'Notification not sent: + or # in the MQTT topic')
  return isFreeOfControls(topic)
    ? undefined
    : notSent('warn', 'Notification not sent: control characters in the MQTT topic')
}

const macroWithoutEnd = notSent('warn', 'macro end not found, syntax error, aborting substitution')
const tooLong: NotSent = {
  level: 'error',
  text: 'Runtime Error (HTTP request to send is too large)',
  failure: 'total outgoing message size is too big',
}

/** Shows the URL of the subscription: the filled-in URL may contain a secret. */
const malformedUrl = (url: string): NotSent =>
  notSent('error', `Runtime Error (not sending notification: malformed URL: '${withoutUserinfo(url)}')`)

// Values of macros

function fillerOf(input: NotificationInput, { filledLengthMax }: NotificationOptions): MacroFiller {
  const covered = coveredNames(input.subscription.notification)
  return new MacroFiller(name => macroValue(input, covered, name), filledLengthMax)
}

/**
 * The value of a macro (docs/interface/notifications.md#macros); undefined: none. Only id and type have precedence over
 * attributes.
 */
function macroValue(input: NotificationInput, covered: ReadonlySet<string>, name: string): Json | undefined {
  const { entity, tenant, authToken } = input
  if (name === 'id') return entity.id
  if (name === 'type') return entity.type
  const attribute = entity.attributes.get(name) ?? builtinOf(input, entity, name)
  if (attribute) return renderedValue(attribute)
  if (covered.has(name)) return null
  if (name === 'service') return tenant
  if (name === 'authToken') return authToken ?? ''
  return undefined
}

/** Fills in names and values; undefined: a macro has no end. */
function fillNamed(named: readonly NamedText[], filler: MacroFiller): NamedText[] | undefined {
  const filled: NamedText[] = []
  for (const [name, value] of named) {
    const [key, text] = [filler.text(name), filler.text(value)]
    if (key === undefined || text === undefined) return undefined
    filled.push([key, text])
  }
  return filled
}

const isNamed = ([name]: NamedText): boolean => name !== ''

// The URL

/**
 * The URL with its query string (docs/interface/notifications.md#request); undefined: it is malformed, or not an HTTP
 * URL.
 */
function requestUrl(url: string, qs: readonly NamedText[]): string | undefined {
  const query = qs
    .filter(([key, value]) => key !== '' && value !== '')
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${value}`)
    .join('&')
  const whole = query === '' ? url : `${url}${url.includes('?') ? '&' : '?'}${query}`
  if (!isFreeOfControls(whole)) return undefined
  const address = whole.replace(/\s/g, encodeURIComponent)
  const parts = parseReceiverUrl(address)
  return parts && parts.scheme !== 'mqtt' ? address : undefined
}

// The body

interface Body {
  /** undefined: there is no body. */
  readonly text: string | undefined
  readonly content: BodyDescription
}

const textType = 'text/plain; charset=utf-8'

/**
 * The body that replaces the entity (docs/interface/notifications.md#text-and-json-templates); undefined: a macro has
 * no end.
 */
function customBody(input: NotificationInput, body: CustomBody | undefined, filler: MacroFiller): Body | undefined {
  switch (body?.kind) {
    case undefined:
      return {
        text: renderBody(input),
        content: { type: jsonType, format: input.subscription.notification.attrsFormat },
      }
    case 'payload': {
      if (body.text === null) return { text: undefined, content: { type: undefined, format: 'custom' } }
      const text = filler.text(body.text)
      return text === undefined
        ? undefined
        : { text: percentDecoded(text), content: { type: textType, format: 'custom' } }
    }
    case 'json':
      return { text: renderJson(filler.json(body.template)), content: { type: jsonType, format: 'custom' } }
    case 'ngsi': {
      const format = patchedFormat(input.subscription.notification.attrsFormat)
      const text = renderBodyOf(input, patched(input.entity, body.patch, filler), format)
      return { text, content: { type: jsonType, format, isPatched: true } }
    }
  }
}

/** A patched entity is sent in one of three formats (docs/interface/notifications.md#entity-templates). */
const patchedFormat = (format: AttrsFormat): AttrsFormat =>
  format === 'simplifiedNormalized' || format === 'simplifiedKeyValues' ? format : 'normalized'

/** Applies a template to the entity (docs/interface/notifications.md#entity-templates). */
function patched(entity: Entity, { id, type, attributes }: EntityPatch, filler: MacroFiller): Entity {
  const result = new Map<string, Attribute>()
  for (const [name, attribute] of attributes) result.set(name, builtin(attribute.type, filler.json(attribute.value)))
  for (const [name, attribute] of entity.attributes) if (!result.has(name)) result.set(name, attribute)
  return {
    ...entity,
    id: (id === undefined ? undefined : filler.identifier(id)) ?? entity.id,
    type: (type === undefined ? undefined : filler.identifier(type)) ?? entity.type,
    attributes: result,
  }
}

// Percent-decoding

/** A percent-encoded character in UTF-8, of one byte, two, three, or four (RFC 3629 §4). */
const encodedCharacter =
  /%[0-7][\da-f]|%(?:c[2-9a-f]|d[\da-f])%[89ab][\da-f]|%(?:e0%[ab][\da-f]|e[1-9a-cef]%[89ab][\da-f]|ed%[89][\da-f])%[89ab][\da-f]|%(?:f0%[9ab][\da-f]|f[1-3]%[89ab][\da-f]|f4%8[\da-f])(?:%[89ab][\da-f]){2}/gi

/** Decodes the percent-encoded characters of a text; anything else is unchanged. */
const percentDecoded = (text: string): string =>
  text.includes('%') ? text.replace(encodedCharacter, decodeURIComponent) : text

// Custom notifications about the room R1 in tenant acme under /b1: templates, and the sent messages.
//
// The room has the `attributes` below. A `*` behind a rule: a test of the reference shows it.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: a macro looks like that

import type { Json, JsonObject } from '../../src/domain/json.js'

/** The room's attributes in normalized form. */
export const attributes: JsonObject = {
  text: { type: 'Text', value: 'ab' },
  number: { type: 'Number', value: 21.5 },
  whole: { type: 'Number', value: 34 },
  yes: { type: 'Boolean', value: true },
  none: { type: 'None', value: null },
  object: { type: 'StructuredValue', value: { floor: 2, side: 'n' } },
  array: { type: 'StructuredValue', value: ['22', { x: 3 }] },
  time: { type: 'DateTime', value: '2026-02-03T10:15:00Z' },
  empty: { type: 'Text', value: '' },
  macro: { type: 'Text', value: '${text}' },
  encoded: { type: 'Text', value: 'a%22b' },
  quoted: { type: 'TextUnrestricted', value: 'a"b\\c' },
  header: { type: 'Text', value: 'Content-Type' },
  blanks: { type: 'Text', value: 'a b' },
}

/**
 * The result of a macro in a text, as the whole of a JSON string, and as part of one
 * (docs/interface/notifications.md#macros).
 */
export const valueCases: readonly (readonly [template: string, text: string, whole: Json, part: string])[] = [
  ['${text}', 'ab', 'ab', 'ab'],
  ['${number}', '21.5', 21.5, '21.5'],
  ['${whole}', '34', 34, '34'],
  ['${yes}', 'true', true, 'true'],
  ['${none}', 'null', null, 'null'],
  ['${object}', '{"floor":2,"side":"n"}', { floor: 2, side: 'n' }, '{"floor":2,"side":"n"}'],
  ['${array}', '["22",{"x":3}]', ['22', { x: 3 }], '["22",{"x":3}]'],
  ['${time}', '2026-02-03T10:15:00.000Z', '2026-02-03T10:15:00.000Z', '2026-02-03T10:15:00.000Z'],
  ['${empty}', '', '', ''],
  ['${quoted}', 'a"b\\c', 'a"b\\c', 'a"b\\c'],
  ['${missing}', '', null, 'null'],
  ['${covered}', 'null', null, 'null'],
  ['${id}', 'R1', 'R1', 'R1'],
  ['${type}', 'Room', 'Room', 'Room'],
  ['${service}', 'acme', 'acme', 'acme'],
  ['${servicePath}', '/b1', '/b1', '/b1'],
  ['${authToken}', 'tok', 'tok', 'tok'],
  ['${alterationType}', 'entityChange', 'entityChange', 'entityChange'],
  ['${dateModified}', '2024-05-02T09:30:00.000Z', '2024-05-02T09:30:00.000Z', '2024-05-02T09:30:00.000Z'],
  // The text is taken literally, and replaced once only.
  ['${ text}', '', null, 'null'],
  ['${}', '', null, 'null'],
  ['${*}', '', null, 'null'],
  ['${__proto__}', '', null, 'null'],
  ['${macro}', '${text}', '${text}', '${text}'],
]

/**
 * Texts with macros: in `payload`, and in a string of `json` (docs/interface/notifications.md#macros). `undefined`: the
 * notification is not sent.
 */
export const syntaxCases: readonly (readonly [template: string, text: string | undefined, json: Json])[] = [
  ['no macro', 'no macro', 'no macro'],
  ['${text}${number}', 'ab21.5', 'ab21.5'],
  ['x ${text} y ${text} z', 'x ab y ab z', 'x ab y ab z'],
  ['a ${missing} b', 'a  b', 'a null b'],
  ['$text {text} $ {text}', '$text {text} $ {text}', '$text {text} $ {text}'],
  ['text}', 'text}', 'text}'],
  ['${text', undefined, '${text'],
  ['${text} ${text', undefined, 'ab ${text'],
  ['${${text}}', '}', 'null}'],
  ['$${text}', '$ab', '$ab'],
]

export interface HttpCase {
  readonly rule: string
  readonly httpCustom: JsonObject
  readonly notification?: JsonObject
  readonly method?: string
  readonly url?: string
  readonly body?: string
  /**
   * In the order of sending. Headers that every notification has (`User-Agent` and so on) are listed only where they
   * differ; `- name`: the message lacks it.
   */
  readonly headers?: readonly string[]
}

const url = 'http://sink.example:9000/in'
const plain = ['Content-Type: application/json; charset=utf-8', 'Ngsiv2-AttrsFormat: normalized']
const custom = 'Ngsiv2-AttrsFormat: custom'
const json = 'Content-Type: application/json; charset=utf-8'
const text = 'Content-Type: text/plain; charset=utf-8'

/** Methods, addresses, headers and kinds of body (docs/interface/notifications.md). */
export const httpCases: readonly HttpCase[] = [
  {
    rule: 'a method is sent as it is given',
    httpCustom: { url, method: 'PATCH', payload: 'x' },
    method: 'PATCH',
  },
  { rule: 'without method it is a POST', httpCustom: { url, payload: 'x' }, method: 'POST' },
  {
    rule: 'macros fill in a URL, the host included',
    httpCustom: { url: 'http://${text}.example:${whole}/${type}/${id}', payload: 'x' },
    url: 'http://ab.example:34/Room/R1',
  },
  {
    rule: 'blanks in an address are percent-encoded',
    httpCustom: { url: 'http://sink.example/${blanks}', qs: { q: '${blanks}' }, payload: 'x' },
    url: 'http://sink.example/a%20b?q=a%20b',
  },
  {
    rule: 'nothing else in an address is encoded or decoded',
    httpCustom: { url: 'http://sink.example/${encoded}', qs: { q: '${object}', r: '%3D' }, payload: 'x' },
    url: 'http://sink.example/a%22b?q={"floor":2,"side":"n"}&r=%3D',
  },
  {
    rule: 'a query string is sorted by the names that macros gave *',
    httpCustom: { url, qs: { b: '1', '${text}': '2', 'a${whole}': '3' }, payload: 'x' },
    url: `${url}?a34=3&ab=2&b=1`,
  },
  {
    rule: 'members of a query string whose name or value is empty are dropped *',
    httpCustom: { url, qs: { a: '${missing}', '${missing}': 'b', c: '', d: '1' }, payload: 'x' },
    url: `${url}?d=1`,
  },
  {
    rule: 'a query string of which nothing is left is none',
    httpCustom: { url, qs: { a: '${missing}' }, payload: 'x' },
    url,
  },
  {
    rule: 'a query string joins the one of the URL',
    httpCustom: { url: `${url}?step`, qs: { a: '1' }, payload: 'x' },
    url: `${url}?step&a=1`,
  },

  {
    rule: 'headers have lower-case names in their order, which macros may give *',
    httpCustom: { url, headers: { 'X-${text}': '${whole}', 'entity-id': '${id}', A1: '${text}' }, payload: 'x' },
    headers: [text, custom, 'a1: ab', 'entity-id: R1', 'x-ab: 34'],
  },
  {
    rule: 'values of headers are percent-decoded, names are not *',
    httpCustom: { url, headers: { Authorization: 'Basic ABC%3D%3D', 'x%2Dy': '%22*%22' }, payload: 'x' },
    headers: [text, custom, 'authorization: Basic ABC==', 'x%2dy: "*"'],
  },
  {
    rule: 'what macros give is percent-decoded as well',
    httpCustom: { url, headers: { x: '${encoded}' }, payload: 'x' },
    headers: [text, custom, 'x: a"b'],
  },
  {
    rule: 'headers without name are dropped',
    httpCustom: { url, headers: { '${missing}': 'x' }, payload: 'x' },
    headers: [text, custom],
  },
  {
    rule: 'a standard header is replaced, whatever its case and wherever its name comes from *',
    httpCustom: { url, headers: { '${header}': 'application/xml', ACCEPT: 'text/plain' }, payload: 'x' },
    headers: ['Accept: text/plain', 'Content-Type: application/xml', custom],
  },
  {
    rule: 'Content-Type is replaced as a whole *',
    httpCustom: { url, headers: { 'content-type': 'application/json%3B charset%3Dutf-8' }, payload: 'x' },
    headers: ['Content-Type: application/json; charset=utf-8', custom],
  },
  {
    rule: 'tenant, path, token, agent and host can be replaced *',
    httpCustom: {
      url,
      headers: {
        'ctx-service': 's2',
        'Ctx-ServicePath': '${text}',
        'x-auth-token': 't2',
        'user-agent': 'u',
        Host: 'h',
      },
      payload: 'x',
    },
    headers: ['User-Agent: u', 'Ctx-Service: s2', 'Ctx-ServicePath: ab', 'X-Auth-Token: t2', text, custom, 'host: h'],
  },
  {
    rule: 'an empty value removes a header *',
    httpCustom: {
      url,
      headers: { 'ctx-service': '', 'Ctx-ServicePath': '${missing}', 'X-AUTH-TOKEN': '', 'content-type': '' },
      payload: 'x',
    },
    headers: [custom, '- Ctx-Service', '- Ctx-ServicePath', '- X-Auth-Token'],
  },
  {
    rule: 'an empty value for a header that is not there does nothing *',
    httpCustom: { url, headers: { 'x-foobar': '', host: '' }, payload: 'x' },
    headers: [text, custom],
  },
  {
    rule: 'correlator, format and id of the notification cannot be replaced nor removed *',
    httpCustom: {
      url,
      headers: {
        'CTX-Correlator': 'foo',
        'fiware-correlator': 'foo',
        'ngsiv2-attrsFormat': 'bar',
        'Ctx-Notification-Id': '',
      },
      payload: 'x',
    },
    headers: [text, custom],
  },
  {
    rule: 'what frames a message is nobody else’s',
    httpCustom: {
      url,
      headers: { 'content-length': '1', 'Transfer-Encoding': 'chunked', connection: 'close', Expect: '100-continue' },
      payload: 'x',
    },
    headers: [text, custom],
  },
  {
    rule: 'our own headers are meant by their other names too',
    httpCustom: { url, headers: { 'Fiware-Service': 's2', 'fiware-servicepath': '' }, payload: 'x' },
    headers: ['Ctx-Service: s2', text, custom, '- Ctx-ServicePath'],
  },

  {
    rule: 'a payload is text, its macros filled in and then percent-decoded *',
    httpCustom: { url, payload: '%3Ca%3E${text}%3C/a%3E { %22n%22: ${number}, %22e%22: %22${encoded}%22 }' },
    body: '<a>ab</a> { "n": 21.5, "e": "a"b" }',
    headers: [text, custom],
  },
  {
    rule: 'a payload has characters of any length, and keeps what is no encoded character',
    httpCustom: { url, payload: '%C3%A9%e4%b8%80%F0%9F%98%80 100% %zz %FF %C0%80 %ED%A0%80 %F4%90%80%80' },
    body: 'é一😀 100% %zz %FF %C0%80 %ED%A0%80 %F4%90%80%80',
  },
  {
    rule: 'a payload of null is no body, and so has no type *',
    httpCustom: { url, payload: null },
    body: '(none)',
    headers: [custom],
  },
  {
    rule: 'a payload of null with a type has one',
    httpCustom: { url, payload: null, headers: { 'content-type': 'text/x' } },
    body: '(none)',
    headers: [custom, 'content-type: text/x'],
  },
  {
    rule: 'without payload the body is that of a regular notification *',
    httpCustom: { url },
    notification: { attrs: ['text'] },
    body: '{"subscriptionId":"65f0c2a1b4d3e2f1a0c9b8d7","data":[{"id":"R1","type":"Room","text":{"type":"Text","value":"ab","metadata":{}}}]}',
    headers: plain,
  },
  {
    rule: 'an empty payload is like none *',
    httpCustom: { url, payload: '' },
    notification: { attrs: ['text'], attrsFormat: 'simplifiedKeyValues' },
    body: '{"id":"R1","type":"Room","text":"ab"}',
    headers: [json, 'Ngsiv2-AttrsFormat: simplifiedKeyValues'],
  },
  {
    rule: 'json has macros at any depth, keeps its keys and their order *',
    httpCustom: {
      url,
      json: { z: { '${text}': ['y1', '${array}', '${object}'] }, a: 'n:${number}:${none}', b: 1, c: false, d: null },
    },
    body: '{"z":{"${text}":["y1",["22",{"x":3}],{"floor":2,"side":"n"}]},"a":"n:21.5:null","b":1,"c":false,"d":null}',
    headers: [json, custom],
  },
  {
    rule: 'json may be an array, and is not percent-decoded *',
    httpCustom: { url, json: ['%22', '${quoted}', 'x${object}'] },
    body: '["%22","a\\"b\\\\c","x{\\"floor\\":2,\\"side\\":\\"n\\"}"]',
  },
]

export interface PatchCase {
  readonly rule: string
  readonly ngsi: JsonObject
  readonly notification?: JsonObject
  /** The sent entity. */
  readonly sent: string
  readonly format?: string
}

/** Settings of cases that have none of their own. */
export const patchSettings: JsonObject = { attrsFormat: 'simplifiedKeyValues', attrs: ['text', 'whole'] }

/** Entities that a template overrides (docs/interface/notifications.md#entity-templates). */
export const patchCases: readonly PatchCase[] = [
  {
    rule: 'an empty patch changes nothing *',
    ngsi: {},
    sent: '{"id":"R1","type":"Room","text":"ab","whole":34}',
  },
  {
    rule: 'id and type are replaced *',
    ngsi: { id: 'new:${id}', type: '${text}' },
    sent: '{"id":"new:R1","type":"ab","text":"ab","whole":34}',
  },
  {
    rule: 'id and type are always strings *',
    ngsi: { id: '${whole}', type: '${yes}' },
    sent: '{"id":"34","type":"true","text":"ab","whole":34}',
  },
  {
    rule: 'an id that does not resolve is the entity’s own *',
    ngsi: { id: '${missing}', type: '${none}' },
    sent: '{"id":"R1","type":"Room","text":"ab","whole":34}',
  },
  {
    rule: 'part of an id that does not resolve is null *',
    ngsi: { id: 'new:${missing}', type: '${text' },
    sent: '{"id":"new:null","type":"${text","text":"ab","whole":34}',
  },
  {
    rule: 'attributes of the patch come first, in its order, and the others follow *',
    ngsi: { whole: { value: '${number}' }, added: { value: 1 } },
    notification: { attrs: ['*'], attrsFormat: 'simplifiedKeyValues' },
    sent: '{"id":"R1","type":"Room","whole":21.5,"added":1,"text":"ab","number":21.5,"yes":true,"none":null,"object":{"floor":2,"side":"n"},"array":["22",{"x":3}],"time":"2026-02-03T10:15:00.000Z","empty":"","macro":"${text}","encoded":"a%22b","quoted":"a\\"b\\\\c","header":"Content-Type","blanks":"a b"}',
  },
  {
    rule: 'the list of attributes applies to what the patch made, in its order, and macros see what it leaves out *',
    ngsi: { swapped: { value: '${number}' }, text: { value: '${whole}' } },
    notification: { attrs: ['text', 'swapped'], attrsFormat: 'simplifiedKeyValues' },
    sent: '{"id":"R1","type":"Room","text":34,"swapped":21.5}',
  },
  {
    rule: 'values of a patch come from the entity before it *',
    ngsi: { text: { value: '${whole}' }, whole: { value: '${text}' } },
    sent: '{"id":"R1","type":"Room","text":34,"whole":"ab"}',
  },
  {
    rule: 'the type of the template wins, or is that of its value; there are no metadata *',
    ngsi: { text: { type: 'X', value: '${text}' }, whole: { value: '${whole}' } },
    notification: { attrs: ['text', 'whole', 'yes'], metadata: ['dateCreated', 'actionType', 'previousValue'] },
    sent: '{"id":"R1","type":"Room","text":{"type":"X","value":"ab","metadata":{}},"whole":{"type":"Text","value":34,"metadata":{}},"yes":{"type":"Boolean","value":true,"metadata":{"dateCreated":{"type":"DateTime","value":"2024-05-01T08:00:00.000Z"}}}}',
  },
  {
    rule: 'macros stand in values at any depth, and not in types *',
    ngsi: { text: { type: '${text}', value: { a: ['${whole}', 'w:${whole}'], '${text}': 1 } } },
    notification: { attrs: ['text'], attrsFormat: 'simplifiedNormalized' },
    sent: '{"id":"R1","type":"Room","text":{"type":"${text}","value":{"a":[34,"w:34"],"${text}":1},"metadata":{}}}',
    format: 'simplifiedNormalized',
  },
  ...['keyValues', 'values', 'legacy', 'normalized'].map(attrsFormat => ({
    rule: `${attrsFormat} is sent as normalized *`,
    ngsi: { text: { value: 'x' } },
    notification: { attrs: ['text'], attrsFormat },
    sent: '{"id":"R1","type":"Room","text":{"type":"Text","value":"x","metadata":{}}}',
    format: 'normalized',
  })),
  {
    rule: 'covered adds what is missing after the patch',
    ngsi: { added: { value: 1 } },
    notification: { attrs: ['added', 'missing'], covered: true, attrsFormat: 'simplifiedKeyValues' },
    sent: '{"id":"R1","type":"Room","added":1,"missing":null}',
  },
]

export interface RefusalCase {
  readonly rule: string
  readonly notification: JsonObject
  /** Attributes of the room. */
  readonly values?: Readonly<Record<string, Json>>
  readonly text: RegExp
  readonly level: 'warn' | 'error'
}

const unclosed = { text: /^macro end not found, syntax error, aborting substitution$/, level: 'warn' } as const
const header = { text: /a header is malformed or holds control characters$/, level: 'warn' } as const
const malformed = {
  text: /^Runtime Error \(not sending notification: malformed URL: '.*'\)$/s,
  level: 'error',
} as const
const mqtt = { url: 'mqtt://broker.example' }

/** Notifications that are not sent. */
export const refusalCases: readonly RefusalCase[] = [
  { rule: 'a URL with a macro without end', notification: { httpCustom: { url: 'http://h/${a' } }, ...unclosed },
  {
    rule: 'a name in qs with a macro without end',
    notification: { httpCustom: { url, qs: { '${a': 'x' } } },
    ...unclosed,
  },
  {
    rule: 'a value in qs with a macro without end',
    notification: { httpCustom: { url, qs: { x: '${a' } } },
    ...unclosed,
  },
  {
    rule: 'a header with a macro without end',
    notification: { httpCustom: { url, headers: { x: '${a' } } },
    ...unclosed,
  },
  { rule: 'a payload with a macro without end', notification: { httpCustom: { url, payload: '${a' } }, ...unclosed },
  { rule: 'a topic with a macro without end', notification: { mqttCustom: { ...mqtt, topic: 't/${a' } }, ...unclosed },
  {
    rule: 'a payload over MQTT with a macro without end',
    notification: { mqttCustom: { ...mqtt, topic: 't', payload: '${a' } },
    ...unclosed,
  },

  { rule: 'a URL that is only a missing macro', notification: { httpCustom: { url: '${a}' } }, ...malformed },
  {
    rule: 'a URL without scheme',
    notification: { httpCustom: { url: '${a}' } },
    values: { a: 'sink.example/x' },
    ...malformed,
  },
  {
    rule: 'a URL of MQTT',
    notification: { httpCustom: { url: '${a}' } },
    values: { a: 'mqtt://sink.example' },
    ...malformed,
  },
  {
    rule: 'a URL with a host that is none',
    notification: { httpCustom: { url: 'http://${a}/' } },
    values: { a: 'a b' },
    ...malformed,
  },
  {
    rule: 'a URL with a user name',
    notification: { httpCustom: { url: 'http://${a}/' } },
    values: { a: 'good.example@evil.example' },
    ...malformed,
  },
  ...['\r\nX: y', '\n', '\0', '\t', '\x7f', '\x85'].flatMap(a => [
    {
      rule: `a URL with ${JSON.stringify(a)}`,
      notification: { httpCustom: { url: 'http://h/${a}' } },
      values: { a },
      ...malformed,
    },
    {
      rule: `a query string with ${JSON.stringify(a)}`,
      notification: { httpCustom: { url, qs: { q: 'x${a}' } } },
      values: { a },
      ...malformed,
    },
    {
      rule: `a header value with ${JSON.stringify(a)}`,
      notification: { httpCustom: { url, headers: { x: '${a}' } } },
      values: { a },
      ...header,
    },
    {
      rule: `a standard header with ${JSON.stringify(a)}`,
      notification: { httpCustom: { url, headers: { 'content-type': 'text/x${a}' } } },
      values: { a },
      ...header,
    },
    {
      rule: `a header name with ${JSON.stringify(a)}`,
      notification: { httpCustom: { url, headers: { 'x${a}': 'y' } } },
      values: { a },
      ...header,
    },
    {
      rule: `a topic with ${JSON.stringify(a)}`,
      notification: { mqttCustom: { ...mqtt, topic: 't/${a}' } },
      values: { a },
      text: /control characters in the MQTT topic$/,
      level: 'warn' as const,
    },
  ]),
  ...['%0d%0aX: y', '%0A', '%00', '%C2%85'].flatMap(encoded => [
    {
      rule: `a header value that percent-decoding makes ${encoded} of`,
      notification: { httpCustom: { url, headers: { x: encoded } } },
      ...header,
    },
    {
      rule: `a header value that percent-decoding makes ${encoded} of, from an attribute`,
      notification: { httpCustom: { url, headers: { x: '${a}' } } },
      values: { a: encoded },
      ...header,
    },
    {
      rule: `a header value whose halves a macro puts together to ${encoded}`,
      notification: { httpCustom: { url, headers: { x: `${encoded.slice(0, 2)}\${a}` } } },
      values: { a: encoded.slice(2) },
      ...header,
    },
  ]),
  ...['a b', 'a:b', 'é', '\u212a', 'a/b'].map(a => ({
    rule: `a header name ${JSON.stringify(a)}`,
    notification: { httpCustom: { url, headers: { '${a}': 'y' } } },
    values: { a },
    ...header,
  })),
  ...['+', 'a/#'].map(a => ({
    rule: `a topic with the wildcard ${a}`,
    notification: { mqttCustom: { ...mqtt, topic: 't/${a}' } },
    values: { a },
    text: /\+ or # in the MQTT topic$/,
    level: 'warn' as const,
  })),
  {
    rule: 'a topic that is empty',
    notification: { mqttCustom: { ...mqtt, topic: '${a}' } },
    text: /the MQTT topic is empty or too long$/,
    level: 'warn',
  },
  {
    rule: 'a topic that is too long',
    notification: { mqttCustom: { ...mqtt, topic: '${a}' } },
    values: { a: 'x'.repeat(21_846) },
    text: /the MQTT topic is empty or too long$/,
    level: 'warn',
  },
]

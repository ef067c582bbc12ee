// The message around what is said: headers, correlators, regular transports. Headers are read as on the wire.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: a macro looks like that
import t from 'tap'
import type { NotificationInput, NotificationOptions } from '../../../src/domain/subscriptions/notification-input.js'
import { asHttp, options, sent, sink } from '../../support/notification-inputs.js'

const headersOf = (
  facts: Partial<NotificationInput> = {},
  notification = {},
  changes: Partial<NotificationOptions> = {},
) => asHttp(sent(notification, facts, changes)).headers.map(([name, value]) => `${name}: ${value}`)

t.test('a regular notification is a POST to the URL with the standard headers in their order', async t => {
  t.match(sent({ http: { url: sink, timeout: 700 } }, { authToken: 'tok' }), {
    transport: 'http',
    method: 'POST',
    url: sink,
    timeoutMs: 700,
    headers: [
      ['User-Agent', 'ctxbroker/1.0'],
      ['Ctx-Service', 'acme'],
      ['Ctx-ServicePath', '/b1'],
      ['X-Auth-Token', 'tok'],
      ['Accept', 'application/json'],
      ['Content-Type', 'application/json; charset=utf-8'],
      ['Ctx-Correlator', '0f0e; cbnotif=1'],
      ['Ctx-Notification-Id', 'n-1'],
      ['Ngsiv2-AttrsFormat', 'normalized'],
    ],
  })
})

t.test('the default tenant has no header, and neither has a request without token', async t => {
  const names = headersOf({ tenant: '', path: '/' }).map(line => line.split(':')[0])
  t.strictSame(
    names,
    'User-Agent Ctx-ServicePath Accept Content-Type Ctx-Correlator Ctx-Notification-Id Ngsiv2-AttrsFormat'.split(' '),
  )
})

t.test('an empty token is none', async t => {
  t.notOk(headersOf({ authToken: '' }).some(line => line.startsWith('X-Auth-Token')))
})

for (const attrsFormat of ['normalized', 'simplifiedNormalized', 'keyValues', 'simplifiedKeyValues', 'values'])
  t.test(`the format is told as it was asked for: ${attrsFormat}`, async t => {
    t.equal(headersOf({}, { attrsFormat }).at(-1), `Ngsiv2-AttrsFormat: ${attrsFormat}`)
  })

t.test('the legacy format is not told', async t => {
  t.notOk(headersOf({}, { attrsFormat: 'legacy' }).some(line => line.startsWith('Ngsiv2-AttrsFormat')))
  t.notOk(headersOf({}, { attrsFormat: 'legacy', httpCustom: { url: sink } }).some(line => line.startsWith('Ngsiv2')))
})

/** A deletion, and what its headers say of it. */
const markOf = (notification = {}, changes: Partial<NotificationOptions> = {}) =>
  headersOf({ alteration: 'entityDelete' }, notification, changes).filter(line => /^[a-z]*-alteration:/i.test(line))

t.test('a deletion that is propagated is marked, and nothing else is', async t => {
  const propagateDeletes = true
  t.strictSame(markOf({ propagateDeletes }), ['Ctx-Alteration: entityDelete'])
  t.strictSame(markOf({ propagateDeletes }, { vocabulary: 'Fiware' }), ['Fiware-Alteration: entityDelete'])
  t.strictSame(markOf(), [])
  t.strictSame(markOf({ propagateDeletes: false }), [])
  for (const alteration of ['entityCreate', 'entityChange', 'entityUpdate'] as const)
    t.notOk(
      headersOf({ alteration }, { propagateDeletes }).some(line => line.includes('Alteration')),
      alteration,
    )
})

t.test('the mark is a header like others to a custom notification, and to MQTT it is a macro', async t => {
  const custom = (headers: object) => ({ httpCustom: { url: sink, headers, payload: 'x' }, propagateDeletes: true })
  t.strictSame(markOf(custom({ 'X-Zone': 'a' })), ['Ctx-Alteration: entityDelete'])
  t.strictSame(markOf(custom({ 'fiware-alteration': 'gone' })), ['Ctx-Alteration: gone'])
  t.strictSame(markOf(custom({ 'ctx-alteration': '' })), [])
  const topic = { url: 'mqtt://broker.example', topic: 't/${alterationType}', payload: '${id} ${alterationType}' }
  const message = sent({ mqttCustom: topic, propagateDeletes: true }, { alteration: 'entityDelete' })
  t.match(message, { topic: 't/entityDelete', body: 'R1 entityDelete' })
})

t.test('a correlator that has suffixes gets another one', async t => {
  const lines = headersOf({ correlator: '0f0e; cbnotif=1', number: 2 })
  t.ok(lines.includes('Ctx-Correlator: 0f0e; cbnotif=1; cbnotif=2'))
})

t.test('the other vocabulary names our own headers, in custom notifications too', async t => {
  const fiware = { vocabulary: 'Fiware' } as const
  const regular = headersOf({}, {}, fiware)
  for (const line of ['Fiware-Service: acme', 'Fiware-ServicePath: /b1', 'Fiware-Correlator: 0f0e; cbnotif=1'])
    t.ok(regular.includes(line), line)
  t.notOk(regular.some(line => line.startsWith('Ctx-')))
  const headers = { 'ctx-service': 's2', 'fiware-servicepath': '', 'Ctx-Correlator': 'x', 'fiware-correlator': 'x' }
  const custom = headersOf({}, { httpCustom: { url: sink, headers, payload: 'x' } }, fiware)
  t.ok(custom.includes('Fiware-Service: s2'))
  t.ok(custom.includes('Fiware-Correlator: 0f0e; cbnotif=1'))
  t.notOk(custom.some(line => /^(ctx-|fiware-servicepath)/i.test(line)))
})

for (const facts of [{ correlator: 'a\r\nX: y' }, { authToken: 'a\0' }, { notificationId: 'a\n' }])
  t.test(`a regular notification with ${JSON.stringify(facts)} is not sent`, async t => {
    t.match(sent({}, facts), { level: 'warn', failure: undefined })
  })

const mqtt = { url: 'mqtt://broker.example:1884', topic: 'a/${id}', qos: 2, retain: true, user: 'u', passwd: 'p' }

t.test('a regular MQTT message says what the HTTP notification says, under its literal topic', async t => {
  const literal = { ...mqtt, topic: 'a/b' }
  t.strictSame(sent({ mqtt: literal, attrsFormat: 'keyValues' }), {
    transport: 'mqtt',
    url: 'mqtt://broker.example:1884',
    topic: 'a/b',
    body: asHttp(sent({ attrsFormat: 'keyValues' })).body,
    qos: 2,
    retain: true,
    login: { user: 'u', passwd: 'p' },
  })
  t.match(sent({ mqtt }), { topic: 'a/${id}' })
})

t.test('a value of a header that is no line is refused', async t => {
  for (const control of ['\0', '\r\n', '\x1f', '\x7f', '\x80', '\x85', '\x9f'])
    t.match(sent({}, { correlator: `a${control}b` }), { level: 'warn' }, JSON.stringify(control))
  for (const text of [' ', '~', '\xa0', 'é'])
    t.match(sent({}, { correlator: `a${text}b` }), { transport: 'http' }, text)
})

t.test('a topic with control characters is refused', async t => {
  t.match(sent({ mqtt: { ...mqtt, topic: 'a\0b' } }), { level: 'warn' })
})

const disabled = { disableCustomNotifications: true }

t.test('where custom notifications are disabled, httpCustom is a regular POST to its literal URL', async t => {
  const httpCustom = {
    url: `${sink}/\${id}`,
    method: 'PUT',
    timeout: 5,
    qs: { a: '1' },
    headers: { accept: 'x', 'x-y': 'z' },
    payload: '${id}',
  }
  t.strictSame(sent({ httpCustom }, {}, disabled), sent({ http: { url: `${sink}/\${id}`, timeout: 5 } }, {}, options))
})

t.test('where custom notifications are disabled, a URL that is only a template is malformed', async t => {
  t.match(sent({ httpCustom: { url: '${url}' } }, {}, disabled), { level: 'error' })
})

t.test('where custom notifications are disabled, mqttCustom is mqtt', async t => {
  t.strictSame(sent({ mqttCustom: { ...mqtt, payload: '${id}' } }, {}, disabled), sent({ mqtt }))
})

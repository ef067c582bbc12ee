// The log of requests and notifications: lines at INFO, alarms, deprecated usages, and no secret in any of them
// (docs/interface/administration.md#log-lines).

import t, { type Test } from 'tap'
import type { LogLevel, LogSettings } from '../../src/messages/admin.js'
import { openLogger } from '../../src/observe/logger.js'
import { httpReceiver } from '../deliver/receivers.js'
import {
  httpServers,
  type LocalNode,
  type LocalNodeOptions,
  logForTests,
  startLocalNode,
} from '../support/local-node.js'

interface Logged {
  readonly node: LocalNode
  readonly log: LogSettings
  /** `LEVEL text` of all lines so far. */
  texts(): string[]
  readonly lines: string[]
}

async function start(t: Test, level: LogLevel, options: LocalNodeOptions = {}): Promise<Logged> {
  const lines: string[] = []
  const log: LogSettings = { ...logForTests, level }
  const logger = openLogger({ settings: log, write: line => lines.push(line) })
  const node = await startLocalNode(t, { ...options, surroundings: { logger, log } })
  const texts = () => lines.map(line => line.replace(/^.*? lvl=(\w+) .*? \| msg=/, '$1 '))
  return { node, log, lines, texts }
}

const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise(resolve => setTimeout(resolve, 5))
}

const requestLines = (texts: readonly string[]) =>
  texts.filter(text => text.includes('Request received')).map(text => text.replace('INFO Request received: ', ''))

const room = { id: 'R1', type: 'Room' }
const body = JSON.stringify(room)

for (const server of httpServers)
  t.test(`each request is a line at INFO, over ${server}`, async t => {
    const { node, texts, lines } = await start(t, 'INFO', { server })
    await node.json('POST /v2/entities?options=upsert', room, [
      'Ctx-Service: Acme',
      'Ctx-ServicePath: /a',
      'Ctx-Correlator: c1',
    ])
    await node.ask('GET /v2/entities/R1?type=Room', ['X-Forwarded-For: 10.1.1.1', 'X-Real-IP: 10.2.2.2'])
    await node.ask('DELETE /v2/entities/R1')
    t.same(requestLines(texts()), [
      `POST /v2/entities?options=upsert, request payload (${body.length} bytes): ${body}, response code: 204`,
      'GET /v2/entities/R1?type=Room, response code: 404',
      'DELETE /v2/entities/R1, response code: 404',
    ])
    const [post = '', get = ''] = lines.filter(line => line.includes('Request received'))
    t.match(post, / \| corr=c1 \| trans=\d+-\d{3}-\d{11} \| from=127\.0\.0\.1 \| srv=Acme \| subsrv=\/a \| /)
    t.match(get, / \| from=10\.2\.2\.2 \| srv=<none> \| subsrv=<none> \| /)
  })

t.test('at WARN requests leave nothing', async t => {
  const { node, lines } = await start(t, 'WARN')
  await node.json('POST /v2/entities', room)
  t.same(lines, [])
})

for (const [what, bytesMax, shown] of [
  ['one byte less than it has', body.length - 1, `${body.slice(0, -1)}(...)`],
  ['as much as it has', body.length, body],
  ['nothing', 0, '(...)'],
] as const)
  t.test(`of a body ${what} is shown when that is the limit`, async t => {
    const { node, texts, log } = await start(t, 'INFO')
    log.infoPayloadBytesMax = bytesMax
    await node.json('POST /v2/entities', room)
    t.match(requestLines(texts()), [`request payload (${body.length} bytes): ${shown}, response code`])
  })

const secret = 'hunter2'
for (const [what, payload, path] of [
  ['a password', `{"mqtt":{"url":"mqtt://h","user":"u","passwd" : "${secret}\\"x"}}`, '/v2/subscriptions'],
  ['a password that is cut', `{"mqtt":{"url":"mqtt://h","user":"u","passwd":"${secret}`, '/v2/subscriptions'],
  [
    'a token',
    `{"httpCustom":{"headers":{"X-Auth-Token":"${secret}","authorization":"Bearer ${secret}"}}}`,
    '/v2/subscriptions',
  ],
  ['a key of a query string', `{"httpCustom":{"qs":{"api_KEY":"${secret}"}}}`, '/v2/subscriptions'],
  ['what stands before the @ of a URL', `{"http":{"url":"http:\\/\\/me:${secret}@h/x"}}`, '/v2/subscriptions'],
  ['the beginning of what does', `{"http":{"url":"http://me:${secret}`, '/v2/subscriptions'],
  ['a provider with a password', `{"provider":{"http":{"url":"http://me:${secret}@h/x"}}}`, '/v2/registrations'],
  ['a name with escapes', `{"pass\\u0077d":"${secret}"}`, '/v2/subscriptions'],
] as const)
  t.test(`${what} in a body does not get into the log`, async t => {
    const { node, lines } = await start(t, 'DEBUG')
    await node.ask(`POST ${path}`, ['Content-Type: application/json', `X-Auth-Token: ${secret}`], payload)
    t.match(lines.join('\n'), /request payload/)
    t.notMatch(lines.join('\n'), secret)
  })

t.test(
  'a client that sends nonsense raises an alarm, and releases it when a request reaches its operation',
  async t => {
    const { node, texts } = await start(t, 'WARN')
    await node.ask('GET /v2/entities?limit=x')
    await node.ask('GET /nowhere')
    await node.ask('GET /v2/entities?limit=x', ['X-Real-IP: 10.0.0.7'])
    await node.ask('GET /v2/entities/nobody')
    await node.ask('GET /v2/entities/nobody')
    t.same(texts(), [
      'WARN Raising alarm BadInput 127.0.0.1: Bad pagination limit: /x/ [must be a positive integer number]',
      'WARN Raising alarm BadInput 10.0.0.7: Bad pagination limit: /x/ [must be a positive integer number]',
      'WARN Releasing alarm BadInput 127.0.0.1',
    ])
  },
)

t.test('a body that is none raises the alarm of the client that a proxy names', async t => {
  for (const server of httpServers) {
    const { node, texts } = await start(t, 'WARN', { server })
    await node.ask('POST /v2/entities', ['Content-Type: application/json', 'X-Forwarded-For: 10.0.0.8'], '{')
    t.same(texts(), ['WARN Raising alarm BadInput 10.0.0.8: Errors found in incoming JSON buffer'], server)
  }
})

async function subscribe(node: LocalNode, url: string, more: object = {}): Promise<string> {
  const subject = { entities: [{ idPattern: '.*' }] }
  const { headers, text } = await node.json('POST /v2/subscriptions', {
    subject,
    notification: { http: { url }, ...more },
  })
  if (!headers.location) throw new Error(text)
  return headers.location.slice('/v2/subscriptions/'.length)
}

t.test('a receiver that does not answer raises an alarm until it does', async t => {
  const { node, texts } = await start(t, 'WARN', { notifications: { delivery: 'bestEffort' } })
  let isDumb = true
  const receiver = await httpReceiver(t, (_request, response) => {
    if (isDumb) response.destroy()
    else response.writeHead(500).end()
  })
  await subscribe(node, `http://127.0.0.1:${receiver.port}/x`)
  const key = `127.0.0.1:${receiver.port}/x`
  await node.json('POST /v2/entities', { ...room, a: { value: 0 } })
  await until(() => texts().some(text => text.startsWith(`WARN Raising alarm NotificationError ${key}: `)))
  isDumb = false
  await node.json('PATCH /v2/entities/R1/attrs', { a: { value: 1 } })
  await node.json('POST /v2/entities/R1/attrs', { a: { value: 1 } })
  await until(() => texts().includes(`WARN Releasing alarm NotificationError ${key}`))
})

t.test('a notification is a transaction of its own, with its number in the correlator', async t => {
  const { node, lines } = await start(t, 'INFO')
  const receiver = await httpReceiver(t)
  const id = await subscribe(node, receiver.url)
  await node.json('POST /v2/entities', { ...room, a: { value: 0 } }, ['Ctx-Correlator: c9'])
  await until(() => lines.some(line => line.includes('Notif delivered')))
  const sent = lines.find(line => line.includes('Notif delivered')) ?? ''
  t.match(
    sent,
    new RegExp(` corr=c9; cbnotif=1 .*=Notif delivered \\(subId: ${id}\\): POST 127.0.0.1:${receiver.port}/, payload`),
  )
  const transactions = lines.map(line => / trans=(\S+) /.exec(line)?.[1]).filter(one => one !== 'N/A')
  t.equal(new Set(transactions).size, transactions.length)
})

t.test('deprecated usages are counted, and logged with the option', async t => {
  const { node, texts, log } = await start(t, 'WARN', { statistics: { counters: true } })
  const point = (id: string) => ({ id, location: { type: 'geo:point', value: '1,2' } })
  await node.json('POST /v2/entities', point('E1'))
  t.same(texts(), [])
  log.deprecate = true
  await node.json('POST /v2/op/update', { actionType: 'append', entities: [point('E2')] })
  await node.json('PUT /v2/entities/E1/attrs/location', point('E1').location)
  const id = await subscribe(node, 'http://localhost:1/', { attrsFormat: 'legacy' })
  await node.ask(`GET /v2/subscriptions/${id}`)
  const old = 'geo:point detected in attribute location at entity update, please use geo:json instead'
  t.same(
    texts().filter(text => text.includes('Deprecated')),
    [
      `WARN Deprecated usage of ${old}`,
      `WARN Deprecated usage of ${old}`,
      `WARN Deprecated usage of notification legacy format at subscription creation (subId: ${id})`,
      `WARN Deprecated usage of notification legacy format at subscription retrieval (subId: ${id})`,
    ],
  )
  t.match((await node.ask('GET /statistics')).json, {
    counters: { deprecatedFeatures: { geoFormat: 3, ngsiv1NotifFormat: 2 } },
  })
})

t.test('a trace level adds a line at DEBUG', async t => {
  const { node, texts } = await start(t, 'DEBUG')
  await node.ask('GET /v2')
  t.notMatch(texts().join('\n'), 'DEBUG GET /v2')
  await node.ask('PUT /log/trace/20')
  await node.ask('GET /v2/types/T')
  t.match(texts().at(-1), /^DEBUG GET \/v2\/types\/\{type\}: \d+\.\d{3} ms, \d+ bytes answered$/)
})

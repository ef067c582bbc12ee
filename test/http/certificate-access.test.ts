// Client certificates as principals of the access file, over whole nodes: requests, streams, and what ends them.

import t, { type Test } from 'tap'
import type { JsonObject } from '../../src/domain/json.js'
import { AccessScene, everything, type RulesByName } from '../support/access-scene.js'
import { ClientAuthority, type ClientPair } from '../support/client-authority.js'
import { type Answer, type LocalNode, readAnswer, startLocalNode } from '../support/local-node.js'
import { StreamSocketClient } from '../support/stream-socket-client.js'
import { certificate } from './front-contract.js'
import { Wire } from './wire.js'

t.setTimeout(120_000)

const authority = new ClientAuthority(t)
const gateway = authority.issue('/O=City/CN=gateway-9', { names: 'DNS:gateway.city.example,URI:spiffe://city/gateway' })
const stranger = authority.issue('/O=City/CN=stranger')

const rules: RulesByName = {
  anonymous: [{ actions: ['read'], tenants: ['city'], types: ['Museum'] }],
  root: everything,
  city: [{ actions: ['read', 'create', 'update', 'stream', 'subscribe'], tenants: ['city'] }],
}

const entryOf = (subject: string): JsonObject => ({ certificates: [{ subject, roles: ['city'] }] })
const entry = entryOf('CN=gateway-9,O=City')

const lamp = (id: string) => ({ id, type: 'Lamp', power: { value: 1 } })

async function serving(t: Test, { isRequired = true, members = entry } = {}) {
  const scene = new AccessScene(t, rules, members)
  const tls = { ...certificate(t), clients: { caFile: authority.caFile, isRequired } }
  const node = await startLocalNode(t, { accessFile: scene.path, tls })
  const change = (members: JsonObject): void => {
    scene.write(rules, members)
    node.running?.lookAtFiles()
  }
  return { scene, node, change }
}

async function askOn(wire: Wire, line: string, headers: readonly string[] = [], body?: unknown): Promise<Answer> {
  const content = body === undefined ? [] : ['Content-Type: application/json']
  await wire.request(
    line,
    ['Ctx-Service: city', ...content, ...headers],
    body === undefined ? '' : JSON.stringify(body),
  )
  return readAnswer(wire, line)
}

/** One request on a connection of its own. */
async function ask(
  { port }: LocalNode,
  shown: ClientPair | undefined,
  line: string,
  headers: readonly string[] = [],
  body?: unknown,
): Promise<Answer> {
  const wire = await Wire.overTls(port, shown)
  try {
    return await askOn(wire, line, headers, body)
  } finally {
    wire.leave()
  }
}

t.test('the subject of a certificate is a principal of the file', async t => {
  const { node, scene } = await serving(t)
  t.equal((await ask(node, gateway, 'POST /v2/entities', [], lamp('L1'))).status, 201)
  t.equal((await ask(node, gateway, 'GET /v2/entities/L1')).status, 200)
  t.equal((await ask(node, gateway, 'DELETE /v2/entities/L1')).status, 403)
  t.equal((await ask(node, gateway, 'GET /metrics')).status, 403)
  const subscription = {
    subject: { entities: [{ idPattern: '.*' }] },
    notification: { http: { url: 'http://192.0.2.1' } },
  }
  const { headers } = await ask(node, gateway, 'POST /v2/subscriptions', [], subscription)
  t.match((await ask(node, gateway, `GET ${headers.location}`)).json, { owner: 'CN=gateway-9,O=City' })
  const key = scene.as('root')
  t.equal((await ask(node, gateway, 'GET /v2/entities', key)).status, 400, 'two proofs')
})

t.test('a certificate that the file does not have is unknown, and no matter beside another proof', async t => {
  const { node, scene } = await serving(t)
  const unknown = await ask(node, stranger, 'GET /v2/entities')
  t.equal(unknown.status, 401, 'never as anonymous')
  t.match(unknown.json, { description: 'the key, token or certificate is not known here' })
  t.equal((await ask(node, stranger, 'DELETE /v2/entities/L1', scene.as('root'))).status, 404)
  t.equal((await ask(node, stranger, 'GET /health/ready')).status, 200)
})

t.test('where a certificate is optional, none is as nothing, and headers of proxies never stand for one', async t => {
  const { node, scene } = await serving(t, { isRequired: false })
  const spoofed = [
    'X-SSL-Client-S-DN: CN=gateway-9,O=City',
    'X-Client-Cert: CN=gateway-9,O=City',
    'X-Forwarded-Client-Cert: Subject="CN=gateway-9,O=City"',
    'SSL-Client-Subject: CN=gateway-9,O=City',
  ]
  for (const headers of [[], spoofed]) {
    t.equal((await ask(node, undefined, 'GET /v2/entities', headers)).status, 200)
    t.equal((await ask(node, undefined, 'POST /v2/entities', headers, lamp('L2'))).status, 403)
    t.equal((await ask(node, stranger, 'POST /v2/entities', headers, lamp('L2'))).status, 401)
  }
  t.equal((await ask(node, undefined, 'POST /v2/entities', scene.as('city'), lamp('L3'))).status, 201)
  t.equal((await ask(node, gateway, 'POST /v2/entities', [], lamp('L4'))).status, 201)
})

t.test('another name of a certificate may stand in the file; the subject comes first', async t => {
  const dns = entryOf('DNS:gateway.city.example')
  const { node, change } = await serving(t, { members: dns })
  const status = async () => (await ask(node, gateway, 'GET /v2/entities')).status
  t.equal(await status(), 200)
  change(entryOf('URI:spiffe://city/gateway'))
  t.equal(await status(), 200)
  change(entryOf('DNS:other.city.example'))
  t.equal(await status(), 401)
  const none = { subject: 'CN=gateway-9,O=City', roles: [] }
  change({ certificates: [{ subject: 'DNS:gateway.city.example', roles: ['city'] }, none] })
  t.equal(await status(), 403)
})

t.test('an entry that is removed is revoked: on open connections, and for streams', async t => {
  const { node, change } = await serving(t)
  const wire = await Wire.overTls(node.port, gateway)
  t.equal((await askOn(wire, 'GET /v2/entities')).status, 200)
  const events = await Wire.overTls(node.port, gateway)
  await events.request('GET /v2/stream', ['Ctx-Service: city', 'Accept: text/event-stream'])
  const url = `wss://127.0.0.1:${node.port}/v2/stream`
  const headers = { 'Ctx-Service': 'city' }
  const socket = await StreamSocketClient.open(t, url, { headers, shown: gateway })
  const update = (ref: number) => ({ op: 'update', ref, body: { actionType: 'append', entities: [lamp(`S${ref}`)] } })
  socket.send({ op: 'watch', id: 'w' }, update(1))
  await socket.until('the update', ({ messages }) => messages.some(({ op }) => op === 'done'))
  t.match(await socket.next('the answer', ({ op }) => op === 'done'), { ref: 1, status: 204 })
  while (!events.unread.includes('S1')) await new Promise(resolve => setTimeout(resolve, 5))

  change({ certificates: [] })
  const denied = await askOn(wire, 'GET /v2/entities')
  t.equal(denied.status, 401)
  t.ok(await events.closed)
  t.match(events.unread, /event: end\ndata: \{"reason":"token over"\}/)
  await socket.until('the end', ({ ended }) => ended !== undefined)
  t.match(socket.messages.at(-1), { event: 'end', reason: 'token over' })
  change(entry)
  t.equal((await askOn(wire, 'GET /v2/entities')).status, 200, 'the connection goes on')
  wire.leave()
})

t.test('a certificate that ends, ends its streams with the reason, and its connections', async t => {
  const { node } = await serving(t)
  const brief = authority.issue('/O=City/CN=gateway-9', { endsMs: Date.now() + 3_000 })
  const wire = await Wire.overTls(node.port, brief)
  t.equal((await askOn(wire, 'GET /v2/entities')).status, 200)
  const events = await Wire.overTls(node.port, brief)
  await events.request('GET /v2/stream', ['Ctx-Service: city', 'Accept: text/event-stream'])
  const url = `wss://127.0.0.1:${node.port}/v2/stream`
  const [ending, lasting] = [
    await StreamSocketClient.open(t, url, { headers: { 'Ctx-Service': 'city' }, shown: brief }),
    await StreamSocketClient.open(t, url, { headers: { 'Ctx-Service': 'city' }, shown: gateway }),
  ]
  await ending.until('the end', ({ ended }) => ended !== undefined)
  t.match(ending.messages.at(-1), { event: 'end', reason: 'token over' })
  t.ok(await events.closed)
  t.match(events.unread, /event: end\ndata: \{"reason":"token over"\}/)
  t.ok(await wire.closed)
  t.equal(lasting.ended, undefined)
})

t.test('a key over a WebSocket is a second proof beside a certificate of the file', async t => {
  const { node, scene } = await serving(t)
  const url = `wss://127.0.0.1:${node.port}/v2/stream`
  const open = (shown: ClientPair, headers = {}) =>
    StreamSocketClient.open(t, url, { headers: { 'Ctx-Service': 'city', ...headers }, shown })
  const [known, other] = [await open(gateway), await open(stranger, { 'X-Api-Key': scene.keyOf('city') })]
  for (const client of [known, other]) {
    client.send({ op: 'token', token: scene.keyOf('root') })
    await client.until('an answer', ({ messages }) => messages.length === 1)
  }
  t.match(known.messages, [{ op: 'error', error: 'BadRequest', description: 'the request shows two different proofs' }])
  t.match(other.messages, [{ op: 'ok' }])
})

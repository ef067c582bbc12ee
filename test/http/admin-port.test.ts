// A port for operators (docs/interface/administration.md#the-port-for-operators), over whole nodes with both servers:
// what each port serves, to which principals, and what clients of the first port cannot use up.
//
// Not here: the program with workers, TLS and a cluster (journeys/admin-port.test.ts).

import { once } from 'node:events'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { type NeedsOfPath, routeNeeds } from '../../src/domain/access/route-needs.js'
import { AccessScene } from '../support/access-scene.js'
import { parseExposition } from '../support/exposition-parser.js'
import { httpServers, LocalNode, type LocalNodeOptions, readAnswer, startLocalNode } from '../support/local-node.js'
import { SlowReader } from './slow-reader.js'
import { Wire } from './wire.js'

t.setTimeout(180_000)

const loopback = { port: 0, host: '127.0.0.1' } as const

interface TwoPorts {
  readonly main: LocalNode
  readonly admin: LocalNode
}

async function startWithAdmin(t: Test, options: LocalNodeOptions): Promise<TwoPorts> {
  const main = await startLocalNode(t, { ...options, admin: loopback })
  return { main, admin: new LocalNode(main.running!.adminPort!) }
}

/** The answer to each path and method that such a node may serve. The paths of a cluster need one. */
const requests = (Object.entries(routeNeeds) as [string, NeedsOfPath][])
  .filter(([template]) => !template.startsWith('/cluster'))
  .flatMap(([template, needs]) => {
    const path = template.replace(/\{\w+\}/g, '7')
    return Object.keys(needs).map(method => ({ method, path }))
  })

const forOperators = /^\/(admin|log|statistics|cache|cluster)(\/|$)/
const forBoth = /^\/(metrics|version|health)(\/|$)/

const ask = (node: LocalNode, { method, path }: { readonly method: string; readonly path: string }) =>
  /^(GET|HEAD|DELETE)$/.test(method) ? node.ask(`${method} ${path}`) : node.json(`${method} ${path}`, {})

/** Whether the answer is that of a path that does not exist; an answer to HEAD has no text. */
const isUnknown = ({ status, json }: { readonly status: number; readonly json: unknown }): boolean =>
  status === 404 &&
  /^Service not found at this port/.test((json as { readonly description?: string } | undefined)?.description ?? '')

for (const server of httpServers) {
  t.test(
    `${server}: administration is at the port for operators alone, the data of tenants at the other one`,
    async t => {
      const { main, admin } = await startWithAdmin(t, { server, ngsiProxy: true })
      for (const request of requests) {
        const { method, path } = request
        if (method === 'HEAD') continue
        const isOperators = forOperators.test(path)
        t.equal(isUnknown(await ask(main, request)), isOperators, `${method} ${path} at the first port`)
        t.equal(
          isUnknown(await ask(admin, request)),
          !isOperators && !forBoth.test(path),
          `${method} ${path} for operators`,
        )
      }
      t.equal((await main.ask('HEAD /')).status, 200)
      t.equal((await admin.ask('HEAD /')).status, 404)
      for (const [node, path] of [
        [main, '/admin/log'],
        [main, '/cluster'],
        [admin, '/v2/entities'],
      ] as const) {
        const [nowhere, { status, text, headers }] = [await node.ask('GET /nowhere'), await node.ask(`GET ${path}`)]
        t.strictSame([nowhere.status, status, Object.keys(headers)], [400, 404, Object.keys(nowhere.headers)], text)
      }
    },
  )

  t.test(`${server}: without such a port the only one serves all paths`, async t => {
    const node = await startLocalNode(t, { server, ngsiProxy: true })
    t.equal(node.running!.adminPort, undefined)
    for (const request of requests) t.notOk(isUnknown(await ask(node, request)), `${request.method} ${request.path}`)
  })

  t.test(`${server}: both ports are about one broker`, async t => {
    const { main, admin } = await startWithAdmin(t, { server })
    await main.json('POST /v2/entities', { id: 'E', type: 'T' }, ['Ctx-Service: city'])
    t.match((await admin.ask('GET /admin/tenants')).json, [{ name: 'city', entities: 1 }])
    t.equal((await admin.ask('DELETE /admin/metrics')).status, 204)
    await main.ask('GET /v2/entities', ['Ctx-Service: city'])
    t.match((await admin.ask('GET /admin/metrics')).json, {
      services: { city: { sum: { incomingTransactions: 1 } } },
    })
    for (const node of [main, admin]) {
      const { samples } = parseExposition((await node.ask('GET /metrics')).text)
      const route = { route: '/v2/entities', method: 'POST' }
      const created = samples.find(
        ({ name, labels }) => name === 'orrery_http_requests_total' && labels.method === 'POST',
      )
      t.match(created, { labels: route, value: 1 })
    }
  })

  t.test(`${server}: access control decides at both ports, and shows no client what is elsewhere`, async t => {
    const scene = new AccessScene(t, {
      operator: [{ actions: ['admin', 'metrics'], tenants: ['*'] }],
      scraper: [{ actions: ['metrics'], tenants: ['*'] }],
      reader: [{ actions: ['read'] }],
    })
    const { main, admin } = await startWithAdmin(t, { server, accessFile: scene.path })
    const statuses = async (node: LocalNode, path: string): Promise<readonly number[]> => {
      const answers = [await node.ask(`GET ${path}`)]
      for (const name of ['reader', 'scraper', 'operator']) answers.push(await node.ask(`GET ${path}`, scene.as(name)))
      return answers.map(({ status }) => status)
    }
    t.strictSame(await statuses(admin, '/admin/log'), [401, 403, 403, 200])
    t.strictSame(await statuses(admin, '/v2/entities'), [401, 404, 404, 404])
    t.strictSame(await statuses(main, '/admin/log'), [401, 404, 404, 404])
    t.strictSame(await statuses(main, '/nowhere'), [401, 400, 400, 400])
    for (const node of [main, admin]) {
      t.strictSame(await statuses(node, '/metrics'), [401, 403, 200, 200])
      t.strictSame(await statuses(node, '/version'), [401, 200, 200, 200])
      t.strictSame(await statuses(node, '/health/ready'), [200, 200, 200, 200])
    }
  })

  t.test(`${server}: clients that take all connections do not lock operators out`, async t => {
    const connectionsMax = 8
    const { main, admin } = await startWithAdmin(t, { server, connectionsMax })
    const readers = await Promise.all(Array.from({ length: connectionsMax }, () => Wire.to(main.port)))
    t.teardown(() => {
      for (const reader of readers) reader.leave()
    })
    for (const reader of readers) {
      // The answer of a stream has no end, so its connection never makes room.
      await reader.request('GET /v2/stream')
      t.equal((await reader.answer()).status, 200)
    }
    const client = await Wire.to(main.port)
    t.ok(await client.closed, 'there is no place for another client')
    for (let times = 0; times < 3; times++) {
      const { status, text } = await admin.ask('GET /metrics')
      t.equal(status, 200)
      t.match(text, /^orrery_http_connections_dropped_total\{reason="full"\} [1-9]/m)
    }
    t.equal((await admin.ask('GET /health/ready')).status, 200)
    t.equal((await admin.ask('PUT /admin/log?level=warn')).status, 200)
  })

  t.test(`${server}: operators have a limit of connections of their own`, async t => {
    const { main, admin } = await startWithAdmin(t, { server, connectionsMax: 1 })
    const idle = await Promise.all(Array.from({ length: 150 }, () => Wire.to(admin.port)))
    t.teardown(() => {
      for (const wire of idle) wire.leave()
    })
    await Promise.all(idle.slice(0, 50).map(({ closed }) => closed))
    t.equal((await admin.ask('GET /health/live')).status, 200, 'the one that has waited longest makes room')
    t.equal((await main.ask('GET /health/live')).status, 200)
  })
}

t.test('clients that read no answers use up no room of operators', async t => {
  const attribute = { type: 'Text', value: 'x'.repeat(950_000), metadata: {} }
  // More than the system takes of an answer that its client does not read.
  const names = Array.from({ length: 14 }, (_, n) => `a${n}`)
  const large = { id: 'Large', type: 'T', ...Object.fromEntries(names.map(name => [name, attribute])) }
  const answerBytesMax = JSON.stringify(large).length
  const { main, admin } = await startWithAdmin(t, { answers: { answerBytesMax, answersInFlightMax: 0 } })
  await main.json('POST /v2/entities', { id: 'Large', type: 'T' })
  for (const name of names)
    t.equal((await main.json('POST /v2/entities/Large/attrs', { [name]: attribute })).status, 204)
  const some = { id: 'Some', type: 'T', a: { ...attribute, value: 'x'.repeat(150_000) } }
  await main.json('POST /v2/entities', some)
  // Each path is in the answer of /admin/metrics.
  const level = `/${'p'.repeat(46)}`
  for (let n = 0; n < 300; n++) await main.ask('GET /v2/types', [`Ctx-ServicePath: ${level.repeat(9)}${level}${n}`])

  const reader = await SlowReader.to(main.port)
  t.teardown(() => reader.leave())
  reader.stop()
  reader.ask('/v2/entities/Large')
  while ((await main.ask('GET /v2/entities/Some')).status !== 503) await new Promise(setImmediate)
  const byPath = await admin.ask('GET /admin/metrics')
  t.equal(byPath.status, 200)
  t.ok(byPath.text.length > some.a.value.length, `${byPath.text.length} bytes`)
  const { samples } = parseExposition((await admin.ask('GET /metrics')).text)
  const inFlight = samples.find(({ name }) => name === 'orrery_http_answers_in_flight_bytes')
  t.ok(inFlight!.value > answerBytesMax - 100_000, 'the room of clients is taken')
})

t.test('no message reaches the port for operators, whatever -egressAllow has', async t => {
  const { main, admin } = await startWithAdmin(t, { egress: { allow: ['*'] } })
  const watching = (host: string, custom = {}) => ({
    subject: { entities: [{ idPattern: '.*' }] },
    notification: { httpCustom: { url: `http://${host}:${admin.port}/cluster/drain`, ...custom } },
  })
  for (const host of ['127.0.0.1', '127.0.0.9', '0.0.0.0', '[::ffff:127.0.0.1]'])
    t.equal((await main.json('POST /v2/subscriptions', watching(host))).status, 400, host)
  const registration = {
    dataProvided: { entities: [{ id: 'P', type: 'T' }] },
    provider: { http: { url: `http://127.0.0.1:${admin.port}/v2` } },
  }
  t.equal((await main.json('POST /v2/registrations', registration)).status, 400)
  const created = await main.json('POST /v2/subscriptions', watching('localhost', { method: 'DELETE' }))
  t.equal(created.status, 201, 'the address of a name is known later')
  await main.json('POST /v2/entities', { id: 'E', type: 'T', a: { value: 1 } })
  for (;;) {
    const { json } = await main.ask(`GET ${created.headers.location}/deliveries`)
    const [last] = (json as { deliveries: { outcome: string; reason: string }[] }).deliveries
    if (!last) continue
    t.match(last, { outcome: 'dead', reason: 'The target is denied here' })
    break
  }
})

t.test('both ports answer while the node stops, and are closed after that', async t => {
  for (const server of httpServers) {
    const { main, admin } = await startWithAdmin(t, { server })
    const ports = [main.port, admin.port]
    const wires = await Promise.all(ports.map(port => Wire.to(port)))
    for (const wire of wires) {
      await wire.request('GET /health/ready')
      t.match(await readAnswer(wire), { status: 200, json: { status: 'ready' } })
    }
    const drained = main.running!.drain()
    for (const wire of wires) {
      await wire.request('GET /health/ready')
      t.match(await readAnswer(wire), { status: 503, headers: { connection: 'close' } }, server)
      t.ok(await wire.closed)
    }
    await drained
    for (const port of ports) {
      const [error] = await once(connect({ port, host: '127.0.0.1' }), 'error')
      t.match(error, { code: 'ECONNREFUSED' })
    }
  }
})

// The audit log of whole nodes: which requests have a line, and what it says, on both servers.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { newKey } from '../../src/access/keys.js'
import { until } from '../deliver/receivers.js'
import { AccessScene, everything } from '../support/access-scene.js'
import { tempDir } from '../support/broker-process.js'
import { IdentityProvider, signed, signingKey } from '../support/identity-provider.js'
import { httpServers, type LocalNode, type LocalNodeOptions, startLocalNode } from '../support/local-node.js'
import { StreamSocketClient } from '../support/stream-socket-client.js'
import { Wire } from './wire.js'

interface AuditedNode {
  readonly node: LocalNode
  readonly text: () => string
  /** Waits for so many lines, and returns all. */
  lines(count: number): Promise<Record<string, unknown>[]>
}

async function auditedNode(t: Test, options: LocalNodeOptions): Promise<AuditedNode> {
  const file = join(tempDir(t), 'audit.log')
  const node = await startLocalNode(t, { ...options, audit: { file, isRequired: false } })
  const text = (): string => readFileSync(file, 'utf8')
  const lines = async (count: number): Promise<Record<string, unknown>[]> => {
    await until(() => text().split('\n').length > count, `${count} lines`).catch(error => {
      throw new Error(`${(error as Error).message}: ${text()}`)
    })
    const all = text().trimEnd().split('\n')
    t.equal(all.length, count, all.join('\n'))
    return all.map(line => JSON.parse(line) as Record<string, unknown>)
  }
  return { node, text, lines }
}

/** The members of a line that a test looks at. */
const about = ({ method, path, status, entities, id }: Record<string, unknown>): unknown[] =>
  [method, path, status, entities, id].filter(one => one !== undefined)

const lamp = (id: string) => ({ id, type: 'Lamp', power: { value: 'hunter2' } })

for (const server of httpServers) {
  t.test(
    `without access control: changes and administration have a line each, in their order, over ${server}`,
    async t => {
      const { node, lines, text } = await auditedNode(t, { server })
      await node.json('POST /v2/entities?options=upsert&password=hunter2', lamp('L1'), [
        ...['Fiware-Service: City', 'Fiware-ServicePath: /north', 'Fiware-Correlator: c1', 'X-Auth-Token: hunter2'],
        'X-Forwarded-For: 192.0.2.7',
      ])
      await node.json('GET /v2/entities')
      await node.json('PATCH /v2/entities/L2/attrs', { power: { value: 1 } })
      await node.json('PUT /v2/entities/L%25/attrs/power/value', { a: 1 })
      await node.json('DELETE /v2/entities/L3/attrs/power')
      await node.json('POST /v2/op/update', { actionType: 'append', entities: [lamp('B1'), lamp('B2'), lamp('B1')] })
      await node.json('POST /v2/op/update', { actionType: 'append', entities: [{ type: 'x' }] })
      await node.json('POST /v2/op/query', { entities: [{ idPattern: '.*' }] })
      await node.json('POST /v2/op/notify', { subscriptionId: '0'.repeat(24), data: [lamp('N1'), lamp('N2')] })
      await node.json('POST /v2/entities', undefined)
      const subscription = {
        subject: { entities: [{ idPattern: '.*' }] },
        notification: { http: { url: 'http://127.0.0.1:9/hunter2' } },
      }
      const created = await node.json('POST /v2/subscriptions', subscription)
      const path = created.headers.location!
      await node.json(`GET ${path}`)
      await node.json(`DELETE ${path}`)
      await node.json('GET /statistics')
      await node.json('PUT /admin/log?level=NONE')
      await node.json('GET /metrics')
      await node.json('GET /health/live')
      await node.json('GET /nowhere')

      const id = path.split('/').at(-1)
      const found = await lines(12)
      t.strictSame(found.map(about), [
        ['POST', '/v2/entities', 204, 1, 'L1'],
        ['PATCH', '/v2/entities/L2/attrs', 404, 1, 'L2'],
        ['PUT', '/v2/entities/L%25/attrs/power/value', 404, 1, 'L%'],
        ['DELETE', '/v2/entities/L3/attrs/power', 404, 1, 'L3'],
        ['POST', '/v2/op/update', 204, 3, 'B1'],
        ['POST', '/v2/op/update', 400],
        ['POST', '/v2/op/notify', 200, 2, 'N1'],
        ['POST', '/v2/entities', 411],
        ['POST', '/v2/subscriptions', 201, id],
        ['DELETE', path, 204, id],
        ['GET', '/statistics', 200],
        ['PUT', '/admin/log', 200],
      ])
      t.match(found[0], {
        ...{ tenant: 'city', servicePath: '/north', correlator: 'c1', query: 'options=upsert' },
        ...{ address: '192.0.2.7', peer: '127.0.0.1' },
      })
      t.match(String(found[0]!.time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      for (const line of found) t.notHas(line, { principal: /./ })
      t.strictSame([found[1]!.address, found[1]!.peer], ['127.0.0.1', undefined])
      t.equal(found[11]!.query, 'level=NONE')
      t.notMatch(text(), 'hunter2')
      const times = found.map(({ time }) => String(time))
      t.strictSame(times, [...times].sort())
    },
  )

  t.test(`with access control: who it was, and refusals of any request, over ${server}`, async t => {
    const key = await signingKey('ES256', 'k1')
    const provider = await IdentityProvider.start(t, [key])
    const issuer = provider.entry({ roles: { claim: 'roles', map: { people: 'writer' } } })
    const writer = [{ actions: ['create', 'read'], types: ['Lamp'] }]
    const guest = [{ actions: ['read'] }]
    const scene = new AccessScene(t, { root: everything, writer, guest }, { issuers: [issuer] })
    const { node, lines, text } = await auditedNode(t, { server, accessFile: scene.path })
    const token = await signed(key, { ...provider.claims(Date.now(), 'ada'), roles: ['people'] })
    const expired = await signed(key, { ...provider.claims(Date.now(), 'ada'), exp: 1 })
    const unknown = newKey()
    const shown = (text: string) => [`Authorization: Bearer ${text}`]

    await node.json('POST /v2/entities', lamp('L1'), scene.as('writer'))
    await node.json('POST /v2/entities', lamp('L2'), shown(token))
    await node.json('POST /v2/entities', { id: 'M', type: 'Meter' }, scene.as('writer'))
    await node.json('DELETE /v2/entities/L1', undefined, scene.as('guest'))
    await node.json('GET /v2/entities/L1')
    await node.json('GET /v2/entities', undefined, shown(unknown))
    await node.json('POST /v2/entities', lamp('L3'), shown(expired))
    await node.json('GET /v2', undefined, ['Authorization: Basic abc'])
    await node.json('GET /metrics', undefined, scene.as('guest'))
    await node.json('GET /nowhere', undefined, shown(unknown))
    await node.json('GET /v2/entities', undefined, scene.as('guest'))
    await node.json('GET /metrics', undefined, scene.as('root'))
    await node.json('GET /admin/log', undefined, scene.as('root'))

    const found = await lines(11)
    const who = ({ principal, proof, issuer }: Record<string, unknown>) =>
      [principal, proof, issuer].filter(one => one !== undefined)
    t.strictSame(
      found.map(line => [...about(line), ...who(line)]),
      [
        ['POST', '/v2/entities', 201, 1, 'L1', 'writer', 'key'],
        ['POST', '/v2/entities', 201, 1, 'L2', 'ada', 'token', issuer.issuer],
        ['POST', '/v2/entities', 403, 1, 'M', 'writer', 'key'],
        ['DELETE', '/v2/entities/L1', 403, 1, 'L1', 'guest', 'key'],
        ['GET', '/v2/entities/L1', 401, 1, 'L1', 'nothing'],
        ['GET', '/v2/entities', 401, 'key'],
        ['POST', '/v2/entities', 401, 'token'],
        ['GET', '/v2', 401, 'malformed'],
        ['GET', '/metrics', 403, 'guest', 'key'],
        ['GET', '/nowhere', 401, 'key'],
        ['GET', '/admin/log', 200, 'root', 'key'],
      ],
    )
    const secrets = [token, expired, unknown, ...['root', 'writer', 'guest'].map(name => scene.keyOf(name))]
    for (const secret of [...secrets, 'hunter2']) t.notOk(text().includes(secret))
    for (const { address } of found) t.equal(address, '127.0.0.1')
  })

  t.test(
    `messages on a WebSocket: each update, each new proof, and a watch that no rule allows, over ${server}`,
    async t => {
      const city = [{ actions: ['create', 'update', 'stream'], types: ['Lamp'] }]
      const scene = new AccessScene(t, { city, other: [{ actions: ['read'] }] })
      const { node, lines, text } = await auditedNode(t, { server, accessFile: scene.path })
      const headers = {
        Authorization: `Bearer ${scene.keyOf('city')}`,
        'Fiware-ServicePath': '/north',
        'X-Real-IP': '192.0.2.7',
      }
      const client = await StreamSocketClient.open(t, `ws://127.0.0.1:${node.port}/v2/stream`, { headers })
      const update = (ref: number, ...entities: object[]) => ({
        op: 'update',
        ref,
        body: { actionType: 'append', entities },
      })
      await client.ask(update(1, lamp('L1'), lamp('L2')))
      await client.ask(update(2, { id: 'M', type: 'Meter' }))
      t.match(await client.ask({ op: 'watch', id: 'w', tenant: 'elsewhere' }), { op: 'error', error: 'Forbidden' })
      await client.ask({ op: 'token', token: newKey() })
      await client.ask({ op: 'token', token: scene.keyOf('other') })
      await client.ask(update(3, lamp('L3')))
      const found = await lines(6)
      t.strictSame(
        found.map(line => [...about(line), line.principal, line.proof]),
        [
          ['POST', '/v2/op/update', 204, 2, 'L1', 'city', 'key'],
          ['POST', '/v2/op/update', 403, 1, 'M', 'city', 'key'],
          ['watch', '/v2/stream', 403, 'city', 'key'],
          ['token', '/v2/stream', 401, undefined, 'key'],
          ['token', '/v2/stream', 200, 'other', 'key'],
          ['POST', '/v2/op/update', 403, 'other', 'key'],
        ],
      )
      const origin = { via: 'websocket', address: '192.0.2.7', peer: '127.0.0.1', servicePath: '/north' }
      for (const [at, line] of found.entries()) t.match(line, { ...origin, tenant: at === 2 ? 'elsewhere' : '' })
      for (const secret of [scene.keyOf('city'), scene.keyOf('other'), 'hunter2']) t.notOk(text().includes(secret))
    },
  )

  t.test(`a client that does not wait for its answer has a line with its address, over ${server}`, async t => {
    const { node, lines } = await auditedNode(t, { server })
    const wire = await Wire.to(node.port)
    await wire.request('DELETE /v2/entities/L1', [], Buffer.alloc(0))
    wire.leave()
    const [line] = await lines(1)
    t.match(line, { method: 'DELETE', address: '127.0.0.1', id: 'L1' })
  })

  t.test(`texts of a client stay one line of JSON, over ${server}`, async t => {
    const { node, text } = await auditedNode(t, { server })
    await node.json('DELETE /v2/entities/%22%7D%0A', undefined, ['Fiware-Correlator: "},{"status":200'])
    await node.json('DELETE /v2/entities/%ED%A0%80x', undefined)
    const id = 'a,}{:'
    await node.json('POST /v2/op/update', { actionType: 'delete', entities: [{ id }] })
    await node.ask(
      'POST /v2/op/update',
      ['Content-Type: application/json'],
      '{"actionType":"delete","entities":[{"id":"\\ud800\\udfff\\ud800"}]}',
    )
    await node.json(`DELETE /v2/entities/${'x'.repeat(2_000)}`, undefined, [`Fiware-Correlator: ${'c'.repeat(8_000)}`])
    await node.json('DELETE /v2/entities/last')
    await until(() => text().includes('"last"'))
    const found = text()
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line) as Record<string, unknown>)
    for (const { status, method } of found) {
      t.equal(typeof status, 'number')
      t.ok(method === 'DELETE' || method === 'POST')
    }
    const ids = found.map(line => line.id)
    for (const wanted of [id, 'last']) t.ok(ids.includes(wanted), JSON.stringify(wanted))
    t.ok(found.every(line => String(line.correlator).length < 1_100 && String(line.path).length < 1_100))
  })
}

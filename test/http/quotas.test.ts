// Quotas over whole nodes: what a tenant may have, and at which rate (docs/interface/access.md#quotas).

import t, { type Test } from 'tap'
import type { JsonObject } from '../../src/domain/json.js'
import { httpReceiver } from '../deliver/receivers.js'
import { AccessScene, everything } from '../support/access-scene.js'
import { EventReader } from '../support/event-reader.js'
import { httpServers, type LocalNode, type LocalNodeOptions, startLocalNode } from '../support/local-node.js'
import { StreamSocketClient } from '../support/stream-socket-client.js'

type Quotas = Readonly<Record<string, JsonObject>>

async function scene(t: Test, quotas: Quotas, options: LocalNodeOptions = {}) {
  const files = new AccessScene(t, { root: everything, nobody: [] }, { quotas })
  const node = await startLocalNode(t, { ...options, accessFile: files.path })
  return { node, files, ...asking(node, files) }
}

/** Requests of `root` to a tenant; '' is the default tenant. */
function asking(node: LocalNode, files: AccessScene) {
  const headers = (tenant: string): readonly string[] => [
    ...files.as('root'),
    ...(tenant === '' ? [] : [`Ctx-Service: ${tenant}`]),
  ]
  const ask = (line: string, body?: unknown, tenant = 'city') => node.json(line, body, headers(tenant))
  const create = async (id: string, tenant = 'city'): Promise<number> =>
    (await ask('POST /v2/entities', { id, type: 'Lamp', on: { value: 1 } }, tenant)).status
  const append = (ids: readonly string[], tenant = 'city', actionType = 'append') =>
    ask('POST /v2/op/update', { actionType, entities: ids.map(id => ({ id, type: 'Lamp', on: { value: 1 } })) }, tenant)
  const count = async (tenant = 'city'): Promise<number> => {
    const { headers } = await ask('GET /v2/entities?limit=1&options=count', undefined, tenant)
    return Number(headers['ctx-total-count'] ?? headers['fiware-total-count'])
  }
  return { ask, create, append, count }
}

/** Asks again until there is an answer. */
async function eventually<T>(what: string, ask: () => Promise<T | false>): Promise<T> {
  for (const untilMs = performance.now() + 30_000; ; ) {
    const found = await ask()
    if (found !== false) return found
    if (performance.now() > untilMs) throw new Error(`${what} did not come`)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

const eventuallySo = (what: string, isSo: () => Promise<boolean>): Promise<boolean> => eventually(what, isSo)

const ids = (name: string, count: number): string[] => Array.from({ length: count }, (_, at) => `${name}${at}`)

const exceeded = (max: number, what: string, tenant = 'city') => ({
  error: 'QuotaExceeded',
  description: `tenant ${tenant} may have ${max} ${what}`,
})

for (const server of httpServers)
  t.test(`a tenant has as many entities as its quota allows, over ${server}`, async t => {
    const { ask, create, count } = await scene(t, { city: { entities: 3 } }, { server })
    for (const id of ['A', 'B', 'C']) t.equal(await create(id), 201)
    const refused = await ask('POST /v2/entities', { id: 'D', type: 'Lamp' })
    t.equal(refused.status, 403)
    t.strictSame(refused.json, exceeded(3, 'entities'))
    t.equal(refused.headers['retry-after'], undefined)
    t.equal(await create('D', 'port'), 201, 'another tenant has no quota')
    t.equal(await create('A'), 422, 'what exists is no creation')
    const upsert = await ask('POST /v2/entities?options=upsert', { id: 'A', type: 'Lamp', on: { value: 2 } })
    t.equal(upsert.status, 204)
    t.equal((await ask('POST /v2/entities?options=upsert', { id: 'D', type: 'Lamp' })).status, 403)
    t.equal((await ask('DELETE /v2/entities/B')).status, 204)
    t.equal(await create('D'), 201)
    t.equal(await count(), 3)
  })

t.test('parallel creations make exactly as many as the quota allows', async t => {
  const { create, count } = await scene(t, { city: { entities: 10 } })
  const statuses = await Promise.all(ids('L', 64).map(id => create(id)))
  t.equal(statuses.filter(status => status === 201).length, 10)
  t.equal(statuses.filter(status => status === 403).length, 54)
  t.equal(await count(), 10)
})

t.test('a batch beyond the quota changes nothing, and what exists costs nothing', async t => {
  const { ask, append, count, create } = await scene(t, { city: { entities: 5 } })
  t.equal((await append(['A', 'B', 'C'])).status, 204)
  const refused = await append(['A', 'D', 'E', 'F'])
  t.equal(refused.status, 403)
  t.strictSame(refused.json, exceeded(5, 'entities'))
  t.equal(await count(), 3)
  t.equal((await append(['A', 'B', 'C', 'D', 'D', 'E'])).status, 204, 'an entity that occurs twice is created once')
  t.equal((await append(['A', 'B', 'C', 'D', 'E'])).status, 204)
  t.equal((await append(['F'], 'city', 'appendStrict')).status, 403)
  t.equal((await append(ids('L', 300))).status, 403)
  const notified = await ask('POST /v2/op/notify', { subscriptionId: '1', data: [{ id: 'N', type: 'Lamp' }] })
  t.equal(notified.status, 403)
  t.strictSame(notified.json, exceeded(5, 'entities'))
  t.equal((await ask('DELETE /v2/entities/A')).status, 204)
  t.equal(await create('F'), 201)
  t.equal(await count(), 5)
})

t.test('a batch of several steps is decided as a whole', async t => {
  const { append, count } = await scene(t, { city: { entities: 400 } })
  t.equal((await append(ids('L', 390))).status, 204)
  t.equal((await append([...ids('L', 390), ...ids('M', 11)])).status, 403)
  t.equal(await count(), 390)
  t.equal((await append([...ids('L', 390), ...ids('M', 10)])).status, 204)
  t.equal(await count(), 400)
})

t.test('parallel batches and creations: each batch is done or refused as a whole', async t => {
  const { append, create, count } = await scene(t, { city: { entities: 500 } })
  const batches = Array.from({ length: 8 }, (_, at) => append(ids(`B${at}x`, 150)))
  const singles = ids('S', 100).map(id => create(id))
  const statuses = (await Promise.all(batches)).map(({ status }) => status)
  const created = (await Promise.all(singles)).filter(status => status === 201).length
  const done = statuses.filter(status => status === 204).length
  t.ok(statuses.every(status => status === 204 || status === 403))
  t.equal(await count(), done * 150 + created)
  t.ok((await count()) <= 500)
  t.ok(done >= 2, 'what fits is not refused')
})

t.test('an entity that expires makes room', async t => {
  const { ask, create } = await scene(t, { city: { entities: 1 } }, { expiryIntervalMs: 50 })
  const dateExpires = { type: 'DateTime', value: new Date(Date.now() + 300).toISOString() }
  t.equal((await ask('POST /v2/entities', { id: 'A', type: 'Lamp', dateExpires })).status, 201)
  t.equal(await create('B'), 403)
  await eventuallySo('room', async () => (await create('B')) === 201)
})

t.test('a restart counts what is stored', async t => {
  const files = new AccessScene(t, { root: everything }, { quotas: { city: { entities: 2 } } })
  const directory = t.testdir()
  const ends: (() => unknown)[] = []
  const life = { teardown: (end: () => unknown) => ends.push(end), fail: (message: string) => t.fail(message) }
  const first = await startLocalNode(life, { accessFile: files.path, directory })
  t.equal(await asking(first, files).create('A'), 201)
  for (const end of ends) await end()
  const second = await startLocalNode(t, { accessFile: files.path, directory })
  const { create } = asking(second, files)
  t.equal(await create('B'), 201)
  t.equal(await create('C'), 403)
})

t.test('a tenant has as many subscriptions and registrations as its quotas allow', async t => {
  const { ask } = await scene(t, { city: { subscriptions: 2, registrations: 1 } })
  const subscription = {
    subject: { entities: [{ idPattern: '.*' }] },
    notification: { http: { url: 'http://127.0.0.1:9/notify' } },
  }
  const registration = {
    dataProvided: { entities: [{ id: 'R1', type: 'Room' }], attrs: ['temperature'] },
    provider: { http: { url: 'http://127.0.0.1:9/v2' } },
  }
  const first = await ask('POST /v2/subscriptions', subscription)
  const both = [first.status, (await ask('POST /v2/subscriptions', subscription)).status]
  t.strictSame(both, [201, 201])
  const refused = await ask('POST /v2/subscriptions', subscription)
  t.equal(refused.status, 403)
  t.strictSame(refused.json, exceeded(2, 'subscriptions'))
  t.equal((await ask('POST /v2/subscriptions', subscription, 'port')).status, 201)
  t.equal((await ask(`DELETE ${first.headers.location}`)).status, 204)
  const parallel = await Promise.all(Array.from({ length: 8 }, () => ask('POST /v2/subscriptions', subscription)))
  t.equal(parallel.filter(({ status }) => status === 201).length, 1)
  t.equal((await ask('POST /v2/registrations', registration)).status, 201)
  const second = await ask('POST /v2/registrations', registration)
  t.equal(second.status, 403)
  t.strictSame(second.json, exceeded(1, 'registrations'))
})

t.test('the default tenant has a quota of its own, and one under * is for each of the others', async t => {
  const { ask, create } = await scene(t, { '': { entities: 1 }, city: {}, '*': { entities: 2 } })
  t.equal(await create('A', ''), 201)
  const refused = await ask('POST /v2/entities', { id: 'B', type: 'Lamp' }, '')
  t.strictSame(refused.json, exceeded(1, 'entities', 'default-service'))
  for (const tenant of ['city', 'port']) {
    t.strictSame([await create('A', tenant), await create('B', tenant), await create('C', tenant)], [201, 201, 403])
  }
})

t.test('a change of the file counts at once, and deletes nothing', async t => {
  const { node, files, create, count } = await scene(t, { city: { entities: 3 } })
  for (const id of ['A', 'B', 'C']) t.equal(await create(id), 201)
  const change = (quotas: Quotas): void => {
    files.write({ root: everything }, { quotas })
    node.running?.lookAtFiles()
  }
  change({ city: { entities: 2 } })
  t.equal(await create('D'), 403)
  t.equal(await count(), 3)
  change({ city: { entities: 4 } })
  t.equal(await create('D'), 201)
  t.equal(await create('E'), 403)
  change({})
  t.equal(await create('E'), 201)
})

t.test('a tenant has as many streams as its quota allows', async t => {
  const { node, files, ask } = await scene(t, { city: { streams: 2 } })
  const headers = { authorization: `Bearer ${files.keyOf('root')}` }
  const url = `ws://127.0.0.1:${node.port}/v2/stream?tenant=`
  const open = (tenant: string) => StreamSocketClient.open(t, `${url}${tenant}`, { headers })
  const first = await open('city')
  const events = await EventReader.open(t, `http://127.0.0.1:${node.port}/v2/stream?tenant=city`, headers)
  t.equal(events.refused, undefined)
  const refused = await ask('GET /v2/stream?tenant=city', undefined, '')
  t.equal(refused.status, 403)
  t.strictSame(refused.json, exceeded(2, 'streams'))
  t.equal((await open('city')).refused, 403)
  t.equal((await open('port')).refused, undefined)
  first.native.close()
  await eventuallySo('room for a stream', async () => (await open('city')).refused === undefined)
})

for (const server of httpServers)
  t.test(`requests beyond the rate are answered with 429, over ${server}`, async t => {
    const { node, files, ask } = await scene(t, { city: { requestsPerSecond: 4 } }, { server })
    const list = (tenant?: string) => ask('GET /v2/entities', undefined, tenant)
    const statuses = (await Promise.all(Array.from({ length: 20 }, () => list()))).map(({ status }) => status)
    t.ok(statuses.filter(status => status === 200).length >= 4)
    t.ok(statuses.filter(status => status === 429).length >= 8)
    const refused = await eventually('a refusal', async () => {
      const answer = await list()
      return answer.status === 429 && answer
    })
    t.strictSame(refused.json, {
      error: 'TooManyRequests',
      description: 'tenant city may make 4 requests in a second: try again in 1 s',
    })
    t.equal(refused.headers['retry-after'], '1')
    t.equal((await list('port')).status, 200, 'another tenant is not disturbed')
    for (const path of ['/v2', '/version', '/health/live', '/metrics', '/admin/log'])
      t.equal((await ask(`GET ${path}`)).status, 200, `${path} is not about a tenant`)
    await eventuallySo('the bucket fills', async () => (await list()).status === 200)
    const foreign = await Promise.all(
      Array.from({ length: 30 }, (_, at) =>
        node.ask(
          'GET /v2/entities',
          at % 2 === 0 ? ['Ctx-Service: city'] : [...files.as('nobody'), 'Ctx-Service: city'],
        ),
      ),
    )
    t.ok(foreign.every(({ status }) => status === 401 || status === 403))
    await eventuallySo('a token of the rest', async () => (await list()).status === 200)
  })

t.test('clients without a right use up no rate', async t => {
  const { node, files, ask } = await scene(t, { city: { requestsPerSecond: 2 } })
  for (let at = 0; at < 20; at++) {
    t.equal((await node.ask('GET /v2/entities', ['Ctx-Service: city'])).status, 401)
    t.equal((await node.ask('GET /v2/entities', [...files.as('nobody'), 'Ctx-Service: city'])).status, 403)
  }
  t.strictSame([(await ask('GET /v2/entities')).status, (await ask('GET /v2/entities')).status], [200, 200])
})

t.test('an update on a WebSocket counts as a request', async t => {
  const { node, files, count } = await scene(t, { city: { requestsPerSecond: 3 } })
  const headers = { authorization: `Bearer ${files.keyOf('root')}` }
  const client = await StreamSocketClient.open(t, `ws://127.0.0.1:${node.port}/v2/stream?tenant=city`, { headers })
  const update = (ref: number) => ({
    op: 'update',
    ref,
    body: { actionType: 'append', entities: [{ id: `L${ref}`, type: 'Lamp' }] },
  })
  client.send(...Array.from({ length: 10 }, (_, ref) => update(ref)))
  await client.until('ten answers', ({ messages }) => messages.filter(({ op }) => op === 'done').length === 10)
  const done = client.messages.filter(({ op }) => op === 'done')
  const created = done.filter(({ status }) => status === 204).length
  const refused = done.filter(({ status }) => status === 429)
  t.ok(created >= 2 && created <= 4)
  t.equal(created + refused.length, 10)
  t.equal(refused[0]?.error, 'TooManyRequests')
  await eventuallySo('a token', async () => (await count()) === created)
})

t.test('notifications beyond the rate come later, all of them, and those of another tenant at once', async t => {
  const receiver = await httpReceiver(t)
  const { ask, create } = await scene(t, { city: { notificationsPerSecond: 5 } })
  const subscription = (path: string) => ({
    subject: { entities: [{ idPattern: '.*' }] },
    notification: { http: { url: `${receiver.url}/${path}` } },
  })
  for (const tenant of ['city', 'port'])
    t.equal((await ask('POST /v2/subscriptions', subscription(tenant), tenant)).status, 201)
  const received = (path: string) => receiver.received.filter(one => one.path === `/${path}`).length
  const beganMs = performance.now()
  await Promise.all(ids('L', 15).map(id => create(id)))
  await Promise.all(ids('L', 15).map(id => create(id, 'port')))
  await eventuallySo('all of the other tenant', async () => received('port') === 15)
  await eventuallySo('all', async () => received('city') === 15)
  t.ok(performance.now() - beganMs > 1_800, 'five at once, and ten in two seconds')
  const { text } = await ask('GET /metrics')
  t.match(text, /orrery_tenant_quota_refused_total\{tenant="city",quota="notificationsPerSecond"\} [1-9]/)
})

t.test('metrics have the use, the limit and the refusals of each tenant with quotas', async t => {
  const quotas = { city: { entities: 2, subscriptions: 5, requestsPerSecond: 100 }, '*': { streams: 3 } }
  const { ask, create } = await scene(t, quotas)
  t.strictSame(
    [await create('A'), await create('B'), await create('C'), await create('A', 'port')],
    [201, 201, 403, 201],
  )
  const { text } = await ask('GET /metrics')
  const samples = text.split('\n').filter(line => line.startsWith('orrery_tenant_quota'))
  const expected = [
    'orrery_tenant_quota_limit{tenant="city",quota="entities"} 2',
    'orrery_tenant_quota_limit{tenant="city",quota="requestsPerSecond"} 100',
    'orrery_tenant_quota_limit{tenant="city",quota="streams"} 3',
    'orrery_tenant_quota_limit{tenant="city",quota="subscriptions"} 5',
    'orrery_tenant_quota_refused_total{tenant="city",quota="entities"} 1',
    'orrery_tenant_quota_taken_total{tenant="city",quota="requestsPerSecond"} 3',
    'orrery_tenant_quota_used{tenant="city",quota="entities"} 2',
    'orrery_tenant_quota_used{tenant="city",quota="streams"} 0',
    'orrery_tenant_quota_used{tenant="city",quota="subscriptions"} 0',
    'orrery_tenant_quotas_unreported 0',
  ]
  t.strictSame(samples.sort(), expected)
})

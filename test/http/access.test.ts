// Access control over whole nodes: the principal of a request, on both servers, and the answer to a request that the
// rules do not allow.

import t from 'tap'
import { newKey } from '../../src/access/keys.js'
import { tokenLeewayS } from '../../src/access/limits.js'
import type { JsonObject } from '../../src/domain/json.js'
import { httpReceiver, until } from '../deliver/receivers.js'
import { AccessScene, everything } from '../support/access-scene.js'
import { IdentityProvider, signed, signingKey } from '../support/identity-provider.js'
import { httpServers, type LocalNode, startLocalNode } from '../support/local-node.js'
import { StreamSocketClient } from '../support/stream-socket-client.js'

const rules = {
  root: everything,
  metrics: [{ actions: ['metrics'], tenants: ['*'] }],
  city: [{ actions: ['read', 'create', 'update', 'delete', 'subscribe', 'register', 'stream'], tenants: ['city'] }],
  reader: [{ actions: ['read'], tenants: ['city'] }],
  nobody: [],
}

const inCity = ['Ctx-Service: city']
const lamp = { id: 'L1', type: 'Lamp', power: { value: 1 } }

for (const server of httpServers) {
  t.test(`a request without a right is refused, over ${server}`, async t => {
    const scene = new AccessScene(t, rules)
    const node = await startLocalNode(t, { server, accessFile: scene.path })
    const ask = (line: string, name: string, body?: unknown) => node.json(line, body, [...scene.as(name), ...inCity])

    t.equal((await ask('POST /v2/entities', 'city', lamp)).status, 201)
    t.equal((await ask('GET /v2/entities/L1', 'reader')).status, 200)
    t.equal((await ask('GET /v2', 'nobody')).status, 200)
    const denied = await ask('POST /v2/entities', 'reader', { ...lamp, id: 'L2' })
    t.equal(denied.status, 403)
    t.strictSame(denied.json, { error: 'Forbidden', description: 'not allowed: create in / of tenant city' })
    t.equal((await ask('GET /v2/entities/L2', 'root')).status, 404, 'nothing has happened')

    const [missing, wrong] = [await ask('GET /v2/entities', 'anonymous'), await withKey(node, newKey())]
    t.equal(missing.status, 401)
    t.equal(missing.headers['www-authenticate'], 'Bearer')
    t.strictSame(missing.json, { error: 'Unauthorized', description: 'no key, token or certificate was shown' })
    t.equal(wrong.status, 401)
    t.equal(wrong.headers['www-authenticate'], 'Bearer error="invalid_token"')
    const two = await node.ask('GET /v2/entities', [...scene.as('root'), `X-Api-Key: ${scene.keyOf('city')}`])
    t.equal(two.status, 400)
    t.equal((await ask('GET /health/ready', 'anonymous')).status, 200)
    t.equal((await ask('GET /v2', 'anonymous')).status, 401)
    t.equal((await ask('GET /nowhere', 'anonymous')).status, 401)
    t.equal((await ask('GET /nowhere', 'nobody')).status, 400)
    t.equal((await ask('PATCH /v2/types', 'nobody', {})).status, 405)
    t.equal((await ask('GET /metrics', 'city')).status, 403)
    t.equal((await ask('GET /metrics', 'metrics')).status, 200)
    t.equal((await ask('GET /admin/log', 'metrics')).status, 403)
    t.equal((await ask('GET /admin/log', 'root')).status, 200)
    const { text } = await ask('GET /metrics', 'root')
    t.match(text, /orrery_access_denied_total\{reason="forbidden"\} 3/)
    t.match(text, /orrery_access_denied_total\{reason="missing"\} 3/)
    t.match(text, /orrery_access_reloads_total 0/)
  })

  t.test(`a token is verified, and the body of its request is kept meanwhile, over ${server}`, async t => {
    const key = await signingKey('ES256', 'k1')
    const provider = await IdentityProvider.start(t, [key])
    const issuer = provider.entry({ roles: { claim: 'roles', map: { people: 'city' } } })
    const scene = new AccessScene(t, rules, { issuers: [issuer] })
    const node = await startLocalNode(t, { server, accessFile: scene.path })
    const tokenOf = (claims: object) => signed(key, { ...provider.claims(Date.now(), 'ada'), ...claims })
    const token = await tokenOf({ roles: ['people'] })
    const as = (token: string) => [`Authorization: Bearer ${token}`, ...inCity]
    t.equal((await node.json('POST /v2/entities', lamp, as(token))).status, 201)
    t.equal((await node.json('GET /v2/entities/L1', undefined, as(token))).status, 200)
    const [powerless, over] = [await tokenOf({ roles: [] }), await tokenOf({ roles: ['people'], exp: 1 })]
    t.equal((await node.json('POST /v2/entities', lamp, as(powerless))).status, 403)
    t.equal((await node.json('POST /v2/entities', lamp, as(over))).status, 401)
    t.equal((await node.json('GET /v2/entities', undefined, as(over))).status, 401)
  })

  t.test(`a grant that does not cover what a request is about is not enough, over ${server}`, async t => {
    const scene = new AccessScene(t, {
      narrow: [{ actions: ['*'], tenants: ['city'], types: ['Lamp'] }],
      north: [{ actions: ['*'], tenants: ['city'], paths: ['/north/#'] }],
    })
    const node = await startLocalNode(t, { server, accessFile: scene.path })
    const ask = (line: string, name: string, path: string, body?: unknown) =>
      node.json(line, body, [...scene.as(name), ...inCity, `Ctx-ServicePath: ${path}`])
    t.equal((await ask('POST /v2/entities', 'north', '/north/a', lamp)).status, 201)
    t.equal((await ask('GET /v2/entities', 'north', '/north/a')).status, 200)
    t.equal((await ask('POST /v2/entities', 'north', '/', lamp)).status, 403)
    const requests = [
      ['POST /v2/entities', { ...lamp, type: 'Meter' }],
      ['POST /v2/op/update', { actionType: 'append', entities: [lamp, { ...lamp, type: 'Meter' }] }],
    ] as const
    for (const [line, body] of requests) t.equal((await ask(line, 'narrow', '/north/a', body)).status, 403, line)
  })
}

t.test('a write without a type is about entities, and creates one, that all of its actions cover', async t => {
  const scene = new AccessScene(t, {
    root: everything,
    lamps: [
      { actions: ['create'], tenants: ['city'], types: ['Thing', 'Museum'] },
      { actions: ['update'], tenants: ['city'], types: ['Lamp', 'Museum'] },
    ],
    things: [
      { actions: ['create'], tenants: ['city'], types: ['Thing'] },
      { actions: ['update'], tenants: ['city'], types: ['Lamp', 'Thing'] },
    ],
  })
  const node = await startLocalNode(t, { accessFile: scene.path })
  const ask = (line: string, name: string, body?: unknown) => node.json(line, body, [...scene.as(name), ...inCity])
  const append = async (name: string, id: string, actionType = 'append') => {
    const batch = { actionType, entities: [{ id, power: { value: 2 } }] }
    return (await ask('POST /v2/op/update', name, batch)).status
  }
  const stored = async () => (await ask('GET /v2/entities?options=keyValues', 'root')).json
  t.equal(await append('lamps', 'E1'), 404, 'it may not update the Thing that it would create')
  t.equal(await append('things', 'E1'), 204)
  t.equal((await ask('POST /v2/entities', 'root', { ...lamp, id: 'E2' })).status, 201)
  t.equal(await append('lamps', 'E2'), 404, 'it may not create lamps')
  t.equal((await ask('POST /v2/entities', 'root', { ...lamp, id: 'E2', type: 'Museum' })).status, 201)
  t.equal(await append('lamps', 'E2'), 204, 'of the two there is one for it')
  t.equal(await append('lamps', 'E2', 'appendStrict'), 422, 'which has the attribute')
  t.equal(await append('root', 'E2'), 409)
  t.strictSame(await stored(), [
    { id: 'E1', type: 'Thing', power: 2 },
    { id: 'E2', type: 'Lamp', power: 1 },
    { id: 'E2', type: 'Museum', power: 2 },
  ])
})

for (const server of httpServers)
  t.test(`a WebSocket has the rights of its opener, and ends with them, over ${server}`, async t => {
    const rules = { root: everything, city: [{ actions: ['stream', 'create', 'update', 'delete'], tenants: ['city'] }] }
    const scene = new AccessScene(t, rules)
    const node = await startLocalNode(t, { server, accessFile: scene.path })
    const url = `ws://127.0.0.1:${node.port}/v2/stream`
    const headers = { Authorization: `Bearer ${scene.keyOf('city')}`, 'Ctx-Service': 'city' }
    t.equal((await StreamSocketClient.open(t, url, { headers: { 'Ctx-Service': 'city' } })).refused, 401)
    t.equal((await StreamSocketClient.open(t, url, { headers: { ...headers, 'Ctx-Service': 'harbour' } })).refused, 403)
    const client = await StreamSocketClient.open(t, url, { headers })
    const answer = async (message: { readonly op: string }) => {
      const { length } = client.messages
      client.send(message)
      await client.until('an answer', ({ messages }) => messages.length > length)
      return client.messages[length]
    }
    t.match(await answer({ op: 'watch', id: 'a', tenant: 'harbour' } as { op: string }), { op: 'error', id: 'a' })
    t.match(await answer({ op: 'watch', id: 'b' } as { op: string }), { op: 'watching', id: 'b' })
    const body = { actionType: 'append', entities: [lamp] }
    const update = { op: 'update', ref: 1, tenant: 'harbour', body }
    t.match(await answer(update), { op: 'done', status: 403, error: 'Forbidden' })
    t.equal((await node.json('GET /v2/entities', undefined, [...scene.as('root'), 'Ctx-Service: harbour'])).text, '[]')

    scene.write({ ...rules, city: [{ actions: ['stream'], tenants: ['city'], types: ['Lamp'] }] })
    node.running?.lookAtFiles()
    await client.until('the end', ({ ended }) => ended !== undefined)
    t.match(client.messages.at(-1), { event: 'end', reason: 'token over' })
    t.equal(client.ended?.code, 1008)
  })

t.test('a subscription notifies of those changes that the present file allows its owner to subscribe to', async t => {
  const scene = new AccessScene(t, rules)
  const node = await startLocalNode(t, { accessFile: scene.path })
  const [mine, roots] = [await httpReceiver(t), await httpReceiver(t)]
  const ask = (line: string, name: string, body?: unknown) => node.json(line, body, [...scene.as(name), ...inCity])
  const subscribe = async (name: string, url: string): Promise<string> => {
    const subject = { entities: [{ idPattern: '.*' }] }
    const { status, headers } = await ask('POST /v2/subscriptions', name, { subject, notification: { http: { url } } })
    t.equal(status, 201)
    return headers.location ?? ''
  }
  const place = await subscribe('city', mine.url)
  await subscribe('root', roots.url)
  t.match((await ask(`GET ${place}`, 'city')).json, { owner: 'city' })
  t.equal((await ask(`PATCH ${place}`, 'city', { description: 'mine' })).status, 204)
  t.match((await ask(`GET ${place}`, 'root')).json, { owner: 'city', description: 'mine' })
  /** Creates an entity, and waits for the notifications of it: both receivers have so many then. */
  const create = async (id: string, ofRoot: number, ofMine: number): Promise<void> => {
    t.equal((await ask('POST /v2/entities', 'root', { ...lamp, id })).status, 201)
    await until(() => roots.received.length === ofRoot && mine.received.length === ofMine, `${id} is notified of`)
  }
  const allow = (city: JsonObject[]): void => {
    scene.write({ ...rules, city })
    node.running?.lookAtFiles()
  }
  const patch = async (id: string, values: JsonObject, ofRoot: number, ofMine: number): Promise<void> => {
    t.equal((await ask(`PATCH /v2/entities/${id}/attrs?options=keyValues`, 'root', values)).status, 204)
    await until(() => roots.received.length === ofRoot && mine.received.length === ofMine, `${id} is notified of`)
  }
  await create('L1', 1, 1)
  allow([{ actions: ['subscribe'], tenants: ['city'], types: ['Meter'] }])
  await create('L2', 2, 1)
  allow([{ actions: ['subscribe'], tenants: ['city'], types: ['Lamp'], attributes: ['*', '!cost'] }])
  await create('L3', 3, 2)
  t.equal((await ask('POST /v2/entities/L3/attrs?options=keyValues', 'root', { cost: 5 })).status, 204)
  await patch('L3', { cost: 6 }, 5, 2)
  await patch('L3', { cost: 7, power: 2 }, 6, 3)
  allow([{ actions: ['update'], tenants: ['city'] }])
  await create('L4', 7, 3)
  scene.write(rules)
  node.running?.lookAtFiles()
  await patch('L3', { cost: 8 }, 8, 4)
  const lamps = mine.received.map(({ body }) => JSON.parse(body).data[0])
  t.strictSame(
    lamps.map(({ id, power, cost }) => [id, power?.value, cost?.value]),
    [
      ['L1', 1, undefined],
      ['L3', 1, undefined],
      ['L3', 2, undefined],
      ['L3', 2, 8],
    ],
    'nothing was sent of L2, of L4 and of the cost alone',
  )
})

t.test('a subscription goes on when the token of its owner ends: its rules count', async t => {
  const key = await signingKey('ES256', 'k1')
  const provider = await IdentityProvider.start(t, [key])
  const issuerOf = (role: string) => provider.entry({ roles: { claim: 'roles', map: { people: role } } })
  const scene = new AccessScene(t, rules, { issuers: [issuerOf('city')] })
  const node = await startLocalNode(t, { accessFile: scene.path })
  const receiver = await httpReceiver(t)
  // A token is accepted for some time after its end.
  const exp = Math.floor(Date.now() / 1000) + 2 - tokenLeewayS
  const token = await signed(key, { ...provider.claims(Date.now(), 'ada'), roles: ['people'], exp })
  const subscription = { subject: { entities: [{ idPattern: '.*' }] }, notification: { http: { url: receiver.url } } }
  const asOwner = [`Authorization: Bearer ${token}`, ...inCity]
  t.equal((await node.json('POST /v2/subscriptions', subscription, asOwner)).status, 201)
  let created = 0
  const create = async (): Promise<void> => {
    const entity = { ...lamp, id: `L${++created}` }
    t.equal((await node.json('POST /v2/entities', entity, [...scene.as('root'), ...inCity])).status, 201)
  }
  // Events while the token ends, and behind its end.
  const ownerStatus = async (): Promise<number> => (await node.json('GET /v2/subscriptions', undefined, asOwner)).status
  for (let status = 200; status === 200; status = await ownerStatus()) await create()
  t.equal(await ownerStatus(), 401)
  await create()
  await until(() => receiver.received.length === created, 'each entity is notified of')

  scene.write(rules, { issuers: [issuerOf('reader')] })
  node.running?.lookAtFiles()
  await create()
  scene.write(rules, { issuers: [issuerOf('city')] })
  node.running?.lookAtFiles()
  await create()
  const ids = () => receiver.received.map(({ body }) => String(JSON.parse(body).data[0].id))
  await until(() => ids().includes(`L${created}`), 'the last entity is notified of')
  t.notOk(ids().includes(`L${created - 1}`), 'the rules of its owner had no action subscribe')
})

t.test('principals see and change their own subscriptions, and those of principals whose roles they have', async t => {
  const lamps = { actions: ['subscribe'], tenants: ['city'], types: ['Lamp'], attributes: ['*', '!cost'] }
  const scene = new AccessScene(t, { root: everything, lamps: [lamps], other: [lamps] })
  const node = await startLocalNode(t, { accessFile: scene.path })
  const ask = (line: string, name: string, body?: unknown) => node.json(line, body, [...scene.as(name), ...inCity])
  const notification = { http: { url: 'http://127.0.0.1:1' } }
  const entities = [{ idPattern: '.*' }]
  const create = (name: string, subject: JsonObject) => ask('POST /v2/subscriptions', name, { subject, notification })
  const place = (await create('lamps', { entities })).headers.location ?? ''
  t.equal((await create('root', { entities })).status, 201)

  const costly = { entities, condition: { expression: { q: 'cost>5' } } }
  const refused = await create('lamps', costly)
  t.equal(refused.status, 403)
  t.match(refused.json, { error: 'Forbidden', description: /cost/ })
  t.equal((await create('lamps', { entities, condition: { attrs: ['cost'] } })).status, 403)
  t.equal((await ask(`PATCH ${place}`, 'lamps', { subject: costly })).status, 403)
  t.equal((await ask(`PATCH ${place}`, 'root', { subject: costly })).status, 403, 'its owner may not')
  t.equal((await ask(`PATCH ${place}`, 'root', { description: 'ours' })).status, 204)
  t.equal((await ask(`PATCH ${place}`, 'lamps', { description: 'mine' })).status, 204)

  const counted = async (name: string) => {
    const { json, headers } = await ask('GET /v2/subscriptions?options=count', name)
    return [(json as readonly unknown[]).length, headers['ctx-total-count']]
  }
  t.strictSame(await counted('root'), [2, '2'])
  t.strictSame(await counted('lamps'), [1, '1'])
  t.strictSame(await counted('other'), [0, '0'])
  for (const line of ['GET', 'DELETE']) t.equal((await ask(`${line} ${place}`, 'other')).status, 404, line)
  for (const line of [
    `GET ${place}/deliveries`,
    `POST ${place}/deliveries/retry`,
    `GET ${place}?options=explain&entity=L1`,
  ])
    t.equal((await ask(line, 'other')).status, 404, line)
  t.equal((await ask(`PATCH ${place}`, 'other', { description: 'theirs' })).status, 404)

  t.equal((await ask('POST /v2/entities', 'root', { ...lamp, cost: { value: 5 } })).status, 201)
  t.equal((await ask('POST /v2/entities', 'root', { ...lamp, id: 'M1', type: 'Meter' })).status, 201)
  t.equal((await ask(`GET ${place}?options=explain&entity=L1`, 'lamps')).status, 200)
  t.equal((await ask(`GET ${place}?options=explain&entity=M1`, 'lamps')).status, 404)
  t.equal((await ask(`GET ${place}?options=explain&entity=M1`, 'root')).status, 404, 'its owner does not see it')
  t.equal((await ask(`DELETE ${place}`, 'lamps')).status, 204)
})

t.test('a principal registers what its rules cover, and sees its own registrations', async t => {
  const lamps = { actions: ['register'], tenants: ['city'], types: ['Lamp'], attributes: ['power'] }
  const scene = new AccessScene(t, { root: everything, lamps: [lamps], other: [lamps] })
  const node = await startLocalNode(t, { accessFile: scene.path })
  const ask = (line: string, name: string, body?: unknown) => node.json(line, body, [...scene.as(name), ...inCity])
  const provider = { http: { url: 'http://127.0.0.1:1' } }
  const provided = (type: string, attrs: string[]) => ({ entities: [{ idPattern: '.*', type }], attrs })
  const create = (name: string, dataProvided: JsonObject) =>
    ask('POST /v2/registrations', name, { dataProvided, provider })
  const { status, headers } = await create('lamps', provided('Lamp', ['power']))
  t.equal(status, 201)
  const place = headers.location ?? ''
  for (const wrong of [provided('Meter', ['power']), provided('Lamp', []), provided('Lamp', ['cost'])])
    t.equal((await create('lamps', wrong)).status, 403, JSON.stringify(wrong))
  t.equal((await create('root', provided('Meter', []))).status, 201)
  t.match((await ask(`GET ${place}`, 'lamps')).json, { owner: 'lamps' })

  const wider = { dataProvided: provided('Lamp', ['power', 'cost']) }
  t.equal((await ask(`PATCH ${place}`, 'lamps', wider)).status, 403)
  t.equal((await ask(`PATCH ${place}`, 'root', wider)).status, 403, 'its owner may not')
  t.equal((await ask(`PATCH ${place}`, 'root', { description: 'ours' })).status, 204)
  t.match((await ask(`GET ${place}`, 'lamps')).json, { owner: 'lamps', description: 'ours' })
  const counted = async (name: string) => {
    const { json, headers } = await ask('GET /v2/registrations?options=count', name)
    return [(json as readonly unknown[]).length, headers['ctx-total-count']]
  }
  t.strictSame(await counted('root'), [2, '2'])
  t.strictSame(await counted('lamps'), [1, '1'])
  t.strictSame(await counted('other'), [0, '0'])
  for (const line of ['GET', 'DELETE']) t.equal((await ask(`${line} ${place}`, 'other')).status, 404, line)
  t.equal((await ask(`PATCH ${place}`, 'other', { description: 'theirs' })).status, 404)
  t.equal((await ask(`DELETE ${place}`, 'lamps')).status, 204)
})

for (const server of httpServers)
  t.test(`a stream shows what its reader may see, over ${server}`, async t => {
    const lamps = { actions: ['stream'], tenants: ['city'], types: ['Lamp'], attributes: ['*', '!cost'] }
    const scene = new AccessScene(t, { root: everything, lamps: [lamps] })
    const node = await startLocalNode(t, { server, accessFile: scene.path })
    const ask = (line: string, body?: unknown) => node.json(line, body, [...scene.as('root'), ...inCity])
    const url = `ws://127.0.0.1:${node.port}/v2/stream`
    const headers = { Authorization: `Bearer ${scene.keyOf('lamps')}`, 'Ctx-Service': 'city' }
    t.equal((await ask('POST /v2/entities', { ...lamp, cost: { value: 5 } })).status, 201)
    t.equal((await ask('POST /v2/entities', { ...lamp, id: 'M1', type: 'Meter' })).status, 201)
    const client = await StreamSocketClient.open(t, url, { headers })
    const has = (length: number) => client.until(`${length} messages`, ({ messages }) => messages.length >= length)
    client.send({ op: 'watch', id: 'costly', q: 'cost>5' })
    await has(1)
    t.match(client.messages[0], { op: 'error', id: 'costly', error: 'Forbidden' })
    client.send({ op: 'watch', id: 'a', options: ['snapshot', 'leave', 'keyValues'], q: 'power<5' })
    await client.until('the snapshot', ({ messages }) => messages.some(({ end }) => end === true))
    const events = () => client.messages.filter(({ op, event }) => op === 'event' && event !== 'bookmark')
    t.strictSame(
      events().map(({ data, count }) => data ?? count),
      [[{ id: 'L1', type: 'Lamp', power: 1 }], 1],
    )
    const change = async (values: JsonObject) =>
      t.equal((await ask('PATCH /v2/entities/L1/attrs?options=keyValues', values)).status, 204)
    await change({ cost: 6 })
    await change({ cost: 7, power: 2 })
    await change({ cost: 8, power: 2 })
    await change({ cost: 9, power: 9 })
    t.equal((await ask('DELETE /v2/entities/M1')).status, 204)
    await client.until('the leave', () => events().some(({ event }) => event === 'entityLeave'))
    t.strictSame(
      events()
        .slice(2)
        .map(({ event, data, changed }) => [event, data?.[0]?.power, changed]),
      [
        ['entityChange', 2, ['power']],
        ['entityUpdate', 2, []],
        ['entityLeave', undefined, undefined],
      ],
    )
    t.notMatch(JSON.stringify(client.messages.slice(1)), /cost|M1/)
    scene.write({ root: everything, lamps: [{ ...lamps, attributes: ['power'] }] })
    node.running?.lookAtFiles()
    await client.until('the end', ({ ended }) => ended !== undefined)
  })

t.test('a WebSocket goes on with a new token', async t => {
  const key = await signingKey('ES256', 'k1')
  const provider = await IdentityProvider.start(t, [key])
  const issuer = provider.entry({ roles: { claim: 'roles', map: { people: 'city', readers: 'reader' } } })
  const scene = new AccessScene(t, rules, { issuers: [issuer] })
  const node = await startLocalNode(t, { accessFile: scene.path })
  const tokenOf = (roles: string[], endsS: number) => {
    const claims = provider.claims(Date.now(), 'ada')
    return signed(key, { ...claims, roles, exp: Math.floor(Date.now() / 1000) + endsS })
  }
  // Tokens are accepted for some time after their end.
  const [first, second] = [await tokenOf(['people'], 2 - tokenLeewayS), await tokenOf(['people'], 600)]
  const url = `ws://127.0.0.1:${node.port}/v2/stream`
  const open = () =>
    StreamSocketClient.open(t, url, { headers: { Authorization: `Bearer ${first}`, 'Ctx-Service': 'city' } })
  const [renewed, over] = [await open(), await open()]
  renewed.send({ op: 'watch', id: 'w' })
  await renewed.until('the watch', ({ messages }) => messages.length === 1)
  const powerless = await tokenOf(['readers'], 600)
  renewed.send({ op: 'token', token: 'nonsense' }, { op: 'token', token: powerless }, { op: 'token', token: second })
  const update = { op: 'update', ref: 1, body: { actionType: 'append', entities: [lamp] } }
  renewed.send(update)
  await renewed.until('the update', ({ messages }) => messages.some(({ op }) => op === 'done'))
  const answers = renewed.messages.filter(({ event }) => event === undefined)
  t.match(answers, [
    { op: 'watching' },
    { op: 'error', error: 'Unauthorized' },
    { op: 'error', error: 'Forbidden' },
    { op: 'ok' },
    { op: 'done', status: 204 },
  ])
  await over.until('the end', ({ ended }) => ended !== undefined)
  t.equal(renewed.ended, undefined)
  renewed.send({ op: 'ping' })
  await renewed.until('a pong', ({ messages }) => messages.some(({ op }) => op === 'pong'))
})

t.test('the answer of a provider goes through the grant of the reader', async t => {
  const lamps = { actions: ['read'], tenants: ['city'], types: ['Lamp'], attributes: ['*', '!cost'] }
  const scene = new AccessScene(t, { root: everything, lamps: [lamps] })
  const node = await startLocalNode(t, { accessFile: scene.path })
  const ask = (line: string, name: string, body?: unknown) => node.json(line, body, [...scene.as(name), ...inCity])
  const attributes = { power: { value: 3, type: 'Number' }, cost: { value: 7, type: 'Number' } }
  const provider = await httpReceiver(t, (_request, response) => {
    const body = [
      { id: 'M1', type: 'Meter', ...attributes },
      { id: 'P1', type: 'Lamp', ...attributes },
      { id: 'L1', type: 'Lamp', ...attributes },
    ]
    response.writeHead(200, { 'Content-Type': 'application/json', 'Fiware-Total-Count': '3' })
    response.end(JSON.stringify(body))
  })
  t.equal((await ask('POST /v2/entities', 'root', { id: 'L1', type: 'Lamp', cost: { value: 1 } })).status, 201)
  const dataProvided = { entities: [{ idPattern: '.*' }] }
  const registration = { dataProvided, provider: { http: { url: provider.url } } }
  t.equal((await ask('POST /v2/registrations', 'root', registration)).status, 201)
  const list = '/v2/entities?options=keyValues,count'
  const seen = await ask(`GET ${list}`, 'lamps')
  t.strictSame(seen.json, [
    { id: 'L1', type: 'Lamp', power: 3 },
    { id: 'P1', type: 'Lamp', power: 3 },
  ])
  t.notMatch(seen.text, /cost|Meter/)
  t.match((await ask(`GET ${list}`, 'root')).text, /Meter/)
  t.strictSame((await ask(`GET ${list}&offset=1&limit=1`, 'lamps')).json, [{ id: 'P1', type: 'Lamp', power: 3 }])
  const one = (id: string, name: string) => ask(`GET /v2/entities/${id}?options=keyValues`, name)
  t.strictSame((await one('P1', 'lamps')).json, { id: 'P1', type: 'Lamp', power: 3 })
  t.equal((await one('M1', 'lamps')).status, 404)
  t.equal((await one('M1', 'root')).status, 200)
  t.equal((await ask('GET /v2/entities/P1/attrs/cost', 'lamps')).status, 404)
})

const withKey = (node: LocalNode, key: string) => node.ask('GET /v2/entities', [`X-Auth-Token: ${key}`, ...inCity])

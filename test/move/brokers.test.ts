// Running brokers as sources and as targets: our own, and one that is difficult on purpose.

import { writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/clock.js'
import { openSockets } from '../../src/deliver/sockets/sockets.js'
import { placementDefault } from '../../src/domain/scope.js'
import { BrokerClient } from '../../src/move/broker-client.js'
import { BrokerSink } from '../../src/move/broker-sink.js'
import { BrokerSource } from '../../src/move/broker-source.js'
import { openStores } from '../../src/move/directory.js'
import { DirectorySink } from '../../src/move/directory-sink.js'
import { openFileSink, openFileSource } from '../../src/move/file.js'
import type { SourcePage } from '../../src/move/moved.js'
import { openDataDirectory } from '../../src/storage/data-directory.js'
import { tempDir } from '../support/broker-process.js'
import { wrongIn } from '../support/divided.js'
import { type LocalNode, startLocalNode } from '../support/local-node.js'
import { exportWith, type Moved, type MoveWishes, moveAll } from '../support/moving.js'

t.setTimeout(400_000)

const openSocket = openSockets({ insecure: false, caFile: undefined })
/** So small that a too large answer is quickly made. */
const answerBytesMax = 8 * 1024 * 1024

const clientOf = (port: number, token?: string): BrokerClient =>
  new BrokerClient(`http://127.0.0.1:${port}`, { token, openSocket, retryPauseMs: 1, answerBytesMax })

interface Wishes extends MoveWishes {
  readonly token?: string
  readonly lines?: string[]
}

function sourceOf(port: number, { tenants = [''], paths, token, lines = [] }: Wishes = {}): Promise<BrokerSource> {
  return BrokerSource.open(clientOf(port, token), { tenants, paths, warn: line => lines.push(line) })
}

/** Imports from a broker into a new data directory; returns its path. */
async function taken(t: Test, port: number, wishes: Wishes = {}): Promise<{ path: string; moved: Moved }> {
  const path = tempDir(t)
  const directory = openDataDirectory(path, { ...placementDefault, workers: 1 }, () => 'an-id')
  const moved = await moveAll(
    await sourceOf(port, wishes),
    async from =>
      new DirectorySink(
        await openStores(directory, 'os', () => {}),
        { clock: systemClock, overwrites: false, warn: () => {} },
        from,
      ),
    wishes,
  )
  return { path, moved }
}

const scoped = (tenant: string, path = ''): string[] => [
  ...(tenant === '' ? [] : [`Ctx-Service: ${tenant}`]),
  ...(path === '' ? [] : [`Ctx-ServicePath: ${path}`]),
]

const point = (x: number, y: number) => ({ type: 'geo:json', value: { type: 'Point', coordinates: [x, y] } })

/** A node with entities and documents of all sorts. */
async function furnished(t: Test): Promise<LocalNode> {
  const node = await startLocalNode(t, { forwarding: { requestsMax: 0 }, expiryIntervalMs: 100_000 })
  const post = async (path: string, body: object, headers: string[]): Promise<void> => {
    const { status, text } = await node.json(`POST /v2/${path}`, body, headers)
    if (status !== 201) throw new Error(`${status} ${text}`)
  }
  for (let n = 0; n < 60; n++)
    await post(
      'entities',
      {
        id: `E${(n * 37) % 60}`,
        type: n % 3 === 0 ? 'Hall' : 'Room',
        temp: { type: 'Number', value: n * 1.5, metadata: { acc: { type: 'Number', value: n } } },
        name: { type: 'Text', value: `n${n}` },
        loc: point(n % 10, 1),
        ...(n % 7 === 0 && {
          dateExpires: { type: 'DateTime', value: `2999-01-01T00:00:00.${String(n).padStart(3, '0')}Z` },
        }),
        ...(n === 5 && { dateCreated: { type: 'Text', value: 'mine' } }),
      },
      scoped(n % 2 === 0 ? '' : 'city', ['/', '/a', '/a/b'][n % 3]),
    )
  await node.json('PATCH /v2/entities/E0/attrs', { temp: { type: 'Number', value: 99 } }, scoped('', '/'))
  for (const [n, path] of ['', '/a', '/a/#', '/#', '/a/b'].entries())
    await post(
      'subscriptions',
      {
        description: `of ${path}`,
        subject: { entities: [{ idPattern: '.*' }], condition: { attrs: ['none'], expression: { q: `temp>${n}` } } },
        notification: { http: { url: 'http://127.0.0.1:9' }, attrs: ['temp'] },
        throttling: n,
      },
      scoped('city', path),
    )
  await post(
    'subscriptions',
    {
      description: 'mqtt',
      subject: { entities: [{ id: 'E1' }] },
      notification: { mqtt: { url: 'mqtt://h', topic: 't', user: 'u', passwd: 'p' } },
    },
    [],
  )
  for (const path of ['/', '/a/b'])
    await post(
      'registrations',
      {
        description: `of ${path}`,
        dataProvided: { entities: [{ id: 'far', type: 'Room' }], attrs: ['x'] },
        provider: { http: { url: 'http://127.0.0.1:9/x' } },
      },
      scoped('', path),
    )
  return node
}

const asks: readonly (readonly [line: string, ...headers: string[]])[] = ['', 'city'].flatMap(tenant => [
  ['GET /v2/entities?limit=1000&options=count', ...scoped(tenant)],
  ['GET /v2/entities?limit=1000&attrs=*,dateExpires,servicePath', ...scoped(tenant)],
  ['GET /v2/entities?limit=7&offset=3&orderBy=!temp', ...scoped(tenant, '/a/#')],
  ['GET /v2/entities?q=temp>20;name~=n1&limit=1000', ...scoped(tenant)],
  ['GET /v2/entities?q=dateExpires&options=keyValues', ...scoped(tenant)],
  ['GET /v2/entities?georel=near;maxDistance:300000&geometry=point&coords=1,3&options=keyValues', ...scoped(tenant)],
  ['GET /v2/types?options=count', ...scoped(tenant)],
])
const timedAsks = ['', 'city'].flatMap(tenant => [
  [
    'GET /v2/entities?limit=1000&attrs=*,dateCreated,dateModified&metadata=*,dateCreated,dateModified',
    ...scoped(tenant),
  ],
  ['GET /v2/subscriptions?options=count', ...scoped(tenant)],
  ['GET /v2/subscriptions?options=count', ...scoped(tenant, '/a/#')],
  ['GET /v2/registrations?options=count', ...scoped(tenant)],
  ['GET /v2/registrations?options=count', ...scoped(tenant, '/a/b')],
]) as [string, ...string[]][]

async function answersOf(node: LocalNode, lines: readonly (readonly [string, ...string[]])[]) {
  const answers: unknown[] = []
  for (const [line, ...headers] of lines) {
    const { status, json, headers: answered } = await node.ask(line, headers)
    answers.push({ line, status, json, total: answered['ctx-total-count'] ?? answered['fiware-total-count'] })
  }
  return answers
}

t.test('a data directory that was filled over HTTP answers as its source did', async t => {
  const node = await furnished(t)
  const lines: string[] = []
  const { path, moved } = await taken(t, node.port, { tenants: ['', 'city'], lines: lines })
  t.match(moved.tally, { entity: { written: 60 }, subscription: { written: 6 }, registration: { written: 2 } })
  t.match(lines, [/masks its passwords or tokens/])
  t.strictSame(await wrongIn(path), [])
  const copy = await startLocalNode(t, { directory: path, forwarding: { requestsMax: 0 }, expiryIntervalMs: 100_000 })
  t.strictSame(await answersOf(copy, asks), await answersOf(node, asks))
  t.strictSame(await answersOf(copy, timedAsks), await answersOf(node, timedAsks))
})

t.test('an export over HTTP and the import of its file are no different', async t => {
  const node = await furnished(t)
  const file = join(tempDir(t), 'out.ndjson')
  await moveAll(await sourceOf(node.port, { tenants: ['', 'city'] }), from => openFileSink(file, 'a test', from))
  const path = tempDir(t)
  const directory = openDataDirectory(path, { ...placementDefault, workers: 1 }, () => 'an-id')
  await moveAll(
    await openFileSource(file),
    async from =>
      new DirectorySink(
        await openStores(directory, 'os', () => {}),
        { clock: systemClock, overwrites: false, warn: () => {} },
        from,
      ),
  )
  const copy = await startLocalNode(t, { directory: path, forwarding: { requestsMax: 0 }, expiryIntervalMs: 100_000 })
  t.strictSame(await answersOf(copy, asks), await answersOf(node, asks))
  t.strictSame(await answersOf(copy, timedAsks), await answersOf(node, timedAsks))
})

t.test('a running broker that was filled answers as the source did, but for times', async t => {
  const node = await furnished(t)
  const target = await startLocalNode(t, { forwarding: { requestsMax: 0 }, expiryIntervalMs: 100_000 })
  const source = await sourceOf(node.port, { tenants: ['', 'city'] })
  const { tally } = await moveAll(source, async () => new BrokerSink(clientOf(target.port), false))
  t.match(tally, { entity: { written: 60 }, subscription: { written: 6 }, registration: { written: 2 } })
  t.strictSame(await answersOf(target, asks), await answersOf(node, asks))
  const { json } = await target.ask('GET /v2/subscriptions', scoped('city', '/a/#'))
  t.match(json, [{ description: 'of /a/#', throttling: 2 }])
})

t.test('an entity of a running broker stays, or is replaced as a whole', async t => {
  const node = await startLocalNode(t)
  const target = await startLocalNode(t)
  const made = (value: number, name: string) => ({
    id: 'E',
    type: 'T',
    [name]: { type: 'Number', value, metadata: {} },
  })
  await node.json('POST /v2/entities', made(1, 'a'))
  await target.json('POST /v2/entities', made(2, 'b'))
  const kept = await moveAll(await sourceOf(node.port), async () => new BrokerSink(clientOf(target.port), false))
  t.match(kept.tally.entity, { written: 0, kept: 1 })
  t.strictSame((await target.ask('GET /v2/entities/E')).json, made(2, 'b'))
  const replaced = await moveAll(await sourceOf(node.port), async () => new BrokerSink(clientOf(target.port), true))
  t.match(replaced.tally.entity, { written: 0, replaced: 1 })
  t.strictSame((await target.ask('GET /v2/entities/E')).json, made(1, 'a'))
})

t.test('entities that a running broker has already are compared with the imported ones', async t => {
  const node = await furnished(t)
  const target = await startLocalNode(t, { forwarding: { requestsMax: 0 }, expiryIntervalMs: 100_000 })
  const file = join(tempDir(t), 'out.ndjson')
  const precise = { type: 'Number', value: 0.1234567890123, metadata: { m: { type: 'Number', value: 1 / 3 } } }
  await node.json('POST /v2/entities', { id: 'Precise', type: 'T', precise })
  const feature = { type: 'Feature', properties: {}, geometry: { type: 'Point', coordinates: [1, 2] } }
  await node.json('POST /v2/entities', { id: 'Feature', type: 'T', loc: { type: 'geo:json', value: feature } })
  await moveAll(await sourceOf(node.port, { tenants: ['', 'city'] }), from => openFileSink(file, 'a test', from))
  const into = async () => moveAll(await openFileSource(file), async () => new BrokerSink(clientOf(target.port), false))
  t.match((await into()).tally.entity, { written: 62 })
  t.match((await into()).tally.entity, { same: 62, kept: 0 })
  await target.json('PATCH /v2/entities/E0/attrs', { temp: { type: 'Number', value: 98 } }, scoped('', '/'))
  await target.json('POST /v2/entities/E2/attrs', { more: { value: 1 } }, scoped('', '/a/b'))
  t.match((await into()).tally.entity, { same: 60, kept: 2 })
})

// Documents of a running broker

const idOf = (n: number): string => n.toString(16).padStart(24, '0')

/** The line of a subscription in an export. */
const subscriptionLine = (n: number, more: object = {}, servicePath = '/#', tenant = '') => ({
  subscription: {
    id: idOf(n),
    subject: { entities: [{ idPattern: '.*' }], condition: { attrs: ['a'] } },
    notification: {
      httpCustom: {
        url: 'http://127.0.0.1:9/',
        headers: { b: '1', Authorization: 'secret', a: '2' },
        json: { z: 0.1234567890123 },
      },
    },
    ...more,
  },
  tenant,
  servicePath,
})
const registrationLine = (n: number, servicePath = '/', more: object = {}) => ({
  registration: {
    id: idOf(n),
    dataProvided: { entities: [{ id: 'far' }], attrs: ['x'] },
    provider: { http: { url: 'http://127.0.0.1:9/x' } },
    ...more,
  },
  tenant: '',
  servicePath,
})

function fileWith(t: Test, ...lines: object[]): string {
  const file = join(tempDir(t), 'in.ndjson')
  writeFileSync(file, exportWith(lines, { entities: 0 }))
  return file
}

const intoBroker = async (file: string, port: number, wishes: MoveWishes = {}): Promise<Moved> =>
  moveAll(
    await openFileSource(file),
    async from => new BrokerSink(clientOf(port), wishes.overwrites ?? false, from),
    wishes,
  )

const documentsOf = async (node: LocalNode, list: string, ...headers: string[]): Promise<Record<string, unknown>[]> =>
  (await node.ask(`GET /v2/${list}?limit=1000`, headers)).json as Record<string, unknown>[]

t.test('subscriptions and registrations that are imported twice are there once', async t => {
  const node = await furnished(t)
  const target = await startLocalNode(t, { forwarding: { requestsMax: 0 } })
  const file = join(tempDir(t), 'out.ndjson')
  await moveAll(await sourceOf(node.port, { tenants: ['', 'city'] }), from => openFileSink(file, 'a test', from))
  const contents = async () => {
    const { subscription, registration } = (await intoBroker(file, target.port)).tally
    return { subscription, registration }
  }
  t.match(await contents(), { subscription: { written: 6 }, registration: { written: 2 } })
  const there = await answersOf(target, timedAsks.slice(1))
  t.match(await contents(), {
    subscription: { written: 0, same: 6, kept: 0 },
    registration: { written: 0, same: 2, kept: 0 },
  })
  const fromBroker = await moveAll(
    await sourceOf(node.port, { tenants: ['', 'city'] }),
    async () => new BrokerSink(clientOf(target.port), false),
  )
  t.match(fromBroker.tally, { subscription: { same: 6 }, registration: { same: 2 } })
  t.strictSame(await answersOf(target, timedAsks.slice(1)), there)
})

t.test('documents that differ in their path, tenant or number alone are different ones', async t => {
  const target = await startLocalNode(t)
  const lines = [
    registrationLine(1),
    registrationLine(2, '/a'),
    ...['/#', '/a', '/a/#', '/'].map((path, n) => subscriptionLine(n, {}, path)),
    subscriptionLine(7, {}, '/#', 'city'),
    subscriptionLine(8, {}, '/a'),
  ]
  const file = fileWith(t, ...lines)
  t.match((await intoBroker(file, target.port)).tally, { subscription: { written: 6 }, registration: { written: 2 } })
  t.match((await intoBroker(file, target.port)).tally, { subscription: { same: 6 }, registration: { same: 2 } })
  const [first] = await documentsOf(target, 'subscriptions')
  t.equal((await target.ask(`DELETE /v2/subscriptions/${first!.id}`)).status, 204)
  // Subscriptions of other paths do not replace the one that watches everything.
  t.match((await intoBroker(file, target.port)).tally.subscription, { written: 1, same: 5 })
  t.equal((await documentsOf(target, 'subscriptions')).length, 5)
})

t.test('a subscription that another broker shows in its own words is compared all the same', async t => {
  const { subscription } = subscriptionLine(1)
  const { json, url } = subscription.notification.httpCustom
  const shown = {
    id: idOf(77),
    status: 'failed',
    subject: { entities: [{ idPattern: '.*' }], condition: { attrs: ['a'], notifyOnMetadataChange: true } },
    notification: {
      timesSent: -1,
      lastFailure: 'once',
      httpCustom: { headers: { Authorization: 'secret', a: '2', b: '1' }, json: { z: Number(json.z.toFixed(9)) }, url },
      attrs: [],
      attrsFormat: 'normalized',
      covered: false,
      onlyChangedAttrs: false,
    },
  }
  const unknown = { ...shown, id: idOf(78), notification: { carrierPigeon: true } }
  const posts: unknown[] = []
  const port = await fake(t, ({ method, url }) => {
    if (method === 'GET')
      return [200, url!.startsWith('/v2/subscriptions') && offsetIn(url) === 0 ? [unknown, shown] : []]
    posts.push(url)
    return [201, '']
  })
  // This broker does not distinguish paths, so the path of the file counts.
  t.match((await intoBroker(fileWith(t, subscriptionLine(1, {}, '/a')), port)).tally.subscription, { same: 1 })
  t.match((await intoBroker(fileWith(t, subscriptionLine(78, {}, '/a')), port)).tally.subscription, { same: 1 })
  t.strictSame(posts, [])
})

t.test(
  'a document with the id of one that is there differs from it, and replaces it when that is requested',
  async t => {
    const node = await startLocalNode(t)
    await node.json(
      'POST /v2/subscriptions',
      { ...subscriptionLine(1).subscription, throttling: 5, description: 'x' },
      scoped('', '/a'),
    )
    await node.json('POST /v2/registrations', { ...registrationLine(1).registration, description: 'x' })
    const [{ id: subscription }] = (await documentsOf(node, 'subscriptions')) as [{ id: string }]
    const [{ id: registration }] = (await documentsOf(node, 'registrations')) as [{ id: string }]
    const file = fileWith(
      t,
      registrationLine(0, '/', { id: registration }),
      subscriptionLine(0, { id: subscription, status: 'inactive' }, '/b'),
    )
    const kept = await intoBroker(file, node.port)
    t.match(kept.tally, { subscription: { written: 0, kept: 1 }, registration: { written: 0, kept: 1 } })
    const replaced = await intoBroker(file, node.port, { overwrites: true })
    t.match(replaced.tally, { subscription: { replaced: 1 }, registration: { replaced: 1 } })
    const [after, ...others] = await documentsOf(node, 'subscriptions', ...scoped('', '/b'))
    t.match(after, { id: subscription, status: 'inactive' })
    t.strictSame([after!.throttling, after!.description, others.length], [undefined, undefined, 0])
    t.match(await documentsOf(node, 'registrations'), [{ id: registration, description: undefined }])
    t.match((await intoBroker(file, node.port)).tally, { subscription: { same: 1 }, registration: { same: 1 } })
  },
)

t.test('a path that NGSIv2 does not allow is reported, and nothing is changed', async t => {
  const node = await startLocalNode(t)
  await node.json(
    'POST /v2/subscriptions',
    { ...subscriptionLine(1).subscription, description: 'x' },
    scoped('', '/a/#'),
  )
  const [{ id }] = (await documentsOf(node, 'subscriptions')) as [{ id: string }]
  const file = fileWith(t, subscriptionLine(0, { id }, '/a/#'))
  await t.rejects(intoBroker(file, node.port, { overwrites: true }), {
    message: /line 2: subscription [0-9a-f]{24} differs, and NGSIv2 cannot change it to path \/a\/#: delete it/,
  })
  t.match(await documentsOf(node, 'subscriptions', ...scoped('', '/a/#')), [{ id, description: 'x' }])
})

t.test('a different status is reported; one that has come by itself does not differ', async t => {
  const node = await startLocalNode(t)
  const file = fileWith(t, subscriptionLine(1), subscriptionLine(2, { description: 'once', status: 'oneshot' }))
  await intoBroker(file, node.port)
  const ids = (await documentsOf(node, 'subscriptions')).map(({ id }) => id)
  for (const id of ids) await node.json(`PATCH /v2/subscriptions/${id}`, { status: 'inactive' })
  t.match((await intoBroker(file, node.port)).tally.subscription, { written: 0, same: 1, kept: 1 })
  t.match((await intoBroker(file, node.port, { overwrites: true })).tally.subscription, { replaced: 2 })
  // Secrets were sent again, because they cannot be compared. The one-shot did not begin anew.
  t.match(await documentsOf(node, 'subscriptions'), [{ status: 'active' }, { status: 'inactive' }])
})

t.test('after an interruption a subscription is not taken for its equal that comes behind it', async t => {
  const target = await startLocalNode(t)
  const file = fileWith(t, subscriptionLine(1), subscriptionLine(2), subscriptionLine(3, { status: 'bad' }))
  const statePath = join(tempDir(t), 'state')
  const stop = new AbortController()
  let documents = 0
  const stopping: MoveWishes = { statePath, signal: stop.signal, onProgress: () => ++documents === 1 && stop.abort() }
  await t.rejects(intoBroker(file, target.port, stopping), { message: /the same command goes on/ })
  t.equal((await documentsOf(target, 'subscriptions')).length, 1)
  await t.rejects(intoBroker(file, target.port, { statePath }), { message: /line 4: / })
  t.equal((await documentsOf(target, 'subscriptions')).length, 2)
})

t.test('a broker that refuses a page for its size gets requests for smaller ones', async t => {
  const node = await startLocalNode(t, { answers: { answerBytesMax: 200_000 } })
  const target = await startLocalNode(t)
  const long = { type: 'Text', value: 'x'.repeat(50_000), metadata: {} }
  for (let n = 0; n < 20; n++) await node.json('POST /v2/entities', { id: `E${n}`, type: 'T', long })
  const moved = await moveAll(await sourceOf(node.port), async () => new BrokerSink(clientOf(target.port), false))
  t.match(moved.tally.entity, { written: 20 })
})

t.test('an entity that a broker refuses is found in its batch', async t => {
  const target = await startLocalNode(t)
  const source = await furnished(t)
  const all: SourcePage[] = []
  const from = await sourceOf(source.port)
  for await (const page of from.pages(undefined, 0)) all.push(page)
  await from.close()
  const items = all[0]!.found.map(({ item }) => item!)
  const bad = {
    ...items[7]!,
    entity: { ...(items[7] as { entity: object }).entity, id: 'not legal' },
  } as (typeof items)[number]
  const sink = new BrokerSink(clientOf(target.port), false)
  const placed = await sink.put([...items.slice(0, 7), bad, ...items.slice(8)], false)
  await sink.close()
  t.match(placed[7], { fault: /answered 400: / })
  t.equal(placed.filter(one => 'outcome' in one && one.outcome === 'written').length, items.length - 1)
})

// A broker that is difficult on purpose

type Answer = readonly [status: number, body: unknown, headers?: Record<string, string>]

async function fake(t: Test, answer: (request: IncomingMessage, body: string) => Answer | 'cut'): Promise<number> {
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text
    })
    request.on('end', () => {
      const answered = answer(request, body)
      if (answered === 'cut') return request.socket.destroy()
      const [status, json, headers] = answered
      response.writeHead(status, { 'content-type': 'application/json', ...headers })
      response.end(JSON.stringify(json))
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

const offsetIn = (url = ''): number => Number(new URL(url, 'http://h').searchParams.get('offset'))

const text = (value: unknown, type = 'Text') => ({ type, value, metadata: {} })
const builtins = (path: string) => ({
  servicePath: text(path),
  dateCreated: text('2020-01-01T00:00:00.000Z', 'DateTime'),
  dateModified: text('2021-01-01T00:00:00.000Z', 'DateTime'),
})

/** Answers as a broker with these entities and nothing else; `expiring`: those whose `dateExpires` ends them. */
const brokerOf =
  (entities: readonly { readonly id: string }[], expiring: readonly string[] = []) =>
  ({ url, method }: IncomingMessage, body: string): Answer => {
    if (method === 'POST') {
      const asked = JSON.parse(body)
      const ids = asked.entities.map(({ id }: { id: string }) => id)
      const found = entities.filter(({ id }) => ids.includes(id) && (!asked.expression || expiring.includes(id)))
      // This broker hides the attribute by its name alone.
      return [
        200,
        found.map(entity => Object.fromEntries(Object.entries(entity).filter(([name]) => name !== 'dateExpires'))),
      ]
    }
    const isList = url?.startsWith('/v2/entities')
    const list = isList && offsetIn(url) === 0 ? entities : []
    return [200, list, { 'Fiware-Total-Count': String(isList ? entities.length : 0) }]
  }

t.test('a broker with other header names is understood, and gets the tenant and the token in both', async t => {
  const seen: IncomingMessage['headers'][] = []
  const entities = [{ id: 'E', type: 'T', a: text(1, 'Number'), ...builtins('/x') }]
  const port = await fake(t, (request, body) => {
    seen.push(request.headers)
    return brokerOf(entities)(request, body)
  })
  const source = await sourceOf(port, { tenants: ['city'], token: 'secret' })
  t.equal(source.total, 1)
  const pages: SourcePage[] = []
  for await (const page of source.pages(undefined, 0)) pages.push(page)
  await source.close()
  t.match(pages, [
    {
      found: [
        {
          item: {
            tenant: 'city',
            path: '/x',
            entity: { id: 'E', modifiedMs: Date.UTC(2021, 0), attributes: new Map([['a', { value: 1 }]]) },
          },
        },
      ],
    },
  ])
  t.match(seen[0], {
    'fiware-service': 'city',
    'ctx-service': 'city',
    'fiware-servicepath': '/#',
    'ctx-servicepath': '/#',
    'x-auth-token': 'secret',
    authorization: 'Bearer secret',
  })
})

t.test('a dateExpires that does not end its entity there does not end it here', async t => {
  const date = text('2015-01-01T00:00:00.000Z', 'DateTime')
  const entities = ['plain', 'transient'].map(id => ({ id, type: 'T', dateExpires: date, ...builtins('/') }))
  const port = await fake(t, brokerOf(entities, ['transient']))
  const { path } = await taken(t, port)
  const node = await startLocalNode(t, { directory: path, expiryIntervalMs: 10 })
  const left = async () => (await node.ask('GET /v2/entities?options=keyValues')).json as { id: string }[]
  let entitiesLeft = await left()
  while (entitiesLeft.length > 1) entitiesLeft = await left()
  t.strictSame(entitiesLeft, [{ id: 'plain', type: 'T', dateExpires: '2015-01-01T00:00:00.000Z' }])
  const { status } = await node.json('PUT /v2/entities/plain/attrs/dateExpires', {
    type: 'DateTime',
    value: date.value,
  })
  t.equal(status, 204)
  while (entitiesLeft.length > 0) entitiesLeft = await left()
  t.pass('its first update has made it one that ends the entity')
})

t.test('a broker that does not show service paths must be asked for each of them', async t => {
  const entities = [{ id: 'E', type: 'T' }]
  const port = await fake(t, brokerOf(entities))
  const { moved } = await taken(t, port, { skipsBad: true })
  t.match(moved.bad, [
    /^entity 1 of tenant "": the broker does not show the service path of "E": name the paths one by one with -path$/,
  ])
  const named = await taken(t, port, { paths: ['/x'] })
  t.match(named.moved.tally.entity, { written: 1, bad: 0 })
})

t.test('a failure that passes is tried again, three times, and then reported with its page', async t => {
  let requests = 0
  const flaky = (failuresPerRequest: number) => {
    const failures = new Map<string, number>()
    return (request: IncomingMessage, body: string): Answer | 'cut' => {
      requests++
      const key = `${request.url} ${body}`
      const count = failures.get(key) ?? 0
      failures.set(key, count + 1)
      if (count < failuresPerRequest) return count === 0 ? 'cut' : [count === 1 ? 503 : 500, {}]
      return brokerOf([{ id: 'E', type: 'T', ...builtins('/') } as never])(request, body)
    }
  }
  const { moved } = await taken(t, await fake(t, flaky(3)))
  t.match(moved.tally.entity, { written: 1 })
  requests = 0
  const port = await fake(t, flaky(4))
  await t.rejects(sourceOf(port), {
    name: 'MoveError',
    message: `http://127.0.0.1:${port}, the number of entities of tenant "": answered 500`,
  })
  t.equal(requests, 4)
})

t.test('a refusal of a broker is reported at once, in its words', async t => {
  const port = await fake(t, ({ url }, body) =>
    url?.includes('offset=')
      ? [400, { error: 'BadRequest', description: 'no such thing' }]
      : brokerOf([])({ url } as IncomingMessage, body),
  )
  const source = await sourceOf(port)
  const read = async () => {
    for await (const _ of source.pages(undefined, 0)) t.fail('there is no page')
  }
  await t.rejects(read(), {
    message: `http://127.0.0.1:${port}, entities from 1 on of tenant "": answered 400: no such thing`,
  })
  await source.close()
})

t.test('an answer that is too large is requested again in smaller pages', async t => {
  const large = 'x'.repeat(3_750_000)
  const limits: number[] = []
  const port = await fake(t, ({ url = '', method }) => {
    const parameters = new URL(url, 'http://h').searchParams
    if (method !== 'GET' || !url.startsWith('/v2/entities') || !parameters.has('offset')) return [200, []]
    const limit = Number(parameters.get('limit'))
    const offset = offsetIn(url)
    limits.push(limit)
    const count = Math.max(Math.min(limit, 4 - offset), 0)
    return [
      200,
      Array.from({ length: count }, (_, n) => ({ id: `E${offset + n}`, type: 'T', a: text(large), ...builtins('/') })),
    ]
  })
  const source = await sourceOf(port)
  const ids: string[] = []
  for await (const { found } of source.pages(undefined, 0))
    for (const { item } of found) if (item?.kind === 'entity') ids.push(item.entity.id)
  await source.close()
  t.strictSame(ids, ['E0', 'E1', 'E2', 'E3'])
  t.ok(limits.includes(2) && limits[0] === 1000, `${limits}`)
})

t.test('reading a broker goes on from any page', async t => {
  const node = await furnished(t)
  const source = await sourceOf(node.port, { tenants: ['', 'city'] })
  const all: SourcePage[] = []
  for await (const page of source.pages(undefined, 0)) all.push(page)
  for (const [index, { after }] of all.entries()) {
    const rest: SourcePage[] = []
    for await (const page of source.pages(JSON.parse(JSON.stringify(after)), 0)) rest.push(page)
    t.strictSame(rest, all.slice(index + 1), `after page ${index + 1} of ${all.length}`)
  }
  await source.close()
})

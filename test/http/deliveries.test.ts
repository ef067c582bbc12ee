// Our own additions to subscriptions, over HTTP: explanations, deliveries and dead letters. The text of each condition
// is tested in domain/explanation.test, the stored records in shard/notify/deliveries.test.
//
// The node's shards are real. Only the repetition of a notification gets a made-up answer, since nothing here sends.

import t, { type Test } from 'tap'
import type { DeliveryRecord, Shards } from '../../src/messages/messages.js'
import type { LocalShards } from '../../src/shard/shards.js'
import {
  type Answer,
  httpServers,
  type LocalNode,
  type LocalNodeOptions,
  startLocalNode,
} from '../support/local-node.js'
import { startLocalWorkers } from '../support/local-workers.js'

const path = '/v2/subscriptions'
const nobody = `${path}/65f0c2a1b4d3e2f1a0c9b8d7`
const atMs = Date.UTC(2026, 0, 2, 3, 4, 5, 678)

const body = (subject: object = {}, more: object = {}) => ({
  subject: { entities: [{ idPattern: '^R', type: 'Room' }], ...subject },
  notification: { http: { url: 'http://receiver.example/notify' } },
  ...more,
})

async function create(node: LocalNode, wanted: object, headers: readonly string[] = []): Promise<string> {
  const { status, headers: replyHeaders, text } = await node.json(`POST ${path}`, wanted, headers)
  if (status !== 201) throw new Error(`${status} ${text}`)
  return replyHeaders.location!.slice(path.length + 1)
}

async function room(node: LocalNode, id: string, temperature: number, headers: readonly string[] = []): Promise<void> {
  const entity = { id, type: 'Room', temperature: { value: temperature } }
  const { status, text } = await node.json('POST /v2/entities', entity, headers)
  if (status !== 201) throw new Error(`${status} ${text}`)
}

const explain = (node: LocalNode, id: string, query: string, headers: readonly string[] = []): Promise<Answer> =>
  node.ask(`GET ${path}/${id}?options=explain&${query}`, headers)

/** The condition that does not hold, in words; undefined: all hold. */
function hindrance({ status, json, text }: Answer): string | undefined {
  if (status !== 200) throw new Error(`${status} ${text}`)
  const { fires, reason, conditions } = json as {
    fires: boolean
    reason: string
    conditions: { condition: string; holds: boolean; text: string }[]
  }
  const broken = conditions.find(({ holds }) => !holds)
  if (fires !== (broken === undefined)) throw new Error(text)
  return broken && broken.text === reason ? `${broken.condition}: ${reason}` : undefined
}

// Explanations

t.test('an explanation names its subject, and whether and why the subscription triggers', async t => {
  const node = await startLocalNode(t)
  await room(node, 'R1', 20)
  const id = await create(node, body())
  t.strictSame((await explain(node, id, 'entity=R1')).json, {
    subscription: id,
    entity: { id: 'R1', type: 'Room', servicePath: '/' },
    fires: true,
    reason: 'an attribute of the entity has to change',
    conditions: [
      { condition: 'alterationTypes', holds: true, text: 'waits for entityCreate, entityChange' },
      { condition: 'servicePath', holds: true, text: '/ is within /#' },
      { condition: 'attrs', holds: true, text: 'an attribute of the entity has to change' },
      { condition: 'entities', holds: true, text: 'R1 of type Room is meant by {"idPattern":"^R","type":"Room"}' },
      { condition: 'status', holds: true, text: 'is active' },
      { condition: 'expires', holds: true, text: 'never expires' },
      { condition: 'throttling', holds: true, text: 'is not throttled' },
    ],
  })
})

t.test('a condition that keeps a subscription from triggering is reported, and also its end', async t => {
  const node = await startLocalNode(t)
  await room(node, 'R1', 20)
  await node.json('POST /v2/entities', { id: 'X1', type: 'Room' })
  const q = { condition: { attrs: ['temperature'], expression: { q: 'temperature>30' } } }
  const cases: readonly (readonly [wanted: object, query: string, message: string | undefined])[] = [
    [body(), 'entity=R1', undefined],
    [body({}, { status: 'inactive' }), 'entity=R1', 'status: is inactive'],
    [body({}, { expires: '2020-01-01T00:00:00Z' }), 'entity=R1', 'expires: expired 2020-01-01T00:00:00.000Z'],
    [body({}, { throttling: 60 }), 'entity=R1', undefined],
    [body(q), 'entity=R1', 'q: temperature>30: is 20'],
    [body(), 'entity=X1&type=Room', 'entities: X1 of type Room is meant by no element of subject.entities'],
  ]
  for (const [wanted, query, error] of cases)
    t.equal(hindrance(await explain(node, await create(node, wanted), query)), error, JSON.stringify(wanted))
  const id = await create(node, body(q))
  t.equal(hindrance(await explain(node, id, 'entity=R1')), 'q: temperature>30: is 20')
  await node.json('PATCH /v2/entities/R1/attrs', { temperature: { value: 31 } })
  t.equal(hindrance(await explain(node, id, 'entity=R1')), undefined, 'the entity is looked at as it is now')
})

t.test('throttling counts from the last notification of any part', async t => {
  let local: LocalShards | undefined
  const between = (shards: Shards) => {
    local = shards as LocalShards
    return shards
  }
  const node = await startLocalNode(t, { surroundings: { wrapShards: between } })
  await room(node, 'R1', 20)
  const id = await create(node, body({}, { throttling: 3600 }))
  const held = local!.parts.subscriptions.of('')!
  held.note(id, { ...held.progressOf(id), timesSent: 1, lastNotificationMs: Date.now() })
  t.match(
    hindrance(await explain(node, id, 'entity=R1')),
    /^throttling: at most once in 3600 s: the last notification was 20/,
  )
})

t.test('the entity is found as others are: under the paths of the header, or all', async t => {
  const node = await startLocalNode(t)
  const id = await create(node, body(), ['Ctx-ServicePath: /a/#'])
  await room(node, 'R1', 1, ['Ctx-ServicePath: /a/b'])
  await room(node, 'R2', 1, ['Ctx-ServicePath: /a'])
  await room(node, 'R2', 1, ['Ctx-ServicePath: /c'])
  t.match(await explain(node, id, 'entity=R1'), { status: 200, json: { entity: { servicePath: '/a/b' }, fires: true } })
  t.match(await explain(node, id, 'entity=R2'), { status: 409, json: { error: 'TooManyResults' } })
  t.match(await explain(node, id, 'entity=R2', ['Ctx-ServicePath: /c']), {
    json: { entity: { servicePath: '/c' }, reason: '/c is not within /a/#' },
  })
  t.match(await explain(node, id, 'entity=R1', ['Ctx-ServicePath: /c']), {
    status: 404,
    json: { error: 'NotFound', description: 'The requested entity has not been found. Check type and id' },
  })
})

t.test('of several types of an id one has to be named', async t => {
  const node = await startLocalNode(t)
  const id = await create(node, body())
  await room(node, 'R1', 1)
  await node.json('POST /v2/entities', { id: 'R1', type: 'Hall' })
  t.match(await explain(node, id, 'entity=R1'), {
    status: 409,
    json: { description: 'More than one matching entity. Please refine your query' },
  })
  t.match(await explain(node, id, 'entity=R1&type=Hall'), {
    status: 200,
    json: { entity: { type: 'Hall' }, fires: false },
  })
  t.equal((await explain(node, id, 'entity=R1&type=Shed')).status, 404)
})

t.test('an explanation that cannot be given is refused in words', async t => {
  const node = await startLocalNode(t)
  const id = await create(node, body())
  const missing = 'URI param /entity/ is missing: options explain is about one stored entity'
  for (const [query, status, description] of [
    [`${id}?options=explain`, 400, missing],
    [`${id}?options=explain,count`, 400, missing],
    [`${id}?options=explain&entity=`, 400, 'Empty right-hand-side for URI param /entity/'],
    [`${id}?options=explain&entity=a%3Cb`, 400, 'invalid character in URI parameter'],
    [`${id}?options=explain&entity=a%20b`, 400, /entity id/],
    [`${id}?options=explain&entity=${'x'.repeat(257)}`, 400, /entity id/],
    [`1?options=explain&entity=R1`, 400, 'Invalid subscription ID: bad length - 24 chars expected'],
    ['65f0c2a1b4d3e2f1a0c9b8d7?options=explain&entity=R1', 404, /^The requested subscription/],
    [`${id}?options=explain&entity=nobody`, 404, /^The requested entity/],
  ] as const)
    t.match(await node.ask(`GET ${path}/${query}`), { status, json: { description } }, query)
})

t.test('without the word nothing is explained, with any other parameters', async t => {
  const node = await startLocalNode(t)
  const id = await create(node, body())
  t.match((await node.ask(`GET ${path}/${id}?entity=R1&type=Room`)).json, { id, status: 'active' })
})

t.test('a worker explains subscriptions of another one', async t => {
  const nodes = await startLocalWorkers(t, 3)
  const id = await create(nodes[0]!, body())
  for (const n of [1, 2, 3, 4, 5]) await room(nodes[1]!, `R${n}`, n)
  for (const node of nodes)
    for (const n of [1, 2, 3, 4, 5])
      t.match((await explain(node, id, `entity=R${n}`)).json, { fires: true, entity: { id: `R${n}` } })
})

// Deliveries

const record = (at: number, more: Partial<DeliveryRecord> = {}): DeliveryRecord => ({
  atMs: atMs + at,
  id: 'R1',
  type: 'Room',
  path: '/a',
  notificationId: `n${at}`,
  attempt: 1,
  outcome: 'delivered',
  code: 200,
  reason: '',
  ...more,
})

interface Sending {
  readonly node: LocalNode
  readonly local: LocalShards
}

async function sending(t: Test, options: LocalNodeOptions = {}): Promise<Sending> {
  let local: LocalShards | undefined
  const between = (shards: Shards): Shards => {
    local = shards as LocalShards
    return {
      ask: (shard, request, onReply) =>
        request.kind === 'retryDeliveries'
          ? onReply({ kind: 'retried', count: 7 })
          : shards.ask(shard, request, onReply),
      owners: () => shards.owners(),
      pathsOf: tenant => shards.pathsOf(tenant),
      ownerOf: shard => shards.ownerOf(shard),
    }
  }
  const node = await startLocalNode(t, { ...options, surroundings: { wrapShards: between } })
  return { node, local: local! }
}

t.test('deliveries and dead letters are lists of one form', async t => {
  const { node, local } = await sending(t)
  const id = await create(node, body())
  const failed = { outcome: 'failed', code: undefined, reason: 'connect ECONNREFUSED' } as const
  const refused = { outcome: 'dead', code: 503, reason: 'answered 503', attempt: 5, cause: 'notNow' } as const
  local.parts.deliveries.note('', id, record(0))
  local.parts.deliveries.note('', id, record(1, failed))
  local.parts.letters.bury('', id, record(2, refused), Buffer.from('row'))
  const { status, headers, json } = await node.ask(`GET ${path}/${id}/deliveries`)
  t.equal(status, 200)
  t.equal(headers['content-type'], 'application/json')
  const entity = { id: 'R1', type: 'Room', servicePath: '/a' }
  const [{ nextReplay }] = (json as { readonly deadLetters: readonly [{ readonly nextReplay: string }] }).deadLetters
  t.ok(Date.parse(nextReplay) > Date.now(), nextReplay)
  t.strictSame(json, {
    deliveries: [
      {
        time: '2026-01-02T03:04:05.679Z',
        entity,
        notificationId: 'n1',
        attempt: 1,
        outcome: 'failed',
        reason: 'connect ECONNREFUSED',
      },
      {
        time: '2026-01-02T03:04:05.678Z',
        entity,
        notificationId: 'n0',
        attempt: 1,
        outcome: 'delivered',
        code: 200,
      },
    ],
    deadLetters: [
      {
        time: '2026-01-02T03:04:05.680Z',
        entity,
        notificationId: 'n2',
        attempt: 5,
        outcome: 'dead',
        code: 503,
        reason: 'answered 503',
        cause: 'notNow',
        nextReplay,
      },
    ],
    deadLettersCount: 1,
  })
})

t.test('each list is as long as the limit, by default 20', async t => {
  const { node, local } = await sending(t)
  const id = await create(node, body())
  for (let at = 0; at < 30; at++) {
    local.parts.deliveries.note('', id, record(at))
    local.parts.letters.bury('', id, record(at, { outcome: 'dead' }), Buffer.from('row'))
  }
  for (const [query, count] of [
    ['', 20],
    ['?limit=3', 3],
    ['?limit=0', 0],
    ['?limit=1000', 30],
  ] as const) {
    // biome-ignore format: a table
    const { json } = await node.ask(`GET ${path}/${id}/deliveries${query}`)
    const { deliveries, deadLetters, deadLettersCount } = json as Record<string, { length: number }>
    t.strictSame([deliveries?.length, deadLetters?.length, deadLettersCount], [count, count, 30], query)
  }
  t.match(await node.ask(`GET ${path}/${id}/deliveries?limit=1001`), {
    status: 400,
    json: { description: 'Bad pagination limit: /1001/ [max: 1000]' },
  })
})

for (const server of httpServers)
  t.test(`dead letters are sent again by a POST, with a body or without (${server})`, async t => {
    const { node } = await sending(t, { server })
    const retry = `POST ${path}/${await create(node, body())}/deliveries/retry`
    const done = { status: 200, text: '{"retried":7}', headers: { 'content-type': 'application/json' } }
    t.match(await node.ask(retry), done)
    t.match(await node.ask(retry, ['Content-Length: 0']), done)
    t.match(await node.json(retry, { any: 'thing' }), done)
    t.match(await node.ask(retry), done)
  })

t.test('with no dead letters nothing is sent again', async t => {
  const node = await startLocalNode(t)
  const id = await create(node, body())
  t.match(await node.ask(`POST ${path}/${id}/deliveries/retry`), { status: 200, text: '{"retried":0}' })
})

t.test('a request about a missing subscription is refused like its retrieval', async t => {
  const { node } = await sending(t)
  const id = await create(node, body(), ['Ctx-Service: mine'])
  const unknown = { status: 404, json: { error: 'NotFound', description: /^The requested subscription/ } }
  const badLength = { status: 400, json: { description: 'Invalid subscription ID: bad length - 24 chars expected' } }
  for (const [method, rest] of [
    ['GET', '/deliveries'],
    ['POST', '/deliveries/retry'],
  ] as const) {
    // biome-ignore format: a table
    t.match(await node.ask(`${method} ${nobody}${rest}`), unknown)
    t.match(await node.ask(`${method} ${path}/1${rest}`), badLength)
    t.match(await node.ask(`${method} ${path}/${id}${rest}`), unknown, 'it is of another tenant')
    t.equal((await node.ask(`${method} ${path}/${id}${rest}`, ['Ctx-Service: mine'])).status, 200)
    t.match(await node.ask(`${method} ${nobody}${rest}`, ['Ctx-Service: a-b']), { status: 400 })
  }
})

t.test('the answer to other methods names the allowed one', async t => {
  const { node } = await sending(t)
  const notThere = async (line: string, allow: string) =>
    t.match(await node.json(line, line.startsWith('P') ? {} : undefined), { status: 405, headers: { allow } }, line)
  await notThere(`POST ${nobody}/deliveries`, 'GET')
  await notThere(`DELETE ${nobody}/deliveries`, 'GET')
  await notThere(`GET ${nobody}/deliveries/retry`, 'POST')
  await notThere(`PUT ${nobody}/deliveries/retry`, 'POST')
  t.equal((await node.ask(`POST ${nobody}/deliveries`)).status, 411, 'only to send again needs no body')
  t.equal((await node.ask(`PUT ${nobody}/deliveries/retry`)).status, 411)
})

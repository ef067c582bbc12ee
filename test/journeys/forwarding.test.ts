// Forwarding over HTTP: some entities of a broker belong to providers, which answer, stall, write back or send
// nonsense.
//
// Not here: which registration matches and how a page is built (domain/forwarding.test, domain/forwarded-query.test,
// domain/forwarded-update.test), sockets (forwarder/forwarder.test).

import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { httpReceiver, plainReceiver, type Received, type Receiver, until } from '../deliver/receivers.js'
import { errorsOnly, type LocalNode, startLocalNode } from '../support/local-node.js'
import { startLocalWorkers } from '../support/local-workers.js'

t.setTimeout(400_000)

type Answer = (request: Received, response: ServerResponse) => void

const json =
  (value: unknown, headers: Record<string, string> = {}): Answer =>
  (_request, response) =>
    void response.writeHead(200, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(value))

const status =
  (code: number): Answer =>
  (_request, response) =>
    void response.writeHead(code).end()

/** A provider, with its answers to queries and updates. */
const provider = (t: Test, query: Answer, update: Answer = status(204)): Promise<Receiver> =>
  httpReceiver(t, (request, response) => (request.path.endsWith('/op/update') ? update : query)(request, response))

const number = (value: number) => ({ type: 'Number', value, metadata: {} })

async function register(
  node: LocalNode,
  url: string,
  entities: readonly object[],
  attrs: readonly string[] = [],
  more: object = {},
  headers: readonly string[] = [],
): Promise<void> {
  const body = { dataProvided: { entities, attrs }, provider: { http: { url }, ...more } }
  const { status, text } = await node.json('POST /v2/registrations', body, headers)
  if (status !== 201) throw new Error(`${status} ${text}`)
}

async function create(node: LocalNode, entity: object, headers: readonly string[] = []): Promise<void> {
  const { status, text } = await node.json('POST /v2/entities', entity, headers)
  if (status !== 201) throw new Error(`${status} ${text}`)
}

const headersOf = ({ headers }: Received): Record<string, string> =>
  Object.fromEntries(
    Array.from({ length: headers.length / 2 }, (_, at) => [headers[2 * at]!.toLowerCase(), headers[2 * at + 1]!]),
  )

const room = [{ id: 'Room', type: 'Room' }]

t.test('one entity, its attributes and values are those of here and of the provider together', async t => {
  const node = await startLocalNode(t)
  const remote = {
    id: 'Room',
    type: 'Room',
    a: number(9),
    b: number(2),
    c: { type: 'X', value: { y: 1 }, metadata: {} },
  }
  const { url, received } = await provider(t, json([remote]))
  await register(node, `${url}/v2`, room, ['a', 'b', 'c'])
  await create(node, { id: 'Room', type: 'Room', a: { value: 1 } })
  const whole = { id: 'Room', type: 'Room', a: number(1), b: number(2), c: remote.c }
  t.strictSame((await node.json('GET /v2/entities/Room')).json, whole)
  t.strictSame((await node.json('GET /v2/entities/Room?attrs=b,a&options=values')).json, [2, 1])
  t.strictSame((await node.json('GET /v2/entities/Room/attrs')).json, { a: number(1), b: number(2), c: remote.c })
  t.strictSame((await node.json('GET /v2/entities/Room/attrs/b')).json, number(2))
  t.equal((await node.json('GET /v2/entities/Room/attrs/b/value')).text, '2')
  t.strictSame((await node.json('GET /v2/entities?options=keyValues')).json, [
    { id: 'Room', type: 'Room', a: 1, b: 2, c: { y: 1 } },
  ])
  const query = { entities: [{ id: 'Room', type: 'Room' }], attrs: ['b'] }
  t.strictSame((await node.json('POST /v2/op/query', query)).json, [{ id: 'Room', type: 'Room', b: number(2) }])
  t.ok(received.every(({ path }) => path.startsWith('/v2/op/query?limit=')))
  const count = received.length
  t.equal((await node.json('GET /v2/entities/Room/attrs/a/value')).text, '1')
  t.equal(received.length, count, 'what is here is not asked for')
})

t.test('a request to a provider has the headers of the client', async t => {
  const node = await startLocalNode(t)
  const { url, received } = await provider(t, json([]))
  const headers = ['Ctx-Service: Acme', 'Ctx-ServicePath: /a']
  await register(node, url, room, ['a'], {}, headers)
  const more = ['X-Auth-Token: secret', 'Ctx-Correlator: corr; cbnotif=2']
  await node.json('GET /v2/entities?type=Room&q=x%3E1&limit=7', undefined, [...headers, ...more])
  await node.json('PATCH /v2/entities/Room/attrs?type=Room', { a: { value: 1 } }, [...headers, ...more])
  t.strictSame(
    received.map(({ path, body }) => [path, body]),
    [
      ['/op/query?limit=7&offset=0&options=count', '{"entities":[{"id":"Room","type":"Room"}],"attrs":["a"]}'],
      [
        '/op/update',
        '{"entities":[{"id":"Room","type":"Room","a":{"type":"Number","value":1,"metadata":{}}}],"actionType":"update"}',
      ],
    ],
  )
  for (const request of received)
    t.match(headersOf(request), {
      'ctx-service': 'acme',
      'ctx-servicepath': '/a',
      'x-auth-token': 'secret',
      'ctx-correlator': 'corr; cbnotif=2; cbfwd=1',
      accept: 'application/json',
      'content-type': 'application/json; charset=utf-8',
      'user-agent': /^ctxbroker\//,
    })
  await node.json('GET /v2/entities', undefined, ['Ctx-ServicePath: /a'])
  t.equal(received.length, 2, 'another tenant has no such provider')
})

t.test('without headers a provider is asked at / and for no tenant, and requests are counted', async t => {
  const node = await startLocalNode(t)
  const { url, received } = await provider(t, json([]))
  await register(node, url, room, ['a'])
  await register(node, `${url}/other`, room, ['b'])
  await node.json('GET /v2/entities/Room', undefined, ['Ctx-Correlator: c'])
  t.strictSame(
    received.map(request => headersOf(request)['ctx-correlator']),
    ['c; cbfwd=1', 'c; cbfwd=2'],
  )
  const [first] = received.map(headersOf)
  t.equal(first!['ctx-servicepath'], '/')
  t.notOk('ctx-service' in first! || 'x-auth-token' in first!)
})

t.test('an entity that only a provider has is found, in a list, alone, and counted', async t => {
  const node = await startLocalNode(t)
  const remote = [1, 2, 3].map(n => ({ id: `R${n}`, type: 'Room', a: number(n) }))
  const { url } = await provider(t, json(remote, { 'Fiware-Total-Count': '30' }))
  await register(node, url, [{ idPattern: '.*', type: 'Room' }])
  await create(node, { id: 'L', type: 'Lamp' })
  const list = await node.json('GET /v2/entities?options=count,keyValues')
  t.match(list, { status: 200, headers: { 'ctx-total-count': '31' } })
  t.strictSame(list.json, [{ id: 'L', type: 'Lamp' }, ...[1, 2, 3].map(n => ({ id: `R${n}`, type: 'Room', a: n }))])
  t.match(await node.json('GET /v2/entities/R2?type=Room&options=keyValues'), {
    json: { id: 'R2', type: 'Room', a: 2 },
  })
  t.match(await node.json('GET /v2/entities/R9?type=Room'), { status: 404, json: { error: 'NotFound' } })
  const builtins = await node.json('GET /v2/entities/R2?type=Room&attrs=a,dateCreated,servicePath&options=keyValues')
  t.strictSame(builtins.json, { id: 'R2', type: 'Room', a: 2, servicePath: '/' })
})

t.test('skipForwarding, a limit of 0 and builtin names alone ask no provider', async t => {
  const node = await startLocalNode(t)
  const { url, received } = await provider(t, json([{ id: 'Room', type: 'Room', b: number(2) }]))
  await register(node, url, room)
  await create(node, { id: 'Room', type: 'Room', a: { value: 1 } })
  const local = { id: 'Room', type: 'Room', a: number(1) }
  t.strictSame((await node.json('GET /v2/entities/Room?options=skipForwarding')).json, local)
  t.strictSame((await node.json('GET /v2/entities?options=skipForwarding')).json, [local])
  t.equal((await node.json('GET /v2/entities/Room/attrs/b?options=skipForwarding')).status, 404)
  t.strictSame((await node.json('POST /v2/op/query?options=skipForwarding', { attrs: ['a', 'b'] })).json, [local])
  t.strictSame((await node.json('GET /v2/entities?limit=0')).json, [])
  await node.json('GET /v2/entities/Room?attrs=dateCreated')
  t.equal(received.length, 0)
})

t.test('two types of one id are too many for a read of one entity', async t => {
  const node = await startLocalNode(t)
  const both = ['T', 'U'].map(type => ({ id: 'E', type, a: number(1) }))
  const { url } = await provider(t, json(both))
  await register(node, url, [{ idPattern: '.*' }])
  t.match(await node.json('GET /v2/entities/E'), { status: 409, json: { error: 'TooManyResults' } })
  t.match(await node.json('GET /v2/entities/E?type=U'), { json: { id: 'E', type: 'U' } })
})

// Updates

t.test('local attributes change here, provided ones at the provider, and missing ones are reported', async t => {
  const node = await startLocalNode(t)
  const { url, received } = await provider(t, json([]))
  await register(node, url, room, ['cmd'])
  await create(node, { id: 'Room', type: 'Room', a: { value: 1 } })
  const path = '/v2/entities/Room/attrs'
  t.equal((await node.json(`PATCH ${path}`, { a: { value: 2 }, cmd: { value: 'on' } })).status, 204)
  t.strictSame(
    received.map(({ body }) => JSON.parse(body).entities),
    [[{ id: 'Room', type: 'Room', cmd: { type: 'Text', value: 'on', metadata: {} } }]],
    'the stored type finds the provider',
  )
  t.equal((await node.json(`GET ${path}/a/value?options=skipForwarding`)).text, '2')
  t.match(
    await node.json(`PATCH ${path}`, { a: { value: 3 }, cmd: { value: 'off' }, x: { value: 1 }, y: { value: 1 } }),
    {
      status: 404,
      json: {
        error: 'PartialUpdate',
        description: 'Some of the following attributes were not updated: { Room-Room : [x, y] }',
      },
    },
  )
  t.equal((await node.json(`GET ${path}/a/value?options=skipForwarding`)).text, '3', 'what was done here stays')
  t.match(await node.json(`PATCH ${path}`, { a: { value: 4 }, x: { value: 1 } }), {
    status: 422,
    json: { error: 'PartialUpdate', description: 'do not exist: Room - [ x ]' },
  })
  t.equal(received.length, 2)
})

t.test('each of the updates reaches a provider, and an append does not', async t => {
  const node = await startLocalNode(t)
  const { url, received } = await provider(t, json([]))
  await register(node, url, [{ idPattern: '.*', type: 'Room' }], ['cmd'])
  await create(node, { id: 'Room', type: 'Room', a: { value: 1 } })
  const on = { type: 'command', value: 'on', metadata: {} }
  const forwarded: readonly (readonly [line: string, body: unknown, sent: unknown])[] = [
    ['PATCH /v2/entities/Room/attrs', { cmd: on }, on],
    ['PUT /v2/entities/Room/attrs', { cmd: on }, on],
    ['PUT /v2/entities/Room/attrs/cmd', on, on],
    ['PUT /v2/entities/Room/attrs/cmd/value', { x: 1 }, { type: 'StructuredValue', value: { x: 1 }, metadata: {} }],
    ['PATCH /v2/entities/Far/attrs?type=Room', { cmd: on }, on],
    ['PUT /v2/entities/Far/attrs?type=Room', { cmd: on }, on],
    ['PUT /v2/entities/Far/attrs/cmd?type=Room', on, on],
    ['PUT /v2/entities/Far/attrs/cmd/value?type=Room', true, { type: 'Boolean', value: true, metadata: {} }],
    ['POST /v2/op/update', { actionType: 'update', entities: [{ id: 'Far', type: 'Room', cmd: on }] }, on],
    ['POST /v2/op/update', { actionType: 'replace', entities: [{ id: 'Far', type: 'Room', cmd: on }] }, on],
    ['POST /v2/op/update', { actionType: 'replace', entities: [{ id: 'Room', cmd: on }] }, on],
  ]
  for (const [line, body, sent] of forwarded) {
    const { status, text } = await node.json(line, body)
    t.equal(status, 204, `${line} ${text}`)
    t.match(JSON.parse(received.pop()!.body), { actionType: 'update', entities: [{ type: 'Room', cmd: sent }] }, line)
    t.equal(received.length, 0)
  }
  t.strictSame(
    (await node.json('GET /v2/entities/Room?options=skipForwarding')).json,
    {
      id: 'Room',
      type: 'Room',
      a: number(1),
    },
    'and nothing is written or lost here',
  )
  const local: readonly (readonly [line: string, body?: unknown])[] = [
    ['POST /v2/entities/Room/attrs', { cmd: on }],
    ['POST /v2/op/update', { actionType: 'append', entities: [{ id: 'Room', type: 'Room', cmd: on }] }],
    ['DELETE /v2/entities/Room/attrs/cmd'],
    ['DELETE /v2/entities/Other?type=Room'],
    ['POST /v2/entities', { id: 'New', type: 'Room', cmd: on }],
    ['GET /v2/types'],
  ]
  for (const [line, body] of local) await node.json(line, body)
  t.equal(received.length, 0)
})

t.test('a replacement of a local entity leaves to the provider the attributes that only it has', async t => {
  const node = await startLocalNode(t)
  const { url, received } = await provider(t, json([]))
  await register(node, url, room, ['cmd'])
  await create(node, { id: 'Room', type: 'Room', a: { value: 1 }, b: { value: 1 } })
  const body = { a: { value: 2 }, cmd: { value: 'on' }, new: { value: 3 } }
  t.equal((await node.json('PUT /v2/entities/Room/attrs', body)).status, 204)
  t.strictSame(Object.keys(JSON.parse(received[0]!.body).entities[0]), ['id', 'type', 'cmd'])
  const stored = await node.json('GET /v2/entities/Room?options=skipForwarding,keyValues')
  t.strictSame(stored.json, { id: 'Room', type: 'Room', a: 2, new: 3 })
})

t.test('an update that a provider does not make was not made', async t => {
  for (const code of [404, 422, 500, 200]) {
    const node = await startLocalNode(t)
    const { url } = await provider(t, json([]), status(code))
    await register(node, url, room, ['cmd'])
    const path = '/v2/entities/Room/attrs?type=Room'
    t.match(await node.json(`PATCH ${path}`, { cmd: { value: 'on' } }), {
      status: 404,
      json: { error: 'NotFound', description: 'The requested entity has not been found. Check type and id' },
    })
    await create(node, { id: 'Room', type: 'Room', a: { value: 1 } })
    t.match(await node.json(`PATCH ${path}`, { a: { value: 2 }, cmd: { value: 'on' } }), {
      status: 404,
      json: { error: 'PartialUpdate', description: /\{ Room-Room : \[cmd\] \}/ },
    })
  }
})

t.test('a batch goes to each provider once, for all its entities, and names those without an update', async t => {
  const node = await startLocalNode(t)
  const one = await provider(t, json([]))
  const other = await provider(t, json([]), status(404))
  await register(node, one.url, [{ idPattern: '.*', type: 'T' }], ['x'])
  await register(node, other.url, [{ id: 'E2', type: 'T' }], ['y'])
  await create(node, { id: 'E1', type: 'T', a: { value: 1 } })
  const entities = [
    { id: 'E1', type: 'T', a: number(2), x: number(2) },
    { id: 'E2', type: 'T', x: number(3), y: number(3) },
    { id: 'E3', type: 'U', z: number(4) },
  ]
  t.match(await node.json('POST /v2/op/update', { actionType: 'update', entities }), {
    status: 404,
    json: {
      error: 'PartialUpdate',
      description: 'Some of the following attributes were not updated: { E2-T : [y], E3-U : [z] }',
    },
  })
  t.strictSame(
    one.received.map(({ body }) => JSON.parse(body).entities),
    [
      [
        { id: 'E1', type: 'T', x: number(2) },
        { id: 'E2', type: 'T', x: number(3) },
      ],
    ],
  )
  t.equal((await node.json('GET /v2/entities/E1/attrs/a/value')).text, '2')
  const nobody = { actionType: 'update', entities: [{ id: 'E3', type: 'U', z: number(4) }] }
  t.match(await node.json('POST /v2/op/update', nobody), {
    status: 404,
    json: { error: 'NotFound', description: 'do not exist: E3/U - [entity itself]' },
  })
})

t.test('a local part that is refused for a better reason decides, and nothing is forwarded', async t => {
  const node = await startLocalNode(t)
  const { url, received } = await provider(t, json([]))
  await register(node, url, room, ['cmd'])
  await create(node, { id: 'Room', type: 'Room', a: { value: 'text' } })
  const body = { a: { value: { $inc: 1 } }, cmd: { value: 'on' } }
  t.match(await node.json('PATCH /v2/entities/Room/attrs', body), { status: 500 })
  const batch = { actionType: 'update', entities: [{ id: 'Room', type: 'Room', ...body }] }
  t.match(await node.json('POST /v2/op/update', batch), { status: 500 })
  t.equal(received.length, 0)
})

t.test('a provider may write to the same entity while it is waited for', async t => {
  const node = await startLocalNode(t)
  const { url } = await provider(t, json([]), async (_request, response) => {
    const answer = await node.json('POST /v2/entities/Room/attrs', { cmd_status: { value: 'PENDING' } })
    response.writeHead(answer.status === 204 ? 204 : 500).end()
  })
  await register(node, url, room, ['cmd'])
  await create(node, { id: 'Room', type: 'Room', a: { value: 1 } })
  const body = { a: { value: 2 }, cmd: { value: 'on' } }
  t.equal((await node.json('PATCH /v2/entities/Room/attrs', body)).status, 204)
  const stored = await node.json('GET /v2/entities/Room?options=skipForwarding,keyValues')
  t.strictSame(stored.json, { id: 'Room', type: 'Room', a: 2, cmd_status: 'PENDING' })
})

// Providers that fail

t.test('with any answer of a provider local entities are answered, and operators get one report', async t => {
  const { logger, errors } = errorsOnly()
  const warnings: string[] = []
  const warn = (message: string): void => void warnings.push(message)
  const node = await startLocalNode(t, {
    notifications: { httpTimeoutMs: 300 },
    surroundings: { logger: { ...logger, warn } },
  })
  let answer: Answer = status(200)
  const { url } = await provider(t, (request, response) => answer(request, response))
  const silent = await plainReceiver(t, () => {})
  await register(node, url, room, ['b'])
  await register(node, `${silent.url}/v2`, [{ id: 'Lamp', type: 'Lamp' }])
  await create(node, { id: 'Room', type: 'Room', a: { value: 1 } })
  const text =
    (body: string): Answer =>
    (_request, response) =>
      void response.writeHead(200).end(body)
  const bad: readonly Answer[] = [
    status(200),
    text('nonsense'),
    text('{}'),
    json({ error: 'NotFound' }),
    text('[1,null,{"id":1}]'),
  ]
  for (const one of bad) {
    answer = one
    t.strictSame((await node.json('GET /v2/entities/Room')).json, { id: 'Room', type: 'Room', a: number(1) })
    t.equal((await node.json('GET /v2/entities/Room/attrs/b')).status, 404)
  }
  t.match(await node.json('GET /v2/entities/Lamp'), { status: 404, json: { error: 'NotFound' } })
  t.strictSame((await node.json('GET /v2/entities?type=Lamp')).json, [])
  answer = json([{ id: 'Room', type: 'Room', b: number(2) }])
  t.equal((await node.json('GET /v2/entities/Room/attrs/b/value')).text, '2')
  const key = url.slice('http://'.length)
  t.strictSame(
    warnings,
    [
      `Raising alarm ForwardingError ${key}/op/query: empty answer to a query, response code: 200`,
      `Releasing alarm ForwardingError ${key}/op/query`,
      `Raising alarm ForwardingError ${silent.url.slice('http://'.length)}/v2/op/query: Timeout was reached`,
    ].sort((a, b) => warnings.indexOf(a) - warnings.indexOf(b)),
  )
  t.strictSame(errors, [])
})

/** The requested entity, with a value of so many characters, sent in small pieces. */
const longAnswer =
  (length: number): Answer =>
  (request, response) => {
    const [{ id, type }] = JSON.parse(request.body).entities
    response.writeHead(200, { 'Content-Type': 'application/json' })
    response.write(`[{"id":"${id}","type":"${type}","b":{"type":"Text","metadata":{},"value":"`)
    const piece = 'x'.repeat(64 * 1024)
    let left = length
    const more = (): void => {
      while (left > 0 && !response.destroyed) {
        left -= piece.length
        if (!response.write(piece)) return void response.once('drain', more)
      }
      response.end('"}}]')
    }
    more()
  }

/** Providers that serve no request; each starts and resolves with its URL. */
const useless: Readonly<Record<string, (t: Test) => Promise<string>>> = {
  'is not there': async t => {
    const gone = await plainReceiver(t, () => {})
    await gone.close()
    return gone.url
  },
  'accepts connections and says nothing': async t => (await plainReceiver(t, () => {})).url,
  'closes connections': async t => (await plainReceiver(t, socket => void socket.destroy())).url,
  'does not speak HTTP': async t => (await plainReceiver(t, socket => void socket.end('nonsense\r\n\r\n'))).url,
  'begins an answer and never ends it': async t =>
    (await httpReceiver(t, (_request, response) => void response.writeHead(200).write('['))).url,
  'answers nonsense': async t =>
    (await httpReceiver(t, (_request, response) => void response.writeHead(200).end('nonsense'))).url,
  'answers more than it may': async t => (await httpReceiver(t, longAnswer(11 * 1024 * 1024))).url,
}

t.test('for entities of a useless provider the client gets an answer within its deadline', async t => {
  const node = await startLocalNode(t, { notifications: { httpTimeoutMs: 500 } })
  const answersOf = async (id: string): Promise<readonly unknown[]> => [
    (await node.json(`GET /v2/entities/${id}`)).json,
    (await node.json(`GET /v2/entities/${id}/attrs/b`)).json,
    (await node.json(`GET /v2/entities?type=Far${id}`)).json,
    (await node.json(`PATCH /v2/entities/${id}/attrs`, { a: { value: 2 }, b: { value: 2 } })).json,
    (await node.json(`PATCH /v2/entities/X/attrs?type=Far${id}`, { c: { value: 2 } })).json,
  ]
  const expected = (id: string): readonly unknown[] => [
    { id, type: 'Room', a: number(1) },
    { error: 'NotFound', description: 'The entity does not have such an attribute' },
    [],
    {
      error: 'PartialUpdate',
      description: `Some of the following attributes were not updated: { ${id}-Room : [b] }`,
    },
    { error: 'NotFound', description: 'The requested entity has not been found. Check type and id' },
  ]
  const all = Object.entries(useless).map(async ([what, begin], at) => {
    const [url, id] = [await begin(t), `R${at}`]
    await register(node, url, [{ id, type: 'Room' }], ['b'])
    await register(node, `${url}/far`, [{ idPattern: '.*', type: `Far${id}` }])
    await create(node, { id, type: 'Room', a: { value: 1 } })
    t.strictSame(await answersOf(id), expected(id), `one that ${what}`)
  })
  await Promise.all(all)
})

t.test('an answer of nearly ten megabytes is taken', async t => {
  const node = await startLocalNode(t)
  const value = 'x'.repeat(10_000_000)
  const { url } = await provider(t, json([{ id: 'Room', type: 'Room', b: { type: 'Text', value, metadata: {} } }]))
  await register(node, url, room, ['b'])
  const { text } = await node.json('GET /v2/entities/Room/attrs/b/value?type=Room')
  t.ok(text === `"${value}"`, `${text.length} characters`)
})

t.test('while a provider keeps many requests waiting, no other request waits', async t => {
  const node = await startLocalNode(t, { notifications: { httpTimeoutMs: 60_000 } })
  const held: (() => void)[] = []
  let isHeld = true
  const slow = await httpReceiver(t, (request, response) => {
    const answer = (): void =>
      request.path.endsWith('/op/update')
        ? status(204)(request, response)
        : json([{ id: 'Slow', type: 'T', a: number(1) }])(request, response)
    if (isHeld) held.push(answer)
    else answer()
  })
  const quick = await provider(t, json([{ id: 'Quick', type: 'T', b: number(1) }]))
  await register(node, slow.url, [{ id: 'Slow', type: 'T' }])
  await register(node, quick.url, [{ id: 'Quick', type: 'T' }], ['b', 'cmd'])
  await create(node, { id: 'Near', type: 'U', a: { value: 1 } })

  let ended = 0
  const waiting = Array.from({ length: 60 }, async (_, n) => {
    const answer =
      n % 3 === 0
        ? node.json('PATCH /v2/entities/Slow/attrs?type=T', { a: { value: n } })
        : node.json('GET /v2/entities/Slow?type=T')
    const { status: code } = await answer
    ended++
    return code
  })
  await until(() => held.length > 0, 'the slow one is asked')
  const others: readonly (readonly [line: string, status: number, body?: unknown])[] = [
    ['GET /v2/entities/Near', 200],
    ['GET /v2/entities?type=U', 200],
    ['POST /v2/op/query', 200, { entities: [{ id: 'Near', type: 'U' }] }],
    ['PATCH /v2/entities/Near/attrs', 204, { a: { value: 2 } }],
    ['POST /v2/entities?options=upsert', 204, { id: 'Near', type: 'U', a: { value: 3 } }],
    ['POST /v2/op/update', 204, { actionType: 'append', entities: [{ id: 'New', type: 'U', a: { value: 1 } }] }],
    ['GET /v2/entities/Quick?type=T', 200],
    ['PATCH /v2/entities/Quick/attrs?type=T', 204, { cmd: { value: 1 } }],
    ['GET /v2/registrations', 200],
  ]
  for (let round = 0; round < 10; round++)
    for (const [line, code, body] of others) {
      const answer = await node.json(line, body)
      if (answer.status !== code) t.fail(`${line}: ${answer.status} ${answer.text}`)
    }
  t.equal(ended, 0, 'all were answered while those still waited')
  isHeld = false
  for (const answer of held) answer()
  const codes = await Promise.all(waiting)
  t.strictSame(
    codes,
    codes.map((_, n) => (n % 3 === 0 ? 204 : 200)),
  )
})

t.test('requests beyond the limit are not made, and none with a limit of 0', async t => {
  for (const requestsMax of [0, 2]) {
    const node = await startLocalNode(t, { forwarding: { requestsMax } })
    const { url, received } = await provider(t, json([]))
    for (const n of [1, 2, 3]) await register(node, `${url}/${n}`, room, [`a${n}`])
    t.equal((await node.json('GET /v2/entities/Room')).status, 404)
    t.equal(received.length, requestsMax)
    const body = { a1: { value: 1 }, a2: { value: 2 }, a3: { value: 3 } }
    t.match(await node.json('PATCH /v2/entities/Room/attrs?type=Room', body), {
      status: 404,
      json: requestsMax === 0 ? { error: 'NotFound' } : { error: 'PartialUpdate', description: /\[a3\]/ },
    })
    t.equal(received.length, 2 * requestsMax)
  }
})

t.test('a URL without a path is asked where the option directs', async t => {
  for (const [pathless, path] of [
    ['plain', '/op/update'],
    ['slash', '//op/update'],
    ['v2', '/v2/op/update'],
  ] as const) {
    const node = await startLocalNode(t, { forwarding: { pathless } })
    const { url, received } = await provider(t, json([]))
    await register(node, url, room, ['cmd'])
    await node.json('PATCH /v2/entities/Room/attrs?type=Room', { cmd: { value: 1 } })
    t.strictSame(
      received.map(one => one.path),
      [path],
    )
  }
})

t.test('brokers that forward to each other in a circle come to an end', async t => {
  const nodes = await Promise.all([1, 2].map(() => startLocalNode(t)))
  const urls = nodes.map(({ port }) => `http://127.0.0.1:${port}/v2`)
  for (const [at, node] of nodes.entries()) await register(node, urls[1 - at]!, room)
  const answer = await node404(nodes[0]!, 'GET /v2/entities/Room?type=Room')
  t.match(answer, { status: 404, json: { error: 'NotFound' } })
  t.match(await nodes[0]!.json('PATCH /v2/entities/Room/attrs?type=Room', { a: { value: 1 } }), { status: 404 })
})

const node404 = (node: LocalNode, line: string) => node.json(line)

t.test('a request with ten suffixes is neither forwarded nor notified, and operators get a report', async t => {
  const { logger } = errorsOnly()
  const warnings: string[] = []
  const warn = (message: string): void => void warnings.push(message)
  const node = await startLocalNode(t, { surroundings: { logger: { ...logger, warn } } })
  const { url, received } = await provider(t, json([{ id: 'Room', type: 'Room', b: number(1) }]))
  const receiver = await httpReceiver(t)
  await register(node, url, room, ['b'])
  await create(node, { id: 'Room', type: 'Room', a: { value: 1 } })
  const subscription = { subject: { entities: room }, notification: { http: { url: receiver.url } } }
  await node.json('POST /v2/subscriptions', subscription)
  const hops = (count: number) => [`Ctx-Correlator: root${'; cbfwd=1'.repeat(count)}`]
  t.notOk('b' in ((await node.json('GET /v2/entities/Room', undefined, hops(10))).json as object))
  t.equal((await node.json('PATCH /v2/entities/Room/attrs', { a: { value: 2 } }, hops(10))).status, 204)
  t.equal((await node.json('PATCH /v2/entities/Room/attrs', { b: { value: 2 } }, hops(10))).status, 422)
  t.equal(received.length, 0)
  t.equal(warnings.filter(message => message.startsWith('A request goes in a circle')).length, 3)
  t.ok('b' in ((await node.json('GET /v2/entities/Room', undefined, hops(9))).json as object))
  await node.json('PATCH /v2/entities/Room/attrs', { a: { value: 3 } }, hops(9))
  await until(() => receiver.received.length > 0, 'a notification')
  t.strictSame(
    receiver.received.map(({ body }) => JSON.parse(body).data[0].a.value),
    [3],
  )
})

t.test('each of two workers forwards, for entities of either', async t => {
  const nodes = await startLocalWorkers(t, 2)
  const { url, received } = await provider(t, (request, response) => {
    const [{ id }] = JSON.parse(request.body).entities
    json([{ id, type: 'T', b: number(2) }])(request, response)
  })
  await register(nodes[0]!, url, [{ idPattern: '.*', type: 'T' }], ['b', 'cmd'])
  for (let n = 0; n < 6; n++) {
    await create(nodes[n % 2]!, { id: `E${n}`, type: 'T', a: { value: n } })
    for (const node of nodes) {
      const whole = await node.json(`GET /v2/entities/E${n}?options=keyValues`)
      t.strictSame(whole.json, { id: `E${n}`, type: 'T', a: n, b: 2 })
      const body = { a: { value: n }, cmd: { value: 1 } }
      t.equal((await node.json(`PATCH /v2/entities/E${n}/attrs`, body)).status, 204)
    }
  }
  t.equal(received.length, 24)
})

t.test('a registration that is changed or deleted counts at once', async t => {
  const node = await startLocalNode(t)
  const { url, received } = await provider(t, json([]))
  await register(node, url, room, ['a'])
  const [{ id }] = (await node.json('GET /v2/registrations')).json as [{ id: string }]
  const ask = async () => {
    await node.json('GET /v2/entities/Room')
    return received.splice(0).length
  }
  t.equal(await ask(), 1)
  await node.json(`PATCH /v2/registrations/${id}`, { expires: '2001-01-01T00:00:00Z' })
  t.equal(await ask(), 0, 'it has expired')
  await node.json(`PATCH /v2/registrations/${id}`, { expires: '' })
  t.equal(await ask(), 1)
  await node.json(`DELETE /v2/registrations/${id}`)
  t.equal(await ask(), 0)
})

t.test('a registration shows how its requests went, over all workers', async t => {
  const [one, other] = (await startLocalWorkers(t, 2)) as [LocalNode, LocalNode]
  let fails = false
  const remote = { id: 'Room', type: 'Room', b: number(2) }
  const { url } = await provider(t, (request, response) => (fails ? status(204) : json([remote]))(request, response))
  await register(one, `${url}/v2`, room, ['b'])
  const shown = async (node: LocalNode) => (await node.ask('GET /v2/registrations')).json as [Record<string, object>]
  t.notOk('forwardingInformation' in (await shown(one))[0], 'nothing was forwarded')
  await one.ask('GET /v2/entities/Room')
  await other.ask('GET /v2/entities/Room')
  const [{ id, forwardingInformation: good }] = await shown(one)
  t.match(good, { timesSent: 2, timesFailed: 0, lastForwarding: /Z$/, lastSuccess: /Z$/ })
  t.notOk('lastFailure' in good!)
  fails = true
  await other.ask('GET /v2/entities/Room')
  const [{ forwardingInformation: mixed }] = await shown(one)
  const failure = { lastFailure: /Z$/, lastFailureReason: 'empty answer to a query, response code: 204' }
  t.match(mixed, { timesSent: 3, timesFailed: 1, lastSuccess: /Z$/, ...failure })
  t.match((await other.ask(`GET /v2/registrations/${id}`)).json, { forwardingInformation: mixed })
})

// The HTTP layer over a whole node, with both servers: the order of checks, headers, media types, paths, methods,
// parameters, tenants, service paths, vocabularies, and the service's answers about itself (docs/interface/requests.md,
// docs/interface/tenants-and-paths.md#tenants, docs/interface/tenants-and-paths.md#service-paths,
// docs/interface/requests.md#entry-point).
//
// Not here: refusals of entities and attributes (errors.test), connections and bytes (front-contract).

import t, { type Test } from 'tap'
import {
  type Answer,
  type HttpServer,
  httpServers,
  type LocalNode,
  readAnswer,
  startLocalNode,
} from '../support/local-node.js'
import { Wire } from './wire.js'

const jsonType = 'Content-Type: application/json'
const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

for (const server of httpServers) {
  t.test(`over ${server}`, async t => {
    const node = await startLocalNode(t, { server })
    await create(node, { ...room('R1'), name: { value: 'kitchen' }, list: { value: [1, 2] }, on: { value: true } })
    checks(t, node)
    commonHeaders(t, node)
    mediaTypes(t, node)
    bodies(t, node)
    paths(t, node)
    methods(t, node)
    parameters(t, node)
    tenants(t, node, server)
    servicePaths(t, node)
    vocabularies(t, node)
    unknownLengths(t, node)
    service(t, node)
  })
}

/** `400 BadRequest: text`, as it came over the wire; for an answer that is not a refusal, the status alone. */
function shown({ status, json }: Answer): string {
  const { error, description } = (json ?? {}) as { error?: string; description?: string }
  return error === undefined ? String(status) : `${status} ${error}: ${description}`
}

const room = (id: string, temp = 21.5) => ({ id, type: 'Room', temp: { type: 'Number', value: temp } })

async function create(node: LocalNode, entity: unknown, ...headers: string[]): Promise<void> {
  const { status, text } = await node.json('POST /v2/entities', entity, headers)
  if (status !== 201) throw new Error(`${status} ${text}`)
}

/** Ids of a list, in its order. */
async function ids(node: LocalNode, ...headers: string[]): Promise<string[]> {
  const { json } = await node.ask('GET /v2/entities?limit=1000', headers)
  return (json as { id: string }[]).map(({ id }) => id)
}

const unknownPath = '400 BadRequest: Service not found. Check your URL as probably it is wrong.'
const noLength = '411 ContentLengthRequired: Zero/No Content-Length in PUT/POST/PATCH request'
const noPayload =
  '400 BadRequest: Orion accepts no payload for GET/DELETE requests. HTTP header Content-Type is thus forbidden'
const notJson = '400 ParseError: Errors found in incoming JSON buffer'
const needsJson = '406 NotAcceptable: acceptable MIME types: application/json'
const badTenant =
  '400 BadRequest: bad character in tenant name - only underscore and alphanumeric characters are allowed'
const badPath = 'Ctx-ServicePath: a'
const relativePath = '400 BadRequest: Only /absolute/ Service Paths allowed [a service path must begin with /]'

/**
 * Requests that fail two checks of docs/interface/requests.md#order-of-checks, and the answer of the first of the two.
 */
const pairs: readonly (readonly [string, request: string, headers: readonly string[], body: string, answer: string])[] =
  [
    [
      '1 length before 2 path',
      'POST /v2/entities/a%3Cb',
      ['Content-Length: 1048577'],
      '',
      '413 RequestEntityTooLarge: payload size: 1048577, max size supported: 1048576',
    ],
    ['2 path before 3 service path', 'GET /v2/a%3Cb', [badPath], '', '400 BadRequest: invalid character in URI'],
    [
      '3 service path before 4 content type',
      'POST /v2/entities',
      [badPath, 'Content-Type: text/xml'],
      '{}',
      relativePath,
    ],
    [
      '4 content type before 5 parameters',
      'POST /v2/entities?limit=x',
      ['Content-Type: text/xml'],
      '{}',
      '415 UnsupportedMediaType: not supported content type: text/xml',
    ],
    [
      '5 parameters before 6 accept',
      'GET /v2/entities?limit=x',
      ['Accept: text/plain'],
      '',
      '400 BadRequest: Bad pagination limit: /x/ [must be a positive integer number]',
    ],
    [
      '5 syntax of accept before 6 accept',
      'GET /v2/entities',
      ['Accept: text/plain;q=high'],
      '',
      '400 BadRequest: qvalue in accept header is not a number',
    ],
    ['6 accept before 7 content type without body', 'GET /v2', ['Accept: text/plain', jsonType], '', needsJson],
    ['6 accept before 8 no body', 'POST /v2/entities', ['Accept: text/plain'], '', needsJson],
    ['7 content type without body before 9 route', 'GET /v2/entitys', [jsonType], '', noPayload],
    ['7 content type without body before 9 method', 'DELETE /v2', [jsonType], '', noPayload],
    ['8 no body before 9 route', 'POST /v2/entitys', [], '', noLength],
    ['8 no body before 9 method', 'PUT /v2/entities', [], '', noLength],
    ['9 route before 10 payload', 'POST /v2/entitys', [jsonType], '{', unknownPath],
    ['9 method before 10 payload', 'PUT /v2/entities', [jsonType], '{', '405 MethodNotAlowed: method not allowed'],
    ['10 payload before 11 tenant', 'POST /v2/entities', [jsonType, 'Ctx-Service: a-b'], '{', notJson],
    [
      '10 payload checks before 11 tenant',
      'PATCH /v2/entities/R1/attrs',
      [jsonType, 'Ctx-Service: a-b'],
      '{}',
      '400 BadRequest: empty payload',
    ],
    [
      '10 content type of the operation before 11 tenant',
      'POST /v2/entities',
      ['Content-Type: text/plain', 'Ctx-Service: a-b'],
      '{}',
      '415 UnsupportedMediaType: not supported content type: text/plain',
    ],
    ['10 payload before 12 operation', 'PATCH /v2/entities/nobody/attrs', [jsonType], '{', notJson],
    ['11 tenant before 12 operation', 'GET /v2/entities/nobody', ['Ctx-Service: a-b'], '', badTenant],
    ['11 tenant before 12 operation of a write', 'DELETE /v2/entities/nobody', ['Ctx-Service: a-b'], '', badTenant],
  ]

function checks(t: Test, node: LocalNode): void {
  for (const [name, request, headers, body, answer] of pairs) {
    t.test(`of two failed checks the first one answers: ${name}`, async t => {
      t.equal(shown(await node.ask(request, headers, body)), answer)
      t.equal((await node.ask('GET /v2')).status, 200, 'and the broker goes on')
    })
  }
}

function commonHeaders(t: Test, node: LocalNode): void {
  t.test('every answer carries a correlator, a fresh UUID when the request has none', async t => {
    const requests = [
      'GET /v2',
      'GET /v2/entities',
      'GET /v2/entities/nobody',
      'GET /x',
      'PUT /v2',
      'PATCH /v2',
      'GET /version',
    ]
    const seen = new Set<string | undefined>()
    for (const request of requests) {
      const { headers } = await node.ask(request)
      t.match(headers['ctx-correlator'], uuidForm, request)
      seen.add(headers['ctx-correlator'])
    }
    t.equal(seen.size, requests.length, 'each its own')
    const done = await node.json('PATCH /v2/entities/R1/attrs', { on: { value: true } })
    t.match(done.headers['ctx-correlator'], uuidForm, '204 too')
  })

  t.test('a correlator of any form comes back as it was sent', async t => {
    for (const correlator of ['x', 'abc; cbnotif=1; cbfwd=2', 'caf\xc3\xa9 <b>', 'a'.repeat(2000)])
      for (const request of ['GET /v2', 'GET /v2/entities/nobody']) {
        const wire = await Wire.to(node.port)
        await wire.request(request, [`Ctx-Correlator: ${correlator}`])
        t.equal((await wire.answer()).headers['ctx-correlator'], correlator)
        wire.leave()
      }
  })

  t.test('an empty correlator is none', async t => {
    t.match((await node.ask('GET /v2', ['Ctx-Correlator:'])).headers['ctx-correlator'], uuidForm)
  })

  t.test('the content type has no charset, and every answer but 204 its length', async t => {
    for (const [request, type] of [
      ['GET /v2/entities', 'application/json'],
      ['GET /v2/entities/R1/attrs/temp/value', 'text/plain'],
      ['GET /v2/entities/nobody', 'application/json'],
      ['GET /v2/entities/R1/attrs/nothing/value', 'application/json'],
    ] as const) {
      const { headers, text } = await node.ask(request)
      t.equal(headers['content-type'], type, request)
      t.equal(headers['content-length'], String(Buffer.byteLength(text)), request)
    }
  })

  t.test('201 has a location, length 0 and neither type nor body', async t => {
    const answer = await node.json('POST /v2/entities', room('headers:1'))
    t.equal(answer.status, 201)
    t.match(answer.headers, { location: '/v2/entities/headers:1?type=Room', 'content-length': '0' })
    t.notOk('content-type' in answer.headers)
    t.equal(answer.text, '')
  })

  t.test('204 has neither body, type nor length; after an upsert it has a location', async t => {
    const upsert = await node.json('POST /v2/entities?options=upsert', { id: 'headers:2' })
    const patch = await node.json('PATCH /v2/entities/R1/attrs', { on: { value: true } })
    for (const { status, headers, text } of [upsert, patch]) {
      t.equal(status, 204)
      t.equal(text, '')
      t.notOk('content-type' in headers)
      t.notOk('content-length' in headers)
    }
    t.equal(upsert.headers.location, '/v2/entities/headers:2?type=Thing')
    t.notOk('location' in patch.headers)
  })

  t.test('the total is shown only on request, for every page', async t => {
    t.notOk('ctx-total-count' in (await node.ask('GET /v2/entities?limit=1')).headers)
    const { headers, json } = await node.ask('GET /v2/entities?limit=0&options=count')
    t.strictSame(json, [])
    t.equal(headers['ctx-total-count'], String((await ids(node)).length))
    t.match((await node.ask('GET /v2/entities?type=None&options=count')).headers, { 'ctx-total-count': '0' })
  })
}

function mediaTypes(t: Test, node: LocalNode): void {
  const value = '/v2/entities/R1/attrs/name/value'
  const noType =
    '415 UnsupportedMediaType: Content-Type header not used, default application/octet-stream is not supported'
  const unsupported = (type: string) => `415 UnsupportedMediaType: not supported content type: ${type}`
  const contentTypes: readonly (readonly [request: string, type: string, body: string, answer: string])[] = [
    [`PUT ${value}`, 'application/json', '"a"', '204'],
    [`PUT ${value}`, 'application/json; charset=utf-8', '{"a":1}', '204'],
    [`PUT ${value}`, 'application/json;charset=utf-8', '17', '204'],
    [`PUT ${value}`, 'text/plain', '"kitchen"', '204'],
    [`PUT ${value}`, 'text/plain; charset=utf-8', '"kitchen"', '204'],
    [`PUT ${value}`, 'text/xml', 'x', unsupported('text/xml')],
    [`PUT ${value}`, 'application/octet-stream', 'x', unsupported('application/octet-stream')],
    [`PUT ${value}`, 'Application/JSON', '1', unsupported('Application/JSON')],
    [`PUT ${value}`, '', '1', noType],
    ['POST /v2/entities?options=upsert', 'application/json;charset=utf-8', '{"id":"T1"}', '204'],
    ['POST /v2/entities', 'text/plain', '{"id":"T2"}', unsupported('text/plain')],
    ['POST /v2/entities', 'text/plain;charset=utf-8', '{"id":"T2"}', unsupported('text/plain')],
    ['POST /v2/entities', 'application/ld+json', '{"id":"T2"}', unsupported('application/ld+json')],
    ['POST /v2/entities', 'application/jsonx', '{"id":"T2"}', unsupported('application/jsonx')],
    ['POST /v2/entities', '', '{"id":"T2"}', noType],
  ]
  t.test('the content type of a body is compared exactly, up to the first semicolon', async t => {
    for (const [request, type, body, answer] of contentTypes) {
      const headers = type === '' ? [] : [`Content-Type: ${type}`]
      t.equal(shown(await node.ask(request, headers, body)), answer, `${request} ${type}`)
    }
  })

  const accepts: readonly (readonly [request: string, accept: string, answer: string, type: string])[] = [
    ['GET /v2/entities/R1', '*/*', '200', 'application/json'],
    ['GET /v2/entities/R1', 'application/*', '200', 'application/json'],
    ['GET /v2/entities/R1', 'text/html, application/json;q=0.1', '200', 'application/json'],
    ['GET /v2/entities/R1', 'application/json;charset=utf-8', '200', 'application/json'],
    ['GET /v2/entities/R1', 'text/plain', needsJson, ''],
    ['GET /v2/entities/R1', 'text/*', needsJson, ''],
    ['GET /v2/entities/R1/attrs/temp', 'text/plain', needsJson, ''],
    ['GET /v2/entities/R1', 'text/html', '406 NotAcceptable: no acceptable mime-type in accept header', ''],
    ['GET /v2/entities/R1', '', '400 BadRequest: empty accept header', ''],
    ['GET /v2/entities/R1', 'text/plain;q', '400 BadRequest: missing equal-sign after q in accept header', ''],
    ['GET /v2/entities/R1', 'text/plain;q=', '400 BadRequest: qvalue in accept header is missing', ''],
    // A value alone: scalars are text; compounds have the type that the client prefers.
    ['GET /v2/entities/R1/attrs/temp/value', '*/*', '200', 'text/plain'],
    ['GET /v2/entities/R1/attrs/temp/value', 'application/json, text/plain;q=0.1', '200', 'text/plain'],
    [
      'GET /v2/entities/R1/attrs/temp/value',
      'application/json',
      '406 NotAcceptable: accepted MIME types: text/plain',
      '',
    ],
    [
      'GET /v2/entities/R1/attrs/temp/value',
      'image/png',
      '406 NotAcceptable: no acceptable mime-type in accept header',
      '',
    ],
    ['GET /v2/entities/R1/attrs/list/value', '*/*', '200', 'application/json'],
    ['GET /v2/entities/R1/attrs/list/value', 'application/json', '200', 'application/json'],
    ['GET /v2/entities/R1/attrs/list/value', 'text/plain', '200', 'text/plain'],
    ['GET /v2/entities/R1/attrs/list/value', 'text/plain, application/json', '200', 'text/plain'],
    ['GET /v2/entities/R1/attrs/list/value', 'application/json;q=0.2, text/plain;q=0.1', '200', 'application/json'],
    ['GET /v2/entities/R1/attrs/list/value', 'application/json;q=0.2, text/*;q=0.3', '200', 'text/plain'],
  ]
  t.test('the accept header decides the form of an answer, or that there is none', async t => {
    for (const [request, accept, answer, type] of accepts) {
      const got = await node.ask(request, [`Accept: ${accept}`])
      t.equal(shown(got), answer, `${request} ${accept}`)
      t.equal(got.headers['content-type'], type || 'application/json', `${request} ${accept}`)
    }
  })

  t.test('without an accept header a scalar comes as text and a compound as JSON', async t => {
    t.match(await node.ask('GET /v2/entities/R1/attrs/temp/value'), {
      text: '21.5',
      headers: { 'content-type': 'text/plain' },
    })
    t.match(await node.ask('GET /v2/entities/R1/attrs/list/value'), {
      text: '[1,2]',
      headers: { 'content-type': 'application/json' },
    })
  })
}

function bodies(t: Test, node: LocalNode): void {
  t.test('a body may come in chunks, and without chunks there is no body', async t => {
    const ask = async (request: string, chunks: string) => {
      const wire = await Wire.to(node.port)
      await wire.send(`${request} HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n${jsonType}\r\n\r\n${chunks}`)
      const answer = await readAnswer(wire)
      wire.leave()
      return answer
    }
    t.equal((await ask('POST /v2/entities', '4\r\n{"id\r\n7\r\n":"T3"}\r\n0\r\n\r\n')).status, 201)
    t.equal((await node.ask('GET /v2/entities/T3')).status, 200)
    t.equal((await node.ask('DELETE /v2/entities/T3')).status, 204)
    for (const request of ['POST /v2/entities', 'PUT /v2/entities/R1/attrs', 'PATCH /v2/entities/R1/attrs'])
      t.equal(shown(await ask(request, '0\r\n\r\n')), noLength, request)
  })

  t.test('a body that is refused before it is read does not disturb the next request', async t => {
    for (const [request, status] of [
      ['POST /v2/entitys', 400],
      ['PUT /v2', 405],
      ['DELETE /v2/entities/nobody', 404],
    ] as const) {
      const wire = await Wire.to(node.port)
      await wire.request(request, [jsonType], `"${'x'.repeat(200_000)}"`)
      t.equal((await readAnswer(wire)).status, status, request)
      await wire.request('GET /v2')
      t.equal((await readAnswer(wire)).status, 200, `${request}, then GET /v2 on the same connection`)
      wire.leave()
    }
  })
}

function paths(t: Test, node: LocalNode): void {
  const badId = '400 BadRequest: entity id length: 0, min length supported: 1'
  const badName = '400 BadRequest: attribute name length: 0, min length supported: 1'
  const badUri = '400 BadRequest: invalid character in URI'
  // The paths of types, subscriptions, registrations and batches are tested with their routes.
  const table: readonly (readonly [path: string, answer: string])[] = [
    ['/v2', '200'],
    ['/v2/', '200'],
    ['/v2/entities/', '200'],
    ['/v2/entities/R1/', '200'],
    ['/v2/entities/R1/attrs/', '200'],
    ['/v2/entities/R1/attrs/temp/', '200'],
    ['/v2/entities/R1/attrs/temp/value/', '200'],
    ['/v2/entitys', unknownPath],
    ['/V2/entities', unknownPath],
    ['/v2/Entities', unknownPath],
    ['/v2//', unknownPath],
    ['/v2//entities', unknownPath],
    ['//v2', unknownPath],
    ['/v2/entities/R1//', unknownPath],
    ['/v2/entities/R1/attributes', unknownPath],
    ['/v2/entities/R1/attrs/temp/value/x', unknownPath],
    ['/v2/entities/R1/attrs/temp/values', unknownPath],
    ['/v2/constructor', unknownPath],
    ['/v1/queryContext', unknownPath],
    ['/exit', unknownPath],
    ['/v2/entities//', badId],
    ['/v2/entities//attrs', badId],
    ['/v2/entities//attrs/temp', badId],
    ['/v2/entities/R1/attrs//', badName],
    ['/v2/entities/R1/attrs//value', badName],
    ['/v2/entities/%22', badUri],
    ['/v2/x%3B', badUri],
    ['/v2/entities/R%201', badUri],
    ['/v2/entities/R%3F1', badUri],
    ['/v2/entities/R%231', badUri],
    ['/v2/entities/R%001', badUri],
    ['/v2/entities/%E2%82%AC', badUri],
    ['/v2/entities/%ff', badUri],
    ['/v2/entities/R1/attrs/a%26b', badUri],
    ['/v2/entities/R1/attrs/a%20b/value', badUri],
    [`/v2/entities/${'x'.repeat(257)}`, '400 BadRequest: entity id length: 257, max length supported: 256'],
    // Decoded once, before it is split.
    ['/v2%2Fentities', '200'],
    ['/v2/entities/%52%31', '200'],
    ['/v2/entities/R1%2Fattrs', '200'],
  ]
  t.test('a path is known, unknown, or wrong in one component', async t => {
    for (const [path, answer] of table) t.equal(shown(await node.ask(`GET ${path}`)), answer, path)
  })

  t.test('PUT of an attribute refuses a name with a bad character in other words', async t => {
    const answer = await node.json('PUT /v2/entities/R1/attrs/a%26b', { value: 1 })
    t.equal(shown(answer), '400 BadRequest: Invalid characters in attribute name')
  })

  t.test('a path may have every legal character of an identifier', async t => {
    const id = '!$%*+,-.0:@AZ[\\]^_`az{|}~'
    await create(node, { id, type: 'Odd', [id]: { value: 1 } })
    const encoded = encodeURIComponent(id)
    t.equal((await node.ask(`GET /v2/entities/${encoded}`)).status, 200)
    t.equal((await node.ask(`GET /v2/entities/${encoded}/attrs/${encoded}/value`)).text, '1')
    t.equal((await node.ask(`DELETE /v2/entities/${encoded}`)).status, 204)
  })
}

function methods(t: Test, node: LocalNode): void {
  const table: readonly (readonly [path: string, allow: string])[] = [
    ['/v2', 'GET'],
    ['/v2/entities', 'POST, GET'],
    ['/v2/entities/R1', 'GET, DELETE'],
    ['/v2/entities/R1/attrs', 'GET, PATCH, POST, PUT'],
    ['/v2/entities/R1/attrs/temp', 'GET, PUT, DELETE'],
    ['/v2/entities/R1/attrs/temp/value', 'GET, PUT'],
    ['/version', 'GET'],
  ]
  t.test('the answer to a wrong method names those of the path', async t => {
    for (const [path, allow] of table)
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'TRACE']) {
        if (allow.split(', ').includes(method)) continue
        const hasBody = method === 'POST' || method === 'PUT' || method === 'PATCH'
        const answer = await node.ask(`${method} ${path}`, hasBody ? [jsonType] : [], hasBody ? '{}' : '')
        t.equal(answer.status, 405, `${method} ${path}`)
        t.equal(answer.headers.allow, allow, `${method} ${path}`)
        const body = '{"error":"MethodNotAlowed","description":"method not allowed"}'
        if (method !== 'HEAD') t.equal(answer.text, body, `${method} ${path}`)
      }
  })

  t.test('an unknown path is refused as such, for every method', async t => {
    for (const method of ['DELETE', 'OPTIONS']) t.equal(shown(await node.ask(`${method} /v2/entitys`)), unknownPath)
  })

  t.test('without a body the refusal is about the missing body, not the method', async t => {
    for (const [path, allow] of table)
      for (const method of ['POST', 'PUT', 'PATCH'])
        if (!allow.includes(method)) t.equal(shown(await node.ask(`${method} ${path}`)), noLength, `${method} ${path}`)
  })
}

function parameters(t: Test, node: LocalNode): void {
  const table: readonly (readonly [query: string, answer: string])[] = [
    ['q=', '400 BadRequest: Empty right-hand-side for URI param /q/'],
    ['q', '400 BadRequest: Empty right-hand-side for URI param /q/'],
    ['foo%22', '400 BadRequest: Empty right-hand-side for URI param /foo&quot;/'],
    ['foo=%3C', '400 BadRequest: invalid character in URI parameter'],
    ['f%28=1', '400 BadRequest: invalid character in URI parameter'],
    ['limit=-1', '400 BadRequest: Bad pagination limit: /-1/ [must be a positive integer number]'],
    ['limit=1.5', '400 BadRequest: Bad pagination limit: /1.5/ [must be a positive integer number]'],
    ['limit=abc', '400 BadRequest: Bad pagination limit: /abc/ [must be a positive integer number]'],
    ['limit=1001', '400 BadRequest: Bad pagination limit: /1001/ [max: 1000]'],
    ['offset=abc', '400 BadRequest: Bad pagination offset: /abc/ [must be a decimal number]'],
    ['options=foo', '400 BadRequest: Invalid value for URI param /options/'],
    ['options=keyValues,unique', '400 BadRequest: Invalid value for URI param /options/'],
    ['options=count,append,noAttrDetail,skipInitialNotification', '200'],
    ['foo=bar', '200'],
    ['limit=0', '200'],
    ['limit=1000', '200'],
    ['', '200'],
  ]
  t.test('parameters are checked on every path', async t => {
    for (const path of ['/v2', '/v2/entities', '/v2/entities/R1', '/v2/entities/R1/attrs/temp/value', '/version'])
      for (const [query, answer] of table)
        t.equal(shown(await node.ask(`GET ${path}?${query}`)), answer, `${path}?${query}`)
  })

  t.test('an offset beyond the end gives an empty page, however far', async t => {
    for (const offset of ['1000000', '9'.repeat(400)])
      t.match(await node.ask(`GET /v2/entities?offset=${offset}`), { status: 200, text: '[]' })
  })

  t.test('in a list of ids a comma separates and nothing is trimmed', async t => {
    const found = async (query: string) => ((await node.ask(`GET /v2/entities?${query}`)).json as unknown[]).length
    t.equal(await found('id=nobody,R1'), 1)
    t.equal(await found('id=nobody,+R1'), 0)
    t.equal(await found('id=%52%31&type=Room'), 1)
    t.equal(await found('id=R1&type=Lamp'), 0)
  })
}

function tenants(t: Test, node: LocalNode, server: HttpServer): void {
  const long = 'T'.repeat(50)

  t.test('tenants do not see each other, and upper case does not matter', async t => {
    await create(node, room('tenant:1', 1), 'Ctx-Service: Smart_City1')
    await create(node, room('tenant:1', 2), `Ctx-Service: ${long}`)
    const value = async (...headers: string[]) =>
      (await node.ask('GET /v2/entities/tenant:1/attrs/temp/value', headers)).text
    t.equal(await value('Ctx-Service: smart_city1'), '1')
    t.equal(await value(`Ctx-Service: ${long.toLowerCase()}`), '2')
    t.equal((await node.ask('GET /v2/entities/tenant:1')).status, 404)
    t.equal((await node.ask('GET /v2/entities/tenant:1', ['Ctx-Service:'])).status, 404, 'empty is the default one')
    t.notOk((await ids(node)).includes('tenant:1'))
    t.equal((await node.ask('DELETE /v2/entities/tenant:1', ['Ctx-Service: SMART_CITY1'])).status, 204)
    t.equal(await value(`Ctx-Service: ${long}`), '2', 'deleting in one leaves the other')
  })

  t.test('an unknown tenant is empty, not wrong', async t => {
    t.match(await node.ask('GET /v2/entities', ['Ctx-Service: nobody']), { status: 200, text: '[]' })
    t.equal((await node.ask('GET /v2/entities/R1', ['Ctx-Service: nobody'])).status, 404)
  })

  const bad: readonly (readonly [tenant: string, answer: string])[] = [
    ['a-b', badTenant],
    ['a.b', badTenant],
    ['a b', badTenant],
    ['a/b', badTenant],
    ['a,b', badTenant],
    ['caf\xe9s', badTenant],
    [`${long}x`, '400 BadRequest: bad length - a tenant name can be max 50 characters long'],
  ]
  t.test('a bad tenant is refused by reads and writes', async t => {
    for (const [tenant, answer] of bad) {
      const header = `Ctx-Service: ${tenant}`
      t.equal(shown(await node.ask('GET /v2/entities', [header])), answer, tenant)
      t.equal(shown(await node.json('POST /v2/entities', room('tenant:2'), [header])), answer, tenant)
    }
  })

  // Latin-1 on the wire, so each such letter is one byte.
  const foreign: readonly (readonly [what: string, headers: readonly string[], answer: string])[] = [
    ['at the end of a tenant', ['Ctx-Service: caf\xe9'], badTenant],
    ['at the start of a tenant', ['Ctx-Service: \xe9caf'], badTenant],
    ['as a whole tenant', ['Ctx-Service: \xe9'], badTenant],
    [
      'at the end of a service path',
      ['Ctx-Service: caf', 'Ctx-ServicePath: /caf\xe9'],
      '400 BadRequest: a component of ServicePath contains an illegal character',
    ],
    ['at both ends of a tenant, inside white space', ['Ctx-Service: \t\x80caf\xff '], badTenant],
    ['in UTF-8, as a whole tenant', ['Ctx-Service: \xc3\xa9'], badTenant],
    ['at the start of a service path', ['Ctx-ServicePath: \xe9/caf'], relativePath],
    ['as a whole service path', ['Ctx-ServicePath: \xe9'], relativePath],
    ['at the end of a tenant in the other vocabulary', ['Fiware-Service: caf\xe9'], badTenant],
  ]
  for (const [what, headers, answer] of foreign) {
    t.test(`a letter outside ASCII ${what} is refused and not cut off`, async t => {
      const wire = await Wire.to(node.port)
      for (const _ of ['first', 'later']) {
        await wire.request('GET /v2/entities', headers)
        t.equal(shown(await readAnswer(wire)), answer)
      }
      wire.leave()
    })
  }

  t.test('a letter outside ASCII in another header refuses nothing', async t => {
    const entities = await node.ask('GET /v2/entities', ['User-Agent: \xe9', 'Ctx-Service: \tcaf ', 'X-Note: caf\xe9'])
    t.match(entities, { status: 200, text: '[]' })
  })

  t.test('where tenants are off the header selects nothing, and its syntax is still checked', async t => {
    const single = await startLocalNode(t, { server, tenants: false })
    await create(single, room('tenant:3'), 'Ctx-Service: smart')
    t.equal((await single.ask('GET /v2/entities/tenant:3')).status, 200)
    t.equal((await single.ask('GET /v2/entities/tenant:3', ['Ctx-Service: other'])).status, 200)
    for (const [tenant, answer] of bad)
      t.equal(shown(await single.ask('GET /v2/entities', [`Ctx-Service: ${tenant}`])), answer, tenant)
  })
}

function servicePaths(t: Test, node: LocalNode): void {
  const tenant = 'Ctx-Service: paths'
  const at = (path: string) => `Ctx-ServicePath: ${path}`
  const inTenant = (path?: string) => (path === undefined ? [tenant] : [tenant, at(path)])
  const scopes = ['/', '/a', '/a/b', '/a/b/c', '/ab', '/c', '/c/d']

  t.test('reads are about the whole tenant, one path, a path with all below it, or several', async t => {
    for (const scope of scopes) await create(node, { id: `at:${scope.replaceAll('/', '.')}` }, ...inTenant(scope))
    await create(node, { id: 'at:nowhere' }, ...inTenant())
    const table: readonly (readonly [header: string | undefined, ...ids: string[]])[] = [
      [undefined, 'at:.', 'at:.a', 'at:.a.b', 'at:.a.b.c', 'at:.ab', 'at:.c', 'at:.c.d', 'at:nowhere'],
      ['', 'at:.', 'at:.a', 'at:.a.b', 'at:.a.b.c', 'at:.ab', 'at:.c', 'at:.c.d', 'at:nowhere'],
      ['/#', 'at:.', 'at:.a', 'at:.a.b', 'at:.a.b.c', 'at:.ab', 'at:.c', 'at:.c.d', 'at:nowhere'],
      ['/', 'at:.', 'at:nowhere'],
      ['/a/b', 'at:.a.b'],
      ['/a/b/', 'at:.a.b'],
      ['/a/#', 'at:.a', 'at:.a.b', 'at:.a.b.c'],
      ['/a,/c/#', 'at:.a', 'at:.c', 'at:.c.d'],
      [' /a , /c/d/ ', 'at:.a', 'at:.c.d'],
      ['/a/#,/a/b', 'at:.a', 'at:.a.b', 'at:.a.b.c'],
      ['/A'],
      ['/nobody/#'],
    ]
    for (const [header, ...expected] of table)
      t.strictSame(await ids(node, ...inTenant(header)), expected, header ?? 'absent')
  })

  t.test('a read without the header finds entities of all paths, a write only those at the root', async t => {
    await create(node, room('deep:1'), ...inTenant('/floor1'))
    const write = (request: string, body: unknown, ...headers: string[]) => node.json(request, body, headers)
    t.equal((await node.ask('GET /v2/entities/deep:1', inTenant())).status, 200)
    const body = { temp: { value: 1 } }
    for (const [request, payload] of [
      ['PATCH /v2/entities/deep:1/attrs', body],
      ['POST /v2/entities/deep:1/attrs', body],
      ['PUT /v2/entities/deep:1/attrs', body],
      ['PUT /v2/entities/deep:1/attrs/temp', body.temp],
      ['PUT /v2/entities/deep:1/attrs/temp/value', 1],
      ['DELETE /v2/entities/deep:1/attrs/temp', undefined],
      ['DELETE /v2/entities/deep:1', undefined],
    ] as const) {
      t.equal((await write(request, payload, ...inTenant())).status, 404, `${request}, no path`)
      t.equal((await write(request, payload, ...inTenant('/floor2'))).status, 404, `${request}, another path`)
    }
    t.equal((await write('PATCH /v2/entities/deep:1/attrs', body, ...inTenant('/floor1'))).status, 204)
    t.equal((await write('DELETE /v2/entities/deep:1', undefined, ...inTenant('/floor1'))).status, 204)
  })

  t.test('one id and type in two scopes are two entities, which a read across them does not distinguish', async t => {
    await create(node, room('same:1', 1), ...inTenant('/x'))
    await create(node, room('same:1', 2), ...inTenant('/y'))
    const get = (path?: string) => node.ask('GET /v2/entities/same:1/attrs/temp/value', inTenant(path))
    const ambiguous = '409 TooManyResults: More than one matching entity. Please refine your query'
    for (const path of [undefined, '/#', '/x,/y', '/x/#,/y/#'])
      t.equal(shown(await get(path)), ambiguous, path ?? 'absent')
    t.equal((await get('/x')).text, '1')
    t.equal((await get('/y/#')).text, '2')
    t.equal((await get('/')).status, 404)
  })

  const bad = '400 BadRequest:'
  const syntax: readonly (readonly [header: string, answer: string])[] = [
    ['a', relativePath],
    ['/a,b', relativePath],
    ['#', relativePath],
    ['/a,', relativePath],
    ['//a', `${bad} empty component in ServicePath`],
    ['/a//b', `${bad} empty component in ServicePath`],
    ['/a//', `${bad} empty component in ServicePath`],
    ['/1/2/3/4/5/6/7/8/9/10/11', `${bad} too many components in ServicePath`],
    [`/${'a'.repeat(51)}`, `${bad} component-name too long in ServicePath`],
    ['/a-b', `${bad} a component of ServicePath contains an illegal character`],
    ['/a b', `${bad} a component of ServicePath contains an illegal character`],
    ['/a.b', `${bad} a component of ServicePath contains an illegal character`],
    ['/#/a', `${bad} a component of ServicePath contains an illegal character`],
    ['/a#', `${bad} a component of ServicePath contains an illegal character`],
    [
      Array.from({ length: 11 }, (_, i) => `/p${i}`).join(),
      `${bad} too many service paths - a maximum of ten service paths is allowed`,
    ],
  ]
  t.test('a bad service path is refused by every request', async t => {
    for (const [header, answer] of syntax) {
      t.equal(shown(await node.ask('GET /v2/entities', [at(header)])), answer, header)
      t.equal(shown(await node.ask('DELETE /v2/entities/R1', [at(header)])), answer, header)
      t.equal(shown(await node.json('POST /v2/entities', room('bad:1'), [at(header)])), answer, header)
      t.equal(shown(await node.ask('GET /version', [at(header)])), answer, header)
    }
  })

  t.test('the longest legal paths are taken', async t => {
    const ten = `/${Array.from({ length: 10 }, () => 'L'.repeat(50)).join('/')}`
    await create(node, room('ten:1'), ...inTenant(ten))
    t.strictSame(await ids(node, ...inTenant(ten)), ['ten:1'])
    const list = Array.from({ length: 10 }, (_, i) => `/p${i}`).join()
    t.equal((await node.ask('GET /v2/entities', inTenant(list))).status, 200)
  })

  const patchList = `${bad} more than one servicepath in patch update request is not allowed`
  const patchWildcard = `${bad} servicepath with wildcard # is not allowed in patch update request`
  const deleteList = `${bad} more than one servicepath is not allowed in DELETE operation`
  const deleteWildcard = `${bad} servicepath with wildcard # is not allowed in DELETE operation`
  const updateList = `${bad} more than one service path in context update request`
  const updateWildcard = `${bad} Bad Character in Service-Path`
  const updates: readonly (readonly [request: string, body: unknown, list: string, wildcard: string])[] = [
    ['PATCH /v2/entities/R1/attrs', { temp: { value: 1 } }, patchList, patchWildcard],
    ['DELETE /v2/entities/R1', undefined, deleteList, deleteWildcard],
    ['DELETE /v2/entities/R1/attrs/temp', undefined, deleteList, deleteWildcard],
    ['POST /v2/entities', room('bad:2'), updateList, updateWildcard],
    ['POST /v2/entities/R1/attrs', { temp: { value: 1 } }, updateList, updateWildcard],
    ['PUT /v2/entities/R1/attrs', { temp: { value: 1 } }, updateList, updateWildcard],
    ['PUT /v2/entities/R1/attrs/temp', { value: 1 }, updateList, updateWildcard],
    ['PUT /v2/entities/R1/attrs/temp/value', 1, updateList, updateWildcard],
  ]
  t.test('a write takes one path without a wildcard', async t => {
    for (const [request, body, list, wildcard] of updates) {
      t.equal(shown(await node.json(request, body, [at('/a,/b')])), list, request)
      t.equal(shown(await node.json(request, body, [at('/a/#')])), wildcard, request)
      t.equal(shown(await node.json(request, body, [at('/#')])), wildcard, request)
    }
    t.equal((await node.ask('GET /v2/entities/R1/attrs/temp/value')).text, '21.5', 'and nothing has changed')
  })
}

function vocabularies(t: Test, node: LocalNode): void {
  const count = 'GET /v2/entities?options=count&limit=1'

  t.test('a client that uses Fiware-* is understood and answered in it', async t => {
    await create(node, room('words:1'), 'Fiware-Service: words', 'Fiware-ServicePath: /w')
    for (const header of ['Fiware-Service: words', 'fiware-service: words']) {
      const { headers, json } = await node.ask(count, [header, 'Fiware-ServicePath: /w', 'Fiware-Correlator: c-1'])
      t.match(json, [{ id: 'words:1' }])
      t.match(headers, { 'fiware-correlator': 'c-1', 'fiware-total-count': '1' })
      t.notOk(Object.keys(headers).some(name => name.startsWith('ctx-')))
    }
  })

  t.test('any one of the headers is enough to be answered in its vocabulary', async t => {
    for (const header of ['Fiware-Service: words', 'Fiware-ServicePath: /w', 'Fiware-Correlator: c-1']) {
      const { headers } = await node.ask(count, [header])
      t.ok('fiware-correlator' in headers, header)
      t.ok('fiware-total-count' in headers, header)
      t.notOk('ctx-correlator' in headers, header)
    }
  })

  t.test('a refusal speaks the vocabulary of the request, too', async t => {
    const { headers } = await node.ask('GET /v2/entities/nobody', ['Fiware-Service: words'])
    t.match(headers['fiware-correlator'], uuidForm)
  })

  t.test('where both are sent with the same values, the answer uses Ctx-*', async t => {
    const said = (prefix: string) => [
      `${prefix}-Service: words`,
      `${prefix}-ServicePath: /w`,
      `${prefix}-Correlator: c`,
    ]
    const { headers, json } = await node.ask(count, [...said('Fiware'), ...said('Ctx')])
    t.match(json, [{ id: 'words:1' }])
    t.match(headers, { 'ctx-correlator': 'c', 'ctx-total-count': '1' })
    t.notOk('fiware-correlator' in headers)
  })

  t.test('a vendor header that is there twice, or differs between the two, is refused', async t => {
    for (const name of ['Service', 'ServicePath', 'Correlator']) {
      const [one, other] = name === 'ServicePath' ? ['/a', '/b'] : ['a', 'b']
      for (const prefix of ['Ctx', 'Fiware'])
        for (const [first, second] of [
          [one, other],
          [one, one],
          ['', one],
        ]) {
          const twice = [`${prefix}-${name}: ${first}`, `${prefix.toUpperCase()}-${name}: ${second}`]
          t.equal(
            shown(await node.ask(count, twice)),
            `400 BadRequest: header ${prefix}-${name} is given more than once`,
          )
        }
      t.equal(
        shown(await node.ask(count, [`Fiware-${name}: ${one}`, `Ctx-${name}: ${other}`])),
        `400 BadRequest: headers Ctx-${name} and Fiware-${name} differ`,
      )
    }
  })

  t.test('headers of Fiware-* are checked as those of Ctx-*', async t => {
    t.equal(shown(await node.ask('GET /v2/entities', ['Fiware-Service: a-b'])), badTenant)
    t.equal(shown(await node.ask('GET /v2/entities', ['Fiware-ServicePath: a'])), relativePath)
  })

  t.test('a client that names nothing is answered in Ctx-*', async t => {
    const { headers } = await node.ask(count)
    t.ok('ctx-correlator' in headers && 'ctx-total-count' in headers)
  })
}

function unknownLengths(t: Test, node: LocalNode): void {
  t.test('a body without a length is refused, and its connection closed', async t => {
    for (const [headers, body] of [
      [['Transfer-Encoding: chunked'], '0\r\n\r\n'],
      [[], ''],
    ] as const) {
      const wire = await Wire.to(node.port)
      await wire.send(['POST /v2/entities HTTP/1.1', 'Host: a', jsonType, ...headers, '', body].join('\r\n'))
      t.equal(shown(await readAnswer(wire)), noLength)
      t.ok(await wire.closed)
    }
  })
}

function service(t: Test, node: LocalNode): void {
  t.test('the entry point names the four resources', async t => {
    const { status, text } = await node.ask('GET /v2')
    t.equal(status, 200)
    t.equal(
      text,
      '{"entities_url":"/v2/entities","types_url":"/v2/types","subscriptions_url":"/v2/subscriptions",' +
        '"registrations_url":"/v2/registrations"}',
    )
  })

  t.test('the version has the keys that tools read, all of them strings', async t => {
    const { status, json } = await node.ask('GET /version')
    t.equal(status, 200)
    const { orion } = json as { orion: Record<string, unknown> }
    t.strictSame(Object.keys(orion), [
      'version',
      'uptime',
      'git_hash',
      'compile_time',
      'compiled_by',
      'compiled_in',
      'release_date',
      'machine',
      'doc',
      'libversions',
    ])
    const { libversions, ...texts } = orion as { libversions: Record<string, unknown> }
    const libraries = 'boost libcurl libmosquitto libmicrohttpd openssl rapidjson mongoc bson'.split(' ')
    t.strictSame(Object.keys(libversions), libraries)
    for (const value of [...Object.values(texts), ...Object.values(libversions)]) t.type(value, 'string')
    t.same(Object.keys(json as object), ['orion'])
    t.equal(orion.version, '3.12.0')
    t.match(orion.uptime, /^\d+ d, \d+ h, \d+ m, \d+ s$/)
    t.match(orion.git_hash, /^([0-9a-f]{40}|nogitversion)$/)
  })

  t.test('the version describes this program on request', async t => {
    const { json } = await node.ask('GET /version?options=libVersions')
    t.match(json, { orion: { version: '3.12.0' }, orrery: { version: /^\d/, runtime: /^node / } })
  })

  t.test('a node that runs is live and ready, and has started', async t => {
    t.match(await node.ask('GET /health/startup'), { status: 200, json: { status: 'live' } })
    t.match(await node.ask('GET /health/live'), { status: 200, json: { status: 'live' } })
    t.match(await node.ask('GET /health/ready'), { status: 200, json: { status: 'ready' } })
  })
}

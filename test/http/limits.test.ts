// Limits, from both sides: the largest accepted size and the smallest refused one, over both servers. After each the
// broker serves others as before.

import t from 'tap'
import { valuesMax } from '../../src/domain/limits.js'
import { httpServers, type LocalNode, startLocalNode } from '../support/local-node.js'
import { Wire } from './wire.js'

const bodyBytesMax = 1_048_576
const jsonType = 'Content-Type: application/json'

/** The JSON of an entity, filled up to exactly `bytes` with blanks, which count as body and not as value. */
const padded = (id: string, bytes: number): string => {
  const text = JSON.stringify({ id, type: 'Room' })
  return text + ' '.repeat(bytes - text.length)
}

for (const server of httpServers) {
  t.test(`over ${server}`, async t => {
    const node: LocalNode = await startLocalNode(t, { server })
    const healthy = async (what = 'the broker still answers') => t.equal((await node.ask('GET /v2')).status, 200, what)

    t.test('a body of 1 MB is taken', async t => {
      t.equal((await node.ask('POST /v2/entities', [jsonType], padded('body', bodyBytesMax))).status, 201)
      t.equal((await node.ask('GET /v2/entities/body')).status, 200)
      await healthy()
    })

    t.test('a body of 1 MB and a byte is 413, and nothing is stored', async t => {
      const answer = await node.ask('POST /v2/entities', [jsonType], padded('more', bodyBytesMax + 1))
      t.match(answer, {
        status: 413,
        json: {
          error: 'RequestEntityTooLarge',
          description: `payload size: ${bodyBytesMax + 1}, max size supported: ${bodyBytesMax}`,
        },
      })
      t.equal((await node.ask('GET /v2/entities/more')).status, 404)
      await healthy()
    })

    t.test('a body holds as many values as it may, and not one more', async t => {
      const max = valuesMax(bodyBytesMax)
      // There are ten marks around the list, and a list of n values has n - 1 commas.
      const body = (values: number) => `{"id":"values","type":"T","a":{"value":[${'1,'.repeat(values - 9)}1]}}`
      const answer = await node.ask('POST /v2/entities', [jsonType], body(max + 1))
      const description = `too many values: ${max + 1}, at most ${max}`
      t.match(answer, { status: 400, json: { error: 'BadRequest', description } })
      t.equal((await node.ask('POST /v2/entities', [jsonType], body(max))).status, 201)
      await healthy()
    })

    t.test('a large body is refused as a small one is', async t => {
      const long = JSON.stringify({ value: 'x'.repeat(100_000) })
      for (const [body, error, description] of [
        [`{"id":"large2","a":${long}`, 'ParseError', 'Errors found in incoming JSON buffer'],
        [`{"id":"large2","a":${long},"a":{}}`, 'BadRequest', 'duplicated attribute /a/'],
        [`{"id":"large2","b":{"value":1e999},"a":${long}}`, 'ParseError', 'Errors found in incoming JSON buffer'],
      ] as const)
        t.match(await node.ask('POST /v2/entities', [jsonType], body), { status: 400, json: { error, description } })
      await healthy()
    })

    t.test('ninety headers are taken', async t => {
      const headers = Array.from({ length: 90 }, (_, i) => `X-Header-${i}: ${i}`)
      t.equal((await node.ask('GET /v2/entities/body', headers)).status, 200)
      await healthy()
    })

    t.test('two hundred headers are not: no header is dropped in silence', async t => {
      const wire = await Wire.to(node.port)
      const headers = [...Array.from({ length: 200 }, (_, i) => `X-Header-${i}: ${i}`), 'Ctx-Service: other']
      await wire.request('GET /v2/entities/body', headers)
      // One server refuses at once, the other leaves the connection idle: neither may serve it meanwhile.
      for (let i = 0; i < 3; i++) await healthy()
      t.notMatch(wire.unread, /^HTTP\/1\.1 [23]/)
      wire.leave()
    })

    t.test('a header of 10 KB is taken', async t => {
      t.equal((await node.ask('GET /v2', [`X-Long: ${'x'.repeat(10_000)}`])).status, 200)
      await healthy()
    })

    t.test('a header of 20 KB is refused, or served where the server has room for it', async t => {
      const answer = await node.ask('GET /v2', [`X-Long: ${'x'.repeat(20_000)}`])
      t.ok(answer.status === 431 || (server === 'uws' && answer.status === 200), `status ${answer.status}`)
      await healthy()
    })

    t.test('a query of 10 KB is taken', async t => {
      const list = Array.from({ length: 1_000 }, (_, i) => `nobody:${i}`).join()
      t.match(await node.ask(`GET /v2/entities?id=${list},body&attrs=none`), { status: 200, json: [{ id: 'body' }] })
      await healthy()
    })

    t.test('an entity of 1000 attributes comes back whole and in order', async t => {
      const names = Array.from({ length: 1_000 }, (_, i) => `a${i}`)
      const entity = { id: 'wide', type: 'Room', ...Object.fromEntries(names.map((name, i) => [name, i])) }
      t.equal((await node.json('POST /v2/entities?options=keyValues', entity)).status, 201)
      t.equal((await node.ask('GET /v2/entities/wide?options=keyValues')).text, JSON.stringify(entity))
      t.equal((await node.json('PATCH /v2/entities/wide/attrs?options=keyValues', { a999: 'x' })).status, 204)
      t.equal((await node.ask('GET /v2/entities/wide/attrs/a999/value')).text, '"x"')
      await healthy()
    })

    t.test('a value of 900 KB comes back byte by byte', async t => {
      const value = 'ü€'.repeat(180_000)
      const entity = { id: 'large', type: 'Room', text: { type: 'Text', value, metadata: {} } }
      t.equal((await node.json('POST /v2/entities', entity)).status, 201)
      t.equal((await node.ask('GET /v2/entities/large')).text, JSON.stringify(entity))
      t.equal((await node.ask('GET /v2/entities/large/attrs/text/value')).text, JSON.stringify(value))
      t.equal((await node.ask('PUT /v2/entities/large/attrs/text/value', [jsonType], '"s"')).status, 204)
      await healthy()
    })

    t.test('an id of 256 characters is taken, in the body and in the path', async t => {
      const id = 'i'.repeat(256)
      t.equal((await node.json('POST /v2/entities', { id, type: id, [id]: { value: 1, type: id } })).status, 201)
      t.equal((await node.ask(`GET /v2/entities/${id}/attrs/${id}/value?type=${id}`)).text, '1')
      t.equal((await node.ask(`DELETE /v2/entities/${id}`)).status, 204)
      await healthy()
    })

    t.test('an id of 257 characters is not', async t => {
      const id = 'i'.repeat(257)
      const description = 'entity id length: 257, max length supported: 256'
      for (const answer of [
        await node.json('POST /v2/entities', { id, type: 'Room' }),
        await node.ask(`GET /v2/entities/${id}`),
        await node.json(`PATCH /v2/entities/${id}/attrs`, { a: { value: 1 } }),
      ])
        t.match(answer, { status: 400, json: { error: 'BadRequest', description } })
      await healthy()
    })

    t.test('a service path of 10 levels is taken, of 11 not', async t => {
      const ten = Array.from({ length: 10 }, (_, i) => `/${i}`).join('')
      const post = (path: string) =>
        node.json('POST /v2/entities', { id: 'below', type: 'Room' }, [`Ctx-ServicePath: ${path}`])
      t.equal((await post(ten)).status, 201)
      t.equal((await node.ask('GET /v2/entities/below', [`Ctx-ServicePath: ${ten}`])).status, 200)
      t.match(await post(`${ten}/10`), {
        status: 400,
        json: { error: 'BadRequest', description: 'too many components in ServicePath' },
      })
      await healthy()
    })

    t.test('a value of 50 levels comes back, of 51 is refused', async t => {
      const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
      const put = (levels: number) => node.ask('PUT /v2/entities/deep/attrs/a/value', [jsonType], nested(levels))
      t.equal((await node.json('POST /v2/entities', { id: 'deep', a: { value: 0 } })).status, 201)
      t.equal((await put(50)).status, 204)
      t.equal((await node.ask('GET /v2/entities/deep/attrs/a/value')).text, nested(50))
      t.equal((await put(51)).status, 400)
      t.equal((await put(100_000)).status, 400)
      await healthy()
    })

    t.test('a query that looks into as many entities as it may is answered, into one more is not', async t => {
      const strict = await startLocalNode(t, { server, queries: { scanRowsMax: 300 } })
      const append = (count: number, from = 0) =>
        strict.json('POST /v2/op/update?options=keyValues', {
          actionType: 'append',
          entities: Array.from({ length: count }, (_, n) => ({ id: `E${n + from}`, type: 'T', n })),
        })
      t.equal((await append(300)).status, 204)
      const byId = 'GET /v2/entities?q=n>=298&orderBy=id&attrs=none&options=keyValues'
      t.match(await strict.ask(byId), { status: 200, json: [{ id: 'E298' }, { id: 'E299' }] })
      t.equal((await append(1, 300)).status, 204)
      t.match(await strict.ask(byId), {
        status: 400,
        json: {
          error: 'BadRequest',
          description: 'the query has to look into 301 entities, more than 300: narrow it by id, type or service path',
        },
      })
      t.equal((await strict.ask('GET /v2/entities?id=E7&q=n')).status, 200)
    })

    t.test('a query that takes longer than it may is 503, and others are served', async t => {
      const hasty = await startLocalNode(t, { server, queries: { scanDeadlineMs: 1 } })
      const entities = Array.from({ length: 300 }, (_, n) => ({ id: `E${n}`, type: 'T', n }))
      t.equal(
        (await hasty.json('POST /v2/op/update?options=keyValues', { actionType: 'append', entities })).status,
        204,
      )
      t.match(await hasty.ask('GET /v2/entities?q=n>=298'), {
        status: 503,
        json: {
          error: 'Unavailable',
          description: 'the query has taken longer than 1 ms: narrow it by id, type or service path',
        },
      })
      t.equal((await hasty.ask('GET /v2/entities')).status, 200)
    })
  })
}

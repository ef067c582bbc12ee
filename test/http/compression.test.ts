// Answers that are compressed, and bodies that come compressed or in chunks, over both servers.

import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { httpServers, type LocalNode, startLocalNode } from '../support/local-node.js'
import fc from '../support/properties.js'
import { type Answer, Wire } from './wire.js'

const jsonType = 'Content-Type: application/json'
const accept = (codings: string): string => `Accept-Encoding: ${codings}`
const inflated = { gzip: gunzipSync, br: brotliDecompressSync, none: (bytes: Buffer) => bytes }

const rooms = Array.from({ length: 800 }, (_, n) => ({
  id: `Room${n}`,
  type: 'Room',
  temperature: { type: 'Number', value: 20 + (n % 7), metadata: {} },
  note: { type: 'Text', value: 'measured by a sensor at the ceiling'.repeat(2), metadata: {} },
}))

/** The answer as it came, with one character for each byte of the body. */
async function ask(node: LocalNode, line: string, headers: readonly string[] = [], body?: Uint8Array): Promise<Answer> {
  const wire = await Wire.to(node.port)
  await wire.request(line, headers, body)
  const answer = await wire.answer(line.startsWith('HEAD '))
  wire.leave()
  return answer
}

const bodyOf = ({ headers, body }: Answer): string => {
  const coding = (headers['content-encoding'] ?? 'none') as keyof typeof inflated
  return inflated[coding](Buffer.from(body, 'latin1')).toString()
}

for (const server of httpServers)
  t.test(`over ${server}`, async t => {
    const node = await startLocalNode(t, { server, cors: { origins: ['https://a.example'], maxAgeS: 1 } })
    for (let at = 0; at < rooms.length; at += 200) {
      const entities = rooms.slice(at, at + 200)
      await node.json('POST /v2/op/update', { actionType: 'append', entities })
    }
    answers(t, node)
    bodies(t, node)
    chunks(t, node)
  })

function answers(t: Test, node: LocalNode): void {
  t.test('short and long answers come in the requested coding, with the same content', async t => {
    for (const limit of [8, 50, 800]) {
      const line = `GET /v2/entities?limit=${limit}&options=count`
      const plain = await ask(node, line)
      t.equal(plain.headers.vary, 'Origin', 'nothing new for a client that names no coding')
      t.equal(plain.headers['content-encoding'], undefined)
      for (const coding of ['gzip', 'br']) {
        const coded = await ask(node, line, [accept(coding)])
        t.match(coded, { status: 200, headers: { 'content-encoding': coding, vary: 'Origin, Accept-Encoding' } })
        t.equal(coded.headers['ctx-total-count'], plain.headers['ctx-total-count'])
        t.ok(coded.body.length < plain.body.length / 4)
        t.equal(bodyOf(coded), plain.body)
      }
      const none = await ask(node, line, [accept('identity')])
      t.match(none, { body: plain.body, headers: { vary: 'Origin, Accept-Encoding', 'content-encoding': undefined } })
      const kept = await ask(node, line, [accept('gzip'), 'Cache-Control: no-transform'])
      t.equal(kept.body, plain.body)
    }
  })

  t.test('an answer of up to 1 KB, and one without a body, is as it was', async t => {
    for (const line of ['GET /v2/entities/Room1', 'GET /v2', 'DELETE /v2/entities/nobody']) {
      const { headers } = await ask(node, line, [accept('gzip, br')])
      t.match([headers['content-encoding'], headers.vary], [undefined, 'Origin'], line)
    }
  })

  t.test('the page of HEAD has the headers that GET would send', async t => {
    const headers = ['Accept: text/html', accept('gzip')]
    const { headers: got, body } = await ask(node, 'GET /', headers)
    t.equal(got['content-encoding'], 'gzip')
    t.equal(got.vary, 'Accept, Accept-Encoding')
    t.match((await ask(node, 'HEAD /', headers)).headers, {
      'content-encoding': 'gzip',
      'content-length': String(body.length),
    })
  })

  t.test('subscriptions and registrations are never compressed: they may hold credentials', async t => {
    const description = 'x'.repeat(1000)
    const notification = { http: { url: 'http://127.0.0.1:1/' } }
    const subject = { entities: [{ idPattern: '.*' }] }
    const created = await node.json('POST /v2/subscriptions', { description, subject, notification })
    t.equal(created.status, 201)
    const provider = { http: { url: 'http://127.0.0.1:1/' } }
    const dataProvided = { entities: [{ id: 'far', type: 'Far' }], attrs: ['a'] }
    await node.json('POST /v2/registrations', { description, dataProvided, provider })
    for (const line of ['/v2/subscriptions', '/v2/registrations', created.headers.location!]) {
      const { headers, body } = await ask(node, `GET ${line}`, [accept('gzip, br')])
      t.ok(body.length > 1024, line)
      t.equal(headers['content-encoding'], undefined, line)
    }
    t.equal((await ask(node, `DELETE ${created.headers.location}`)).status, 204)
  })
}

function bodies(t: Test, node: LocalNode): void {
  const create = (body: Uint8Array, coding: string) =>
    ask(node, 'POST /v2/op/update', [jsonType, `Content-Encoding: ${coding}`], body)
  const batch = (count: number): Buffer =>
    Buffer.from(JSON.stringify({ actionType: 'append', entities: rooms.slice(0, count) }))

  t.test('a body may be compressed, short or long', async t => {
    for (const count of [1, 700]) {
      t.equal((await create(gzipSync(batch(count)), 'gzip')).status, 204)
      t.equal((await create(brotliCompressSync(batch(count)), 'br')).status, 204)
    }
  })

  t.test('a body that is none, too large or of another coding is refused in words', async t => {
    const cut = gzipSync(batch(9)).subarray(0, -1)
    t.match(await create(cut, 'gzip'), {
      status: 400,
      body: '{"error":"ParseError","description":"Errors found in incoming gzip data"}',
    })
    t.match(await create(gzipSync(Buffer.alloc(30_000_000)), 'gzip'), {
      status: 413,
      body: '{"error":"RequestEntityTooLarge","description":"payload size: more than 1048576, max size supported: 1048576"}',
    })
    t.match(await create(batch(1), 'deflate'), {
      status: 415,
      headers: { 'accept-encoding': 'gzip, br' },
      body: '{"error":"UnsupportedMediaType","description":"not supported content coding: deflate, supported: gzip, br"}',
    })
  })
}

function chunks(t: Test, node: LocalNode): void {
  const head = `PUT /v2/entities/Room1/attrs/note/value HTTP/1.1\r\nHost: a\r\n${jsonType}\r\nTransfer-Encoding: chunked\r\n`
  const chunked = (bytes: Buffer, sizes: readonly number[]): Buffer => {
    const parts: Buffer[] = []
    let at = 0
    for (const size of [...sizes, bytes.length]) {
      const chunk = bytes.subarray(at, at + size)
      if (chunk.length > 0) parts.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n'))
      at += size
    }
    return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')])
  }

  t.test('chunks of any size, cut anywhere, compressed or not, are one body', async t => {
    const property = fc.asyncProperty(
      fc.string({ maxLength: 200 }).map(text => text.replace(/[<>"'=;()]/g, '')),
      fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 8 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.boolean(),
      async (note, sizes, where, isCompressed) => {
        const json = Buffer.from(JSON.stringify([note]))
        const coding = isCompressed ? 'Content-Encoding: gzip\r\n' : ''
        const body = chunked(isCompressed ? gzipSync(json) : json, sizes)
        const at = Math.floor(where * body.length)
        const wire = await Wire.to(node.port)
        await wire.send(Buffer.concat([Buffer.from(`${head}${coding}\r\n`), body.subarray(0, at)]))
        await new Promise(setImmediate)
        await wire.send(body.subarray(at))
        const { status } = await wire.answer()
        wire.leave()
        t.equal(status, 204)
        t.same((await node.ask('GET /v2/entities/Room1/attrs/note/value')).json, [note])
      },
    )
    await fc.assert(property, { numRuns: 40 })
  })

  t.test('a body in chunks is refused at the limit of a body', async t => {
    const wire = await Wire.to(node.port)
    const body = chunked(Buffer.alloc(1_100_000, 0x20), Array(16).fill(65_536))
    await wire.send(Buffer.concat([Buffer.from(`${head}\r\n`), body]))
    t.match(await wire.answer(), {
      status: 413,
      body: '{"error":"RequestEntityTooLarge","description":"payload size: more than 1048576, max size supported: 1048576"}',
    })
    t.ok(await wire.closed)
  })
}

t.test('switched off, answers go out as they are, and no compressed body is taken', async t => {
  const node = await startLocalNode(t, { compresses: false })
  await node.json('POST /v2/op/update', { actionType: 'append', entities: rooms.slice(0, 20) })
  const { headers } = await ask(node, 'GET /v2/entities', [accept('gzip')])
  t.match([headers['content-encoding'], headers.vary], [undefined, undefined])
  const body = gzipSync('{"id":"E1"}')
  const refused = await ask(node, 'POST /v2/entities', [jsonType, 'Content-Encoding: gzip'], body)
  t.match(refused, { status: 415, headers: { 'accept-encoding': 'identity' } })
})

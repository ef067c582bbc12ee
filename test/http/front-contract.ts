// The contract of every HTTP front, over real sockets. uws-front.test.ts and node-front.test.ts run it.
//
// Each test passes its own handlers. `received` in a test is the request as the handler has received it; the client is
// a Wire, which hides nothing.
//
// Not here: behaviour of only one of them, in the two test files.

import { execFileSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request as tlsRequest } from 'node:https'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import type { Test } from 'tap'
import type { Exchange, Front, FrontHandler, FrontOptions, TlsContents, TlsFiles } from '../../src/http/front.js'
import { suites12 } from '../../src/http/tls.js'
import { beyond, type Cut, failedCuts, shapes } from './cut-requests.js'
import { SlowReader } from './slow-reader.js'
import { Wire } from './wire.js'

export type Open = (options: FrontOptions, handler: FrontHandler) => Promise<Front>

export const plainOptions: FrontOptions = {
  port: 0,
  host: '127.0.0.1',
  family: 'both',
  connectionsMax: 1000,
  connectionsPerAddressMax: 0,
  idleTimeoutS: 0,
  bodyBytesMax: 1000,
}

type OnRequest = FrontHandler['onRequest']

/** A front that listens until the test ends, and a client of it. */
export async function serve(t: Test, open: Open, onRequest: OnRequest, options: Partial<FrontOptions> = {}) {
  const front = await open({ ...plainOptions, ...options }, { onRequest })
  const port = await front.listen()
  t.teardown(() => front.close(0))
  return { front, port, wire: await Wire.to(port, options.family === 'ipv6' ? '::1' : '127.0.0.1') }
}

/** Answers with the body, at once. */
export const echo: OnRequest = exchange => body => exchange.reply(200, [], Uint8Array.from(body))
/** Answers with method and path, without looking at a body. */
const greet: OnRequest = exchange => {
  exchange.reply(200, ['Content-Type', 'text/plain'], `${exchange.method} ${exchange.path}`)
  return undefined
}

/** Heads that two servers in a row may read in two ways, with the bytes that one of them reads as the body. */
const ambiguous: readonly (readonly [what: string, headers: readonly string[], body: string])[] = [
  ['two lengths', ['Host: a', 'Content-Length: 2', 'Content-Length: 40'], 'ab'],
  ['the same length twice', ['Host: a', 'Content-Length: 2', 'Content-Length: 2'], 'ab'],
  ['an empty length', ['Host: a', 'Content-Length: '], ''],
  ['a length that is no number', ['Host: a', 'Content-Length: 2x'], 'ab'],
  ['two hosts', ['Host: a', 'HOST: b', 'Content-Length: 2'], 'ab'],
  ['a length and chunks', ['Host: a', 'Content-Length: 4', 'Transfer-Encoding: chunked'], '2\r\nab\r\n0\r\n\r\n'],
  ['chunks twice', ['Host: a', 'Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], '2\r\nab\r\n0\r\n\r\n'],
  ['chunks of something', ['Host: a', 'Transfer-Encoding: gzip, chunked'], '2\r\nab\r\n0\r\n\r\n'],
  ['a word that ends alike', ['Host: a', 'Transfer-Encoding: xchunked'], '2\r\nab\r\n0\r\n\r\n'],
  ['chunks twice in one header', ['Host: a', 'Transfer-Encoding: chunked, chunked'], '2\r\nab\r\n0\r\n\r\n'],
  ['another encoding', ['Host: a', 'Transfer-Encoding: identity'], ''],
  ['a length with a byte outside ASCII', ['Host: a', 'Content-Length: 2\x80'], 'ab'],
  ['chunks with a byte outside ASCII', ['Host: a', 'Transfer-Encoding: chunked\xff'], '2\r\nab\r\n0\r\n\r\n'],
]

/** Bodies in chunks that two servers may read in two ways, or that are not chunks. */
const oddChunks: Readonly<Record<string, string>> = {
  'a letter that is no digit': 'G\r\n0123456789abcdef\r\n0\r\n\r\n',
  'a sign that is no digit': ':\r\n0123456789\r\n0\r\n\r\n',
  'a line end that is none': '2\nab\n0\n\n',
  'no line end behind a chunk': '2\r\nabXX0\r\n\r\n',
  'a blank before the size': ' 2\r\nab\r\n0\r\n\r\n',
  'a blank behind the size': '2 \r\nab\r\n0\r\n\r\n',
  'no size': '\r\nab\r\n0\r\n\r\n',
  'a sign before the size': '+2\r\nab\r\n0\r\n\r\n',
  'a size beyond all': 'ffffffffffffffffff\r\nab\r\n0\r\n\r\n',
  'an end without a line end': '2\r\nab\r\n0\r\nXX',
  'a trailer that announces a length': '2\r\nab\r\n0\r\nContent-Length: 5\r\n\r\n',
}

/**
 * Header values, most with bytes outside ASCII, and the value that a handler sees. A front may replace bytes that are
 * not UTF-8.
 */
const foreignEnds: readonly (readonly [sent: string, seen: RegExp])[] = [
  ['seca\x80', /^seca[\x80-\xff]+$/],
  ['\xffseca', /^[\x80-\xff]+seca$/],
  ['\x80seca\xff', /^[\x80-\xff]+seca[\x80-\xff]+$/],
  ['\xc3\xa9', /^\xc3\xa9$/],
  ['\xe9', /^[\x80-\xff]+$/],
  ['caf\xc3\xa9', /^caf\xc3\xa9$/],
  [' \t\xc3\xa9caf\xc3\xa9\t ', /^\xc3\xa9caf\xc3\xa9$/],
  ['seca \x80', /^seca [\x80-\xff]+$/],
  ['\x80 seca', /^[\x80-\xff]+ seca$/],
  [' \tseca \t', /^seca$/],
  [' \t ', /^$/],
]

/** Cuts of a request for which a front may give another answer than to the whole. By default there are none. */
export type MayFail = (request: string) => readonly Cut[]

export interface Differences {
  readonly mayFail?: MayFail
  /** Whether the front serves requests that arrive behind one that is answered at once. */
  readonly pipelines?: boolean
}

export function frontContract(t: Test, open: Open, { mayFail = () => [], pipelines = true }: Differences = {}): void {
  for (const isTls of [false, true])
    for (const isLater of [false, true])
      t.test(
        `a ${isLater ? 'later' : 'first'} request ${isTls ? 'over TLS ' : ''}may come in two pieces, cut anywhere`,
        async t => {
          const answer: OnRequest = exchange => {
            const { method, path, query } = exchange
            const text = `${method} ${path} ${query} ${exchange.header('ctx-servicepath')}`
            const reply = (body: Uint8Array): void => exchange.reply(200, [], `${text} ${Buffer.from(body)}`)
            if (method === 'POST') return reply
            reply(new Uint8Array())
            return undefined
          }
          const { port } = await serve(t, open, answer, isTls ? { tls: certificate(t) } : {})
          const connect = () => (isTls ? Wire.overTls(port) : Wire.to(port))
          for (const [shape, request] of Object.entries(shapes))
            t.strictSame(beyond(await failedCuts(connect, request, isLater), mayFail(request)), [], shape)
        },
      )

  t.test('method, path and query arrive as they were sent', async t => {
    const received: string[] = []
    const { wire } = await serve(t, open, exchange => {
      received.push(`${exchange.method} | ${exchange.path} | ${exchange.query}`)
      return greet(exchange)
    })
    for (const line of ['GET /v2/a%2Fb%20c?q=a%3D1&x=+', 'PATCH /', 'PROPFIND /x?', 'DELETE /a//b/?a?b']) {
      await wire.request(line)
      await wire.answer()
    }
    t.strictSame(received, [
      'GET | /v2/a%2Fb%20c | q=a%3D1&x=+',
      'PATCH | / | ',
      'PROPFIND | /x | ',
      'DELETE | /a//b/ | a?b',
    ])
  })

  t.test('headers are found by their lower-case name, and an empty one differs from none', async t => {
    const received: unknown[] = []
    const { wire } = await serve(t, open, exchange => {
      for (const name of ['ctx-service', 'empty', 'none', 'constructor', '__proto__']) {
        received.push([exchange.header(name), exchange.headerTimes(name) > 0])
      }
      return greet(exchange)
    })
    await wire.request('GET /', ['Ctx-SERVICE:  lamps ', 'Empty:'])
    await wire.answer()
    t.strictSame(received, [
      ['lamps', true],
      ['', true],
      ['', false],
      ['', false],
      ['', false],
    ])
  })

  t.test('of a header sent twice the first one counts', async t => {
    const { wire } = await serve(t, open, exchange => {
      exchange.reply(200, [], exchange.header('ctx-service'))
      return undefined
    })
    await wire.request('GET /', ['Ctx-Service: one', 'Ctx-Service: two'])
    t.equal((await wire.answer()).body, 'one')
  })

  t.test('how often a header was sent is known', async t => {
    const { wire } = await serve(t, open, exchange => {
      exchange.reply(200, [], ['one', 'two', 'none'].map(name => exchange.headerTimes(name)).join())
      return undefined
    })
    await wire.request('GET /', ['One: 1', 'Two: 2', 'TWO:'])
    t.equal((await wire.answer()).body, '1,2,0')
  })

  t.test('a head that leaves open where its request ends is refused, and nothing behind it is served', async t => {
    const received: string[] = []
    const { port } = await serve(t, open, exchange => {
      received.push(exchange.path)
      return greet(exchange)
    })
    const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n'
    for (const [what, headers, body] of ambiguous) {
      for (const behind of ['', smuggled]) {
        const wire = await Wire.to(port)
        await wire.send(`POST /a HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n${body}${behind}`)
        if (behind === '') t.match(await wire.answer(), { status: 400 }, what)
        t.ok(await wire.closed, `${what}: the connection is closed`)
      }
    }
    t.strictSame(received, [])
  })

  t.test('header names with every character that HTTP allows are accepted', async t => {
    const { wire } = await serve(t, open, exchange => {
      exchange.reply(200, [], ['x_a', 'x.a', 'x!~a'].map(name => exchange.header(name)).join())
      return undefined
    })
    await wire.request('GET /', ['X_A: 1', 'X.A: 2', 'X!~A: 3'])
    t.equal((await wire.answer()).body, '1,2,3')
  })

  t.test('a header value outside ASCII goes out as the bytes that came in', async t => {
    const { wire } = await serve(t, open, exchange => {
      exchange.reply(200, ['Ctx-Correlator', exchange.header('ctx-correlator')])
      return undefined
    })
    await wire.request('GET /', ['Ctx-Correlator: caf\xc3\xa9s'])
    t.equal((await wire.answer()).headers['ctx-correlator'], 'caf\xc3\xa9s')
  })

  for (const isTls of [false, true])
    t.test(`bytes outside ASCII at the ends of a header value are kept${isTls ? ' over TLS' : ''}`, async t => {
      const answer: OnRequest = exchange => {
        exchange.reply(200, [], Buffer.from(exchange.header('ctx-service'), 'latin1'))
        return undefined
      }
      const { port } = await serve(t, open, answer, isTls ? { tls: certificate(t) } : {})
      const connect = () => (isTls ? Wire.overTls(port) : Wire.to(port))
      const kept = await connect()
      for (const [sent, seen] of foreignEnds) {
        const fresh = await connect()
        for (const wire of [fresh, kept]) {
          await wire.request('GET /', [`Ctx-Service: ${sent}`, 'User-Agent: \xe9'])
          t.match((await wire.answer()).body, seen, JSON.stringify(sent))
        }
        fresh.leave()
      }
      kept.leave()
    })

  t.test('a line end in a header of the answer cannot add another header', async t => {
    const { wire } = await serve(t, open, exchange => {
      exchange.reply(200, ['Location', '/a\r\nX-Evil: 1'])
      return undefined
    })
    await wire.request('GET /')
    t.match((await wire.answer()).headers, { location: '/a??X-Evil: 1', 'x-evil': undefined })
  })

  t.test('a request with ninety headers is served', async t => {
    const { wire } = await serve(t, open, exchange => {
      exchange.reply(200, [], exchange.header('h89'))
      return undefined
    })
    await wire.request(
      'GET /',
      Array.from({ length: 90 }, (_, i) => `h${i}: v${i}`),
    )
    t.equal((await wire.answer()).body, 'v89')
  })

  t.test('a request with two hundred headers never reaches the handler, and the next client is served', async t => {
    const received: string[] = []
    const { wire, port } = await serve(t, open, exchange => {
      received.push(exchange.path)
      return greet(exchange)
    })
    await wire.request(
      'GET /many',
      Array.from({ length: 200 }, (_, i) => `h${i}: v`),
    )
    const other = await Wire.to(port)
    await other.request('GET /next')
    t.equal((await other.answer()).body, 'GET /next')
    t.strictSame(received, ['/next'])
  })

  t.test('a head of 10 KB that comes in two segments is served', async t => {
    const { wire } = await serve(t, open, exchange => {
      exchange.reply(200, [], String(exchange.query.length))
      return undefined
    })
    await wire.send(`GET /?${'q'.repeat(6000)}`)
    await new Promise(resolve => setImmediate(resolve))
    await wire.send(`${'q'.repeat(4000)} HTTP/1.1\r\nHost: test\r\n\r\n`)
    t.equal((await wire.answer()).body, '10000')
  })

  t.test('the client address is readable text', async t => {
    const report: OnRequest = exchange => {
      exchange.reply(200, [], exchange.clientAddress())
      return undefined
    }
    const { wire, port } = await serve(t, open, report, { host: undefined })
    await wire.request('GET /')
    t.equal((await wire.answer()).body, '127.0.0.1')
    if (hasIPv6()) {
      const six = await Wire.to(port, '::1')
      await six.request('GET /')
      t.equal((await six.answer()).body, '::1')
    }
  })

  t.test('an empty body is given as no bytes', async t => {
    const { wire } = await serve(t, open, exchange => body => exchange.reply(200, [], `${body.length} bytes`))
    await wire.request('POST /', ['Content-Length: 0'])
    t.equal((await wire.answer()).body, '0 bytes')
    await wire.request('GET /')
    t.equal((await wire.answer()).body, '0 bytes')
  })

  t.test('a body arrives whole when it comes byte by byte', async t => {
    const { wire } = await serve(t, open, echo)
    for (const byte of 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\n{"a":"bcde"}') await wire.send(byte)
    t.equal((await wire.answer()).body, '{"a":"bcde"}')
  })

  t.test('a chunked body arrives whole', async t => {
    const { wire } = await serve(t, open, echo)
    await wire.send('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n')
    await wire.send('4\r\ndefg\r\n0\r\n\r\n')
    t.equal((await wire.answer()).body, 'abcdefg')
  })

  t.test('behind chunks that may be read in two ways nothing is served', async t => {
    const received: string[] = []
    const { port } = await serve(t, open, exchange => {
      received.push(exchange.path)
      return body => exchange.reply(200, [], Uint8Array.from(body))
    })
    const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n'
    for (const [what, chunks] of Object.entries(oddChunks)) {
      const wire = await Wire.to(port)
      const head = 'POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n'
      await wire.send(`${head}${chunks}${smuggled}`)
      t.ok(await wire.closed, `${what}: the connection is closed`)
    }
    t.strictSame([...new Set(received)], ['/a'])
  })

  t.test('chunks of a method whose body means nothing are refused', async t => {
    const received: string[] = []
    const { port } = await serve(t, open, exchange => {
      received.push(exchange.path)
      return greet(exchange)
    })
    for (const method of ['GET', 'DELETE', 'OPTIONS']) {
      const wire = await Wire.to(port)
      await wire.send(`${method} /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n`)
      t.equal((await wire.answer()).status, 400)
      t.ok(await wire.closed)
    }
    t.strictSame(received, [])
  })

  t.test('a body in chunks that is too large is refused, and its connection is closed', async t => {
    const told: unknown[] = []
    const { port } = await serve(t, open, exchange => (body, excess) => {
      told.push([body.length, excess])
      exchange.reply(413, [], 'too much')
    })
    const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`
    const end = '0\r\n\r\n'
    for (const chunks of [chunk('x'.repeat(1001)) + end, chunk('x'.repeat(600)).repeat(2)]) {
      const wire = await Wire.to(port)
      await wire.send(`POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`)
      t.match(await wire.answer(), { status: 413, headers: { connection: 'close' } })
      if (!chunks.endsWith(end)) await wire.send(end)
      t.ok(await wire.closed)
    }
    t.strictSame(told, [
      [0, 'bytes'],
      [0, 'bytes'],
    ])
  })

  t.test('a large answer to a body in chunks arrives whole', async t => {
    const large = randomBytes(300_000)
    const { port } = await serve(t, open, exchange => () => exchange.reply(200, [], [large]))
    const reader = await Wire.to(port)
    await reader.send('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n')
    t.equal((await reader.answer()).body, large.toString('latin1'))
    reader.leave()
  })

  t.test('a body of exactly the limit passes, with every byte value intact', async t => {
    const { wire } = await serve(t, open, echo)
    const body = Uint8Array.from({ length: 1000 }, (_, i) => i % 256)
    await wire.request('POST /', [], body)
    t.equal((await wire.answer()).body, Buffer.from(body).toString('latin1'))
  })

  t.test('a body over the limit ends the connection and reaches no handler', async t => {
    const received: number[] = []
    const { wire } = await serve(t, open, () => body => received.push(body.length))
    await wire.request('POST /', [], 'x'.repeat(1001))
    t.ok(await wire.closed)
    t.strictSame(received, [])
  })

  t.test('three requests share a connection, though no handler read the body of the second', async t => {
    const { wire } = await serve(t, open, greet)
    await wire.request('GET /1')
    t.equal((await wire.answer()).body, 'GET /1')
    await wire.request('POST /2', [], 'x'.repeat(5000))
    t.equal((await wire.answer()).body, 'POST /2')
    await wire.request('GET /3')
    t.equal((await wire.answer()).body, 'GET /3')
  })

  if (pipelines)
    t.test('pipelined requests are answered in order', async t => {
      const { wire } = await serve(t, open, greet)
      await wire.send('GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n')
      t.equal((await wire.answer()).body, 'GET /1')
      t.equal((await wire.answer()).body, 'GET /2')
    })

  t.test('an answer may come later than the request', async t => {
    const { wire } = await serve(t, open, exchange => body => {
      const text = Buffer.from(body).toString()
      if (text === 'soon') setImmediate(() => exchange.reply(200, ['A', 'b'], text))
      else setTimeout(() => exchange.reply(201, ['Location', '/x']), 50)
    })
    await wire.request('POST /', [], 'soon')
    t.match(await wire.answer(), { status: 200, headers: { a: 'b' }, body: 'soon' })
    await wire.request('POST /', [], 'later')
    t.match(await wire.answer(), { status: 201, reason: 'Created', headers: { location: '/x', 'content-length': '0' } })
  })

  t.test('every answer carries a date, and no name of a product', async t => {
    const { wire } = await serve(t, open, greet)
    await wire.request('GET /')
    const { headers } = await wire.answer()
    t.match(headers.date, /GMT$/)
    t.notOk('uwebsockets' in headers || 'server' in headers || 'x-powered-by' in headers)
  })

  t.test('204 has neither body nor length, 201 without a body has the length 0', async t => {
    const { wire } = await serve(t, open, exchange => {
      exchange.reply(exchange.path === '/204' ? 204 : 201, ['Ctx-Correlator', 'c'])
      return undefined
    })
    await wire.request('PATCH /204')
    const none = await wire.answer()
    t.match(none, { status: 204, reason: 'No Content', headers: { 'ctx-correlator': 'c' } })
    t.notOk('content-length' in none.headers || 'transfer-encoding' in none.headers)
    await wire.request('POST /201')
    t.match(await wire.answer(), { status: 201, reason: 'Created', headers: { 'content-length': '0' } })
  })

  t.test('text is measured in bytes, and a large answer arrives whole', async t => {
    const text = 'ä'.repeat(2_000_000)
    const { wire } = await serve(t, open, exchange => {
      exchange.reply(200, [], exchange.path === '/small' ? 'ä' : text)
      return undefined
    })
    await wire.request('GET /small')
    t.equal((await wire.answer()).headers['content-length'], '2')
    await wire.request('GET /large')
    const { body } = await wire.answer()
    t.ok(Buffer.from(body, 'latin1').equals(Buffer.from(text)))
    await wire.request('GET /small')
    t.equal((await wire.answer()).headers['content-length'], '2')
  })

  t.test('a second answer to the same request is ignored', async t => {
    const { wire } = await serve(t, open, exchange => {
      exchange.reply(200, [], 'first')
      exchange.reply(500, [], 'second')
      exchange.replyAndClose(500, [], 'third')
      setImmediate(() => exchange.reply(500, [], 'fourth'))
      return undefined
    })
    for (let i = 0; i < 2; i++) {
      await wire.request('GET /')
      t.equal((await wire.answer()).body, 'first')
    }
    t.equal(wire.unread, '')
  })

  t.test('an answer that closes may come once the body is there, and later', async t => {
    for (const isLate of [false, true]) {
      const { wire } = await serve(t, open, exchange => () => {
        const refuse = () => exchange.replyAndClose(413, ['Content-Type', 'text/plain'], 'too large')
        if (isLate) setImmediate(refuse)
        else refuse()
      })
      await wire.request('POST /', [], 'body')
      t.match(await wire.answer(), { status: 413, body: 'too large' })
      t.ok(await wire.closed)
    }
  })

  t.test('an answer that closes does so', async t => {
    const { wire, port } = await serve(t, open, exchange => {
      exchange.replyAndClose(
        exchange.path === '/204' ? 204 : 400,
        ['A', 'b'],
        exchange.path === '/204' ? undefined : 'no',
      )
      return undefined
    })
    await wire.request('GET /')
    t.match(await wire.answer(), { status: 400, headers: { a: 'b', connection: 'close' }, body: 'no' })
    t.ok(await wire.closed)
    const other = await Wire.to(port)
    await other.request('GET /204')
    t.match(await other.answer(), { status: 204, headers: { a: 'b', connection: 'close' } })
    t.ok(await other.closed)
  })

  t.test(
    'a request refused for its length is answered before its body comes, and the client may still send it',
    async t => {
      const { wire } = await serve(t, open, exchange => {
        exchange.replyAndClose(413, ['A', 'b'], 'too long')
        return undefined
      })
      await wire.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n')
      const answer = await wire.answer()
      t.match(answer, {
        status: 413,
        reason: 'Payload Too Large',
        headers: { a: 'b', connection: 'close' },
        body: 'too long',
      })
      t.match(answer.headers.date, /GMT$/)
      await wire.send('x'.repeat(3_000_000))
      t.ok(await wire.closed)
    },
  )

  t.test('a client that leaves before the answer does no harm', async t => {
    let answerLate = () => {}
    let announce = () => {}
    const arrived = new Promise<void>(resolve => {
      announce = resolve
    })
    const { wire, port } = await serve(t, open, exchange => {
      if (exchange.path !== '/leaves') return greet(exchange)
      answerLate = () => {
        exchange.reply(200, [], 'late')
        exchange.replyAndClose(200, [], 'later')
      }
      announce()
      return undefined
    })
    await wire.request('GET /leaves')
    await arrived
    wire.leave()
    await wire.closed
    const other = await Wire.to(port)
    await other.request('GET /1')
    await other.answer()
    answerLate()
    await other.request('GET /2')
    t.equal((await other.answer()).body, 'GET /2')
  })

  t.test('HEAD is answered without a body, and the connection goes on', async t => {
    const { wire } = await serve(t, open, exchange => {
      exchange.reply(405, ['Allow', 'GET'], '{"error":"x"}')
      return undefined
    })
    for (let i = 0; i < 2; i++) {
      await wire.request('HEAD /')
      t.match(await wire.answer(true), { status: 405, headers: { allow: 'GET', 'content-length': '13' } })
    }
    await wire.request('GET /')
    t.equal((await wire.answer()).body, '{"error":"x"}')
    t.equal(wire.unread, '')
  })

  t.test('a client that waits for 100 Continue gets it, and its body is read', async t => {
    const { wire } = await serve(t, open, echo)
    for (let i = 0; i < 2; i++) {
      await wire.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n')
      t.equal((await wire.answer()).status, 100)
      await wire.send('hello')
      t.match(await wire.answer(), { status: 200, reason: 'OK', body: 'hello' })
    }
  })

  t.test('the system chooses a port, and no other process can have it', async t => {
    const { port } = await serve(t, open, greet)
    t.ok(port > 0)
    const second = await open({ ...plainOptions, port }, { onRequest: greet })
    await t.rejects(second.listen(), { message: `address already in use: 127.0.0.1:${port}` })
    await second.close(0)
    const everywhere = await serve(t, open, greet, { host: undefined })
    const third = await open({ ...plainOptions, port: everywhere.port, host: undefined }, { onRequest: greet })
    await t.rejects(third.listen(), { message: /^address already in use: / })
    await third.close(0)
  })

  t.test('an address of another machine is refused with the reason', async t => {
    const front = await open({ ...plainOptions, host: '192.0.2.1' }, { onRequest: greet })
    await t.rejects(front.listen(), { message: /^cannot listen: 192\.0\.2\.1:0 .*EADDRNOTAVAIL/ })
    await front.close(0)
  })

  t.test('connections that wait for their answer keep their places, and further ones are closed at once', async t => {
    const held: Exchange[] = []
    const reasons: string[] = []
    const hold: OnRequest = exchange => {
      if (exchange.path === '/held') held.push(exchange)
      else exchange.reply(200, [], exchange.path)
      return undefined
    }
    const onDropped = (reason: string): void => void reasons.push(reason)
    const { wire, port } = await serve(t, open, hold, { connectionsMax: 2, onDropped })
    const second = await Wire.to(port)
    for (const client of [wire, second]) await client.request('GET /held')
    while (held.length < 2) await new Promise(setImmediate)
    t.ok(await (await Wire.to(port)).closed)
    t.strictSame(reasons, ['full'])
    for (const exchange of held) exchange.reply(200, [], 'late')
    for (const client of [wire, second]) t.equal((await client.answer()).body, 'late')
    const third = await Wire.to(port)
    await third.request('GET /next')
    t.equal((await third.answer()).body, '/next')
    t.strictSame(reasons, ['full', 'room'])
  })

  t.test('ipv4 alone does not listen on ::1, nor ipv6 alone serve 127.0.0.1', { skip: !hasIPv6() }, async t => {
    const four = await serve(t, open, greet, { host: undefined, family: 'ipv4' })
    await t.rejects(Wire.to(four.port, '::1'), { code: 'ECONNREFUSED' })
    const six = await serve(t, open, greet, { host: undefined, family: 'ipv6' })
    await six.wire.request('GET /')
    t.equal((await six.wire.answer()).body, 'GET /')
    t.ok(
      await Wire.to(six.port, '127.0.0.1').then(
        wire => wire.closed,
        () => true,
      ),
    )
  })

  t.test('HTTPS is served with a key and a certificate', async t => {
    const tls = certificate(t)
    const { port } = await serve(t, open, echo, { tls, connectionsMax: 2 })
    const request = tlsRequest({ port, host: '127.0.0.1', method: 'POST', rejectUnauthorized: false, agent: false })
    request.end('secret')
    const [response] = await once(request, 'response')
    response.setEncoding('latin1')
    t.equal((await response.toArray()).join(''), 'secret')
  })

  // A server that counts addresses keeps a record of each connection (docs/operations/connections.md).
  for (const connectionsPerAddressMax of [0, 1000])
    t.test(
      `a new certificate is for new connections, and none is refused meanwhile, ${connectionsPerAddressMax} of an address`,
      async t => {
        const pairs = [certificate(t, 'first'), certificate(t, 'second'), certificate(t, 'third')] as const
        const tls = certificate(t, 'first')
        const put = (files: TlsFiles): TlsContents => {
          const pair = { key: readFileSync(files.keyFile), cert: readFileSync(files.certFile) }
          writeFileSync(tls.keyFile, pair.key)
          writeFileSync(tls.certFile, pair.cert)
          return pair
        }
        const { port, front } = await serve(t, open, greet, { tls, connectionsPerAddressMax })
        const kept = await Wire.overTls(port)
        const ask = async (wire: Wire): Promise<string> => {
          await wire.request('GET /')
          return (await wire.answer()).body
        }
        t.equal(await ask(kept), 'GET /')
        let isOver = false
        let served = 0
        const loop = async (): Promise<void> => {
          while (!isOver) {
            const wire = await Wire.overTls(port)
            if ((await ask(wire)) === 'GET /') served++
            wire.leave()
            await wire.closed
          }
        }
        const loops = Promise.all([loop(), loop(), loop()])
        const held: Wire[] = []
        for (let round = 0; round < 6; round++) {
          front.renewTls(put(pairs[(round + 1) % 3]!))
          const wire = await Wire.overTls(port)
          t.equal(wire.subject, ['second', 'third', 'first'][round % 3])
          t.equal(await ask(wire), 'GET /')
          if (held.length < 3) held.push(wire)
          else wire.leave()
        }
        for (const wire of [kept, ...held])
          t.equal(await ask(wire), 'GET /', 'a connection of an old certificate goes on')

        const [{ key }, { cert }] = [put(pairs[1]), put(pairs[2])]
        t.throws(() => front.renewTls({ key, cert }), /^cannot use the TLS files .*key values mismatch/)
        t.equal((await Wire.overTls(port)).subject, 'first', 'the old one goes on')
        isOver = true
        await loops
        t.ok(served > 0, `${served} connections were served meanwhile`)
        await front.close(0)
        t.ok(await kept.closed, 'closing closes those of old certificates as well')
      },
    )

  t.test('TLS offers suites with forward secrecy and authenticated encryption only', async t => {
    const { port } = await serve(t, open, echo, { tls: certificate(t) })
    const weak = ['ECDHE-ECDSA-AES128-SHA', 'ECDHE-ECDSA-AES256-SHA384', 'AES128-GCM-SHA256', 'AES256-SHA']
    for (const ciphers of [...weak, ...suites12.filter(suite => suite.startsWith('ECDHE-ECDSA'))]) {
      const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ciphers, maxVersion: 'TLSv1.2' })
      const outcome = await Promise.race([
        once(socket, 'secureConnect').then(
          () => 'taken',
          () => 'refused',
        ),
        once(socket, 'close').then(
          () => 'refused',
          () => 'refused',
        ),
      ])
      socket.destroy()
      t.equal(outcome, weak.includes(ciphers) ? 'refused' : 'taken', ciphers)
    }
  })

  t.test('a key that is not there is an error that names it', async t => {
    const tls = { keyFile: '/nowhere/key.pem', certFile: '/nowhere/cert.pem', minVersion: '1.2' } as const
    await t.rejects(open({ ...plainOptions, tls }, { onRequest: greet }), { message: /\/nowhere\/key\.pem/ })
  })

  t.test('once clients are dismissed each answer ends its connection, and new ones are taken', async t => {
    const { front, wire, port } = await serve(t, open, greet)
    await wire.request('GET /1')
    t.not((await wire.answer()).headers.connection, 'close')
    front.dismiss()
    for (const client of [wire, await Wire.to(port)]) {
      await client.request('GET /2')
      t.match(await client.answer(), { body: 'GET /2', headers: { connection: 'close' } })
      t.ok(await client.closed)
    }
  })

  t.test('closing answers requests in flight, refuses new clients, and ends idle ones', async t => {
    const waiting: Exchange[] = []
    let announce = () => {}
    const arrived = new Promise<void>(resolve => {
      announce = resolve
    })
    const { front, wire, port } = await serve(t, open, exchange => {
      waiting.push(exchange)
      if (waiting.length === 2) announce()
      return undefined
    })
    const other = await Wire.to(port)
    const idle = await Wire.to(port)
    await wire.request('GET /large')
    await other.request('DELETE /none')
    await arrived
    await front.unlisten()
    const closed = front.close(60_000)
    await t.rejects(Wire.to(port), { code: 'ECONNREFUSED' })
    const large = 'x'.repeat(3_000_000)
    for (const exchange of waiting) {
      if (exchange.path === '/none') exchange.reply(204, [])
      else exchange.reply(200, [], large)
    }
    t.match(await other.answer(), { status: 204, headers: { connection: 'close' } })
    const answer = await wire.answer()
    t.match(answer, { status: 200, headers: { connection: 'close' } })
    t.equal(answer.body.length, large.length)
    await closed
    t.ok((await wire.closed) && (await other.closed) && (await idle.closed))
  })

  t.test('closing does not cut an answer that its client is slow to read', async t => {
    const large = Buffer.alloc(12_000_000, 'x')
    let announce = () => {}
    const answered = new Promise<void>(resolve => {
      announce = resolve
    })
    const { front, wire } = await serve(t, open, exchange => {
      setImmediate(() => {
        exchange.reply(200, [], large)
        announce()
      })
      return undefined
    })
    wire.read(false)
    await wire.request('GET /')
    await answered
    const closed = front.close(60_000)
    wire.read(true)
    t.equal((await wire.answer()).body.length, large.length)
    await closed
  })

  for (const isTls of [false, true]) {
    const tls = (t: Test) => (isTls ? { tls: certificate(t) } : {})
    const over = isTls ? ' over TLS' : ''

    t.test(`a large answer${over}, in parts or not, arrives whole at a client that is slow to read`, async t => {
      const parts = [1, 70_000, 3, 1_000_000, 65_536, 65_537, 28_000_000, 0, 5].map(size => randomBytes(size))
      const whole = Buffer.concat(parts)
      const sent: string[] = []
      const answer: OnRequest = exchange => {
        const body = exchange.path === '/parts' ? parts : whole
        setImmediate(() => exchange.reply(200, [], body, () => sent.push(exchange.path)))
        return undefined
      }
      const { port } = await serve(t, open, answer, tls(t))
      for (const path of ['/parts', '/whole']) {
        const reader = await SlowReader.to(port, isTls)
        reader.ask(path)
        t.equal(await reader.bodyHash(whole.length), createHash('sha256').update(whole).digest('hex'))
        // The same connection serves another request.
        reader.ask(path)
        t.equal(await reader.bodyHash(whole.length), createHash('sha256').update(whole).digest('hex'))
        reader.leave()
        while (sent.length < 2) await new Promise(resolve => setTimeout(resolve, 5))
        t.strictSame(sent.splice(0), [path, path])
      }
    })

    t.test(`a client that takes no byte of its answer${over} is closed, others are not`, async t => {
      const body = Buffer.alloc(30_000_000, 'x')
      const sent: string[] = []
      const stalled: number[] = []
      let announce = () => {}
      const over = new Promise<void>(resolve => {
        announce = resolve
      })
      const answer: OnRequest = exchange => {
        setImmediate(() =>
          exchange.reply(200, [], body, () => {
            sent.push(exchange.path)
            if (exchange.path === '/none') announce()
          }),
        )
        return undefined
      }
      const options = { answerStallMs: 1_000, onStall: () => stalled.push(sent.length), ...tls(t) }
      const { port } = await serve(t, open, answer, options)
      const none = await SlowReader.to(port, isTls)
      const slow = await SlowReader.to(port, isTls, 20)
      none.stop()
      none.ask('/none')
      slow.ask('/slow')
      await over
      t.strictSame(stalled.length, 1)
      t.equal(await slow.bodyHash(body.length), createHash('sha256').update(body).digest('hex'))
      t.strictSame([stalled.length, sent], [1, ['/none', '/slow']])
      slow.leave()
      none.leave()
    })
  }

  t.test('a client that asks again and again and reads nothing gets no more than the system keeps for it', async t => {
    const body = 'x'.repeat(15_000)
    let answered = 0
    const { wire } = await serve(t, open, exchange => {
      answered++
      exchange.reply(200, [], body)
      return undefined
    })
    wire.read(false)
    let isClosed = false
    void wire.closed.then(() => {
      isClosed = true
    })
    const asked = 10_000
    let sent = 0
    const send = async (): Promise<void> => {
      for (; sent < asked && !isClosed; sent++) await wire.request('GET /')
    }
    void send()
    for (let quiet = 0, before = -1; quiet < 20 && !isClosed; before = answered) {
      await new Promise(resolve => setTimeout(resolve, 25))
      quiet = answered === before ? quiet + 1 : 0
    }
    t.ok(answered < asked / 2, `${answered} answers`)
    wire.leave()
  })

  t.test('the source of a large answer is called when its client goes', async t => {
    let announce = () => {}
    const over = new Promise<void>(resolve => {
      announce = resolve
    })
    const { wire } = await serve(t, open, exchange => {
      setImmediate(() => exchange.reply(200, [], [Buffer.alloc(30_000_000)], announce))
      return undefined
    })
    wire.read(false)
    await wire.request('GET /')
    setTimeout(() => wire.leave(), 50)
    await over
  })

  t.test('the source of an answer is called at once when the client has gone', async t => {
    const held: Exchange[] = []
    const { wire, port } = await serve(t, open, exchange => {
      held.push(exchange)
      return undefined
    })
    await wire.request('GET /')
    while (held.length === 0) await new Promise(resolve => setImmediate(resolve))
    wire.leave()
    const other = await Wire.to(port)
    await other.request('GET /')
    while (held.length === 1) await new Promise(resolve => setImmediate(resolve))
    await new Promise(resolve => setTimeout(resolve, 50))
    let times = 0
    held[0]!.reply(200, [], 'x', () => times++)
    t.equal(times, 1)
  })

  t.test('closing does not wait longer than its time', async t => {
    const { front, wire } = await serve(t, open, () => undefined)
    await wire.request('GET /')
    t.strictSame(await front.close(20), { connections: 1, requests: 1 })
    t.ok(await wire.closed)
  })

  for (const isTls of [false, true])
    t.test(
      `while it closes, ${isTls ? 'over TLS ' : ''}requests are answered, and idle connections end in order`,
      async t => {
        const { front, port, wire: unused } = await serve(t, open, greet, isTls ? { tls: certificate(t) } : {})
        const connect = () => (isTls ? Wire.overTls(port) : Wire.to(port))
        const [busy, idle] = [await connect(), await connect()]
        for (const wire of [busy, idle]) {
          await wire.request('GET /1')
          t.equal((await wire.answer()).body, 'GET /1')
        }
        await front.unlisten()
        const closed = front.close(60_000)
        await busy.request('GET /2')
        t.match(await busy.answer(), { body: 'GET /2', headers: { connection: 'close' } })
        for (const wire of [busy, idle, unused]) {
          t.ok(await wire.closed)
          t.equal(wire.failure, undefined)
        }
        t.equal(await closed, undefined, 'nothing was cut off')
      },
    )

  t.test(
    'a client whose connection was not accepted yet is answered, and answers wait until the port is closed',
    async t => {
      const { front, port } = await serve(t, open, greet)
      const connecting = Array.from({ length: 20 }, () => Wire.to(port))
      const unlistened = front.unlisten()
      const wires = await Promise.all(connecting)
      for (const wire of wires) await wire.request('GET /')
      await unlistened
      await t.rejects(Wire.to(port), { code: 'ECONNREFUSED' })
      t.strictSame(
        wires.map(({ unread }) => unread),
        wires.map(() => ''),
      )
      const closed = front.close(60_000)
      for (const wire of wires) t.match(await wire.answer(), { body: 'GET /', headers: { connection: 'close' } })
      t.equal(await closed, undefined)
    },
  )

  t.test('a client that does not send HTTP gets no service, and the next client does', async t => {
    const { wire, port } = await serve(t, open, greet)
    for (const garbage of [
      '\x16\x03\x01\x02\x00\x01\x00\x01',
      'hello world\r\n\r\n',
      `GET / HTTP/1.1\r\n: x\r\n\r\n`,
    ]) {
      const rude = await Wire.to(port)
      await rude.send(`${garbage}\r\n\r\n`)
      t.ok(await rude.closed)
    }
    await wire.request('GET /')
    t.equal((await wire.answer()).body, 'GET /')
  })
}

function hasIPv6(): boolean {
  return Object.values(networkInterfaces()).some(list => list?.some(({ address }) => address === '::1'))
}

/** A key and a certificate of its own, until the test ends. */
export function certificate(t: Test, name = 'test'): TlsFiles {
  const folder = mkdtempSync(join(tmpdir(), 'front-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const [keyFile, certFile] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const wanted = [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-days',
    '2',
    '-subj',
    `/CN=${name}`,
  ]
  execFileSync('openssl', ['req', '-x509', ...wanted, '-keyout', keyFile, '-out', certFile], { stdio: 'ignore' })
  return { keyFile, certFile, minVersion: '1.2' }
}

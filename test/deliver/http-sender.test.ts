// The bytes that the HTTP sender sends, and the outcomes that it reports, over real sockets.

import { lookup } from 'node:dns/promises'
import { Socket } from 'node:net'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/clock.js'
import { HttpSender, type HttpSenderOptions } from '../../src/deliver/http-sender.js'
import type { SendResult } from '../../src/deliver/sender.js'
import { openSockets, Trust } from '../../src/deliver/sockets/sockets.js'
import type { HttpMessage } from '../../src/domain/subscriptions/message.js'
import { freePort } from '../support/broker-process.js'
import { post, sendable } from './messages.js'
import { certificateFor, httpReceiver, plainReceiver, until } from './receivers.js'

const verified = { insecure: false, caFile: undefined }

function senderFor(
  t: Test,
  options: Partial<HttpSenderOptions> = {},
  tls = verified as Parameters<typeof openSockets>[0],
) {
  const sender = new HttpSender(systemClock, openSockets(tls), { timeoutMs: 5000, connectionsMax: 10, ...options })
  t.teardown(() => sender.close())
  const send = (message: HttpMessage): Promise<SendResult> =>
    new Promise(resolve => sender.send(sendable(message), resolve))
  return { sender, send }
}

const bytes = (...lines: string[]): string => `${lines.join('\r\n')}\r\n\r\n`

/** Answers the first data of each socket with these bytes. */
const says = (text: string) => (socket: Socket) => {
  socket.once('data', () => socket.write(text))
}

t.test('a message arrives as it was given, with Host and Content-Length', async t => {
  const receiver = await httpReceiver(t)
  const { send } = senderFor(t)
  const headers = ['X-Second', '2', 'Content-Type', 'application/json', 'x-First', '1']
  const result = await send(post(`${receiver.url}/v1/x?a=b&c=%20`, { headers, body: '{"ä":1}' }))
  t.same(result, { kind: 'answered', code: 204 })
  const [{ method, path, headers: got, body }] = receiver.received as [(typeof receiver.received)[0]]
  t.same([method, path, body], ['POST', '/v1/x?a=b&c=%20', '{"ä":1}'])
  const host = ['host', `127.0.0.1:${receiver.port}`]
  t.same(got, [...host, 'connection', 'keep-alive', ...headers, 'content-length', '8'])
})

t.test('every method is sent, with a body and without', async t => {
  const receiver = await httpReceiver(t)
  const { send } = senderFor(t)
  for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD', 'TRACE'])
    for (const body of ['x', undefined]) {
      if (body && method === 'TRACE') continue
      t.same(await send(post(receiver.url, { method, body })), { kind: 'answered', code: 204 }, method)
      t.match(receiver.received.at(-1), { method, body: body ? 'x' : '' })
    }
  const empty = receiver.received.find(one => one.method === 'POST' && one.body === '')
  t.equal(empty?.headers.at(-1), '0', 'an empty POST says so')
})

t.test('CONNECT is answered like others', async t => {
  const receiver = await plainReceiver(t, says(bytes('HTTP/1.1 200 OK')))
  const { send } = senderFor(t)
  t.same(await send(post(receiver.url, { method: 'CONNECT', body: undefined })), { kind: 'answered', code: 200 })
})

t.test('a given Host is sent, framing is the sender’s, and headers are UTF-8', async t => {
  const receiver = await httpReceiver(t)
  const { send } = senderFor(t)
  const framing = [
    'Content-Length',
    '999',
    'transfer-encoding',
    'chunked',
    'Connection',
    'close',
    'Expect',
    '100-continue',
  ]
  await send(post(receiver.url, { headers: ['Host', 'elsewhere:1', ...framing, 'X', 'ä→'], body: '12' }))
  const got = receiver.received[0]!.headers
  t.same(got.slice(0, 2), ['host', 'elsewhere:1'])
  t.same(got.slice(-2), ['content-length', '2'])
  t.equal(Buffer.from(got[got.indexOf('X') + 1]!, 'latin1').toString(), 'ä→')
  t.equal(got.length, 8)
})

t.test('a header that would begin a new line is not sent, and the connection is not lost', async t => {
  const receiver = await httpReceiver(t)
  const { send } = senderFor(t)
  for (const [name, value] of [
    ['X', 'a\r\nY: b'],
    ['X', 'a\nb'],
    ['X', '\0'],
    ['X\r\nY', 'b'],
    ['X Y', 'b'],
    ['', 'b'],
  ]) {
    const result = await send(post(receiver.url, { headers: [name!, value!] }))
    t.match(result, { kind: 'unsendable', reason: /^Not a message: / })
  }
  t.match(await send(post(receiver.url, { method: 'GE T' })), { kind: 'unsendable' })
  t.same(await send(post(receiver.url)), { kind: 'answered', code: 204 })
  t.equal(receiver.received.length, 1)
})

t.test('bytes that are not allowed in a request line are encoded', async t => {
  const receiver = await httpReceiver(t)
  const { send } = senderFor(t)
  await send(post(`${receiver.url}/a b\r\nX: y?ä=\ud800#rest`))
  t.equal(receiver.received[0]?.path, '/a%20b%0D%0AX:%20y?%C3%A4=%EF%BF%BD')
})

t.test('any status is an answer', async t => {
  const codes = [200, 300, 304, 400, 404, 429, 500, 503]
  const receiver = await httpReceiver(t, ({ path }, response) => {
    response.writeHead(Number(path.slice(1)), { Location: '/200' }).end()
  })
  const { send } = senderFor(t)
  for (const code of codes) t.same(await send(post(`${receiver.url}/${code}`)), { kind: 'answered', code })
  t.equal(receiver.received.length, codes.length)
  t.equal(receiver.connections, 1, 'one connection is enough')
})

t.test('redirects are followed with the same verb and body, and not for ever', async t => {
  const receiver = await httpReceiver(t, ({ path }, response) => {
    const [, code, left] = path.split('/').map(Number) as [number, number, number]
    if (left === 0) response.writeHead(201).end()
    else response.writeHead(code, { Location: `../${code}/${left - 1}` }).end('gone')
  })
  const { send } = senderFor(t)
  for (const code of [301, 302, 303, 307, 308]) {
    receiver.received.length = 0
    const message = post(`${receiver.url}/${code}/10`, { method: 'PUT', body: 'x' })
    t.same(await send(message), { kind: 'answered', code: 201 })
    t.equal(receiver.received.length, 11)
    for (const one of receiver.received) t.match(one, { method: 'PUT', body: 'x' })
  }
  t.same(await send(post(`${receiver.url}/302/11`)), { kind: 'answered', code: 302 }, 'one too many')
})

t.test('another receiver gets all but tokens and the host', async t => {
  const other = await httpReceiver(t)
  const receiver = await httpReceiver(t, (_, response) => {
    response.writeHead(307, { Location: `${other.url}/there?a` }).end()
  })
  const { send } = senderFor(t)
  const headers = ['X-Auth-Token', 's', 'X-One', '1', 'Host', 'h', 'authorization', 's']
  t.same(await send(post(receiver.url, { headers })), { kind: 'answered', code: 204 })
  const [one] = other.received as [(typeof other.received)[0]]
  t.equal(one.path, '/there?a')
  t.match(one.headers.join(' '), /X-One 1/)
  t.notMatch(one.headers.join(' ').toLowerCase(), /token|authorization|host h/)
})

t.test('where a redirect must not lead, it is the answer', async t => {
  const plain = await httpReceiver(t)
  const places = ['mqtt://x', 'http://', 'http://[', plain.url] as const
  const receiver = await httpReceiver(
    t,
    ({ path }, response) => response.writeHead(302, { Location: places[Number(path.slice(1))] }).end(),
    certificateFor(t, 'IP:127.0.0.1'),
  )
  const { send } = senderFor(t, {}, { insecure: true, caFile: undefined })
  for (const [at, place] of places.entries())
    t.same(await send(post(`${receiver.url}/${at}`)), { kind: 'answered', code: 302 }, place)
  t.equal(plain.received.length, 0)
})

t.test('informational answers are not the answer', async t => {
  const text = bytes('HTTP/1.1 102 Processing') + bytes('HTTP/1.1 201 Created', 'Content-Length: 0')
  const receiver = await plainReceiver(t, says(text))
  const { send } = senderFor(t)
  t.same(await send(post(receiver.url)), { kind: 'answered', code: 201 })
  const closing = await plainReceiver(t, socket => {
    socket.once('data', () => socket.end(bytes('HTTP/1.1 102 Processing')))
  })
  const reason = 'Server returned nothing (no headers, no data)'
  t.same(await send(post(closing.url)), { kind: 'failed', reason })
})

t.test('messages at a time have connections of their own, which are used again', async t => {
  const receiver = await httpReceiver(t)
  const { send, sender } = senderFor(t)
  for (let round = 0; round < 3; round++) await Promise.all([1, 2, 3].map(() => send(post(receiver.url))))
  t.equal(receiver.received.length, 9)
  t.equal(receiver.connections, 3)
  t.equal(sender.stats().connections, 3)
})

t.test('the longest idle connection gives way to a new receiver', async t => {
  const [a, b, c] = [await httpReceiver(t), await httpReceiver(t), await httpReceiver(t)]
  const { send, sender } = senderFor(t, { connectionsMax: 2 })
  for (const { url } of [a, b, c]) await send(post(url))
  t.equal(sender.stats().connections, 2)
  await until(() => a.open === 0)
  t.same([b.open, c.open], [1, 1])
})

t.test('an idle connection that the receiver closes is forgotten', async t => {
  const receiver = await httpReceiver(t)
  const { send, sender } = senderFor(t)
  await send(post(receiver.url))
  await receiver.close()
  await until(() => sender.stats().connections === 0)
})

t.test('a connection that had served and is lost before an answer is replaced once', async t => {
  let served = 0
  const receiver = await plainReceiver(t, socket => {
    let seen = 0
    socket.on('data', () => {
      served++
      if (++seen === 1) socket.write(bytes('HTTP/1.1 204 No Content'))
      else socket.resetAndDestroy()
    })
  })
  const { send } = senderFor(t)
  t.same(await send(post(receiver.url)), { kind: 'answered', code: 204 })
  t.same(await send(post(receiver.url)), { kind: 'answered', code: 204 })
  t.equal(served, 3)
  t.equal(receiver.connections, 2)
})

t.test('a fresh connection that is lost before an answer is a failure at once', async t => {
  const reset = await plainReceiver(t, socket => socket.once('data', () => socket.resetAndDestroy()))
  const closed = await plainReceiver(t, socket => socket.once('data', () => socket.end()))
  const { send } = senderFor(t)
  const reason = 'Server returned nothing (no headers, no data)'
  t.same(await send(post(reset.url)), { kind: 'failed', reason })
  t.same(await send(post(closed.url)), { kind: 'failed', reason })
  t.same([reset.connections, closed.connections], [1, 1])
})

t.test('a connection that has been made anew has not served', async t => {
  const receiver = await plainReceiver(t, socket => {
    socket.once('data', () => {
      if (receiver.connections === 1) socket.write(bytes('HTTP/1.1 204 No Content'))
      else socket.resetAndDestroy()
    })
  })
  const { send } = senderFor(t)
  // After a GET with a body the connection is not used again, and the next message comes before it is closed.
  const message = post(receiver.url, { method: 'GET' })
  t.same(await send(message), { kind: 'answered', code: 204 })
  t.match(await send(message), { kind: 'failed' })
  t.equal(receiver.connections, 2)
})

t.test('an absent receiver, or one without a name, is reported in the words of the specification', async t => {
  const { send } = senderFor(t)
  const nobody = `http://127.0.0.1:${await freePort()}`
  t.same(await send(post(nobody)), { kind: 'failed', reason: "Couldn't connect to server" })
  const isUnknown = await lookup('nobody.invalid').then(
    () => false,
    () => true,
  )
  const unknown = { kind: 'failed', reason: "Couldn't resolve host name" }
  t.same(await send(post('http://nobody.invalid')), unknown, {
    skip: !isUnknown && 'this network answers for any name',
  })
})

t.test('a receiver that stalls is given up in time, at any stage', async t => {
  const silent = await plainReceiver(t, socket => socket.resume())
  const slowHead = await plainReceiver(t, socket => {
    socket.write('HTTP/1.1 200')
    socket.resume()
    const timer = setInterval(() => socket.write(' '), 10)
    socket.on('close', () => clearInterval(timer))
  })
  const { send, sender } = senderFor(t, { timeoutMs: 100 })
  const timeout = { kind: 'failed', reason: 'Timeout was reached' }
  const before = performance.now()
  t.same(await Promise.all([send(post(silent.url)), send(post(slowHead.url))]), [timeout, timeout])
  const took = performance.now() - before
  t.ok(took > 90 && took < 2000, `${took} ms`)
  t.same(await send(post(silent.url, { timeoutMs: 20 })), timeout)
  t.equal(sender.stats().connections, 0)
  await until(() => silent.open + slowHead.open === 0)
})

t.test('a receiver that never accepts the connection is given up in time, and the socket is closed', async t => {
  const sockets: Socket[] = []
  const openSocket = (): Socket => {
    // This socket never connects, as if no host answered at all.
    const socket = new Socket()
    sockets.push(socket)
    return socket
  }
  const sender = new HttpSender(systemClock, openSocket, { timeoutMs: 50, connectionsMax: 1 })
  // Neither such a socket nor a timer of the clock keeps the process alive; this one does.
  const alive = setInterval(() => {}, 1000)
  t.teardown(() => {
    clearInterval(alive)
    sender.close()
  })
  const result = await new Promise<SendResult>(resolve => sender.send(sendable(post('http://10.0.0.1')), resolve))
  t.same(result, { kind: 'failed', reason: 'Timeout was reached' })
  t.same(
    sockets.map(socket => socket.destroyed),
    [true],
  )
})

t.test('once the status is known it is an answer, even if the rest fails', async t => {
  const stalls = await plainReceiver(t, says(`${bytes('HTTP/1.1 200 OK', 'Content-Length: 10')}12345`))
  const breaks = await plainReceiver(t, socket => {
    socket.once('data', () => {
      socket.write(`${bytes('HTTP/1.1 202 Accepted', 'Content-Length: 10')}123`, () =>
        setTimeout(() => socket.destroy(), 20),
      )
    })
  })
  const { send } = senderFor(t, { timeoutMs: 100 })
  t.same(await send(post(stalls.url)), { kind: 'answered', code: 200, bytes: 10 })
  t.same(await send(post(breaks.url)), { kind: 'answered', code: 202, bytes: 10 })
})

t.test('of a large answer no more than a bound is read', async t => {
  let written = 0
  const receiver = await httpReceiver(t, (_request, response) => {
    const chunk = Buffer.alloc(65_536)
    response.writeHead(200, { 'Content-Length': 10 * 1024 * 1024 })
    const more = (): void => {
      while (written < 10 * 1024 * 1024 && !response.destroyed) {
        written += chunk.length
        if (!response.write(chunk)) return
      }
    }
    response.on('drain', more)
    more()
  })
  const { send, sender } = senderFor(t)
  t.same(await send(post(receiver.url)), { kind: 'answered', code: 200, bytes: 10 * 1024 * 1024 })
  t.equal(sender.stats().connections, 0)
  await until(() => receiver.open === 0)
  t.ok(written < 10 * 1024 * 1024, `${written} bytes were written`)
})

t.test('bytes that are not HTTP are a failure, and so is a header that never ends', async t => {
  const garbage = await plainReceiver(t, says('\x16\x03\x01 what is this\r\n\r\n'))
  const endless = await plainReceiver(t, socket => {
    socket.once('data', () => socket.write(`HTTP/1.1 200 OK\r\n${'X: 0123456789\r\n'.repeat(10_000)}`))
  })
  const { send } = senderFor(t)
  t.same(await send(post(garbage.url)), { kind: 'failed', reason: 'The answer is not HTTP' })
  t.same(await send(post(endless.url)), { kind: 'failed', reason: 'The header of the answer is too large' })
})

t.test('an untrusted certificate is refused, and accepted with the option', async t => {
  const tls = certificateFor(t, 'IP:127.0.0.1')
  const receiver = await httpReceiver(t, undefined, tls)
  const reason = 'Peer certificate cannot be authenticated with given CA certificates'
  t.same(await senderFor(t).send(post(receiver.url)), { kind: 'failed', reason })
  const insecure = senderFor(t, {}, { insecure: true, caFile: undefined })
  t.same(await insecure.send(post(receiver.url)), { kind: 'answered', code: 204 })
  const vouched = senderFor(t, {}, { insecure: false, caFile: tls.certFile })
  t.same(await vouched.send(post(receiver.url)), { kind: 'answered', code: 204 })
  t.same(await vouched.send(post(receiver.url, { headers: ['Host', 'other'] })), { kind: 'answered', code: 204 })
})

t.test('the trusted certificates may change: for sockets that are opened later', async t => {
  const tls = certificateFor(t, 'IP:127.0.0.1')
  const receiver = await httpReceiver(t, undefined, tls)
  const trust = new Trust(verified)
  const before = senderFor(t, {}, trust)
  const reason = 'Peer certificate cannot be authenticated with given CA certificates'
  t.same(await before.send(post(receiver.url)), { kind: 'failed', reason })
  trust.renew(String(tls.cert))
  t.same(await before.send(post(receiver.url)), { kind: 'answered', code: 204 })
  trust.renew('')
  t.same(await before.send(post(receiver.url)), { kind: 'answered', code: 204 }, 'over the socket that is open')
  t.same(await senderFor(t, {}, trust).send(post(receiver.url)), { kind: 'failed', reason })
})

t.test('a certificate for another host is refused, with any Host header', async t => {
  const tls = certificateFor(t, 'DNS:other')
  const receiver = await httpReceiver(t, undefined, tls)
  const { send } = senderFor(t, { timeoutMs: 3000 }, { insecure: false, caFile: tls.certFile })
  const reason = 'Peer certificate cannot be authenticated with given CA certificates'
  for (const url of [receiver.url, `https://localhost:${receiver.port}`])
    t.same(await send(post(url, { headers: ['Host', 'other'] })), { kind: 'failed', reason })
})

t.test('TLS to a server without TLS is a failure', async t => {
  const receiver = await httpReceiver(t)
  const result = await senderFor(t).send(post(receiver.url.replace('http:', 'https:')))
  t.same(result, { kind: 'failed', reason: 'SSL connect error' })
})

t.test('close ends everything and reports nothing', async t => {
  const silent = await plainReceiver(t, socket => socket.resume())
  const answering = await httpReceiver(t)
  const { send, sender } = senderFor(t)
  await send(post(answering.url))
  let isSettled = false
  send(post(silent.url)).then(() => {
    isSettled = true
  })
  await until(() => silent.open === 1)
  sender.close()
  await until(() => silent.open + answering.open === 0)
  t.equal(sender.stats().connections, 0)
  t.equal(isSettled, false)
})

// The contract of WebSocket on every HTTP front, over real sockets. uws-socket.test.ts and node-socket.test.ts run it.
//
// Not here: what a front sends inside the calls of a listener, pings, and early frames (socket-answers.ts); the
// messages of a stream (stream-socket.test.ts).

import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import type { Test } from 'tap'
import { WebSocket } from 'ws'
import type { Exchange, MessageSocket } from '../../src/http/front.js'
import { type FrameForm, frame, handshake, handshakeAccept, opcodes } from './frames.js'
import { certificate, type Open } from './front-contract.js'
import { answersContract } from './socket-answers.js'
import {
  begin,
  Client,
  countOf,
  framesAt,
  Listener,
  messageBytesMax,
  path,
  sendFrames,
  shakenHands,
  sockets,
  text,
  until,
} from './socket-scene.js'
import type { Wire } from './wire.js'

export interface SocketDifferences {
  /** The front cuts off a client whose message is too long or not UTF-8, without a close frame that says so. */
  readonly cutsWithoutClosing?: boolean
  /** The front refuses a handshake with frames in the same segment, which no client may send there. */
  readonly refusesEarlyFrames?: boolean
}

export function socketContract(t: Test, open: Open, differences: SocketDifferences = {}): void {
  const { cutsWithoutClosing = false, refusesEarlyFrames = false } = differences
  t.setTimeout(300_000)
  answersContract(t, open, refusesEarlyFrames)

  for (const isTls of [false, true]) {
    const over = isTls ? ' over TLS' : ''
    const tls = (t: Test) => (isTls ? { tls: certificate(t) } : {})

    t.test(`a handshake${over} is answered with the headers and the subprotocol of the handler`, async t => {
      const { connect, wire } = await begin(t, open, tls(t), (exchange, listener) => {
        const [protocol = ''] = exchange.header('sec-websocket-protocol').split(',')
        t.ok(exchange.webSocket(['Ctx-Correlator', 'caf\xe9\n'], protocol, listener))
      })
      const client = connect(['one', 'two'])
      const [response] = await once(client.native, 'upgrade')
      t.match(response.headers, { 'ctx-correlator': 'caf\xe9?' })
      await client.opened()
      t.equal(client.native.protocol, 'one')
      const plain = await connect().opened()
      t.equal(plain.native.protocol, '')
      const raw = await wire()
      await raw.request(`GET ${path}`, handshake)
      const { status, headers } = await raw.answer()
      t.match({ status, headers }, { status: 101, headers: { upgrade: /websocket/i, connection: /upgrade/i } })
      t.equal(headers['sec-websocket-accept'], handshakeAccept)
      t.notOk('sec-websocket-extensions' in headers)
    })

    t.test(`a refusal${over} is an answer of HTTP`, async t => {
      const { front, connect, listeners } = await begin(t, open, tls(t), exchange => {
        exchange.reply(403, ['Content-Type', 'text/plain'], 'not here')
      })
      const client = connect()
      const [, response] = await once(client.native, 'unexpected-response')
      t.equal(response.statusCode, 403)
      t.equal((await response.toArray()).join(''), 'not here')
      t.strictSame(listeners[0]?.calls, [])
      client.native.terminate()
      await until('no connection', () => countOf(front) === 0)
    })

    t.test(`texts sent while it opens${over} arrive whole`, async t => {
      const { connect } = await begin(t, open, tls(t), (exchange, listener) => {
        listener.onOpen = socket => socket.send(['é€😀', 'x'.repeat(20_000)])
        exchange.webSocket([], '', listener)
      })
      const client = connect()
      await until('two texts', () => client.texts.length === 2)
      t.strictSame(client.texts, ['é€😀', 'x'.repeat(20_000)])
    })

    t.test(`a handler${over} may answer later`, async t => {
      const { connect, listeners } = await begin(t, open, tls(t), (exchange, listener) => {
        setTimeout(() => {
          t.ok(exchange.webSocket(['Ctx-Correlator', '1'], 'one', listener))
          t.notOk(exchange.webSocket([], '', new Listener()), 'once')
        }, 50)
      })
      const client = await connect(['one']).opened()
      client.native.send('hello')
      await until('a message', () => listeners[0]!.texts.length === 1)
      listeners[0]!.socket.send(['a', 'b'])
      await until('two messages', () => client.texts.length === 2)
      t.strictSame([listeners[0]!.texts, client.texts], [['hello'], ['a', 'b']])
    })

    t.test(`a client that is gone before a later answer${over} leaves nothing behind`, async t => {
      const held: { readonly exchange: Exchange; readonly listener: Listener }[] = []
      const { front, wire } = await begin(t, open, tls(t), (exchange, listener) => {
        held.push({ exchange, listener })
      })
      const clients = [await wire(), await wire()]
      for (const [at, client] of clients.entries()) {
        await client.request(`GET ${path}`, handshake)
        await until('a request', () => held.length === at + 1)
      }
      clients[0]!.leave()
      if (isTls) clients[1]!.leave()
      else clients[1]!.reset()
      await pause(50)
      for (const { exchange, listener } of held) {
        const isOpening = exchange.webSocket([], '', listener)
        if (!isOpening) await pause(20)
        else await until('its end', () => listener.isGone)
        t.strictSame(listener.calls, isOpening ? ['open', 'gone'] : [])
      }
      await until('no connection', () => countOf(front) === 0)
    })

    t.test(`texts${over} arrive in order, both ways`, async t => {
      const { connect, listeners } = await begin(t, open, tls(t))
      const client = await connect().opened()
      const texts = Array.from({ length: 2_000 }, (_, at) => `${at} é€😀 ${'x'.repeat(at % 500)}`)
      for (const one of texts) client.native.send(one)
      await until('all messages', () => listeners[0]!.texts.length === texts.length)
      t.strictSame(listeners[0]!.texts, texts)
      const { socket } = listeners[0]!
      for (let at = 0; at < texts.length; at += 100) socket.send(texts.slice(at, at + 100))
      socket.send([''])
      await until('all messages', () => client.texts.length > texts.length)
      t.strictSame(client.texts, [...texts, ''])
    })

    t.test(`a client that reads nothing${over} makes \`send\` return false, and loses nothing`, async t => {
      const { connect, listeners } = await begin(t, open, tls(t))
      const client = await connect().opened()
      await until('the connection', () => listeners[0]?.isOpen === true)
      const listener = listeners[0]!
      client.native.pause()
      let sent = 0
      const next = (): string => `${sent++} ${'x'.repeat(50_000)}`
      while (sent < 2_000 && listener.socket.send([next(), next()])) await pause(0)
      t.ok(sent < 2_000, `it returned false after ${sent} texts`)
      t.notOk(listener.calls.includes('room'))
      for (let more = 0; more < 10; more++) listener.socket.send([next()])
      client.native.resume()
      await until('room', () => listener.calls.includes('room'))
      listener.socket.send([next()])
      await until('all texts', () => client.texts.length === sent)
      t.strictSame(
        client.texts.map(one => Number(one.slice(0, one.indexOf(' ')))),
        Array.from({ length: sent }, (_, at) => at),
      )
      t.notOk(listener.isGone)
    })

    t.test(`a client that reads nothing${over} is cut off in time, and a slow one is not`, async t => {
      let stalls = 0
      const onStall = (): void => {
        stalls++
      }
      const large = 'x'.repeat(50_000)
      const count = 200
      const { connect, listeners, front } = await begin(
        t,
        open,
        { ...tls(t), eventsStallMs: 600, onStall },
        (exchange, listener) => {
          let sent = 0
          const fill = (): void => {
            while (sent < count) {
              sent++
              if (!listener.socket.send([large])) return
            }
          }
          listener.onRoom = fill
          exchange.webSocket([], '', listener)
          setTimeout(fill, 200)
        },
      )
      const [none, slow] = [await connect().opened(), await connect().opened()]
      await until('two connections', () => listeners.length === 2 && listeners.every(({ isOpen }) => isOpen))
      none.native.pause()
      let isReading = false
      const reading = setInterval(() => {
        isReading = !isReading
        if (isReading) slow.native.resume()
        else slow.native.pause()
      }, 20)
      t.teardown(() => clearInterval(reading))
      await until('the end of one', () => listeners.some(({ isGone }) => isGone))
      await until('all texts at the other', () => slow.texts.length === count)
      t.equal(stalls, 1)
      t.strictSame(listeners.map(({ isGone }) => isGone).sort(), [false, true])
      none.native.resume()
      t.equal((await none.end()).code, 1006)
      await until('one connection', () => countOf(front) === 1)
    })

    t.test(`requests before the handshake${over} are answered on the same connection`, async t => {
      const { wire, listeners, front } = await begin(t, open, tls(t))
      const client = await wire()
      for (const line of ['GET /a', 'POST /b']) {
        await client.request(line, [], line.startsWith('POST') ? 'body' : '')
        t.equal((await client.answer()).status, 200)
      }
      await shakenHands(client)
      await sendFrames(client, text('hello'))
      await until('a message', () => listeners[0]!.texts.length === 1)
      listeners[0]!.socket.send(['back'])
      await until('a frame', () => framesAt(client).length === 1)
      t.match(framesAt(client), [{ opcode: opcodes.text, payload: Buffer.from('back') }])
      t.equal(countOf(front), 1)
      client.leave()
      await until('no connection', () => countOf(front) === 0)
      t.strictSame(listeners[0]!.calls, ['open', 'gone'])
    })

    t.test(`the offer of HTTP/2${over} changes nothing`, async t => {
      const warnings: Error[] = []
      const onWarning = (warning: Error): void => void warnings.push(warning)
      process.on('warning', onWarning)
      t.teardown(() => process.off('warning', onWarning))
      const { wire, front, listeners } = await begin(t, open, tls(t))
      const client = await wire()
      const offer = ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__']
      for (let round = 0; round < 30; round++) {
        await client.request(`GET ${path}`, offer)
        t.match(await client.answer(), { status: 200, body: `GET ${path} ` })
        const body = 'x'.repeat(round % 2 === 0 ? 10 : 900)
        await client.request('POST /b', offer, body)
        t.match(await client.answer(), { status: 200, body: `POST /b ${body}` })
        await client.request('GET /plain')
        t.equal((await client.answer()).status, 200)
      }
      t.equal(countOf(front), 1)
      await shakenHands(client)
      await sendFrames(client, text('hello'))
      await until('a message', () => listeners[0]!.texts.length === 1)
      client.leave()
      await until('no connection', () => countOf(front) === 0)
      await pause(0)
      t.strictSame(warnings, [])
    })

    t.test(`closing the front${over} ends its WebSockets in time`, async t => {
      const { connect, front, listeners } = await begin(t, open, tls(t))
      const clients = [await connect().opened(), await connect().opened()]
      await until('two connections', () => listeners.length === 2)
      const beganMs = performance.now()
      await front.unlisten()
      listeners[0]!.socket.send(['end'])
      listeners[0]!.socket.close(1001, 'stopping')
      await front.close(10_000)
      t.ok(performance.now() - beganMs < 9_000, 'it takes less than the time that it may take')
      t.strictSame([await clients[0]!.end(), clients[0]!.texts], [{ code: 1001, reason: 'stopping' }, ['end']])
      t.equal((await clients[1]!.end()).code, 1006)
      for (const { calls } of listeners) t.strictSame(calls, ['open', 'gone'])
    })
  }

  t.test('closing the front waits for answers that a client expects', async t => {
    const { connect, front, listeners } = await begin(t, open)
    const client = await connect().opened()
    await until('the connection', () => listeners[0]?.isOpen === true)
    const { socket } = listeners[0]!
    socket.expectsAnswers(true)
    const closing = front.close(20_000)
    await pause(1_500)
    socket.send(['answer'])
    socket.expectsAnswers(false)
    socket.close(1001, 'stopping')
    t.strictSame([await client.end(), client.texts], [{ code: 1001, reason: 'stopping' }, ['answer']])
    t.equal(await closing, undefined)

    const again = await begin(t, open)
    const other = await again.connect().opened()
    await until('the connection', () => again.listeners[0]?.isOpen === true)
    again.listeners[0]!.socket.expectsAnswers(true)
    t.strictSame(await again.front.close(1_000), { connections: 1, requests: 1 })
    t.equal((await other.end()).code, 1006)
  })

  t.test('closing the front does not wait longer than it may for a client that sends on', async t => {
    const { connect, front, listeners } = await begin(t, open)
    const client = await connect().opened()
    const sending = setInterval(() => client.native.readyState === client.native.OPEN && client.native.send('x'), 20)
    t.teardown(() => clearInterval(sending))
    await until('a message', () => listeners[0]?.texts.length === 1)
    const beganMs = performance.now()
    await front.close(1_000)
    t.ok(performance.now() - beganMs < 3_000)
    t.equal((await client.end()).code, 1006)
    t.strictSame(listeners[0]!.calls, ['open', 'gone'])
  })

  t.test('a message has at most as many bytes as it may have', async t => {
    const { connect, listeners, front } = await begin(t, open)
    const client = await connect().opened()
    client.native.send('x'.repeat(messageBytesMax))
    await until('a message', () => listeners[0]?.texts.length === 1)
    t.equal(listeners[0]!.texts[0]!.length, messageBytesMax)
    client.native.send('x'.repeat(messageBytesMax + 1))
    t.equal((await client.end()).code, cutsWithoutClosing ? 1006 : 1009)
    await until('no connection', () => countOf(front) === 0)
    t.strictSame([listeners[0]!.calls, listeners[0]!.texts.length], [['open', 'gone'], 1])
  })

  t.test('the fragments of a message together have at most as many bytes', async t => {
    const { wire, listeners } = await begin(t, open)
    const half = 'x'.repeat(messageBytesMax / 2)
    const client = await shakenHands(await wire())
    const parts: FrameForm[] = [
      { ...text(half), isLast: false },
      { opcode: opcodes.continuation, payload: half },
    ]
    await sendFrames(client, ...parts)
    await until('a message', () => listeners[0]?.texts.length === 1)
    t.equal(listeners[0]!.texts[0], half + half)
    await sendFrames(client, { ...text(half), isLast: false }, { opcode: opcodes.continuation, payload: `${half}x` })
    t.ok(await client.closed)
    await until('the end', () => listeners[0]!.isGone)
    t.equal(listeners[0]!.texts.length, 1)
  })

  t.test('a length beyond all ends the connection, and takes no memory', async t => {
    const { wire, listeners } = await begin(t, open)
    for (const length of [2 ** 31, 2 ** 40, Number.MAX_SAFE_INTEGER]) {
      const client = await shakenHands(await wire())
      await sendFrames(client, { ...text('x'), length })
      t.ok(await client.closed)
      await until('the end', () => listeners.at(-1)!.isGone)
    }
  })

  t.test('a binary message is refused with 1003', async t => {
    const { connect, listeners } = await begin(t, open)
    for (const bytes of [Buffer.from('{}'), Buffer.alloc(0)]) {
      const client = await connect().opened()
      client.native.send(bytes)
      t.strictSame(await client.end(), { code: 1003, reason: 'binary messages are not accepted' })
      await until('the end', () => listeners.at(-1)!.isGone)
      t.strictSame([listeners.at(-1)!.calls, listeners.at(-1)!.texts], [['open', 'gone'], []])
    }
  })

  t.test('messages behind a binary one are not received', async t => {
    const { wire, listeners } = await begin(t, open)
    const client = await shakenHands(await wire())
    await sendFrames(client, text('before'), { opcode: opcodes.binary, payload: 'x' }, text('behind'))
    await until('a close frame', () => framesAt(client).some(({ opcode }) => opcode === opcodes.close))
    await sendFrames(client, text('later')).catch(() => {})
    client.end()
    await until('the end', () => listeners[0]!.isGone)
    t.strictSame(listeners[0]!.texts, ['before'])
  })

  t.test('a text that is not UTF-8 ends the connection', async t => {
    const { wire, listeners } = await begin(t, open)
    for (const bytes of ['\xff', 'a\xc3', '\xed\xa0\x80', '\xf5\x80\x80\x80', '\xc0\x80']) {
      const client = await shakenHands(await wire())
      await sendFrames(client, text(Buffer.from(bytes, 'latin1')))
      await until('the end', () => listeners.at(-1)!.isGone)
      const [closing] = framesAt(client)
      t.equal(closing?.payload.readUInt16BE(0), cutsWithoutClosing ? undefined : 1007)
      client.leave()
      t.strictSame(listeners.at(-1)!.texts, [])
    }
  })

  t.test('a character may be cut between two fragments', async t => {
    const { wire, listeners } = await begin(t, open)
    const client = await shakenHands(await wire())
    const bytes = Buffer.from('a€b')
    await sendFrames(
      client,
      { ...text(bytes.subarray(0, 2)), isLast: false },
      { opcode: opcodes.ping, payload: 'between' },
      { opcode: opcodes.continuation, payload: '', isLast: false },
      { opcode: opcodes.continuation, payload: bytes.subarray(2) },
    )
    await until('a message', () => listeners[0]?.texts.length === 1)
    t.equal(listeners[0]!.texts[0], 'a€b')
    await until('a pong', () => framesAt(client).length === 1)
    t.match(framesAt(client), [{ opcode: opcodes.pong, payload: Buffer.from('between') }])
  })

  t.test('pings are answered with their bytes', async t => {
    const { connect } = await begin(t, open)
    const client = await connect().opened()
    for (const payload of ['', 'p', 'x'.repeat(125)]) {
      client.native.ping(payload)
      const [pong] = await once(client.native, 'pong')
      t.equal(String(pong), payload)
    }
  })

  t.test('frames may come byte by byte', async t => {
    const { wire, listeners } = await begin(t, open)
    const client = await shakenHands(await wire())
    const bytes = Buffer.concat([text('one'), text('x'.repeat(200)), text('')].map(frame))
    for (const byte of bytes) {
      await client.send(Uint8Array.of(byte))
      await pause(0)
    }
    await until('all messages', () => listeners[0]?.texts.length === 3)
    t.strictSame(listeners[0]!.texts, ['one', 'x'.repeat(200), ''])
  })

  const broken: Readonly<Record<string, readonly FrameForm[]>> = {
    'a frame without a mask': [{ ...text('x'), isMasked: false }],
    'a reserved bit': [{ ...text('x'), reserved: 4 }],
    'a reserved opcode': [{ opcode: 3, payload: 'x' }],
    'a reserved opcode of control': [{ opcode: 11, payload: 'x' }],
    'a continuation of nothing': [{ opcode: opcodes.continuation, payload: 'x' }],
    'a text inside a text': [{ ...text('x'), isLast: false }, text('y')],
    'a ping of 126 bytes': [{ opcode: opcodes.ping, payload: 'x'.repeat(126) }],
    'a ping in fragments': [{ opcode: opcodes.ping, payload: 'x', isLast: false }],
  }
  for (const [what, forms] of Object.entries(broken))
    t.test(`${what} does no harm`, async t => {
      const { wire, listeners, connect, front } = await begin(t, open)
      const client = await shakenHands(await wire())
      await sendFrames(client, ...forms, text('behind'))
      client.end()
      await until('the end', () => listeners[0]!.isGone)
      client.leave()
      const other = await connect().opened()
      other.native.send('hello')
      await until('a message of another', () => listeners[1]?.texts[0] === 'hello')
      t.strictSame(listeners[0]!.calls, ['open', 'gone'])
      await until('one connection', () => countOf(front) === 1)
    })

  t.test('both sides may close with a code', async t => {
    const { connect, listeners, front } = await begin(t, open)
    const client = await connect().opened()
    client.native.send('last')
    client.native.close(4000, 'bye')
    t.strictSame(await client.end(), { code: 4000, reason: 'bye' })
    await until('the end', () => listeners[0]!.isGone)
    t.strictSame([listeners[0]!.calls, listeners[0]!.texts], [['open', 'gone'], ['last']])

    const other = await connect().opened()
    await until('the connection', () => listeners[1]?.isOpen === true)
    const { socket } = listeners[1]!
    socket.send(['first', 'x'.repeat(1_000_000), 'last'])
    socket.close(1013, 'too slow')
    t.notOk(socket.send(['behind']))
    socket.close(1000, 'again')
    t.strictSame(await other.end(), { code: 1013, reason: 'too slow' })
    t.strictSame(
      other.texts.map(({ length }) => length),
      [5, 1_000_000, 4],
    )
    await until('the end', () => listeners[1]!.isGone)
    t.strictSame(
      listeners[1]!.calls.filter(call => call !== 'room'),
      ['open', 'gone'],
    )
    socket.send(['after the end'])
    socket.close(1000, 'after the end')
    socket.destroy()
    await until('no connection', () => countOf(front) === 0)
  })

  t.test('a connection may be closed inside the calls of its listener', async t => {
    const { connect, front } = await begin(t, open, {}, (exchange, listener) => {
      const at = Number(exchange.header('sec-websocket-protocol') || 0)
      const close = (socket: MessageSocket): void => {
        socket.send(['a', 'b'])
        if (at % 2 === 0) socket.destroy()
        else socket.close(4001, 'inside')
        socket.send(['c'])
      }
      const later = { socket: undefined as MessageSocket | undefined }
      exchange.webSocket([], '', {
        onOpen: socket => {
          listener.onOpen(socket)
          later.socket = socket
          if (at < 2) close(socket)
        },
        onMessage: () => later.socket && close(later.socket),
        onRoom: () => {},
        onGone: () => listener.onGone(),
      })
    })
    for (const at of [0, 1, 2, 3]) {
      const client = connect([String(at)])
      client.native.on('open', () => client.native.send('x'))
      const { code } = await client.end()
      // The answer may not have been sent, or has no subprotocol, which `ws` does not accept.
      if (at % 2 === 0) t.equal(code, 1006)
    }
    await until('no connection', () => countOf(front) === 0)
  })

  t.test('the end of a connection is reported once, for every way in which a client can end it', async t => {
    const { wire, listeners, front } = await begin(t, open)
    const ends: Readonly<Record<string, (wire: Wire) => void>> = {
      FIN: client => client.end(),
      RST: client => client.reset(),
      gone: client => client.leave(),
      'half a frame and FIN': client => {
        void client.send(frame(text('hello')).subarray(0, 4))
        client.end()
      },
      'a close frame without a code': client => {
        void sendFrames(client, { opcode: opcodes.close, payload: '' })
      },
      'a close frame of one byte': client => {
        void sendFrames(client, { opcode: opcodes.close, payload: 'x' })
        client.end()
      },
      'a close frame, and messages behind it': client => {
        void sendFrames(client, { opcode: opcodes.close, payload: '\x03\xe8' }, text('behind'))
      },
    }
    for (const [what, end] of Object.entries(ends)) {
      const client = await shakenHands(await wire())
      end(client)
      await until(`the end: ${what}`, () => listeners.at(-1)!.isGone)
      await until(`no connection: ${what}`, () => countOf(front) === 0)
      t.ok(await client.closed)
      t.strictSame([listeners.at(-1)!.calls, listeners.at(-1)!.texts], [['open', 'gone'], []], what)
    }
  })

  t.test('the number of connections is right before, during and after', async t => {
    const { connect, wire, front } = await begin(t, open)
    t.equal(countOf(front), 0)
    const plain = await wire()
    await plain.request('GET /a')
    await plain.answer()
    t.equal(countOf(front), 1)
    const clients = await Promise.all(Array.from({ length: 20 }, () => connect().opened()))
    t.equal(countOf(front), 21)
    for (const client of clients.slice(0, 5)) client.native.close()
    await until('15 of them', () => countOf(front) === 16)
    for (const client of clients.slice(5, 10)) client.native.terminate()
    await until('10 of them', () => countOf(front) === 11)
    await plain.request('GET /a')
    t.equal((await plain.answer()).status, 200)
    plain.leave()
    for (const client of clients) client.native.close()
    await until('none', () => countOf(front) === 0)
  })

  for (const connectionsPerAddressMax of [undefined, 5])
    t.test(
      `a WebSocket keeps its place, and gives it back (${connectionsPerAddressMax ?? 'all'} of an address)`,
      async t => {
        const limits = connectionsPerAddressMax === undefined ? {} : { connectionsPerAddressMax }
        const { connect, wire, front, listeners } = await begin(t, open, { connectionsMax: 5, ...limits })
        for (let round = 0; round < 3; round++) {
          const clients: Client[] = []
          for (let n = 0; n < 4; n++) clients.push(await connect().opened())
          // Idle connections make room for each other, and not a WebSocket for them.
          for (let n = 0; n < 6; n++) {
            const idle = await wire()
            await idle.request('GET /a').catch(() => {})
            await Promise.race([idle.answer().catch(() => {}), pause(500)])
            if (connectionsPerAddressMax !== undefined) idle.leave()
            if (connectionsPerAddressMax !== undefined) await idle.closed
          }
          for (const client of clients) t.equal(client.native.readyState, client.native.OPEN)
          for (const { socket, isGone } of listeners) if (!isGone) socket.send(['still here'])
          await until('a text at each', () => clients.every(({ texts }) => texts.length === 1))
          for (const client of clients) client.native.close()
          await until('their end', () => listeners.every(({ isGone }) => isGone))
          await until('room', () => countOf(front) <= 1)
        }
      },
    )

  t.test('a request for a WebSocket at another path, or without Upgrade, is an ordinary one', async t => {
    const { wire, listeners } = await begin(t, open)
    for (const [line, headers] of [
      ['GET /other', handshake],
      [`GET ${path}/more`, handshake],
      [`GET ${path}`, handshake.filter(header => !header.startsWith('Upgrade'))],
      [`POST ${path}`, handshake],
    ] as const) {
      const client = await wire()
      await client.request(line, headers, line.startsWith('POST') ? 'body' : '')
      t.match(await client.answer(), { status: 200, body: line }, line)
      await client.request('GET /next')
      t.match(await client.answer(), { status: 200, body: 'GET /next ' })
      client.leave()
    }
    t.strictSame(listeners, [])
  })

  t.test('a broken handshake reaches the handler as a request that cannot be upgraded', async t => {
    const seen: string[] = []
    const { wire } = await begin(t, open, {}, exchange => {
      seen.push(`${exchange.header('upgrade')} ${exchange.asksForWebSocket}`)
      t.notOk(exchange.webSocket([], '', new Listener()) && !exchange.asksForWebSocket)
      exchange.reply(400, [], 'broken')
    })
    const without = (name: string): string[] => handshake.filter(header => !header.startsWith(name))
    for (const headers of [
      without('Sec-WebSocket-Key'),
      [...without('Sec-WebSocket-Key'), 'Sec-WebSocket-Key: short'],
      [...without('Sec-WebSocket-Key'), 'Sec-WebSocket-Key:'],
    ]) {
      const client = await wire()
      await client.request(`GET ${path}`, headers)
      t.match(await client.answer(), { status: 400, body: 'broken' }, headers.join())
      client.leave()
    }
    t.strictSame(seen, Array(3).fill('websocket false'))
  })

  t.test('without `sockets` nothing is upgraded', async t => {
    const { wire } = await begin(t, open, { sockets: undefined })
    const client = await wire()
    for (let round = 0; round < 2; round++) {
      await client.request(`GET ${path}`, handshake)
      t.match(await client.answer(), { status: 200, body: `GET ${path} ` })
    }
  })

  t.test('messages are compressed with clients that want it, if it is on', async t => {
    const { port, connect, wire, listeners, front } = await begin(t, open, {
      sockets: { ...sockets, compression: true },
    })
    const client = await connect().opened()
    t.match(client.native.extensions, /permessage-deflate/)
    const texts = ['short', 'x'.repeat(50_000), JSON.stringify({ a: Array(1_000).fill('value') })]
    for (const one of texts) client.native.send(one)
    await until('the messages', () => listeners[0]?.texts.length === 3)
    t.strictSame(listeners[0]!.texts, texts)
    listeners[0]!.socket.send(texts)
    await until('the messages', () => client.texts.length === 3)
    t.strictSame(client.texts, texts)
    // A small frame that is large when it is inflated.
    client.native.send('x'.repeat(messageBytesMax + 1))
    t.not((await client.end()).code, 1000)
    await until('its end', () => listeners[0]!.isGone)
    t.equal(listeners[0]!.texts.length, 3)
    const plain = new Client(t, new WebSocket(`ws://127.0.0.1:${port}${path}`, { perMessageDeflate: false }))
    await plain.opened()
    t.equal(plain.native.extensions, '')
    for (const offer of ['permessage-deflate; server_max_window_bits=99', ';;;', 'a='.repeat(1_000)]) {
      const odd = await wire()
      await odd.request(`GET ${path}`, [...handshake, `Sec-WebSocket-Extensions: ${offer}`])
      await odd.answer()
      odd.leave()
    }
    await until('the end of all others', () => countOf(front) === 1)
    for (const { calls } of listeners) t.ok(calls.length !== 1 || calls[0] === 'open')
    t.equal(listeners.filter(({ isGone, isOpen }) => isOpen && !isGone).length, 1)
  })
}

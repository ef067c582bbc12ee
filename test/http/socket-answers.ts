// The contract of WebSocket: the writes of a front while it receives, and its treatment of clients that send too early
// or read nothing. socket-contract.ts runs it.

import type { Test } from 'tap'
import { pingsWaitingMax } from '../../src/http/front.js'
import { type FrameForm, frame, handshake, opcodes } from './frames.js'
import { certificate, type Open } from './front-contract.js'
import { begin, countOf, framesAt, path, sendFrames, shakenHands, text, until } from './socket-scene.js'

export function answersContract(t: Test, open: Open, refusesEarlyFrames: boolean): void {
  for (const isTls of [false, true]) {
    const over = isTls ? ' over TLS' : ''
    const tls = (t: Test) => (isTls ? { tls: certificate(t) } : {})

    t.test(`answers inside the calls of a listener${over} are all sent, in order, and nothing is lost`, async t => {
      const { wire, listeners } = await begin(t, open, tls(t), (exchange, listener) => {
        listener.onMessage = bytes => {
          const answer = Buffer.from(bytes).toString('latin1', 0, 10).trimEnd()
          listener.texts.push(answer)
          listener.socket.send([answer])
        }
        exchange.webSocket([], '', listener)
      })
      // In the second round, more than a front reads at a time.
      for (const length of [20, 20_000]) {
        const client = await shakenHands(await wire())
        const texts = Array.from({ length: 200 }, (_, at) => String(at))
        await sendFrames(client, ...texts.map(one => text(one.padEnd(length))))
        await until('all answers', () => framesAt(client).length === texts.length)
        t.strictSame(
          framesAt(client).map(({ payload }) => String(payload)),
          texts,
        )
        t.strictSame(listeners.at(-1)!.texts, texts)
        await sendFrames(client, text('and on'))
        await until('one more answer', () => framesAt(client).length === texts.length + 1)
      }
    })

    t.test(`a \`send\` inside a call that returns false${over} is followed by room`, async t => {
      const large = 'x'.repeat(10_000)
      const { connect, listeners } = await begin(t, open, tls(t), (exchange, listener) => {
        listener.onMessage = bytes => {
          const wanted = Number(Buffer.from(bytes))
          const fill = (): void => {
            while (listener.texts.length < wanted) {
              listener.texts.push(large)
              if (!listener.socket.send([large])) return
            }
          }
          listener.onRoom = fill
          fill()
        }
        exchange.webSocket([], '', listener)
      })
      const client = await connect().opened()
      client.native.send('1000')
      await until('all texts', () => client.texts.length === 1_000)
      t.equal(listeners[0]!.texts.length, 1_000)
    })

    t.test(`a listener may close inside its calls${over}, behind its answers`, async t => {
      const { wire, listeners } = await begin(t, open, tls(t), (exchange, listener) => {
        listener.onMessage = bytes => {
          listener.texts.push(String(Buffer.from(bytes)))
          listener.socket.send(['answer'])
          listener.socket.close(4000, 'enough')
          t.notOk(listener.socket.send(['behind']))
        }
        exchange.webSocket([], '', listener)
      })
      const client = await shakenHands(await wire())
      await sendFrames(client, text('first'), text('second'))
      await until('a close frame', () => framesAt(client).some(({ opcode }) => opcode === opcodes.close))
      client.end()
      await until('the end', () => listeners[0]!.isGone)
      t.strictSame(
        framesAt(client).map(({ opcode }) => opcode),
        [opcodes.text, opcodes.close],
      )
      t.strictSame([listeners[0]!.texts, listeners[0]!.calls], [['first'], ['open', 'gone']])
    })

    t.test(`a client that sends pings${over} and reads nothing is cut off`, async t => {
      const { wire, listeners, front } = await begin(t, open, tls(t))
      const client = await shakenHands(await wire())
      client.read(false)
      const pings = Buffer.concat(Array(1_000).fill(frame({ opcode: opcodes.ping, payload: 'x'.repeat(125) })))
      let isClosed = false
      void client.closed.then(() => {
        isClosed = true
      })
      for (let thousands = 0; !isClosed && thousands < 1_000; thousands++)
        await Promise.race([client.send(pings), client.closed])
      await until('its end', () => listeners[0]!.isGone)
      client.leave()
      await until('no connection', () => countOf(front) === 0)
    })

    t.test(`a client that reads may send any number of pings${over}`, async t => {
      const { wire, listeners } = await begin(t, open, tls(t))
      const client = await shakenHands(await wire())
      for (let round = 1; round <= 20; round++) {
        await sendFrames(client, ...Array<FrameForm>(pingsWaitingMax).fill({ opcode: opcodes.ping, payload: 'p' }))
        await until('all pongs', () => framesAt(client).length === round * pingsWaitingMax)
      }
      t.ok(framesAt(client).every(({ opcode }) => opcode === opcodes.pong))
      t.notOk(listeners[0]!.isGone)
    })

    t.test(`frames in one segment with the handshake${over} are not lost silently`, async t => {
      const { wire, listeners, front } = await begin(t, open, tls(t))
      const head = Buffer.from(`${[`GET ${path} HTTP/1.1`, 'Host: test', ...handshake].join('\r\n')}\r\n\r\n`)
      for (const [what, early] of Object.entries(earlyFrames)) {
        const client = await wire()
        // A frame in two segments: the second one comes behind the answer.
        const bytes = Buffer.concat(early.map(frame))
        const cut = what === 'half a text' ? 8 : bytes.length
        await client.send(Buffer.concat([head, bytes.subarray(0, cut)]))
        const { status } = await client.answer()
        t.equal(status, refusesEarlyFrames ? 505 : 101, what)
        if (refusesEarlyFrames) {
          t.ok(await client.closed)
          // The front knows tracked connections only after this, and its handler is not asked.
          for (const { calls } of listeners) t.strictSame(calls, ['gone'], what)
        } else {
          await client.send(Buffer.concat([bytes.subarray(cut), frame(text('later'))]))
          await until(`a message: ${what}`, () => listeners.at(-1)!.texts.includes('later'))
          const texts = early.filter(({ opcode }) => opcode === opcodes.text).map(({ payload }) => payload)
          t.strictSame(listeners.at(-1)!.texts, [...texts, 'later'], what)
        }
        client.leave()
        await until('no connection', () => countOf(front) === 0)
      }
      await until('the end of all', () => listeners.every(({ isGone }) => isGone))
    })
  }
}

const earlyFrames: Readonly<Record<string, readonly FrameForm[]>> = {
  'a text': [text('early')],
  'an empty text': [text('')],
  'half a text': [text('early')],
  'two texts': [text('early'), text('again')],
  'a long text': [text('x'.repeat(50_000))],
  'a ping': [{ opcode: opcodes.ping, payload: '' }],
}

// Bodies whose length is not known when the answer begins. They arrive whole, no faster than the client reads, and the
// client notices when a body is not whole. On both servers, and on uws also where connections are known.

import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { request as tlsRequest } from 'node:https'
import t, { type Test } from 'tap'
import { openNodeFront } from '../../src/http/node-front.js'
import { openUwsFront } from '../../src/http/uws-front.js'
import { certificate, type Open, serve } from './front-contract.js'
import { Wire } from './wire.js'

const openKnown: Open = (options, handler) => openUwsFront({ ...options, connectionsPerAddressMax: 10_000 }, handler)

for (const [name, open] of [
  ['node', openNodeFront],
  ['uws', openUwsFront],
  ['uws with connections that are known', openKnown],
] as const)
  t.test(name, async t => streams(t, open))

const partBytes = 64 * 1024
/** More parts than the system buffers for a connection. */
const partsMany = 400

/** Endless parts, or a number of them; counts the parts that were taken, and notes the end. */
class Parts {
  given = 0
  isOver = false

  async *make(count = Number.POSITIVE_INFINITY): AsyncGenerator<Uint8Array, void, void> {
    try {
      for (; this.given < count; this.given++) {
        await new Promise(resolve => setImmediate(resolve))
        yield Buffer.alloc(partBytes, this.given % 256)
      }
    } finally {
      this.isOver = true
    }
  }
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise(resolve => setTimeout(resolve, 5))
}

/** Resolves when no more parts have been taken for a while. */
async function untilHeldUp(parts: Parts): Promise<void> {
  for (let before = -1; before !== parts.given || before === 0; ) {
    before = parts.given
    await new Promise(resolve => setTimeout(resolve, 100))
  }
}

async function answerOf(port: number, agent?: Agent): Promise<IncomingMessage> {
  const sent = request({ port, host: '127.0.0.1', method: 'POST', agent: agent ?? false })
  sent.end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  return response
}

async function bodyOf(response: IncomingMessage): Promise<Buffer> {
  return Buffer.concat(await response.toArray())
}

function streams(t: Test, open: Open): void {
  t.test('parts of any size arrive whole, and the connection serves the next request', async t => {
    const sizes = [1, 70_000, 3, 3_000_000, 65_536, 5]
    const whole = sizes.map(size => randomBytes(size))
    const { port } = await serve(t, open, exchange => {
      const parts = async function* (): AsyncGenerator<Uint8Array, void, void> {
        yield* whole
      }
      return () => exchange.stream(200, ['Content-Type', 'application/octet-stream'], parts())
    })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    t.teardown(() => agent.destroy())
    const sockets = new Set<unknown>()
    for (let n = 0; n < 2; n++) {
      const response = await answerOf(port, agent)
      sockets.add(response.socket)
      t.match(response.headers, { 'content-type': 'application/octet-stream', 'transfer-encoding': 'chunked' })
      t.ok((await bodyOf(response)).equals(Buffer.concat(whole)))
    }
    t.equal(sockets.size, 1)
  })

  t.test('no more is requested than the client takes, and all comes when it continues to read', async t => {
    const parts = new Parts()
    const { port } = await serve(t, open, exchange => () => exchange.stream(200, [], parts.make(partsMany)))
    const response = await answerOf(port)
    response.pause()
    await untilHeldUp(parts)
    t.ok(parts.given < partsMany / 2, `${parts.given} of ${partsMany} parts`)
    const hash = createHash('sha256')
    let bytes = 0
    for await (const chunk of response) {
      hash.update(chunk as Buffer)
      bytes += (chunk as Buffer).length
    }
    t.equal(bytes, partsMany * partBytes)
    const wanted = createHash('sha256')
    for (let n = 0; n < partsMany; n++) wanted.update(Buffer.alloc(partBytes, n % 256))
    t.equal(hash.digest('hex'), wanted.digest('hex'))
    t.ok(parts.isOver)
  })

  t.test('when the client goes, the source of the parts is called', async t => {
    const parts = new Parts()
    const { port } = await serve(t, open, exchange => () => exchange.stream(200, [], parts.make()))
    const response = await answerOf(port)
    await once(response, 'data')
    response.destroy()
    await until(() => parts.isOver)
    t.ok(parts.isOver)
  })

  t.test('the source of the parts is also called for a client that has gone before the answer', async t => {
    const parts = new Parts()
    let answer: (() => void) | undefined
    const { wire, port } = await serve(t, open, exchange => () => {
      if (exchange.path === '/next') exchange.reply(200, [])
      else answer = () => exchange.stream(200, [], parts.make())
    })
    await wire.request('POST /', ['Content-Length: 0'])
    await until(() => answer !== undefined)
    wire.leave()
    await wire.closed
    // Once the server has answered another client, it has noticed that the first one is gone.
    const next = async (): Promise<void> => {
      const other = await Wire.to(port)
      await other.request('POST /next', ['Content-Length: 0'])
      await other.answer()
      other.leave()
    }
    await next()
    answer?.()
    await until(() => parts.isOver)
    t.equal(parts.given, 0)
  })

  t.test('when the parts fail, the client sees that the body is not whole', async t => {
    const parts = async function* (): AsyncGenerator<Uint8Array, void, void> {
      yield Buffer.alloc(1000)
      throw new Error('no more')
    }
    const { port } = await serve(t, open, exchange => () => exchange.stream(200, [], parts()))
    await t.rejects(answerOf(port).then(bodyOf))
  })

  t.test('a client that takes nothing any more is closed', async t => {
    const parts = new Parts()
    let stalls = 0
    const options = { answerStallMs: 400, onStall: () => void stalls++ }
    const { port } = await serve(t, open, exchange => () => exchange.stream(200, [], parts.make()), options)
    const response = await answerOf(port)
    response.on('error', () => {})
    response.pause()
    await until(() => parts.isOver)
    t.equal(stalls, 1)
    response.destroy()
  })

  t.test('closing does not wait longer than its time for a body that does not end', async t => {
    const parts = new Parts()
    const { front, port } = await serve(t, open, exchange => () => exchange.stream(200, [], parts.make()))
    const response = await answerOf(port)
    response.on('error', () => {}).resume()
    await front.close(100)
    await until(() => parts.isOver)
    t.ok(parts.isOver)
  })

  t.test('over TLS the body is the same', async t => {
    const parts = new Parts()
    const options = { tls: certificate(t) }
    const { port } = await serve(t, open, exchange => () => exchange.stream(200, [], parts.make(40)), options)
    const sent = tlsRequest({ port, host: '127.0.0.1', method: 'POST', agent: false, rejectUnauthorized: false })
    sent.end()
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    t.equal((await bodyOf(response)).length, 40 * partBytes)
  })
}

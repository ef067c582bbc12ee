// The uWebSockets.js front: the contract, and the behaviour of this front alone.

import t from 'tap'
import { openFront } from '../../src/http/open-front.js'
import { openUwsFront } from '../../src/http/uws-front.js'
import { mayFailOnUws } from './cut-requests.js'
import { echo, frontContract, type MayFail, type Open, plainOptions, serve } from './front-contract.js'

frontContract(t, openUwsFront, { mayFail: mayFailOnUws })

/**
 * Where connections are known, the first chunk of a body has to come with the head, and a head that announces no byte
 * has to come at once (docs/operations/connections.md#known-connections). The front reads no request before it has
 * answered the last one.
 */
const mayFailKnown: MayFail = request => {
  const chunks = request.indexOf('\r\n\r\n5\r\n')
  const announcesNothing = request.includes('Content-Length: 0\r\n')
  return [
    ...(announcesNothing ? Array.from(request, (_, at) => ({ at, status: 411 })) : []),
    ...mayFailOnUws(request),
    ...(chunks < 0 ? [] : [4, 5, 6, 7].map(behind => ({ at: chunks + behind, status: 411 }))),
  ]
}

const openKnown: Open = (options, handler) => openUwsFront({ ...options, connectionsPerAddressMax: 10_000 }, handler)

t.test('connections that are known are served as others are', async t =>
  frontContract(t, openKnown, { mayFail: mayFailKnown, pipelines: false }),
)

t.test('HTTP/1.0 is answered 505 without asking the handler', async t => {
  const { wire } = await serve(t, openUwsFront, echo)
  await wire.send('GET / HTTP/1.0\r\n\r\n')
  t.equal((await wire.answer()).status, 505)
})

t.test('a request behind one that waits for its answer ends the connection', async t => {
  const { wire } = await serve(t, openUwsFront, exchange => {
    setImmediate(() => exchange.reply(200, []))
    return undefined
  })
  await wire.send('GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n')
  t.ok(await wire.closed)
})

t.test('an unknown method reaches the handler', async t => {
  const { wire } = await serve(t, openUwsFront, exchange => {
    exchange.reply(405, [], exchange.method)
    return undefined
  })
  await wire.request('BREW /')
  t.match(await wire.answer(), { status: 405, body: 'BREW' })
})

t.test('where its binary loads it is the default front, without a warning, and the log names the build', async t => {
  const warnings: string[] = []
  const lines: string[] = []
  const logger = { info: (line: string) => void lines.push(line), warn: (line: string) => void warnings.push(line) }
  for (const kind of [undefined, 'uws', 'node'] as const) {
    const front = await openFront(kind, plainOptions, { onRequest: echo }, logger)
    t.equal(front.constructor.name, kind === 'node' ? 'NodeFront' : 'UwsFront')
    await front.close(0)
  }
  t.strictSame(warnings, [])
  t.match(lines, [/^serving with uWebSockets\.js \([\w-]+ \d+\.\d+\.\d+, uws_\w+(?:, corrected)?\)$/, /./])
  t.equal(lines.length, 2)
})

// Every request that the contract of the fronts sends, and one of each route, cut in two at every byte: the answer is
// the same as to one piece.
//
// The requests are those that the contract really sends: it runs once, and the client records its bytes. Each request
// is then cut on both servers, plain and over TLS, as the first and as a later request of its connection, with 60 ms
// between the pieces.
//
// CUT_PLACES is the number of places in each request, drawn anew for each of the eight; `all` is every place, for soak.
// SEED repeats a run.

import t from 'tap'
import type { Exchange } from '../../src/http/front.js'
import { openNodeFront } from '../../src/http/node-front.js'
import { openUwsFront } from '../../src/http/uws-front.js'
import { shotOf } from '../hostile/draft.js'
import { ValidRequests } from '../hostile/valid-requests.js'
import { one } from '../support/mutator.js'
import { Random } from '../support/random.js'
import { answerTo, beyond, everyPlace, failedCuts, mayFailOnUws } from './cut-requests.js'
import { certificate, frontContract, serve } from './front-contract.js'
import { Wire } from './wire.js'

const placesWanted = process.env.CUT_PLACES ?? '2'
/** Limit of the places for `all`: the rest of a longer request is only more of the same. */
const placesMax = 1_500
/** Connections at a time. */
const sideBySide = 300
const random = Random.fromEnvironment()
t.comment(`SEED=${random.seed} CUT_PLACES=${placesWanted}`)
t.setTimeout(placesWanted === 'all' ? 3_600_000 : 300_000)

const requests = new Set<string>()

t.test('the contract sends its requests', async t => {
  Wire.onSent = bytes => {
    const text = Buffer.from(bytes).toString('latin1')
    if (isWhole(text)) requests.add(text)
  }
  t.teardown(() => {
    Wire.onSent = undefined
  })
  frontContract(t, openNodeFront)
})

t.test('and one of each route is added', async t => {
  const drafts = new ValidRequests(new Random(1), { receiver: 1, nobody: 2, broker: 3 })
  const kinds = new Set<string>()
  while (kinds.size < 30) {
    const draft = drafts.next()
    const shot = shotOf(draft)
    if (kinds.has(draft.kind) || shot.expects !== 'strict') continue
    kinds.add(draft.kind)
    requests.add(Buffer.concat(shot.pieces).toString('latin1'))
  }
  t.ok(requests.size > 60, `${requests.size} requests, ${[...requests].join('').length} bytes`)
})

for (const [server, open, mayFail] of [
  ['node', openNodeFront, () => []],
  ['uws', openUwsFront, mayFailOnUws],
] as const)
  for (const isTls of [false, true])
    for (const isLater of [false, true])
      t.test(`${server}${isTls ? ' over TLS' : ''}, ${isLater ? 'later' : 'first'} requests`, async t => {
        const limits = { bodyBytesMax: 100_000, connectionsMax: 2 * sideBySide }
        const { port, wire } = await serve(t, open, answer, isTls ? { ...limits, tls: certificate(t) } : limits)
        wire.leave()
        const connect = (): Promise<Wire> => (isTls ? Wire.overTls(port) : Wire.to(port))
        let cuts = 0
        for (const batch of batches()) {
          const all = batch.map(async ({ request, places }) => {
            cuts += places.length
            // If the front refuses the whole bytes as a request, the pieces prove nothing.
            if (!(await answerTo(connect, [request], isLater))) return
            const wrong = beyond(await failedCuts(connect, request, isLater, places), mayFail(request))
            if (wrong.length > 0) t.strictSame(wrong, [], JSON.stringify(request.slice(0, 300)))
          })
          await Promise.all(all)
        }
        t.pass(`${cuts} cuts`)
      })

/** Requests with the places of their cuts; a batch has as many cuts as there may be connections. */
function batches(): { readonly request: string; readonly places: readonly number[] }[][] {
  const batches: { request: string; places: readonly number[] }[][] = [[]]
  let room = sideBySide
  for (const request of requests) {
    const places = placesOf(request)
    for (let at = 0; at < places.length; ) {
      const some = places.slice(at, at + room)
      batches.at(-1)!.push({ request, places: some })
      at += some.length
      room -= some.length
      if (room > 0) continue
      batches.push([])
      room = sideBySide
    }
  }
  return batches
}

function placesOf(request: string): readonly number[] {
  const every = everyPlace(request)
  const wanted = placesWanted === 'all' ? placesMax : Number(placesWanted)
  if (every.length <= wanted) return every
  return [...new Set(Array.from({ length: wanted }, () => one(random, every)))]
}

/**
 * Replies with the request as the front has read it, so that two answers are equal only if both requests were read
 * alike.
 */
function answer(exchange: Exchange): ((body: Uint8Array) => void) | undefined {
  const { method, path, query } = exchange
  const text = `${method} ${path} ${query} ${exchange.header('ctx-servicepath')}`
  const reply = (body: Uint8Array): void => exchange.reply(200, [], `${text} ${Buffer.from(body)}`)
  if (['POST', 'PUT', 'PATCH'].includes(method)) return reply
  reply(new Uint8Array())
  return undefined
}

/** Whether this is exactly one request, from its first to its last byte. */
function isWhole(text: string): boolean {
  const headEnd = text.indexOf('\r\n\r\n')
  if (headEnd < 0 || !/^[A-Z]+ \/[^ ]* HTTP\/1\.1\r\n/.test(text)) return false
  const [head, body] = [text.slice(0, headEnd + 2), text.slice(headEnd + 4)]
  const length = /\r\ncontent-length: *(\d+)\r\n/i.exec(head)?.[1]
  if (length !== undefined) return Number(length) === body.length
  if (/\r\ntransfer-encoding: *chunked\r\n/i.test(head)) return body.endsWith('\r\n0\r\n\r\n') || body === '0\r\n\r\n'
  return body === ''
}

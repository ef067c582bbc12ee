// The watch over real connections: begun, cut, continued, refused. The server of this test speaks the protocol of
// docs/interface/live.md, one scripted connection after the other.

import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import t, { type Test } from 'tap'
import { type WebSocket, WebSocketServer } from 'ws'
import { openSockets } from '../../src/deliver/sockets/sockets.js'
import { readWatchArguments } from '../../src/watch/arguments.js'
import { type FeedEnd, messageBytesMax, WatchFeed } from '../../src/watch/feed.js'
import type { WatchedEvent } from '../../src/watch/resuming.js'
import { freePort } from '../support/broker-process.js'
import { FakeClock } from '../support/fake-clock.js'

t.setTimeout(60_000)

/** One connection of the script, as the server treats it. `message` is the first one of the client. */
type Scene =
  | { readonly kind: 'open'; readonly play: (socket: WebSocket, message: string) => void }
  | {
      readonly kind: 'answer'
      readonly status: number
      readonly headers?: Record<string, string>
      readonly body: string
    }
  | { readonly kind: 'silence' }

const open = (play: (socket: WebSocket, message: string) => void): Scene => ({ kind: 'open', play })
const answer = (status: number, body: string, headers: Record<string, string> = {}): Scene => ({
  kind: 'answer',
  status,
  headers,
  body,
})

interface Stage {
  readonly port: number
  /** The first message of each connection, as JSON. */
  readonly begins: Record<string, unknown>[]
  readonly requests: IncomingMessage[]
}

/** A server that plays these scenes, one for each connection, and then answers 404. */
async function stage(t: Test, scenes: readonly Scene[], port = 0): Promise<Stage> {
  const server: Server = createServer()
  const sockets = new WebSocketServer({ noServer: true })
  const raw = new Set<Socket>()
  const begins: Record<string, unknown>[] = []
  const requests: IncomingMessage[] = []
  const left = [...scenes]
  server.on('upgrade', (request, socket, head) => {
    raw.add(socket as Socket)
    requests.push(request)
    const scene = left.shift() ?? answer(404, '{"error":"NotFound","description":"the script is over"}')
    if (scene.kind === 'silence') return
    if (scene.kind === 'answer') {
      const lines = Object.entries({ ...scene.headers, 'Content-Length': Buffer.byteLength(scene.body) })
      const text = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
      socket.end(`HTTP/1.1 ${scene.status} X\r\n${text}\r\n${scene.body}`)
      return
    }
    sockets.handleUpgrade(request, socket, head, client => {
      client.once('message', data => {
        begins.push(JSON.parse(String(data)))
        scene.play(client, String(data))
      })
    })
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of raw) socket.destroy()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, begins, requests }
}

/** A running watch, with all that it has reported. */
class Run {
  readonly events: WatchedEvent[] = []
  readonly notes: string[] = []
  readonly begun: boolean[] = []
  readonly clock = new FakeClock()
  readonly feed: WatchFeed
  readonly ended: Promise<FeedEnd>
  end: FeedEnd | 'runs' = 'runs'
  private wake: () => void = () => {}

  constructor(t: Test, port: number, words: readonly string[] = []) {
    const reading = readWatchArguments(['-url', `http://127.0.0.1:${port}/base/`, ...words], {})
    if (reading.kind === 'refuse') throw new Error(reading.lines.join('\n'))
    const report =
      <T>(list: T[]) =>
      (one: T) => {
        list.push(one)
        this.wake()
      }
    this.feed = new WatchFeed({
      order: reading.order,
      openSocket: openSockets(reading.order.tls),
      clock: this.clock,
      chance: { fraction: () => 1 },
      onBegun: report(this.begun),
      onEvent: report(this.events),
      onNote: report(this.notes),
    })
    this.ended = this.feed.run().then(end => {
      this.end = end
      this.wake()
      return end
    })
    t.teardown(() => this.feed.stop())
  }

  /** Waits until something is so; each report of the watch is a reason to look again. */
  async until(what: string, isSo: () => boolean): Promise<void> {
    const late = Date.now() + 20_000
    while (!isSo()) {
      if (Date.now() > late)
        throw new Error(`waited too long for ${what}: ${JSON.stringify([this.notes, this.events])}`)
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, 50)
        this.wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }

  /** Waits for the note of a cut, and lets the announced pause pass. */
  async afterCut(cuts: number): Promise<void> {
    const isCut = (): string[] => this.notes.filter(note => note.includes('connects again in'))
    await this.until(`cut ${cuts}`, () => isCut().length === cuts)
    this.clock.advance(Number(/in ([\d.]+) s$/.exec(isCut().at(-1) as string)?.[1]) * 1000)
  }

  kinds(): string[] {
    return this.events.map(({ kind }) => kind)
  }
}

const say = (socket: WebSocket, ...messages: readonly Record<string, unknown>[]): void => {
  for (const message of messages) socket.send(JSON.stringify(message))
}
const watching = (cursor: string) => ({ op: 'watching', id: 'watch', cursor })
const event = (kind: string, cursor: string | undefined, more: Record<string, unknown> = {}) => ({
  op: 'event',
  id: 'watch',
  event: kind,
  cursor,
  ...more,
})

t.test('it opens one connection with the headers, and says what to watch', async t => {
  const { port, begins, requests } = await stage(t, [
    open(socket => say(socket, watching('a'), event('entityCreate', 'b'))),
  ])
  const run = new Run(t, port, ['-type', 'Room', '-tenant', 'city', '-header', 'X-Key: 1', '-header', 'x-key: 2'])
  await run.until('an event', () => run.events.length > 0)
  t.strictSame(begins, [{ op: 'watch', id: 'watch', type: 'Room' }])
  const [request] = requests
  t.equal(request?.url, '/base/v2/stream')
  t.match(request?.headers, { 'ctx-service': 'city', 'fiware-service': 'city', 'x-key': '1, 2' })
  t.strictSame(run.begun, [true])
  t.strictSame(run.events, [{ kind: 'entityCreate', members: { cursor: 'b' } }])
  t.strictSame(run.notes, [])
  run.feed.stop()
  t.equal(await run.ended, undefined)
})

t.test('after a cut it continues with the last cursor, and says so', async t => {
  const { port, begins } = await stage(t, [
    open(socket => {
      say(socket, watching('a'), event('entityChange', 'b'), event('entityChange', undefined))
      socket.close(1001)
    }),
    open(socket => {
      say(socket, watching('b'), event('entityChange', 'c'))
      socket.terminate()
    }),
    open(socket => say(socket, watching('c'), event('entityChange', 'd'))),
  ])
  const run = new Run(t, port)
  await run.afterCut(1)
  await run.afterCut(2)
  await run.until('the third connection', () => run.events.length === 4)
  t.strictSame(
    begins.map(({ from }) => from),
    [undefined, 'b', 'c'],
  )
  t.strictSame(run.begun, [true, false, false])
  t.match(run.notes, [
    'closed with code 1001; connects again in 0.3 s',
    'connected again, continues',
    /; connects again in 0.5 s$/,
    'connected again, continues',
  ])
})

t.test('a cut within a snapshot begins anew', async t => {
  const { port, begins } = await stage(t, [
    open(socket => {
      say(socket, watching('a'), event('snapshot', undefined, { data: [] }))
      socket.close(1001)
    }),
    open(socket => {
      say(
        socket,
        watching('b'),
        event('snapshot', undefined, { data: [] }),
        event('snapshot', 'b', { end: true, count: 0 }),
      )
      say(socket, event('gap', 'g', { reason: 'owner lost' }))
      socket.close(1001)
    }),
    open(socket => say(socket, watching('c'), event('snapshot', 'c', { end: true, count: 0 }))),
  ])
  const run = new Run(t, port, ['-snapshot'])
  await run.afterCut(1)
  await run.afterCut(2)
  await run.until('the third connection', () => run.events.length === 5)
  t.strictSame(
    begins.map(({ from }) => from),
    [undefined, undefined, undefined],
  )
  t.strictSame(run.begun, [true, true, true])
  t.match(run.notes, [/^closed/, 'connected again, begins anew', /^closed/, 'connected again, begins anew'])
})

t.test('the reason of the broker for the end is shown', async t => {
  const { port } = await stage(t, [
    open(socket => {
      say(socket, watching('a'), event('end', undefined, { reason: 'stopping' }))
    }),
    open(socket => say(socket, watching('a'), event('bookmark', 'b'))),
  ])
  const run = new Run(t, port)
  await run.afterCut(1)
  await run.until('the second connection', () => run.events.length === 1)
  t.match(run.notes[0], /^stopping; /)
  t.strictSame(run.kinds(), ['bookmark'], 'an end is no event of the feed')
})

t.test('pauses grow while connections fail, and begin anew after a steady watch', async t => {
  let close = (): void => {}
  const busy = answer(503, '{"error":"Unavailable","description":"no room"}')
  const { port } = await stage(t, [
    ...Array.from({ length: 7 }, () => busy),
    open(socket => {
      say(socket, watching('a'))
      close = () => socket.close(1001)
    }),
    busy,
  ])
  const run = new Run(t, port)
  for (let cuts = 1; cuts <= 7; cuts++) await run.afterCut(cuts)
  await run.until('the watch', () => run.begun.length === 1)
  t.strictSame(
    run.notes,
    ['0.3', '0.5', '1.0', '2.0', '4.0', '8.0', '10.0'].map(s => `answered 503: no room; connects again in ${s} s`),
  )
  run.clock.advance(11_000)
  close()
  await run.afterCut(8)
  t.match(run.notes[7], / 0\.3 s$/)
})

t.test('a server that is full may say how long to wait', async t => {
  const { port } = await stage(t, [
    answer(503, '', { 'Retry-After': '3' }),
    answer(429, '', { 'Retry-After': '4000' }),
    answer(502, '<html>', { 'Retry-After': 'soon' }),
    open(socket => say(socket, watching('a'))),
  ])
  const run = new Run(t, port)
  for (const cuts of [1, 2, 3]) await run.afterCut(cuts)
  await run.until('the watch', () => run.begun.length === 1)
  t.match(run.notes, [/ 3\.0 s$/, / 10\.0 s$/, /<html>.* 1\.0 s$/])
})

const refused: readonly (readonly [name: string, scene: Scene, reason: RegExp])[] = [
  [
    'a 400 before the connection',
    answer(400, '{"error":"BadRequest","description":"invalid q"}'),
    /^answered 400: invalid q$/,
  ],
  ['a 401 of a proxy', answer(401, 'who are you?'), /^answered 401: who are you\?$/],
  ['a page instead of a connection', answer(200, '<html>'), /^answered 200: the answer is not that of a broker/],
  ['a redirection', answer(302, '', { Location: 'http://127.0.0.1:1/' }), /^answered 302: /],
  [
    'a refused watch',
    open(socket => say(socket, { op: 'error', id: 'watch', error: 'BadRequest', description: 'bad cursor' })),
    /^BadRequest: bad cursor$/,
  ],
  ['a connection that may not be', open(socket => socket.close(1008, 'no')), /^closed: no$/],
  ['no JSON', open(socket => socket.send('hello')), /^the answer is not that of a broker/],
  ['nesting without end', open(socket => socket.send('['.repeat(1_000_000))), /^the answer is not that of a broker/],
  ['another protocol', open(socket => socket.send('[1]')), /^the answer is not that of a broker/],
  ['binary messages', open(socket => socket.send(Buffer.from('{}'))), /^the answer is not that of a broker/],
  [
    'a message that is too long',
    open(socket => say(socket, watching('a'), event('snapshot', undefined, { data: 'x'.repeat(messageBytesMax) }))),
    /^a message has more than 8 MB: /,
  ],
]
for (const [name, scene, reason] of refused)
  t.test(`the end: ${name}`, async t => {
    const { port, requests } = await stage(t, [scene])
    const run = new Run(t, port)
    t.match(await run.ended, reason)
    t.equal(requests.length, 1, 'it does not try again')
    t.equal(run.clock.waiting, 0, 'no timer is left')
  })

t.test('a message of almost 8 MB is read', async t => {
  const { port } = await stage(t, [
    open(socket =>
      say(socket, watching('a'), event('snapshot', undefined, { data: ['x'.repeat(messageBytesMax - 1_000)] })),
    ),
  ])
  const run = new Run(t, port)
  await run.until('the event', () => run.events.length === 1)
})

t.test('a refusal that may pass is a cut', async t => {
  const { port } = await stage(t, [
    open(socket => say(socket, { op: 'error', id: 'watch', error: 'Unavailable', description: 'later' })),
    open(socket => say(socket, watching('a'))),
  ])
  const run = new Run(t, port)
  await run.afterCut(1)
  await run.until('the watch', () => run.begun.length === 1)
  t.match(run.notes, [/^Unavailable: later; /])
})

t.test('an address at which nothing listens is the end at first, and a cut later', async t => {
  const port = await freePort()
  t.equal(await new Run(t, port).ended, "Couldn't connect to server")
  const { port: later } = await stage(t, [
    open(socket => {
      say(socket, watching('a'))
      socket.terminate()
    }),
  ])
  const run = new Run(t, later)
  await run.afterCut(1)
  t.match(await run.ended, /^answered 404: the script is over$/)
})

t.test(
  'silence is a cut: of a server that never answers, of a watch that does not begin, of one that goes quiet',
  async t => {
    const first = new Run(t, (await stage(t, [{ kind: 'silence' }])).port)
    await new Promise(resolve => setTimeout(resolve, 100))
    first.clock.advance(10_000)
    t.equal(await first.ended, 'there was no answer in time')

    let opened = 0
    let bookmark = (): void => {}
    const { port } = await stage(t, [
      open(() => opened++),
      open(socket => {
        say(socket, watching('a'))
        bookmark = () => say(socket, event('bookmark', 'b'))
      }),
    ])
    const run = new Run(t, port)
    await run.until('the message of the client', () => opened === 1)
    run.clock.advance(15_000)
    await run.afterCut(1)
    await run.until('the watch', () => run.begun.length === 1)
    run.clock.advance(44_000)
    bookmark()
    await run.until('the bookmark', () => run.events.length === 1)
    run.clock.advance(44_000)
    t.equal(run.notes.length, 1, 'a bookmark is a sign of life')
    run.clock.advance(1_000)
    t.match(run.notes, [/^the watch did not begin in time; /, /^nothing was received for a while; /])
  },
)

t.test('it reads no further while its output is slow', async t => {
  let sent = 0
  const { port } = await stage(t, [
    open(socket => {
      say(socket, watching('a'))
      const next = (): void => {
        if (sent >= 3_000 || socket.bufferedAmount > 1_000_000) return
        sent++
        socket.send(JSON.stringify(event('entityChange', 'b', { data: ['x'.repeat(10_000)] })), next)
      }
      next()
    }),
  ])
  const run = new Run(t, port)
  await run.until('events', () => run.events.length > 3)
  run.feed.pause()
  const atPause = run.events.length
  let before = -1
  while (before !== sent) {
    before = sent
    await new Promise(resolve => setTimeout(resolve, 200))
  }
  t.ok(sent < 3_000, `the server could send ${sent} events`)
  t.ok(run.events.length - atPause < 100, `${run.events.length - atPause} events after the pause`)
  run.clock.advance(200_000)
  t.strictSame(run.notes, [], 'silence of a paused connection is no cut')
  run.feed.resume()
  await run.until('all events', () => run.events.length === 3_000)
})

t.test('it can be stopped in a pause, and while it connects', async t => {
  const paused = new Run(t, (await stage(t, [answer(503, '')])).port)
  await paused.until('the cut', () => paused.notes.length === 1)
  paused.feed.stop()
  t.equal(await paused.ended, undefined)
  t.equal(paused.clock.waiting, 0)
  const connecting = new Run(t, (await stage(t, [{ kind: 'silence' }])).port)
  connecting.feed.stop()
  t.equal(await connecting.ended, undefined)
  t.equal(connecting.clock.waiting, 0)
})

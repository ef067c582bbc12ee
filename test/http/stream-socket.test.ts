// Messages on the WebSocket of a stream and their answers, without a front: the socket, the streams of the process and
// the requests of updates are stand-ins (docs/interface/live.md#websocket).
//
// Not here: sockets (socket-contract.ts), whole brokers (journeys/live-socket.test.ts).

import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { waitingMax } from '../../src/broker/streams/reader-queue.js'
import type { StreamEvent } from '../../src/broker/streams/stream-event.js'
import { refusals } from '../../src/domain/refusal.js'
import { type Watch, watchesMax } from '../../src/domain/streams/watch.js'
import { watchOfMessage } from '../../src/domain/streams/watch-parser.js'
import type { Exchange, MessageSocket } from '../../src/http/front.js'
import { beginMsMax, type StreamParts } from '../../src/http/open-stream.js'
import { unansweredMax } from '../../src/http/socket-updates.js'
import { type SocketParts, StreamSocket } from '../../src/http/stream-socket.js'
import { StreamStandIn } from './stream-stand-in.js'

const scope = { tenant: '', servicePath: '/#' }
const messageBytesMax = 1_000_000

/** A connection that has opened, unless `isOpening`. */
class Scene {
  /** The messages that the client has received. */
  readonly received: Record<string, unknown>[] = []
  readonly hub = new StreamStandIn()
  /** Updates that were begun, and are answered by `answer`. */
  readonly updates: Exchange[] = []
  /** The reports to the counters of streams. */
  readonly tallies: string[] = []
  closed: { readonly code: number; readonly reason: string } | 'destroyed' | undefined
  hasRoom = true
  /** Whether the front was informed that the client waits for answers. */
  isExpecting = false
  isEnding = false
  overs = 0
  readonly stream: StreamSocket
  readonly socket: MessageSocket = {
    send: texts => {
      for (const text of texts) this.received.push(JSON.parse(text))
      return this.hasRoom
    },
    close: (code, reason) => {
      this.closed ??= { code, reason }
    },
    expectsAnswers: isExpecting => {
      this.isExpecting = isExpecting
    },
    destroy: () => {
      this.closed ??= 'destroyed'
    },
  }

  constructor(first?: SocketParts['first'], isOpening = false) {
    const tallies: StreamParts['tallies'] = {
      begin: transport => this.tallies.push(`begin ${transport}`),
      end: (transport, by) => this.tallies.push(`end ${transport} ${by}`),
      event: kind => this.tallies.push(kind),
      fold: () => {},
      watch: () => {},
    }
    this.stream = new StreamSocket(
      {
        ...{ hub: this.hub.asHub, clock: this.hub.clock, tallies, streamsMax: 10, messageBytesMax, first, scope },
        ...{ updateScope: { tenant: '', path: '' }, origin: { client: '192.0.2.1', authToken: '' } },
        isEnding: () => this.isEnding,
        inner: { serveParsed: exchange => this.updates.push(exchange) },
        asker: undefined,
        certificate: undefined,
        isMultitenant: true,
      },
      () => {
        this.overs++
      },
    )
    if (!isOpening) this.stream.onOpen(this.socket)
  }

  /** Messages of the client: texts as they are, others as JSON. */
  send(...messages: unknown[]): void {
    for (const message of messages)
      this.stream.onMessage(Buffer.from(typeof message === 'string' ? message : JSON.stringify(message)))
  }

  /** Ends the tick. The messages since the last call. */
  take(): Record<string, unknown>[] {
    this.hub.endTick()
    return this.received.splice(0)
  }

  update(ref: unknown, ...ids: string[]): void {
    this.send({ op: 'update', ref, body: { actionType: 'append', entities: ids.map(id => ({ id, type: 'T' })) } })
  }

  /** Answers the update that was begun first. */
  answer(status = 204, body = ''): void {
    this.updates.shift()!.reply(status, [], body)
  }
}

const event = (data: string, kind: StreamEvent['kind'] = 'entityChange'): StreamEvent => ({ kind, cursor: 'c', data })
const error = (description: string | RegExp, id?: string) => ({ op: 'error', error: /./, description, id })

t.test('messages are answered in the order in which they came', async t => {
  const scene = new Scene()
  scene.send({ op: 'ping' }, { op: 'token', token: 'x' }, { op: 'watch', id: 'w' }, { op: 'unwatch', id: 'w' }, 'x')
  t.match(scene.take(), [{ op: 'pong' }, { op: 'ok' }, { op: 'unwatched', id: 'w' }, { op: 'error' }])
  t.strictSame(scene.tallies, ['begin websocket'])
})

t.test('a watch is confirmed before its first event, and events name their watch', async t => {
  const scene = new Scene()
  scene.send({ op: 'watch', id: 'w"1' })
  t.strictSame(scene.take(), [])
  const { reader } = scene.hub.opened[0]!
  reader.onBegun('c0')
  reader.onEvent(event('{"data":[{"id":"a"}]}'))
  reader.onEvent(event('{}', 'bookmark'))
  reader.onEvent(event('{"id":"a","type":"T"}', 'entityLeave'))
  t.strictSame(scene.take(), [
    { op: 'watching', id: 'w"1', cursor: 'c0' },
    { op: 'event', id: 'w"1', event: 'entityChange', cursor: 'c', data: [{ id: 'a' }] },
    { op: 'event', id: 'w"1', event: 'bookmark', cursor: 'c' },
    { op: 'event', id: 'w"1', event: 'entityLeave', cursor: 'c', entity: { id: 'a', type: 'T' } },
  ])
  scene.send({ op: 'unwatch', id: 'w"1' })
  reader.onEvent(event('{}'))
  t.strictSame(scene.take(), [{ op: 'unwatched', id: 'w"1' }])
  t.ok(scene.hub.opened[0]!.isEnded)
})

t.test('every wrong message is answered with its error, and the connection goes on', async t => {
  const scene = new Scene()
  const long = 'x'.repeat(257)
  const wrong: readonly (readonly [message: unknown, answer: object])[] = [
    ['{', { op: 'error', error: 'ParseError' }],
    ['', { op: 'error', error: 'ParseError' }],
    ['\xff', { op: 'error', error: 'ParseError' }],
    ...['[]', 'null', '"ping"', '1', '{}', '{"op":1}', '{"op":"ping","op":"ping"}', '{"op":"ping","a":1,"a":2}'].map(
      message => [message, error(/^a message must be a JSON object with the member op/)] as const,
    ),
    [{ op: 'fly' }, error('unknown op: fly')],
    [{ op: '__proto__' }, error('unknown op: __proto__')],
    [{ op: 'x'.repeat(500) }, error(`unknown op: ${'x'.repeat(100)}`)],
    [{ op: 'watch' }, error('id must be a text of at most 256 characters')],
    [{ op: 'watch', id: 7 }, error('id must be a text of at most 256 characters')],
    [{ op: 'watch', id: long }, error('id must be a text of at most 256 characters')],
    [{ op: 'watch', id: 'w', q: 'a<' }, error(/./, 'w')],
    [{ op: 'watch', id: 'w', tenant: 'a-b' }, error(/tenant name/, 'w')],
    [{ op: 'watch', id: 'w', tenant: 7 }, error(/tenant/, 'w')],
    [{ op: 'watch', id: 'w', path: 'a' }, error(/Only \/absolute\//, 'w')],
    [{ op: 'watch', id: 'w', path: [] }, error(/path/, 'w')],
    [{ op: 'watch', id: 'w', minInterval: -1 }, error(/minInterval must be/, 'w')],
    [{ op: 'watch', id: 'w', from: 'here' }, error(/is not a cursor/, 'w')],
    [{ op: 'watch', id: 'w', options: 'fast' }, error(/./, 'w')],
    [{ op: 'watch', id: 'w', entities: [{ id: 'a' }], type: 'T' }, error(/^Incompatible parameters: entities/, 'w')],
    [{ op: 'unwatch', id: 'w' }, error('there is no watch w on this connection', 'w')],
    [{ op: 'unwatch' }, error('there is no watch  on this connection')],
    [{ op: 'unwatch', id: long }, error('there is no watch  on this connection')],
    [{ op: 'token' }, error('token must be a text of at most 16384 characters')],
    [{ op: 'token', token: 'x'.repeat(16_385) }, error('token must be a text of at most 16384 characters')],
    [{ op: 'update', body: {} }, error('ref must be a number, or a text of at most 256 characters')],
    [{ op: 'update', ref: true, body: {} }, error('ref must be a number, or a text of at most 256 characters')],
    [{ op: 'update', ref: long, body: {} }, error('ref must be a number, or a text of at most 256 characters')],
  ]
  for (const [message, answer] of wrong) {
    scene.send(message)
    const [first, ...others] = scene.take()
    const name = (typeof message === 'string' ? message : JSON.stringify(message)).slice(0, 100)
    t.match(first, answer, name)
    t.strictSame(others, [])
  }
  const wrongUpdates: readonly (readonly [members: object, description: RegExp])[] = [
    [{}, /^body must be a JSON object/],
    [{ body: [] }, /^body must be a JSON object/],
    [{ body: {}, tenant: 7 }, /tenant/],
    [{ body: {}, path: {} }, /path/],
    [{ body: {}, options: 7 }, /options/],
    [{ body: {}, options: [7] }, /options/],
  ]
  for (const [members, description] of wrongUpdates) {
    scene.send({ op: 'update', ref: 'r', ...members })
    t.match(scene.take(), [{ op: 'done', ref: 'r', status: 400, error: 'BadRequest', description }])
  }
  scene.send({ op: 'ping' })
  t.strictSame(scene.take(), [{ op: 'pong' }])
  t.strictSame([scene.updates, scene.hub.opened, scene.closed], [[], [], undefined])
})

t.test('a name is taken until its watch has ended', async t => {
  const scene = new Scene()
  scene.send({ op: 'watch', id: '' }, { op: 'watch', id: '' })
  t.match(scene.take(), [error('there is a watch  on this connection', '')])
  scene.send({ op: 'unwatch', id: '' }, { op: 'watch', id: '' })
  t.match(scene.take(), [{ op: 'unwatched', id: '' }])
  t.equal(scene.hub.opened.length, 2)
})

t.test('a connection has at most 100 watches', async t => {
  const scene = new Scene()
  for (let n = 0; n < watchesMax; n++) scene.send({ op: 'watch', id: `w${n}` })
  t.strictSame(scene.take(), [])
  scene.send({ op: 'watch', id: 'more' })
  t.match(scene.take(), [error(/too many watches/, 'more')])
  scene.send({ op: 'unwatch', id: 'w0' }, { op: 'watch', id: 'more' })
  t.match(scene.take(), [{ op: 'unwatched' }])
  t.equal(scene.hub.opened.length, watchesMax + 1)
  scene.hub.opened[1]!.reader.onRefused(refusals.filtersTooMany(17))
  t.match(scene.take(), [error(/17 different filters/, 'w1')])
  scene.send({ op: 'watch', id: 'w1' })
  t.strictSame(scene.take(), [], 'a watch that was refused leaves its place')
})

t.test('a watch that cannot begin is refused; one that cannot go on ends', async t => {
  const scene = new Scene()
  scene.send({ op: 'watch', id: 'late' }, { op: 'watch', id: 'ended' })
  scene.hub.opened[1]!.reader.onBegun('c')
  scene.hub.opened[1]!.reader.onRefused(refusals.filtersTooMany(17))
  scene.hub.clock.advance(beginMsMax)
  t.match(scene.take(), [
    { op: 'watching', id: 'ended' },
    { op: 'event', id: 'ended', event: 'end', reason: 'limit' },
    error(/not all owners of shards know the filter/, 'late'),
  ])
  scene.hub.opened[0]!.reader.onBegun('c')
  t.strictSame(scene.take(), [])
  t.ok(scene.hub.opened.every(({ isEnded }) => isEnded))
})

t.test('the parameters of the request are a first watch, or its error', async t => {
  const first = watchOfMessage(scope, { type: 'T' })
  const scene = new Scene(first)
  scene.hub.opened[0]!.reader.onBegun('c')
  t.match(scene.take(), [{ op: 'watching', id: '' }])
  t.match((scene.hub.opened[0]!.watch as Watch).source.entities, [{ type: 'T' }])
  const refused = new Scene({ ok: false, refusal: refusals.cursor })
  t.match(refused.take(), [error(/is not a cursor/, '')])
  refused.send({ op: 'watch', id: '' })
  t.equal(refused.hub.opened.length, 1)
})

t.test('messages behind a large one wait for it', async t => {
  const scene = new Scene()
  const entities = [{ id: 'a', type: 'T', text: { value: 'x'.repeat(300_000) } }]
  scene.send({ op: 'update', ref: 1, body: { actionType: 'append', entities } })
  scene.send({ op: 'ping' }, { op: 'token', token: 't' })
  scene.update(2, 'b')
  t.strictSame([scene.take(), scene.updates], [[], []])
  for (let turns = 0; turns < 100 && scene.updates.length < 2; turns++) await turn()
  t.strictSame(scene.take(), [{ op: 'pong' }, { op: 'ok' }])
  scene.answer()
  scene.answer()
  t.strictSame(
    scene.take().map(({ ref }) => ref),
    [1, 2],
  )
})

t.test('a client that sends faster than its messages can be parsed loses its connection', async t => {
  const scene = new Scene()
  const large = JSON.stringify({ op: 'token', token: 'x'.repeat(messageBytesMax - 100) })
  scene.send(large, large, large, large, large)
  t.equal(scene.closed, undefined)
  scene.send(large)
  t.strictSame(scene.take(), [{ op: 'event', id: '', event: 'end', reason: 'limit' }])
  t.strictSame(scene.closed, { code: 1013, reason: 'limit' })
  t.strictSame([scene.tallies, scene.overs], [['begin websocket', 'end websocket error'], 1])
  for (let turns = 0; turns < 10; turns++) await turn()
  t.strictSame(scene.take(), [], 'and nothing of what waited is answered')
})

t.test('updates of one entity run one after the other, and those behind them wait', async t => {
  const scene = new Scene()
  scene.update(1, 'a')
  scene.update(2, 'b', 'c')
  scene.update(3, 'd', 'a')
  scene.update(4, 'e')
  t.strictSame([scene.updates.length, scene.isExpecting], [2, true])
  scene.updates.splice(1, 1)[0]!.reply(204, [])
  t.strictSame(scene.take(), [{ op: 'done', ref: 2, status: 204 }])
  t.equal(scene.updates.length, 1)
  scene.answer(422, '{"error":"Unprocessable","description":"x"}')
  t.strictSame(scene.take(), [{ op: 'done', ref: 1, status: 422, error: 'Unprocessable', description: 'x' }])
  t.equal(scene.updates.length, 2)
  scene.answer()
  t.ok(scene.isExpecting)
  scene.answer()
  t.strictSame(scene.take(), [
    { op: 'done', ref: 3, status: 204 },
    { op: 'done', ref: 4, status: 204 },
  ])
  t.notOk(scene.isExpecting)
})

t.test('an update that names an entity twice, or none, runs once', async t => {
  const scene = new Scene()
  scene.update('r"1', 'a', 'a')
  scene.send({ op: 'update', ref: 2, body: { entities: [null, 7, {}, { id: 7 }] } })
  scene.send({ op: 'update', ref: 3, body: {} })
  t.equal(scene.updates.length, 3)
  for (let n = 0; n < 3; n++) scene.answer()
  t.strictSame(
    scene.take().map(({ ref }) => ref),
    ['r"1', 2, 3],
  )
})

t.test('updates without an answer have a limit, and bytes', async t => {
  const scene = new Scene()
  for (let n = 0; n < unansweredMax; n++) scene.update(n, 'a')
  t.strictSame([scene.take(), scene.updates.length], [[], 1])
  scene.update('more', 'a')
  t.match(scene.take(), [{ op: 'done', ref: 'more', status: 503, description: /there are 256 updates/ }])
  scene.answer()
  scene.update('again', 'a')
  t.match(scene.take(), [{ op: 'done', ref: 0, status: 204 }])

  const large = new Scene()
  const body = { actionType: 'append', entities: [{ id: 'a', type: 'T', text: { value: 'x'.repeat(200_000) } }] }
  for (let n = 0; n < 19; n++) large.send({ op: 'update', ref: n, body })
  t.strictSame(large.take(), [])
  large.send({ op: 'update', ref: 'more', body })
  t.match(large.take(), [{ op: 'done', ref: 'more', status: 503, description: /more than 4000000 bytes/ }])
})

t.test('a stream that stops first answers its updates, and takes no more', async t => {
  const scene = new Scene()
  scene.update(1, 'a')
  scene.update(2, 'a')
  scene.stream.end('stopping', 'stopping')
  scene.update(3, 'b')
  t.match(scene.take(), [{ op: 'done', ref: 3, status: 503 }])
  scene.answer()
  t.match([scene.take(), scene.closed], [[{ ref: 1, status: 204 }], undefined])
  scene.answer()
  t.match(scene.take(), [
    { ref: 2, status: 204 },
    { op: 'event', event: 'end', reason: 'stopping' },
  ])
  t.strictSame(scene.closed, { code: 1001, reason: 'stopping' })
  t.strictSame(scene.tallies, ['begin websocket', 'end websocket stopping'])

  const idle = new Scene()
  idle.stream.end('stopping', 'stopping')
  t.match([idle.take(), idle.closed], [[{ event: 'end' }], { code: 1001 }])
  const ending = new Scene()
  ending.isEnding = true
  ending.update(1, 'a')
  t.match(ending.take(), [{ op: 'done', ref: 1, status: 503 }])
})

t.test('after the end nothing is sent, begun or counted', async t => {
  const scene = new Scene()
  scene.send({ op: 'watch', id: 'w' })
  scene.update(1, 'a')
  scene.update(2, 'a')
  scene.stream.onGone()
  scene.hub.opened[0]!.reader.onBegun('c')
  scene.hub.opened[0]!.reader.onEvent(event('{}'))
  scene.answer()
  scene.send({ op: 'ping' }, { op: 'watch', id: 'v' })
  scene.stream.onRoom()
  scene.stream.end('stopping', 'stopping')
  scene.stream.onGone()
  t.strictSame([scene.take(), scene.updates, scene.hub.opened.length], [[], [], 1])
  t.ok(scene.hub.opened[0]!.isEnded)
  t.strictSame([scene.tallies, scene.overs], [['begin websocket', 'end websocket client'], 1])
  t.equal(scene.hub.clock.waiting, 0)
})

t.test('a client may go before the connection is open, and the server may end it before', async t => {
  const gone = new Scene(watchOfMessage(scope, {}), true)
  gone.stream.onGone()
  t.strictSame([gone.tallies, gone.overs, gone.hub.opened], [[], 1, []])
  const stopped = new Scene(watchOfMessage(scope, {}), true)
  stopped.stream.end('stopping', 'stopping')
  stopped.stream.onOpen(stopped.socket)
  t.match([stopped.take(), stopped.closed], [[{ event: 'end', reason: 'stopping' }], { code: 1001 }])
  stopped.send({ op: 'ping' })
  stopped.stream.onGone()
  t.strictSame([stopped.take(), stopped.tallies, stopped.overs, stopped.hub.opened], [[], [], 1, []])
})

t.test('a client that reads nothing loses its connection, for each kind of waiting message', async t => {
  const fills: Readonly<Record<string, (scene: Scene) => void>> = {
    pings: scene => scene.send({ op: 'ping' }),
    errors: scene => scene.send('x'),
    events: scene => scene.hub.opened[0]!.reader.onEvent(event(`{"text":"${'x'.repeat(10_000)}"}`, 'snapshot')),
  }
  for (const [what, fill] of Object.entries(fills)) {
    const scene = new Scene()
    scene.send({ op: 'watch', id: 'w' })
    scene.hasRoom = false
    scene.send({ op: 'ping' })
    t.strictSame(scene.take(), [{ op: 'pong' }])
    while (!scene.closed && scene.hub.waiting.characters <= waitingMax) fill(scene)
    t.strictSame(scene.closed, { code: 1013, reason: 'too slow' }, what)
    t.match(scene.take(), [{ op: 'event', event: 'end', reason: 'too slow' }])
    t.strictSame([scene.tallies.at(-1), scene.hub.waiting.characters], ['end websocket slow', 0])
  }
  const scene = new Scene()
  scene.hasRoom = false
  scene.send({ op: 'ping' })
  scene.hub.endTick()
  scene.stream.end('stopping', 'stopping')
  t.equal(scene.closed, 'destroyed', 'a stop does not wait for it')
})

t.test('waiting messages are sent in order when there is room', async t => {
  const scene = new Scene()
  scene.send({ op: 'watch', id: 'w' })
  const { reader } = scene.hub.opened[0]!
  scene.hasRoom = false
  scene.send({ op: 'ping' })
  t.strictSame(scene.take(), [{ op: 'pong' }])
  reader.onBegun('c')
  reader.onEvent(event('{"n":1}', 'snapshot'))
  scene.send({ op: 'token', token: '' })
  let isWanted = false
  reader.whenRoom(() => {
    isWanted = true
  })
  t.strictSame([scene.take(), isWanted], [[], false])
  scene.hasRoom = true
  scene.stream.onRoom()
  t.match(scene.take(), [{ op: 'watching' }, { event: 'snapshot', n: 1 }, { op: 'ok' }])
  t.ok(isWanted)
})

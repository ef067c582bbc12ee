// The link, step by step: which frames it sends when, the outcome of asks, and the bounds of everything that could
// grow. The bound on the other node's clock is never below the time that this clock shows, however late frames arrive.

import t from 'tap'
import {
  type AskFrame,
  answerKinds,
  decodeFrame,
  encodeFrame,
  type Frame,
  type ReadFrame,
} from '../../../cluster/asks/frames.js'
import { Link, type LinkParts, PeerClock } from '../../../cluster/asks/link.js'
import { type AskOptions, completeOptions, frameBytesMax, requestBytesMax } from '../../../cluster/options.js'
import type { AskResult, Stream } from '../../../cluster/ports.js'
import { FakeClock } from '../../support/fake-clock.js'
import { Random } from '../../support/random.js'

/** How far the other node's clock is ahead of ours. */
const aheadMs = 5_000_000

/** A stream that keeps sent frames. */
class Wire implements Stream {
  readonly sent: ReadFrame[] = []
  /** The result of `send`. */
  free = true

  send(message: Buffer): boolean {
    this.sent.push(decodeFrame(message)!)
    return this.free
  }

  close(): void {}

  /** The frames sent since the last call. */
  take(): ReadFrame[] {
    return this.sent.splice(0)
  }
}

/** A link under a clock that the test moves, and the other node, played by the test. */
class Scene {
  readonly clock = new FakeClock()
  readonly link: Link
  readonly changes: string[] = []
  readonly outcomes: AskResult[] = []
  readonly troubles: string[] = []
  readonly failures: string[] = []
  /** Requests that the host has begun, and how to reply. */
  readonly begun: { shard: number; text: string; view: number; reply: (reply: Uint8Array) => void }[] = []
  /** Runs with each request that the host begins. */
  onBegin = (): void => {}
  /** Runs at the end of each tick, after the link has seen it. */
  onTickEnded = (): void => {}
  wire = new Wire()
  /** The frames sent at once after the other node's greeting. */
  greeted: ReadFrame[] = []

  constructor(options: Partial<AskOptions> = {}, numbered = 0) {
    const surroundings: LinkParts = {
      host: {
        onAsk: (shard, request, reply, view) => {
          this.begun.push({ shard, text: Buffer.from(request).toString(), view, reply })
          this.onBegin()
        },
      },
      nowMs: () => this.clock.monoMs(),
      wallMs: () => this.clock.wallMs(),
      flushSoon: () =>
        this.clock.endOfTick(() => {
          this.link.onTickEnd()
          this.onTickEnded()
        }),
      onChange: (up, reason) => this.changes.push(`${up ? 'up' : 'down'}: ${reason}`),
      onTrouble: trouble => this.troubles.push(trouble),
      onFailure: failure => this.failures.push(failure.message),
    }
    this.link = new Link('b', completeOptions(options), surroundings, numbered)
  }

  /** The other node greets over a new stream, and knows our clock. */
  connect(incarnation = 'first'): this {
    this.wire = new Wire()
    const hello = { lowest: 2, highest: 2, name: 'b', incarnation, to: 'a' }
    this.link.attach(this.wire, this.read({ hello, ping: true, echoMs: this.clock.monoMs() }), incarnation, undefined)
    this.greeted = this.wire.take()
    return this
  }

  /** The other node sends a frame. */
  receive(frame: Partial<Frame>): void {
    this.link.onFrame(this.read(frame))
  }

  /** The other node asks, with its usual deadline unless a frame gives another. */
  receiveAsks(...numbers: (number | Partial<AskFrame>)[]): void {
    const asks = numbers.map(one => {
      const given = typeof one === 'number' ? { number: one } : one
      const request = Buffer.from(`ask ${given.number}`)
      return { number: 0, shard: 7, deadlineMs: this.peerMs + 2000, request, view: 0, ...given }
    })
    this.receive({ asks })
  }

  /** The other node replies to an ask. */
  receiveReply(number: number, text: string): void {
    this.receive({ answers: [{ number, kind: 0, reply: Buffer.from(text), offset: 0, total: 0 }] })
  }

  ask(text: string | Buffer = 'ask'): void {
    this.link.ask(1, Buffer.from(text), outcome => this.outcomes.push(outcome))
  }

  /** Lets time pass; the link is woken at the times that it chooses. */
  pass(ms: number): 'abandon' | undefined {
    const untilMs = this.clock.monoMs() + ms
    for (;;) {
      const next = this.link.wake()
      if (next === 'abandon') return next
      const leftMs = untilMs - this.clock.monoMs()
      this.clock.advance(Math.min(next, leftMs))
      if (next > leftMs) return undefined
    }
  }

  get peerMs(): number {
    return this.clock.monoMs() + aheadMs
  }

  get kinds(): string[] {
    return this.outcomes.map(({ kind }) => kind)
  }

  private read(frame: Partial<Frame>): ReadFrame {
    const head = { sentMs: this.peerMs, echoMs: undefined, ping: false, hello: undefined, trouble: undefined }
    const empty = { ...head, asks: [], answers: [] }
    return decodeFrame(encodeFrame({ ...empty, ...frame }))!
  }
}

const texts = (frames: readonly ReadFrame[]): string[] =>
  frames.flatMap(({ asks }) => asks.map(({ request }) => Buffer.from(request).toString()))

t.test('asks of one tick go in one frame, or in several if one is too small', async t => {
  const scene = new Scene().connect()
  for (let left = 100; left > 0; left--) scene.ask()
  t.strictSame(scene.wire.sent, [], 'the tick has not ended')
  scene.clock.tick()
  t.strictSame(
    scene.wire.take().map(({ asks }) => asks.length),
    [64, 36],
  )
  scene.ask(Buffer.alloc(frameBytesMax))
  scene.ask('one more')
  scene.clock.tick()
  t.strictSame(
    scene.wire.take().map(({ asks }) => asks.length),
    [1, 1],
  )
})

t.test('a frame takes the asks of a few ticks, as long as each brings some', async t => {
  const scene = new Scene().connect()
  scene.clock.tick()
  scene.wire.take()
  let ended = 0
  const brought = (ticks: number): number[][] => {
    let left = ticks
    ended = 0
    scene.onTickEnded = () => {
      ended++
      if (--left > 0) scene.ask()
    }
    scene.ask()
    scene.clock.tick()
    return scene.wire.take().map(({ asks }) => asks.map(({ number }) => number))
  }
  t.strictSame(brought(1), [[1]])
  t.equal(ended, 2, 'a tick that brings nothing is the last')
  t.strictSame(brought(3), [[2, 3, 4]])
  for (const number of [1, 2, 3, 4]) scene.receiveReply(number, 'reply')
  scene.clock.tick()
  scene.wire.take()
  t.strictSame(brought(6), [
    [5, 6, 7, 8],
    [9, 10],
  ])
  scene.onTickEnded = () => {}
  scene.receiveAsks(1)
  scene.ask()
  scene.onTickEnded = () => {
    scene.onTickEnded = () => {}
    scene.begun[0]!.reply(Buffer.from('reply'))
  }
  scene.clock.tick()
  const frames = scene.wire.take().map(({ asks, answers }) => [asks.length, answers.length])
  t.strictSame(frames, [[1, 1]], 'answers wait with asks')
})

t.test('a reply reaches its caller', async t => {
  const scene = new Scene().connect()
  scene.ask('one')
  scene.ask('two')
  scene.clock.tick()
  const [first, second] = scene.wire.sent[0]!.asks
  scene.receiveReply(second!.number, 'to two')
  scene.receiveReply(first!.number, 'to one')
  t.strictSame(scene.outcomes, [
    { kind: 'reply', reply: Buffer.from('to two') },
    { kind: 'reply', reply: Buffer.from('to one') },
  ])
})

t.test('an ask carries its view, and the host gets the view of the other', async t => {
  const scene = new Scene().connect()
  scene.link.ask(1, Buffer.alloc(1), () => {}, 2000, 41)
  scene.ask()
  scene.clock.tick()
  t.strictSame(
    scene.wire.sent[0]!.asks.map(({ view }) => view),
    [41, 0],
  )
  scene.receiveAsks({ number: 1, view: 42 }, 2)
  t.strictSame(
    scene.begun.map(({ view }) => view),
    [42, 0],
  )
})

t.test('a link goes on counting where the one before it has stopped', async t => {
  const scene = new Scene({}, 500).connect()
  scene.ask()
  scene.clock.tick()
  t.equal(scene.wire.sent[0]!.asks[0]!.number, 501)
  t.equal(scene.link.lastNumber, 501)
})

t.test('a repeated or late answer is dropped', async t => {
  const scene = new Scene().connect()
  scene.ask()
  scene.clock.tick()
  const { number } = scene.wire.sent[0]!.asks[0]!
  scene.receiveReply(number, 'first')
  scene.receiveReply(number, 'second')
  scene.receiveReply(number + 1, 'to nothing')
  t.strictSame(scene.outcomes, [{ kind: 'reply', reply: Buffer.from('first') }])
})

t.test('without a connection an ask is unavailable at once', async t => {
  const scene = new Scene()
  scene.ask()
  t.match(scene.outcomes, [{ kind: 'unavailable', reason: 'node b cannot be reached: no connection yet' }])
})

t.test('an ask that was sent is unknown when its deadline has come, not earlier', async t => {
  const scene = new Scene({ silentMs: 10_000, abandonMs: 10_000 }).connect()
  scene.ask()
  scene.clock.tick()
  scene.pass(1999)
  t.strictSame(scene.kinds, [])
  scene.pass(2)
  t.strictSame(scene.outcomes, [{ kind: 'unknown', reason: 'no answer came in time' }])
})

t.test('an ask that the stream has not taken by its deadline is unavailable, and never sent', async t => {
  const scene = new Scene({ silentMs: 10_000, abandonMs: 10_000 }).connect()
  scene.wire.free = false
  scene.ask('sent')
  scene.clock.tick()
  scene.ask('held')
  scene.clock.tick()
  scene.pass(2001)
  t.strictSame(scene.kinds, ['unknown', 'unavailable'])
  scene.wire.free = true
  scene.link.onDrain()
  t.strictSame(texts(scene.wire.sent), ['sent'])
})

t.test('also when the stream drains before the deadlines are checked', async t => {
  const scene = new Scene({ silentMs: 10_000, abandonMs: 10_000 }).connect()
  scene.wire.free = false
  scene.ask('sent')
  scene.clock.tick()
  scene.ask('held')
  scene.clock.advance(3000)
  scene.link.onDrain()
  t.strictSame([scene.kinds, texts(scene.wire.sent)], [['unavailable'], ['sent']])
})

t.test('while the stream is full frames wait, and one that drains takes them', async t => {
  const scene = new Scene().connect()
  scene.wire.free = false
  for (let left = 200; left > 0; left--) scene.ask()
  scene.clock.tick()
  t.equal(texts(scene.wire.take()).length, 64)
  scene.link.onDrain()
  t.equal(texts(scene.wire.take()).length, 64)
  scene.wire.free = true
  scene.link.onDrain()
  t.equal(texts(scene.wire.take()).length, 72)
})

t.test('asks beyond the limit are unavailable at once, until others have ended', async t => {
  const scene = new Scene({ inFlightMax: 2 }).connect()
  scene.ask()
  scene.ask()
  scene.ask()
  t.match(scene.outcomes, [{ kind: 'unavailable', reason: 'too many asks to node b are waiting' }])
  scene.clock.tick()
  scene.receiveReply(scene.wire.sent[0]!.asks[0]!.number, '')
  scene.ask()
  t.strictSame(scene.kinds, ['unavailable', 'reply'])
})

t.test('asks beyond the limit of bytes are unavailable at once, and so is one that is too large itself', async t => {
  const scene = new Scene().connect()
  const request = Buffer.allocUnsafe(requestBytesMax)
  for (let left = 3; left > 0; left--) scene.ask(request)
  t.match(scene.outcomes, [{ kind: 'unavailable', reason: 'too many asks to node b are waiting' }])
  scene.ask(Buffer.allocUnsafe(requestBytesMax + 1))
  t.match(scene.outcomes[1], { kind: 'unavailable', reason: /a request of more than/ })
})

t.test('an incoming ask is begun with its shard, and replied to in one frame a tick', async t => {
  const scene = new Scene().connect()
  scene.receiveAsks(1, 2)
  t.match(scene.begun, [
    { shard: 7, text: 'ask 1' },
    { shard: 7, text: 'ask 2' },
  ])
  scene.begun[1]!.reply(Buffer.from('b'))
  scene.begun[0]!.reply(Buffer.from('a'))
  scene.clock.tick()
  t.match(scene.wire.take(), [
    {
      answers: [
        { number: 2, kind: 0, reply: Buffer.from('b') },
        { number: 1, kind: 0, reply: Buffer.from('a') },
      ],
    },
  ])
})

t.test('an ask whose number was passed is not begun', async t => {
  const scene = new Scene().connect()
  scene.receiveAsks(5)
  scene.receiveAsks(5)
  scene.receiveAsks(4, 6)
  t.strictSame(
    scene.begun.map(({ text }) => text),
    ['ask 5', 'ask 6'],
  )
})

t.test('an ask whose deadline has come on its asker’s clock is refused', async t => {
  const scene = new Scene().connect()
  scene.receiveAsks({ number: 1, deadlineMs: scene.peerMs + 1 }, { number: 2, deadlineMs: scene.peerMs })
  scene.clock.tick()
  t.strictSame(
    scene.begun.map(({ text }) => text),
    ['ask 1'],
  )
  t.match(scene.wire.take(), [{ answers: [{ number: 2, kind: 2 }] }])
})

t.test('the clock is read when an ask is begun, not when its frame is read', async t => {
  const scene = new Scene().connect()
  scene.onBegin = () => scene.clock.advance(1500)
  scene.receiveAsks(1, 2, 3)
  t.strictSame(
    scene.begun.map(({ text }) => text),
    ['ask 1', 'ask 2'],
  )
})

t.test('nothing is begun as long as the asker’s clock is not known', async t => {
  const scene = new Scene()
  const hello = { lowest: 2, highest: 2, name: 'b', incarnation: 'i', to: 'a' }
  const head = { sentMs: scene.peerMs, echoMs: undefined, ping: true, hello, trouble: undefined }
  const greeting = { ...head, asks: [], answers: [] }
  scene.link.attach(scene.wire, greeting, 'i', { ...hello, name: 'a', to: 'b' })
  t.match(
    scene.wire.take(),
    [{ hello: { name: 'a' }, ping: true, echoMs: greeting.sentMs }],
    'our greeting wants an echo',
  )
  scene.receiveAsks(1)
  t.strictSame(scene.begun, [])
  scene.receive({ echoMs: scene.clock.monoMs() })
  scene.receiveAsks(2)
  t.match(scene.begun, [{ text: 'ask 2' }])
})

t.test('when the clock turns out to be wrong nothing is begun until the next echo', async t => {
  const scene = new Scene().connect()
  scene.receive({ sentMs: scene.peerMs + 500 })
  scene.receiveAsks(1)
  scene.clock.tick()
  t.strictSame(scene.begun, [])
  t.match(scene.wire.take(), [{ ping: true, answers: [{ kind: 2 }] }], 'and an echo is asked for')
})

t.test('an ask that arrives too late, or where too many run, has not happened', async t => {
  const scene = new Scene().connect()
  scene.ask()
  scene.ask()
  scene.clock.tick()
  const answers = scene.wire.sent[0]!.asks.map(({ number }, n) => ({
    number,
    kind: n === 0 ? (1 as const) : (2 as const),
    reply: Buffer.alloc(0),
    offset: 0,
    total: 0,
  }))
  scene.receive({ answers })
  t.strictSame(scene.kinds, ['unavailable', 'unavailable'])
})

t.test('when too many asks run here the next one is turned away', async t => {
  const scene = new Scene({ inFlightMax: 2 }).connect()
  scene.receiveAsks(1, 2, 3)
  scene.clock.tick()
  t.match(scene.wire.take(), [{ answers: [{ number: 3, kind: 1 }] }])
  scene.begun[0]!.reply(Buffer.alloc(0))
  scene.clock.tick()
  scene.receiveAsks(4)
  t.equal(scene.begun.length, 3)
})

t.test('an ask counts until its answer has left', async t => {
  const scene = new Scene({ inFlightMax: 2 }).connect()
  scene.wire.free = false
  scene.receive({ ping: true })
  scene.clock.tick()
  scene.receiveAsks(1, 2)
  for (const { reply } of scene.begun) reply(Buffer.alloc(0))
  scene.receiveAsks(3)
  t.equal(scene.begun.length, 2)
})

t.test('a node that asks and never reads in the end gets no refusals either', async t => {
  const scene = new Scene({ inFlightMax: 2 }).connect()
  scene.wire.free = false
  scene.receive({ ping: true })
  scene.clock.tick()
  for (let number = 1; number <= 100; number++) scene.receiveAsks(number)
  scene.wire.free = true
  scene.link.onDrain()
  t.equal(scene.wire.take().flatMap(({ answers }) => answers).length, 4)
})

t.test('a host that replies twice is a bug', async t => {
  const scene = new Scene().connect()
  scene.receiveAsks(1)
  scene.begun[0]!.reply(Buffer.alloc(0))
  t.throws(() => scene.begun[0]!.reply(Buffer.alloc(0)), /replied already/)
})

t.test('a ping leaves at every interval, and one that comes is echoed at the end of the tick', async t => {
  const scene = new Scene().connect()
  for (let left = 4; left > 0; left--) {
    scene.pass(250)
    scene.receive({})
  }
  t.equal(scene.wire.take().filter(({ ping }) => ping).length, 4)
  const { peerMs } = scene
  scene.receive({ ping: true })
  scene.clock.tick()
  t.match(scene.wire.take(), [{ echoMs: peerMs, ping: false }])
})

t.test(
  'a silent node is down: unsent asks have not happened, sent ones wait; when it sends again it is up',
  async t => {
    const scene = new Scene().connect()
    scene.wire.free = false
    scene.ask('sent')
    scene.clock.tick()
    scene.ask('held')
    scene.pass(999)
    t.ok(scene.link.reachable)
    scene.pass(2)
    t.notOk(scene.link.reachable)
    t.strictSame(scene.outcomes, [{ kind: 'unavailable', reason: 'node b cannot be reached: it is silent' }])
    scene.ask()
    t.strictSame(scene.kinds, ['unavailable', 'unavailable'])
    scene.receiveReply(scene.wire.sent[0]!.asks[0]!.number, 'late but in time')
    t.strictSame(scene.kinds, ['unavailable', 'unavailable', 'reply'])
    t.strictSame(scene.changes, ['up: connected', 'down: it is silent', 'up: connected'])
  },
)

t.test('a stream that is silent for long is abandoned', async t => {
  const scene = new Scene().connect()
  t.equal(scene.pass(4999), undefined)
  t.equal(scene.pass(250), 'abandon')
})

t.test('after a pause of this process the other node has one interval to send something, once', async t => {
  const scene = new Scene().connect()
  scene.pass(100)
  scene.clock.advance(3000)
  scene.link.wake()
  t.ok(scene.link.reachable, 'what it has said may wait to be read')
  scene.pass(300)
  t.notOk(scene.link.reachable)
})

t.test('a sent ask outlives its stream: the answer may come over the next one', async t => {
  const scene = new Scene().connect()
  scene.ask()
  scene.clock.tick()
  const { number } = scene.wire.sent[0]!.asks[0]!
  scene.link.detach('cut')
  t.strictSame([scene.kinds, scene.changes], [[], ['up: connected', 'down: cut']])
  scene.connect()
  t.strictSame(texts(scene.wire.sent), [], 'and it is not sent again')
  scene.receiveReply(number, 'over the second stream')
  t.strictSame(scene.kinds, ['reply'])
})

t.test('an ask begun before a stream was cut is answered over the next one', async t => {
  const scene = new Scene().connect()
  scene.receiveAsks(1)
  scene.link.detach('cut')
  scene.begun[0]!.reply(Buffer.from('reply'))
  t.match(scene.connect().greeted, [{ answers: [{ number: 1, reply: Buffer.from('reply') }] }])
})

t.test('answers for a node that stays away are released', async t => {
  const scene = new Scene().connect()
  scene.receiveAsks(1)
  scene.link.detach('cut')
  scene.begun[0]!.reply(Buffer.from('reply'))
  for (let left = 5; left > 0; left--) {
    scene.pass(500)
    scene.link.detach('nobody listens')
  }
  t.match(scene.connect().greeted, [{ answers: { length: 0 } }])
})

t.test(
  'when another process has the node’s name, sent asks are unknown, and it gets no answers for the former one',
  async t => {
    const scene = new Scene().connect()
    scene.ask()
    scene.receiveAsks(1)
    scene.clock.tick()
    scene.wire.take()
    scene.link.detach('cut')
    scene.connect('second')
    t.strictSame(scene.outcomes, [{ kind: 'unknown', reason: 'the node has restarted' }])
    scene.begun[0]!.reply(Buffer.from('reply'))
    scene.clock.tick()
    t.strictSame(
      scene.wire.take().flatMap(({ answers }) => answers),
      [],
    )
  },
)

t.test('asks begun for a process that is gone still count as running', async t => {
  const scene = new Scene({ inFlightMax: 1 }).connect()
  scene.receiveAsks(1)
  scene.link.detach('cut')
  scene.connect('second').receiveAsks(1)
  t.equal(scene.begun.length, 1)
  scene.begun[0]!.reply(Buffer.alloc(0))
  scene.receiveAsks(2)
  t.equal(scene.begun.length, 1, 'the refusal has not left yet')
  scene.clock.tick()
  scene.receiveAsks(3)
  t.equal(scene.begun.length, 2)
})

t.test('an exception of a host fails the ask, and the asker gets that', async t => {
  const scene = new Scene().connect()
  scene.onBegin = () => {
    throw new Error('no such thing')
  }
  scene.receiveAsks(1)
  scene.clock.tick()
  t.match(scene.wire.take(), [{ answers: [{ number: 1, kind: answerKinds.failed }] }])
  t.strictSame(scene.failures, ['no such thing'])
  scene.ask()
  scene.clock.tick()
  scene.receive({ answers: [{ number: 1, kind: answerKinds.failed, reply: Buffer.alloc(0), offset: 0, total: 0 }] })
  t.match(scene.outcomes, [{ kind: 'unknown' }], 'nobody knows how far it came')
})

t.test('an exception of one caller does not keep the next answer from its caller', async t => {
  const scene = new Scene().connect()
  scene.link.ask(1, Buffer.from('first'), () => {
    throw new Error('no such answer')
  })
  scene.ask('second')
  scene.clock.tick()
  const answers = [1, 2].map(number => ({ number, kind: 0 as const, reply: Buffer.from('x'), offset: 0, total: 0 }))
  scene.receive({ answers })
  t.strictSame(scene.failures, ['no such answer'])
  t.strictSame(scene.kinds, ['reply'])
})

t.test('unreadable parts are reported in the next frame, and reports of the other node are passed on', async t => {
  const scene = new Scene().connect()
  scene.link.reportTrouble('a reply that is none')
  scene.clock.tick()
  t.match(scene.wire.take(), [{ trouble: 'a reply that is none' }])
  scene.receive({ trouble: 'another one' })
  t.strictSame(scene.troubles, ['another one'])
})

t.test('closing ends every ask and sends everything that can still leave', async t => {
  const scene = new Scene().connect()
  scene.receiveAsks(1)
  scene.begun[0]!.reply(Buffer.from('reply'))
  scene.ask('sent')
  scene.clock.tick()
  scene.wire.free = false
  scene.ask('also sent')
  scene.clock.tick()
  scene.ask('held')
  scene.link.close('this node is closing')
  t.strictSame(scene.kinds, ['unavailable', 'unknown', 'unknown'])
  t.match(scene.wire.sent[0], { answers: [{ number: 1 }] })
  scene.ask()
  t.match(scene.outcomes.at(-1), { kind: 'unavailable', reason: /this node is closing/ })
})

t.test('before the first frame the other clock may show any time', async t => {
  t.equal(new PeerClock().latestMs(5), Number.POSITIVE_INFINITY)
})

t.test('an echo bounds the clock by the way there, and the better of two echoes counts', async t => {
  const clock = new PeerClock()
  // Ours is 1000 ahead: we write at 5000, it answers at 4002 on its own clock, which is 5002 on ours.
  clock.learn(5000, 4002, 5009)
  t.ok(Math.abs(clock.latestMs(5009) - 4011) < 0.1, 'its clock shows 4009')
  clock.learn(6000, 5500, 6510)
  t.ok(Math.abs(clock.latestMs(6510) - 5512) < 2, 'an echo that took 500 ms on the way there says less')
  clock.learn(7000, 6000.5, 7030)
  t.ok(Math.abs(clock.latestMs(7030) - 6030.5) < 0.1, 'one that took 0.5 ms says more')
})

t.test('the bound is never below the time of the other clock', async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  for (let runs = 0; runs < 200; runs++) {
    const offset = random.between(-1e6, 1e6)
    const [ours, theirs] = [0, 0].map(() => 1 + random.between(-450, 450) / 1e6)
    const clock = new PeerClock()
    let nowMs = 0
    for (let frames = 0; frames < 50; frames++) {
      const wroteMs = nowMs
      const echoedMs = wroteMs + random.fraction() * random.pick([2, 2, 2, 3000])
      nowMs = echoedMs + random.fraction() * random.pick([2, 2, 2, 3000])
      const sentMs = offset + echoedMs * theirs!
      if (!clock.observe(sentMs, nowMs * ours!)) t.fail('a frame that is in order was found to be impossible')
      clock.learn(wroteMs * ours!, sentMs, nowMs * ours!)
      nowMs += random.fraction() * random.pick([10, 10, 10_000])
      if (clock.latestMs(nowMs * ours!) < offset + nowMs * theirs!) t.fail(`too low in run ${runs}`)
    }
  }
  t.pass('it never was')
})

t.test('a frame that was written later than can be proves the bound wrong', async t => {
  const clock = new PeerClock()
  clock.learn(100, 100, 100)
  t.equal(clock.observe(150, 150), true)
  t.equal(clock.observe(300, 200), false, 'our clock stood still for 100 ms')
  t.equal(clock.latestMs(200), Number.POSITIVE_INFINITY)
  clock.learn(200, 300, 201)
  t.ok(clock.latestMs(201) < 302, 'until the next echo')
})

t.test('an echo of a frame that is not yet written is ignored', async t => {
  const clock = new PeerClock()
  clock.learn(500, 100, 400)
  t.equal(clock.latestMs(400), Number.POSITIVE_INFINITY)
})

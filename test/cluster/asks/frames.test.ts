// Frames and their bytes: every writer and reader follows proto/asks.proto, and bytes that are no frame are not taken
// for one.

import { join } from 'node:path'
import { loadSync, type ServiceDefinition } from '@grpc/proto-loader'
import t from 'tap'
import {
  type Answer,
  type AskFrame,
  decodeFrame,
  encodeFrame,
  type Frame,
  type Hello,
} from '../../../cluster/asks/frames.js'
import { asksPerFrameMax } from '../../../cluster/options.js'
import { root } from '../../support/project.js'
import fc from '../../support/properties.js'
import { Random } from '../../support/random.js'

const proto = loadSync(join(root, 'proto/asks.proto'), { longs: Number, enums: String, defaults: true, oneofs: true })
const { Converse } = proto['orrery.cluster.Asks'] as ServiceDefinition
const { requestSerialize: encodeByProto, requestDeserialize: decodeByProto } = Converse!

/** fast-check's record, with ordinary objects. */
const record = <T>(fields: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(fields, { noNullPrototype: true })

const whole = fc.oneof(fc.nat(300), fc.nat(2 ** 31 - 1), fc.maxSafeNat())
const ms = fc.double({ noNaN: true, noDefaultInfinity: true })
const bytes = fc.uint8Array({ maxLength: 300 }).map(array => Buffer.from(array))
const name = fc.string({ maxLength: 40, unit: 'grapheme' })
const ask: fc.Arbitrary<AskFrame> = record({
  number: whole,
  deadlineMs: ms,
  shard: fc.nat(2 ** 32 - 1),
  request: bytes,
  view: fc.oneof(fc.constant(0), fc.maxSafeNat()),
})
const answer: fc.Arbitrary<Answer> = fc.oneof(
  record({
    number: whole,
    kind: fc.constant(0 as const),
    reply: bytes,
    offset: fc.constant(0),
    total: fc.constant(0),
  }),
  record({
    number: whole,
    kind: fc.constant(0 as const),
    reply: bytes,
    offset: whole,
    total: fc.oneof(fc.integer({ min: 1, max: 301 }), fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })),
  }),
  record({
    number: whole,
    kind: fc.constantFrom(1, 2, 3, 4, 5) as fc.Arbitrary<1 | 2 | 3 | 4 | 5>,
    reply: fc.constant(Buffer.alloc(0)),
    offset: fc.constant(0),
    total: fc.constant(0),
  }),
)
const hello: fc.Arbitrary<Hello> = record({
  lowest: fc.nat(2 ** 32 - 1),
  highest: fc.nat(2 ** 32 - 1),
  name,
  incarnation: name,
  to: name,
  refusal: fc.option(name, { nil: undefined }),
})
const frame: fc.Arbitrary<Frame> = record({
  sentMs: ms,
  echoMs: fc.option(ms, { nil: undefined }),
  wallMs: fc.option(fc.double({ min: 0, max: Date.UTC(2100, 0), noNaN: true }), { nil: undefined }),
  ping: fc.boolean(),
  hello: fc.option(hello, { nil: undefined }),
  trouble: fc.option(name, { nil: undefined }),
  asks: fc.array(ask, { maxLength: 5 }),
  answers: fc.array(answer, { maxLength: 5 }),
})

/** The greeting without an undefined member. */
const present = ({ refusal, ...hello }: Hello) => (refusal === undefined ? hello : { ...hello, refusal })

/** A frame with the field names of proto/asks.proto. */
const inProto = ({ sentMs, echoMs, wallMs, ping, hello, trouble, asks, answers }: Frame) => ({
  sentMs,
  ...(echoMs === undefined ? {} : { echoMs }),
  ...(wallMs === undefined ? {} : { wallMs }),
  ping,
  ...(hello ? { hello: present(hello) } : {}),
  ...(trouble === undefined ? {} : { trouble }),
  asks,
  answers,
})

const small: Frame = {
  sentMs: 12.5,
  echoMs: 3.25,
  wallMs: 1700000000000.5,
  ping: true,
  hello: { lowest: 2, highest: 3, name: 'a', incarnation: 'i', to: 'b', refusal: undefined },
  trouble: undefined,
  asks: [{ number: 300, deadlineMs: 2012.5, shard: 200, request: Buffer.from('request'), view: 7 }],
  answers: [
    { number: 299, kind: 0, reply: Buffer.from('reply'), offset: 0, total: 0 },
    { number: 298, kind: 2, reply: Buffer.alloc(0), offset: 0, total: 0 },
  ],
}

t.test('a frame comes out of its bytes as it went in', async t => {
  fc.assert(fc.property(frame, one => t.strictSame(decodeFrame(encodeFrame(one)), one) || t.bailout()))
})

t.test('a reader of proto/asks.proto reads the frames that are written here', async t => {
  const kinds = ['REPLY', 'BUSY', 'EXPIRED', 'TOO_LARGE', 'NO_ROOM', 'FAILED']
  fc.assert(
    fc.property(frame, one => {
      const read = decodeByProto(encodeFrame(one)) as Record<string, unknown> & { answers: { kind: string }[] }
      const answers = read.answers.map(answer => ({ ...answer, kind: kinds.indexOf(answer.kind) }))
      const { _echoMs, ...rest } = read
      t.match({ ...rest, answers, hello: read.hello ?? undefined }, inProto(one)) || t.bailout()
      t.equal(_echoMs, one.echoMs === undefined ? undefined : 'echoMs') || t.bailout()
    }),
  )
})

t.test('frames written by proto/asks.proto are read here', async t => {
  fc.assert(fc.property(frame, one => t.strictSame(decodeFrame(encodeByProto(inProto(one))), one) || t.bailout()))
})

t.test('streams are opened under the name in proto/asks.proto', async t => {
  t.equal(Converse!.path, '/orrery.cluster.Asks/Converse')
  t.ok(Converse!.requestStream && Converse!.responseStream)
})

t.test('bytes that are cut off are no frame, or one with less in it', async t => {
  const all = encodeFrame(small)
  for (let length = 0; length < all.length; length++) {
    const read = decodeFrame(all.subarray(0, length))
    t.ok(!read || read.asks.length + read.answers.length < 3, `${length} bytes`)
  }
})

t.test('mutilated bytes never throw, and parts read from them lie within them', async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  const all = encodeFrame(small)
  for (let left = 20_000; left > 0; left--) {
    const bytes = Buffer.from(all)
    for (let changes = random.between(1, 4); changes > 0; changes--) {
      bytes[random.between(0, bytes.length - 1)] = random.pick([0, 1, 0x7f, 0x80, 0xff, random.between(0, 255)])
    }
    const read = decodeFrame(bytes)
    if (!read) continue
    const length = [...read.asks.map(one => one.request), ...read.answers.map(one => one.reply)].reduce(
      (sum, one) => sum + one.length,
      0,
    )
    const numbers = [read.sentMs, read.echoMs ?? 0, ...read.asks.flatMap(one => [one.deadlineMs, one.view])]
    const finite = numbers.every(Number.isFinite)
    if (length > bytes.length || !finite) t.fail(bytes.toString('hex'))
  }
  t.pass('none did')
})

t.test('fields that are not known are skipped', async t => {
  const unknown = Buffer.from([0x78, 0x05, 0x79, 1, 2, 3, 4, 5, 6, 7, 8, 0x7a, 0x02, 1, 2, 0x7d, 1, 2, 3, 4])
  t.strictSame(decodeFrame(Buffer.concat([unknown, encodeFrame(small), unknown])), small)
})

t.test('a number beyond the range of JavaScript is no frame', async t => {
  const ask = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f]
  t.equal(decodeFrame(Buffer.from([0x2a, ask.length, ...ask])), undefined)
})

t.test('a time before 1970 or after 2100 is left out', async t => {
  for (const wallMs of [-1, -1e300, Date.UTC(2100, 0) + 1, 1e300])
    t.strictSame(decodeFrame(encodeFrame({ ...small, wallMs })), { ...small, wallMs: undefined }, String(wallMs))
  t.equal(decodeFrame(encodeFrame({ ...small, wallMs: Number.NaN })), undefined)
})

t.test('a frame with more asks than allowed is none', async t => {
  const asks = Array.from({ length: asksPerFrameMax + 1 }, (_, n) => ({ ...small.asks[0]!, number: n }))
  t.equal(decodeFrame(encodeFrame({ ...small, asks })), undefined)
  t.ok(decodeFrame(encodeFrame({ ...small, asks: asks.slice(1) })))
})

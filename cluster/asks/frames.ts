// Frames and their bytes, as proto/asks.proto says: written and read by hand.
//
// [hot] An ask and its answer, written and read, cost 0.29 us here and 1.3 us with @grpc/proto-loader (64 in a frame, 300 bytes and 20 back),
// alone in a frame 0.7 us and 2.4 us. Of an ask's 2.6 us in all, the library would add 1 us.
//
// Requests and replies that are read are parts of the message they came in, not copies.
//
// Not here: what frames mean (link.ts), how they travel (grpc-transport.ts), how a field is written (protobuf.ts).

import { answersPerFrameMax, asksPerFrameMax } from '../options.js'
import {
  decode,
  doubleLength,
  NoMessage,
  nestedLength,
  putBytes,
  putDouble,
  putVarint,
  type Reader,
  tag,
  varintLength,
} from './protobuf.js'

export interface Frame {
  readonly sentMs: number
  readonly echoMs: number | undefined
  readonly ping: boolean
  readonly hello: Hello | undefined
  readonly asks: readonly Ask[]
  readonly answers: readonly Answer[]
}

export interface Hello {
  readonly version: number
  readonly name: string
  readonly incarnation: string
  readonly to: string
}

export interface Ask {
  readonly number: number
  readonly deadlineMs: number
  readonly shard: number
  readonly request: Uint8Array
  /** The asker's view of who owns the shard, as a number that its host understands; 0: none. */
  readonly view: number
}

export const answerKinds = { reply: 0, busy: 1, expired: 2, tooLarge: 3, noRoom: 4 } as const

export type AnswerKind = (typeof answerKinds)[keyof typeof answerKinds]

export interface Answer {
  readonly number: number
  readonly kind: AnswerKind
  readonly reply: Uint8Array
  readonly offset: number
  /** Bytes of the whole reply when it comes in parts, else 0. */
  readonly total: number
}

/** An answer as it is read. */
export interface ReadAnswer extends Answer {
  readonly reply: Buffer
}

export interface ReadFrame extends Frame {
  readonly answers: readonly ReadAnswer[]
}

const tags = {
  frame: {
    sentMs: tag(1, 'double'),
    echoMs: tag(2, 'double'),
    ping: tag(3, 'varint'),
    hello: tag(4, 'bytes'),
    ask: tag(5, 'bytes'),
    answer: tag(6, 'bytes'),
  },
  hello: { version: tag(1, 'varint'), name: tag(2, 'bytes'), incarnation: tag(3, 'bytes'), to: tag(4, 'bytes') },
  ask: {
    number: tag(1, 'varint'),
    deadlineMs: tag(2, 'double'),
    shard: tag(3, 'varint'),
    request: tag(4, 'bytes'),
    view: tag(5, 'double'),
  },
  answer: {
    number: tag(1, 'varint'),
    kind: tag(2, 'varint'),
    reply: tag(3, 'bytes'),
    offset: tag(4, 'varint'),
    total: tag(5, 'varint'),
  },
} as const

const nothing = Buffer.alloc(0)

// [hot] A few fields for every ask; two passes, so that the message is allocated once, at its size.
/** The bytes of a frame. */
export function encodeFrame(frame: Frame): Buffer {
  const hello = frame.hello && encodeHello(frame.hello)
  let length = doubleLength + (frame.echoMs === undefined ? 0 : doubleLength) + (frame.ping ? 2 : 0)
  if (hello) length += nestedLength(hello.length)
  for (const ask of frame.asks) length += nestedLength(askLength(ask))
  for (const answer of frame.answers) length += nestedLength(answerLength(answer))
  const bytes = Buffer.allocUnsafe(length)
  let at = putDouble(bytes, 0, tags.frame.sentMs, frame.sentMs)
  if (frame.echoMs !== undefined) at = putDouble(bytes, at, tags.frame.echoMs, frame.echoMs)
  if (frame.ping) at = putVarint(bytes, at, tags.frame.ping, 1)
  if (hello) at = putBytes(bytes, at, tags.frame.hello, hello)
  for (const ask of frame.asks) at = putAsk(bytes, at, ask)
  for (const answer of frame.answers) at = putAnswer(bytes, at, answer)
  return bytes
}

function putAsk(bytes: Buffer, begin: number, ask: Ask): number {
  let at = putVarint(bytes, begin, tags.frame.ask, askLength(ask))
  at = putVarint(bytes, at, tags.ask.number, ask.number)
  at = putDouble(bytes, at, tags.ask.deadlineMs, ask.deadlineMs)
  at = putVarint(bytes, at, tags.ask.shard, ask.shard)
  if (ask.view !== 0) at = putDouble(bytes, at, tags.ask.view, ask.view)
  return putBytes(bytes, at, tags.ask.request, ask.request)
}

function askLength({ number, shard, request, view }: Ask): number {
  const head = 1 + varintLength(number) + doubleLength + 1 + varintLength(shard)
  return head + (view === 0 ? 0 : doubleLength) + nestedLength(request.length)
}

function putAnswer(bytes: Buffer, begin: number, answer: Answer): number {
  let at = putVarint(bytes, begin, tags.frame.answer, answerLength(answer))
  at = putVarint(bytes, at, tags.answer.number, answer.number)
  if (answer.kind !== answerKinds.reply) return putVarint(bytes, at, tags.answer.kind, answer.kind)
  at = putBytes(bytes, at, tags.answer.reply, answer.reply)
  if (answer.total === 0) return at
  at = putVarint(bytes, at, tags.answer.offset, answer.offset)
  return putVarint(bytes, at, tags.answer.total, answer.total)
}

function answerLength({ number, kind, reply, offset, total }: Answer): number {
  const head = 1 + varintLength(number)
  if (kind !== answerKinds.reply) return head + 1 + varintLength(kind)
  const parts = total === 0 ? 0 : 2 + varintLength(offset) + varintLength(total)
  return head + nestedLength(reply.length) + parts
}

function encodeHello(hello: Hello): Buffer {
  const [name, incarnation, to] = [hello.name, hello.incarnation, hello.to].map(text => Buffer.from(text))
  const bytes = Buffer.alloc(6 + [name, incarnation, to].reduce((sum, text) => sum + nestedLength(text!.length), 0))
  let at = putVarint(bytes, 0, tags.hello.version, hello.version)
  at = putBytes(bytes, at, tags.hello.name, name!)
  at = putBytes(bytes, at, tags.hello.incarnation, incarnation!)
  return bytes.subarray(0, putBytes(bytes, at, tags.hello.to, to!))
}

/** The frame that has these bytes; undefined when they are none. */
export function decodeFrame(bytes: Buffer): ReadFrame | undefined {
  return decode(bytes, readFrame)
}

function readFrame(reader: Reader): ReadFrame {
  let sentMs = 0
  let echoMs: number | undefined
  let ping = false
  let hello: Hello | undefined
  const asks: Ask[] = []
  const answers: ReadAnswer[] = []
  while (reader.at < reader.end) {
    const fieldTag = reader.varint()
    if (fieldTag === tags.frame.ask) asks.push(readAsk(reader))
    else if (fieldTag === tags.frame.answer) answers.push(readAnswer(reader))
    else if (fieldTag === tags.frame.sentMs) sentMs = reader.double()
    else if (fieldTag === tags.frame.echoMs) echoMs = reader.double()
    else if (fieldTag === tags.frame.ping) ping = reader.varint() !== 0
    else if (fieldTag === tags.frame.hello) hello = readHello(reader)
    else reader.skip(fieldTag)
  }
  if (asks.length > asksPerFrameMax || answers.length > answersPerFrameMax) throw new NoMessage()
  return { sentMs, echoMs, ping, hello, asks, answers }
}

function readAsk(reader: Reader): Ask {
  const outer = reader.enter()
  let number = 0
  let deadlineMs = 0
  let shard = 0
  let request: Buffer = nothing
  let view = 0
  while (reader.at < reader.end) {
    const fieldTag = reader.varint()
    if (fieldTag === tags.ask.number) number = reader.varint()
    else if (fieldTag === tags.ask.deadlineMs) deadlineMs = reader.double()
    else if (fieldTag === tags.ask.shard) shard = reader.varint()
    else if (fieldTag === tags.ask.request) request = reader.bytes()
    else if (fieldTag === tags.ask.view) view = reader.double()
    else reader.skip(fieldTag)
  }
  reader.leave(outer)
  return { number, deadlineMs, shard, request, view }
}

function readAnswer(reader: Reader): ReadAnswer {
  const outer = reader.enter()
  let number = 0
  let kind = 0
  let reply: Buffer = nothing
  let offset = 0
  let total = 0
  while (reader.at < reader.end) {
    const fieldTag = reader.varint()
    if (fieldTag === tags.answer.number) number = reader.varint()
    else if (fieldTag === tags.answer.kind) kind = reader.varint()
    else if (fieldTag === tags.answer.reply) reply = reader.bytes()
    else if (fieldTag === tags.answer.offset) offset = reader.varint()
    else if (fieldTag === tags.answer.total) total = reader.varint()
    else reader.skip(fieldTag)
  }
  reader.leave(outer)
  if (kind > answerKinds.noRoom) throw new NoMessage()
  return { number, kind: kind as AnswerKind, reply, offset, total }
}

function readHello(reader: Reader): Hello {
  const outer = reader.enter()
  let version = 0
  let name = ''
  let incarnation = ''
  let to = ''
  while (reader.at < reader.end) {
    const fieldTag = reader.varint()
    if (fieldTag === tags.hello.version) version = reader.varint()
    else if (fieldTag === tags.hello.name) name = reader.text()
    else if (fieldTag === tags.hello.incarnation) incarnation = reader.text()
    else if (fieldTag === tags.hello.to) to = reader.text()
    else reader.skip(fieldTag)
  }
  reader.leave(outer)
  return { version, name, incarnation, to }
}

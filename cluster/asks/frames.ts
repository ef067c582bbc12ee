// Frames and their bytes, as defined in proto/asks.proto: protocol buffers that are written and read by hand.
//
// [hot] An ask and its answer, written and read, cost 0.29 us here and 1.3 us with @grpc/proto-loader (64 in a frame,
// 300 bytes and 20 back), alone in a frame 0.7 us and 2.4 us. Of an ask's 2.6 us in all, the library would add 1 us.
//
// Reading trusts nothing: bytes that are cut off, too long, not finite or nested wrongly are no frame. Unknown fields
// are skipped. Requests and replies that are read are parts of the message they came in, not copies.
//
// Not here: the meaning of frames (link.ts), how they travel (grpc-transport.ts), messages by the library
// (grpc-codec.ts).

import { answersPerFrameMax, asksPerFrameMax, nameLengthMax, reasonLengthMax } from '../options.js'

export interface Frame {
  readonly sentMs: number
  readonly echoMs: number | undefined
  /** The sender's wall clock when it wrote the frame; only with an echo. */
  readonly wallMs?: number | undefined
  readonly ping: boolean
  readonly hello: Hello | undefined
  /** A report of bytes on this stream that the sender could not read, for the receiver's log. */
  readonly trouble: string | undefined
  readonly asks: readonly AskFrame[]
  readonly answers: readonly Answer[]
}

export interface Hello {
  readonly lowest: number
  readonly highest: number
  readonly name: string
  readonly incarnation: string
  readonly to: string
  /** Why the sender refuses the conversation; undefined: it accepts. After a refusal the stream ends. */
  readonly refusal?: string | undefined
}

export interface AskFrame {
  readonly number: number
  readonly deadlineMs: number
  readonly shard: number
  readonly request: Uint8Array
  /** The asker's view of the shard's ownership, as a number that its host understands; 0: none. */
  readonly view: number
}

export const answerKinds = { reply: 0, busy: 1, expired: 2, tooLarge: 3, noRoom: 4, failed: 5 } as const

export type AnswerKind = (typeof answerKinds)[keyof typeof answerKinds]

export interface Answer {
  readonly number: number
  readonly kind: AnswerKind
  readonly reply: Uint8Array
  readonly offset: number
  /** Bytes of the whole reply when it comes in parts, else 0. */
  readonly total: number
}

export interface ReadAnswer extends Answer {
  readonly reply: Buffer
}

export interface ReadFrame extends Frame {
  readonly answers: readonly ReadAnswer[]
}

const wireTypes = { varint: 0, double: 1, bytes: 2, float: 5 } as const

/** The bytes before a field. */
const tag = (field: number, type: keyof typeof wireTypes): number => (field << 3) | wireTypes[type]

const doubleLength = 9

/** A field of so many bytes with its tag and its length. */
function nestedLength(length: number): number {
  return 1 + varintLength(length) + length
}

function varintLength(value: number): number {
  let length = 1
  for (let limit = 128; value >= limit; limit *= 128) length++
  return length
}

function putVarint(bytes: Buffer, begin: number, fieldTag: number, value: number): number {
  let at = begin
  bytes[at++] = fieldTag
  let left = value
  while (left >= 0x80) {
    bytes[at++] = (left % 0x80) | 0x80
    left = Math.floor(left / 0x80)
  }
  bytes[at++] = left
  return at
}

function putDouble(bytes: Buffer, at: number, fieldTag: number, value: number): number {
  bytes[at] = fieldTag
  return bytes.writeDoubleLE(value, at + 1)
}

function putBytes(bytes: Buffer, begin: number, fieldTag: number, value: Uint8Array): number {
  const at = putVarint(bytes, begin, fieldTag, value.length)
  bytes.set(value, at)
  return at + value.length
}

const tags = {
  frame: {
    sentMs: tag(1, 'double'),
    echoMs: tag(2, 'double'),
    ping: tag(3, 'varint'),
    hello: tag(4, 'bytes'),
    ask: tag(5, 'bytes'),
    answer: tag(6, 'bytes'),
    trouble: tag(7, 'bytes'),
    wallMs: tag(8, 'double'),
  },
  hello: {
    highest: tag(1, 'varint'),
    name: tag(2, 'bytes'),
    incarnation: tag(3, 'bytes'),
    to: tag(4, 'bytes'),
    lowest: tag(5, 'varint'),
    refusal: tag(6, 'bytes'),
  },
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

/** Of a text for people, in UTF-8. */
const reasonBytesMax = 4 * reasonLengthMax

/** Stamps of brokers end nine years later: a node that followed such a clock could give none. */
const wallMsMax = Date.UTC(2100, 0)

// [hot] A few fields for every ask; two passes, so that the message is allocated once, at its size.
export function encodeFrame(frame: Frame): Buffer {
  const hello = frame.hello && encodeHello(frame.hello)
  let length = doubleLength + (frame.echoMs === undefined ? 0 : doubleLength) + (frame.ping ? 2 : 0)
  if (hello) length += nestedLength(hello.length)
  const trouble = frame.trouble === undefined ? undefined : shortText(frame.trouble)
  if (trouble) length += nestedLength(trouble.length)
  if (frame.wallMs !== undefined) length += doubleLength
  for (const ask of frame.asks) length += nestedLength(askLength(ask))
  for (const answer of frame.answers) length += nestedLength(answerLength(answer))
  const bytes = Buffer.allocUnsafe(length)
  let at = putDouble(bytes, 0, tags.frame.sentMs, frame.sentMs)
  if (frame.echoMs !== undefined) at = putDouble(bytes, at, tags.frame.echoMs, frame.echoMs)
  if (frame.wallMs !== undefined) at = putDouble(bytes, at, tags.frame.wallMs, frame.wallMs)
  if (frame.ping) at = putVarint(bytes, at, tags.frame.ping, 1)
  if (hello) at = putBytes(bytes, at, tags.frame.hello, hello)
  if (trouble) at = putBytes(bytes, at, tags.frame.trouble, trouble)
  for (const ask of frame.asks) at = putAsk(bytes, at, ask)
  for (const answer of frame.answers) at = putAnswer(bytes, at, answer)
  return bytes
}

function putAsk(bytes: Buffer, begin: number, ask: AskFrame): number {
  let at = putVarint(bytes, begin, tags.frame.ask, askLength(ask))
  at = putVarint(bytes, at, tags.ask.number, ask.number)
  at = putDouble(bytes, at, tags.ask.deadlineMs, ask.deadlineMs)
  at = putVarint(bytes, at, tags.ask.shard, ask.shard)
  if (ask.view !== 0) at = putDouble(bytes, at, tags.ask.view, ask.view)
  return putBytes(bytes, at, tags.ask.request, ask.request)
}

function askLength({ number, shard, request, view }: AskFrame): number {
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
  const texts: (readonly [fieldTag: number, text: Buffer])[] = [
    [tags.hello.name, Buffer.from(hello.name)],
    [tags.hello.incarnation, Buffer.from(hello.incarnation)],
    [tags.hello.to, Buffer.from(hello.to)],
  ]
  if (hello.refusal !== undefined) texts.push([tags.hello.refusal, shortText(hello.refusal)])
  const numbersLength = 2 + varintLength(hello.highest) + varintLength(hello.lowest)
  const bytes = Buffer.alloc(texts.reduce((sum, [, text]) => sum + nestedLength(text.length), numbersLength))
  let at = putVarint(bytes, 0, tags.hello.highest, hello.highest)
  at = putVarint(bytes, at, tags.hello.lowest, hello.lowest)
  for (const [fieldTag, text] of texts) at = putBytes(bytes, at, fieldTag, text)
  return bytes
}

/** A text for people, cut to the length that its receiver accepts. */
const shortText = (text: string): Buffer => Buffer.from(text.slice(0, reasonLengthMax))

export function decodeFrame(bytes: Buffer): ReadFrame | undefined {
  return decode(bytes, readFrame)
}

function readFrame(reader: Reader): ReadFrame {
  let sentMs = 0
  let echoMs: number | undefined
  let wallMs: number | undefined
  let ping = false
  let hello: Hello | undefined
  let trouble: string | undefined
  const asks: AskFrame[] = []
  const answers: ReadAnswer[] = []
  while (reader.at < reader.end) {
    const fieldTag = reader.varint()
    if (fieldTag === tags.frame.ask) asks.push(readAsk(reader))
    else if (fieldTag === tags.frame.answer) answers.push(readAnswer(reader))
    else if (fieldTag === tags.frame.sentMs) sentMs = reader.double()
    else if (fieldTag === tags.frame.echoMs) echoMs = reader.double()
    else if (fieldTag === tags.frame.wallMs) wallMs = wallClockIn(reader.double())
    else if (fieldTag === tags.frame.ping) ping = reader.varint() !== 0
    else if (fieldTag === tags.frame.hello) hello = readHello(reader)
    else if (fieldTag === tags.frame.trouble) trouble = reader.text(reasonBytesMax)
    else reader.skip(fieldTag)
  }
  if (asks.length > asksPerFrameMax || answers.length > answersPerFrameMax) throw new NoMessage()
  return { sentMs, echoMs, wallMs, ping, hello, trouble, asks, answers }
}

/** undefined: no clock can be compared with this time. */
const wallClockIn = (ms: number): number | undefined => (ms >= 0 && ms <= wallMsMax ? ms : undefined)

function readAsk(reader: Reader): AskFrame {
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
  if (kind > answerKinds.failed) throw new NoMessage()
  return { number, kind: kind as AnswerKind, reply, offset, total }
}

function readHello(reader: Reader): Hello {
  const outer = reader.enter()
  let highest = 0
  let lowest: number | undefined
  let name = ''
  let incarnation = ''
  let to = ''
  let refusal: string | undefined
  while (reader.at < reader.end) {
    const fieldTag = reader.varint()
    if (fieldTag === tags.hello.highest) highest = reader.varint()
    else if (fieldTag === tags.hello.lowest) lowest = reader.varint()
    else if (fieldTag === tags.hello.name) name = reader.text()
    else if (fieldTag === tags.hello.incarnation) incarnation = reader.text()
    else if (fieldTag === tags.hello.to) to = reader.text()
    else if (fieldTag === tags.hello.refusal) refusal = reader.text(reasonBytesMax)
    else reader.skip(fieldTag)
  }
  reader.leave(outer)
  return { lowest: lowest ?? highest, highest, name, incarnation, to, refusal }
}

/** The result of `read` for these bytes; undefined when they are no message. */
function decode<T>(bytes: Buffer, read: (reader: Reader) => T): T | undefined {
  try {
    return read(new Reader(bytes))
  } catch (error) {
    if (error instanceof NoMessage) return undefined
    throw error
  }
}

/** Unwinds a reader; never leaves `decode`. */
class NoMessage extends Error {}

/** A position in a message, and the end of the readable part: of the message, or of the field that was entered. */
class Reader {
  at = 0
  end: number

  constructor(private readonly message: Buffer) {
    this.end = message.length
  }

  varint(): number {
    let value = 0
    let unit = 1
    for (;;) {
      if (this.at >= this.end) throw new NoMessage()
      const byte = this.message[this.at++]!
      value += (byte & 0x7f) * unit
      if (byte < 0x80) break
      unit *= 0x80
      if (unit > 2 ** 49) throw new NoMessage()
    }
    if (value > Number.MAX_SAFE_INTEGER) throw new NoMessage()
    return value
  }

  double(): number {
    const value = this.message.readDoubleLE(this.take(8))
    if (!Number.isFinite(value)) throw new NoMessage()
    return value
  }

  bytes(): Buffer {
    const length = this.varint()
    const begin = this.take(length)
    return this.message.subarray(begin, begin + length)
  }

  text(bytesMax = nameLengthMax): string {
    const bytes = this.bytes()
    if (bytes.length > bytesMax) throw new NoMessage()
    return bytes.toString()
  }

  skip(fieldTag: number): void {
    const type = fieldTag % 8
    if (fieldTag < 8) throw new NoMessage()
    if (type === wireTypes.varint) this.varint()
    else if (type === wireTypes.double) this.take(8)
    else if (type === wireTypes.bytes) this.bytes()
    else if (type === wireTypes.float) this.take(4)
    else throw new NoMessage()
  }

  /** Enters a nested message. Returns the value that `leave` needs. */
  enter(): number {
    const length = this.varint()
    const begin = this.take(length)
    const outer = this.end
    this.at = begin
    this.end = begin + length
    return outer
  }

  leave(outer: number): void {
    this.end = outer
  }

  /** Advances by so many bytes. Returns the position where they begin. */
  private take(length: number): number {
    const begin = this.at
    if (length > this.end - begin) throw new NoMessage()
    this.at = begin + length
    return begin
  }
}

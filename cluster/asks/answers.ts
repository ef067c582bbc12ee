// Replies in transit: those that wait to be sent, and the assembly of a long one where it arrives.
//
// Short replies go first and whole. Long ones go in parts, one part a frame and one reply after the other. So a page of
// 30 MB delays the others by one part, and the receiver has at most one in pieces.

import { answersPerFrameMax, frameBytesMax, replyBytesMax } from '../options.js'
import { type Answer, type AnswerKind, answerKinds, type ReadAnswer } from './frames.js'

/** The approximate bytes of an answer besides its reply. */
const headBytes = 16

const nothing = new Uint8Array(0)

interface LongReply {
  readonly number: number
  readonly reply: Uint8Array
  sent: number
}

/** Answers to one node that wait to be sent. */
export class Answers {
  private short: Answer[] = []
  private readonly long = new Set<LongReply>()
  private bytes = 0

  /** `bytesMax`: bytes of waiting replies. Beyond it further replies are dropped, and their askers get a refusal. */
  constructor(private readonly bytesMax: number) {}

  get size(): number {
    return this.short.length + this.long.size
  }

  reply(number: number, reply: Uint8Array): void {
    if (reply.length > replyBytesMax) return this.refuse(number, answerKinds.tooLarge)
    if (this.bytes + reply.length > this.bytesMax) return this.refuse(number, answerKinds.noRoom)
    this.bytes += reply.length
    if (reply.length > frameBytesMax) this.long.add({ number, reply, sent: 0 })
    else this.short.push({ number, kind: answerKinds.reply, reply, offset: 0, total: 0 })
  }

  refuse(number: number, kind: AnswerKind): void {
    this.short.push({ number, kind, reply: nothing, offset: 0, total: 0 })
  }

  take(): Answer[] {
    const taken = this.takeShort()
    const [first] = this.long
    if (first) taken.push(this.nextPart(first))
    return taken
  }

  private takeShort(): Answer[] {
    let count = 0
    for (let bytes = 0; count < this.short.length; count++) {
      if (count >= answersPerFrameMax - 1 || bytes >= frameBytesMax) break
      const { length } = this.short[count]!.reply
      this.bytes -= length
      bytes += length + headBytes
    }
    return this.short.splice(0, count)
  }

  /** The stream has ended: long replies start again from their first byte on the next one. */
  rewind(): void {
    for (const reply of this.long) reply.sent = 0
  }

  clear(): void {
    this.short = []
    this.long.clear()
    this.bytes = 0
  }

  private nextPart(long: LongReply): Answer {
    const { number, reply, sent: offset } = long
    const part = reply.subarray(offset, offset + frameBytesMax)
    long.sent += part.length
    if (long.sent === reply.length) {
      this.long.delete(long)
      this.bytes -= reply.length
    }
    return { number, kind: answerKinds.reply, reply: part, offset, total: reply.length }
  }
}

/** A long reply as it arrives over one stream. */
export class Assembly {
  private number = 0
  private whole: Buffer | undefined
  private length = 0

  /** Adds a part. Returns the whole reply after the last one. A part that is not the next one changes nothing. */
  add({ number, reply, offset, total }: ReadAnswer): Buffer | undefined {
    if (total > replyBytesMax || offset + reply.length > total) return undefined
    if (offset === 0 && number !== this.number) {
      this.number = number
      this.whole = Buffer.allocUnsafe(total)
      this.length = 0
    }
    const { whole } = this
    if (!whole || number !== this.number || whole.length !== total || offset !== this.length) return undefined
    whole.set(reply, offset)
    this.length += reply.length
    if (this.length < total) return undefined
    this.whole = undefined
    return whole
  }

  forget(number: number): void {
    if (number === this.number) this.whole = undefined
  }
}

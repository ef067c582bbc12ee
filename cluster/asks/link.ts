// The conversation with one other node: asks out and in, and when each of them ends. Decisions only: it owns no socket
// and no timer. It reads the given clock, and acts through the given stream, host and callbacks.
//
// These rules hold, whatever the network does (test/cluster/simulation.test.ts tries to break them):
// - Every ask has exactly one outcome. 'unavailable' means that the host of the other node never sees it.
// - An ask is begun at most once. It is written to one stream only, with a number above all before it there, and never
//   again. The receiver begins only asks whose numbers are above all that it has read from that stream.
// - An ask is not begun when its deadline may have come on its asker's clock (PeerClock). The clock is read just before
//   each ask is begun: a process may be stopped between reading a frame and getting to its last ask.
// - Everything that waits is bounded by number and bytes (options.ts); anything beyond is refused at once.
// - No bytes of the other node make `onFrame` throw. If the host throws over them, that is reported as a failure.
//
// Asks and waiting answers belong to the other node's incarnation and outlive a stream: an answer may come over the
// next one. Numbers seen, clocks and half-read replies belong to the stream. Not here: dialing, greeting and redialing
// (asks.ts).
//
// [hot] Cost, all of cluster/ and gRPC in both processes together, unix socket, requests of 300 bytes, replies of 20:
// 130,000 to 300,000 asks per CPU second (3.3 to 7.8 us each) with 64 outstanding, 126,000 to 193,000 with 16, on a
// shared machine.

import assert from 'node:assert/strict'
import { PeerOrigin } from '../clocks/peer-origin.js'
import { type AskOptions, asksPerFrameMax, frameBytesMax, requestBytesMax } from '../options.js'
import type { AskHost, AskResult, OnOutcome, Stream } from '../ports.js'
import { Answers, Assembly } from './answers.js'
import {
  type AnswerKind,
  type AskFrame,
  answerKinds,
  encodeFrame,
  type Frame,
  type Hello,
  type ReadAnswer,
  type ReadFrame,
} from './frames.js'
import { type WaitingAsk, WaitingAsks } from './waiting.js'

export interface LinkParts {
  readonly host: AskHost
  nowMs(): number
  wallMs(): number
  flushSoon(): void
  /** Called when the other node becomes reachable, and when it no longer is. */
  onChange(up: boolean, reason: string): void
  /** Receives a report of the other node about bytes of ours that it could not read. */
  onTrouble(trouble: string): void
  /** Called when the host has thrown over bytes that the other node sent. */
  onFailure(failure: Error): void
}

interface Session {
  readonly stream: Stream
  readonly peerClock: PeerClock
  readonly assembly: Assembly
  /** The highest number of an ask that was read. */
  numberRead: number
  lastReceivedMs: number
  /** Its silence was forgiven once, since we had not read the stream ourselves. */
  forgiven: boolean
  pingDueMs: number
  /** These fields go into the next frame. */
  hello: Hello | undefined
  trouble: string | undefined
  ping: boolean
  echoMs: number | undefined
  /** The stream has to drain first. */
  blocked: boolean
}

const nothing = new Uint8Array(0)

/**
 * Ticks whose asks one frame takes. A higher number makes frames larger where ticks are short, and they leave later.
 */
const ticksPerFrameMax = 4

/** The outcome that an answer without a reply has for the asker. */
const refusalOutcomes: ReadonlyMap<AnswerKind, AskResult> = new Map<AnswerKind, AskResult>([
  [answerKinds.busy, { kind: 'unavailable', reason: 'too many asks are running there' }],
  [answerKinds.expired, { kind: 'unavailable', reason: 'it arrived too late to be begun' }],
  [answerKinds.tooLarge, { kind: 'unknown', reason: 'the reply is too large' }],
  [answerKinds.noRoom, { kind: 'unknown', reason: 'too many bytes of replies were waiting' }],
  [answerKinds.failed, { kind: 'unknown', reason: 'the node failed over it' }],
])

const neverSent: AskResult = { kind: 'unavailable', reason: 'it could not be sent in time' }
const noAnswer: AskResult = { kind: 'unknown', reason: 'no answer came in time' }
const restarted: AskResult = { kind: 'unknown', reason: 'the node has restarted' }

export class Link {
  private session: Session | undefined
  /** Of the other node, once known. */
  private incarnation: string | undefined
  /** Grows with every incarnation met. */
  private life = 0
  private up = false
  private downReason = 'no connection yet'
  private downSinceMs: number
  /** The wall clock of the other node. */
  readonly origin = new PeerOrigin()
  private readonly waiting = new WaitingAsks()
  private number: number
  /** Asks of the other node that the host has not replied to. */
  private running = 0
  private runningBytes = 0
  private readonly answers: Answers
  private flushDue = false
  /** Ticks that have ended since something waits to be written, and how much waited at the end of the last one. */
  private ticksWaited = 0
  private waitedCount = 0
  private wakeDueMs: number

  /**
   * `numbered`: the `lastNumber` of this process's earlier links to the node, which may still have answers for them.
   */
  constructor(
    private readonly node: string,
    private readonly options: AskOptions,
    private readonly surroundings: LinkParts,
    numbered = 0,
  ) {
    this.number = numbered
    this.answers = new Answers(options.answersBytesMax)
    this.downSinceMs = surroundings.nowMs()
    this.wakeDueMs = this.downSinceMs
  }

  get lastNumber(): number {
    return this.number
  }

  get reachable(): boolean {
    return this.up
  }

  // [hot] Once per ask: no timer, no promise.
  /** Asks the other node. `onOutcome` is called exactly once, at once when there is no room for the ask. */
  ask(shard: number, request: Uint8Array, onOutcome: OnOutcome, waitMs = this.options.askDeadlineMs, view = 0): void {
    const refusal = this.refusal(request.length)
    if (refusal !== undefined) return onOutcome({ kind: 'unavailable', reason: refusal })
    this.waiting.add(++this.number, shard, request, view, this.surroundings.nowMs(), waitMs, onOutcome)
    this.flushLater()
  }

  /**
   * Begins to use a stream on which the other node has greeted with `theirs`. `ours`: our greeting, if it is not sent
   * yet.
   */
  attach(stream: Stream, theirs: ReadFrame, incarnation: string, ours: Hello | undefined): void {
    assert(!this.session, 'the link has a stream already')
    if (this.incarnation !== incarnation) this.meet(incarnation)
    const nowMs = this.surroundings.nowMs()
    this.session = {
      stream,
      peerClock: new PeerClock(),
      assembly: new Assembly(),
      numberRead: 0,
      lastReceivedMs: nowMs,
      forgiven: false,
      pingDueMs: nowMs + this.options.pingMs,
      hello: ours,
      trouble: undefined,
      ping: ours !== undefined,
      echoMs: undefined,
      blocked: false,
    }
    this.answers.rewind()
    this.onFrame(theirs)
    this.flush()
  }

  /**
   * The stream has ended, or another dial has failed. Asks that were sent keep waiting: the answer may come over the
   * next stream.
   */
  detach(reason: string): void {
    if (this.session) this.downSinceMs = this.surroundings.nowMs()
    this.session = undefined
    this.downReason = reason
    this.goDown(reason)
  }

  // [hot] Once per frame, with everything in it.
  onFrame(frame: ReadFrame): void {
    const { session } = this
    if (!session) return
    const nowMs = this.surroundings.nowMs()
    session.lastReceivedMs = nowMs
    session.forgiven = false
    if (!session.peerClock.observe(frame.sentMs, nowMs)) session.ping = true
    if (frame.echoMs !== undefined) this.onEcho(session, frame.echoMs, frame, nowMs)
    if (frame.ping) session.echoMs = frame.sentMs
    if (session.ping || frame.ping) this.flushLater()
    if (!this.up) this.goUp()
    if (frame.trouble !== undefined) this.surroundings.onTrouble(frame.trouble)
    for (const ask of frame.asks) this.onAsk(session, ask)
    for (const answer of frame.answers) this.onAnswer(session, answer)
  }

  private onEcho(session: Session, echoMs: number, { sentMs, wallMs }: ReadFrame, nowMs: number): void {
    session.peerClock.learn(echoMs, sentMs, nowMs)
    if (wallMs !== undefined) this.origin.learn(echoMs, wallMs, nowMs)
  }

  /** Reports to the other node, if there is a stream, bytes of it that could not be read. */
  reportTrouble(trouble: string): void {
    if (!this.session) return
    this.session.trouble = trouble
    this.flushLater()
  }

  onDrain(): void {
    if (this.session) this.session.blocked = false
    this.flush()
  }

  flush(): void {
    this.flushDue = false
    const { session } = this
    while (session && session === this.session && !session.blocked) {
      const asks = this.takeAsks()
      const answers = this.answers.take()
      const { hello, trouble, ping, echoMs } = session
      const isIdle = asks.length + answers.length === 0 && !hello && trouble === undefined
      if (isIdle && !ping && echoMs === undefined) return
      const sentMs = this.surroundings.nowMs()
      const wallMs = echoMs === undefined ? undefined : this.surroundings.wallMs()
      const frame: Frame = { sentMs, echoMs, wallMs, ping, hello, trouble, asks, answers }
      session.hello = undefined
      session.trouble = undefined
      session.ping = false
      session.echoMs = undefined
      session.blocked = !session.stream.send(encodeFrame(frame))
      for (const one of asks) one.request = nothing
    }
  }

  /**
   * Ends expired asks, and pings. Returns the time until the next call, or 'abandon' when the stream was silent for so
   * long that a new one is better.
   */
  wake(): number | 'abandon' {
    const { askDeadlineMs, pingMs } = this.options
    const nowMs = this.surroundings.nowMs()
    this.expire(nowMs)
    const { session } = this
    if (session) {
      const silentMs = this.silence(session, nowMs)
      if (silentMs >= this.options.abandonMs) return 'abandon'
      if (silentMs >= this.options.silentMs) this.goDown('it is silent')
      if (nowMs >= session.pingDueMs) {
        session.pingDueMs = nowMs + pingMs
        session.ping = true
        this.flush()
      }
    } else if (nowMs - this.downSinceMs >= askDeadlineMs) this.answers.clear()
    const silentAtMs = session && this.up ? session.lastReceivedMs + this.options.silentMs : nowMs + pingMs
    // An ask that comes meanwhile expires after this.
    this.wakeDueMs = Math.min(nowMs + Math.min(pingMs, askDeadlineMs), silentAtMs)
    this.wakeDueMs = Math.min(this.wakeDueMs, this.waiting.dueMs)
    return Math.max(this.wakeDueMs - nowMs, 1)
  }

  /** Ends every ask; waiting answers still leave, as far as the stream takes them. */
  close(reason: string): void {
    this.downReason = reason
    this.goDown(reason)
    this.flush()
    this.session = undefined
    this.life++
    this.answers.clear()
    this.settleAll({ kind: 'unknown', reason })
  }

  private refusal(requestBytes: number): string | undefined {
    const { inFlightMax, inFlightBytesMax } = this.options
    if (!this.up) return `node ${this.node} cannot be reached: ${this.downReason}`
    if (requestBytes > requestBytesMax) return `a request of more than ${requestBytesMax} bytes`
    if (this.waiting.size >= inFlightMax || this.waiting.bytes + requestBytes > inFlightBytesMax)
      return `too many asks to node ${this.node} are waiting`
    return undefined
  }

  /** Asks for the next frame. Those that have expired are not sent. */
  private takeAsks(): WaitingAsk[] {
    const taken: WaitingAsk[] = []
    let one = this.waiting.unsent
    if (!one) return taken
    const nowMs = this.surroundings.nowMs()
    let bytes = 0
    for (; one && taken.length < asksPerFrameMax && bytes < frameBytesMax; one = this.waiting.unsent) {
      if (one.deadlineMs <= nowMs) {
        this.settle(one, neverSent)
        continue
      }
      this.waiting.noteSent(one)
      bytes += one.requestBytes
      taken.push(one)
    }
    return taken
  }

  private onAsk(session: Session, { number, deadlineMs, shard, request, view }: AskFrame): void {
    if (number <= session.numberRead) return
    session.numberRead = number
    const { inFlightMax, inFlightBytesMax } = this.options
    const { answers } = this
    // A node that sends and does not read gets no answers, in the end not even refusals.
    if (answers.size >= 2 * inFlightMax) return
    const busy = this.running + answers.size >= inFlightMax || this.runningBytes + request.length > inFlightBytesMax
    if (busy || session.peerClock.latestMs(this.surroundings.nowMs()) >= deadlineMs) {
      answers.refuse(number, busy ? answerKinds.busy : answerKinds.expired)
      return this.flushLater()
    }
    this.begin(number, shard, request, view)
  }

  private begin(number: number, shard: number, request: Uint8Array, view: number): void {
    const { life } = this
    let replied = false
    this.running++
    this.runningBytes += request.length
    const end = (answer: (answers: Answers) => void): void => {
      replied = true
      this.running--
      this.runningBytes -= request.length
      if (life !== this.life) return
      answer(this.answers)
      this.flushLater()
    }
    const onReply = (reply: Uint8Array): void => {
      assert(!replied, 'the host has replied already')
      end(answers => answers.reply(number, reply))
    }
    try {
      this.surroundings.host.onAsk(shard, request, onReply, view, this.node)
    } catch (error) {
      this.surroundings.onFailure(error as Error)
      if (!replied) end(answers => answers.refuse(number, answerKinds.failed))
    }
  }

  private onAnswer(session: Session, answer: ReadAnswer): void {
    const one = this.waiting.get(answer.number)
    if (!one?.sent) return session.assembly.forget(answer.number)
    const reply = answer.total === 0 ? answer.reply : session.assembly.add(answer)
    const outcome = refusalOutcomes.get(answer.kind) ?? (reply && ({ kind: 'reply', reply } as const))
    if (!outcome) return
    try {
      this.settle(one, outcome)
    } catch (error) {
      this.surroundings.onFailure(error as Error)
    }
  }

  private settle(one: WaitingAsk, outcome: AskResult): void {
    this.waiting.delete(one)
    one.onOutcome(outcome)
  }

  private settleAll(outcome: AskResult): void {
    for (let one = this.waiting.any; one; one = this.waiting.any) this.settle(one, outcome)
  }

  private expire(nowMs: number): void {
    for (let one = this.waiting.due(nowMs); one; one = this.waiting.due(nowMs))
      this.settle(one, one.sent ? noAnswer : neverSent)
  }

  /**
   * How long the stream was silent. If this call comes late, frames of the other node may still wait to be read. Then
   * the node gets one more interval, once.
   */
  private silence(session: Session, nowMs: number): number {
    const { pingMs, silentMs } = this.options
    if (nowMs - this.wakeDueMs > pingMs && !session.forgiven) {
      session.forgiven = true
      session.lastReceivedMs = Math.max(session.lastReceivedMs, nowMs - silentMs + pingMs)
    }
    return nowMs - session.lastReceivedMs
  }

  /**
   * The other node is another process than before. Asks that its former process received have no known outcome; the
   * asks of that process need no answer.
   */
  private meet(incarnation: string): void {
    this.incarnation = incarnation
    this.life++
    this.origin.forget()
    this.answers.clear()
    this.settleAll(restarted)
  }

  private goUp(): void {
    this.up = true
    this.surroundings.onChange(true, 'connected')
  }

  private goDown(reason: string): void {
    if (!this.up) return
    this.up = false
    this.downReason = reason
    const outcome: AskResult = { kind: 'unavailable', reason: `node ${this.node} cannot be reached: ${reason}` }
    for (let one = this.waiting.unsent; one; one = this.waiting.unsent) this.settle(one, outcome)
    this.surroundings.onChange(false, reason)
  }

  private flushLater(): void {
    if (this.flushDue) return
    this.flushDue = true
    this.ticksWaited = 0
    this.waitedCount = 0
    this.surroundings.flushSoon()
  }

  // [hot] Once per tick in which something waits.
  /**
   * A tick has ended. Asks and answers keep waiting while each tick adds more to the same frame, for a few ticks: a
   * message costs both sides as much as several asks. Two workers under 64 connections that read: 1,200 frames a second
   * each instead of 4,000, and a seventh less processor time.
   */
  onTickEnd(): void {
    const count = this.waiting.unsentCount + this.answers.size
    if (!this.flushDue || count <= this.waitedCount || ++this.ticksWaited >= ticksPerFrameMax) return this.flush()
    this.waitedCount = count
    this.surroundings.flushSoon()
  }
}

/** How fast two clocks may drift apart: kernels slew a clock by 0.0005 at most. */
const driftMax = 0.001

const roundingMs = 0.001

/**
 * An upper bound on another node's clock, which shows whether a deadline on that clock may have come.
 *
 * We wrote a frame at r, and the other side wrote its echo later, at a on its own clock. So its clock showed a when
 * ours showed r or more. At our n it shows a + (n - r) at most, except for the drift of both. A slow frame can only
 * make that bound larger, and a deadline seem nearer. Of several bounds the smallest holds (F. Cristian, "Probabilistic
 * clock synchronization", 1989).
 *
 * A frame that was written later than the bound allows proves it wrong, as after a suspension of this machine with its
 * clock. Then nothing is known until the next echo.
 */
export class PeerClock {
  /** At `ownMs` of our clock or later the other showed `peerMs`. */
  private peerMs = Number.POSITIVE_INFINITY
  private ownMs = 0

  /** The latest time that the other clock can show when ours shows `nowMs`; infinity as long as nothing is known. */
  latestMs(nowMs: number): number {
    return this.peerMs + (nowMs - this.ownMs) * (1 + driftMax)
  }

  /** Notes a frame read at `nowMs` that the other side wrote at `sentMs`. Returns whether the bound is still valid. */
  observe(sentMs: number, nowMs: number): boolean {
    if (sentMs <= this.latestMs(nowMs) + roundingMs) return true
    this.peerMs = Number.POSITIVE_INFINITY
    return false
  }

  /** Notes an echo, read at `nowMs`: the other side wrote it at `sentMs`, after our frame of `echoMs`. */
  learn(echoMs: number, sentMs: number, nowMs: number): void {
    if (echoMs > nowMs || sentMs + (nowMs - echoMs) * (1 + driftMax) > this.latestMs(nowMs)) return
    this.peerMs = sentMs
    this.ownMs = echoMs
  }
}

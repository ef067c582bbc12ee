// Asks context providers over HTTP. Each request has a deadline, which includes the time it waits.
//
// Requests travel in the lanes of the delivery engine, as notifications in `bestEffort` do. Each has one try, there is
// no breaker, and a request that finds no room fails at once. Each provider has its own lane, so that a slow or dead
// provider costs only its own requests. Few requests at a time go to a provider that has not answered the last time.
// All such providers together leave room for those that answer.
//
// Redirects are not followed: a provider's address is the registered one.
//
// Not here: the choice of providers and the meaning of an answer (broker/forwarding.ts), connections (http-sender.ts),
// the order of sending (lanes.ts).

import type { Socket } from 'node:net'
import type { NamedText } from '../domain/subscriptions/subscription.js'
import type { Clock, ProviderAnswer, ProviderRequest, Providers } from '../ports.js'
import { httpAddress } from './address.js'
import { type Job, untried } from './lane.js'
import { Lanes } from './lanes.js'
import { type Limits, limitsByDefault } from './limits.js'
import { LazySender, type SendResult } from './sender.js'
import { mayProvideItself } from './sockets/egress.js'
import { type OpenSocket, reasons } from './sockets/sockets.js'
import { httpHeadBytes } from './transports.js'

export interface ForwarderLimits extends Limits {
  /** Share of its time that a request must have left to begin. With less, it would waste a connection. */
  readonly timeLeftShareMin: number
  /** Bytes of an answer's body. Parsing as much JSON takes some 60 ms, in which the event loop does nothing else. */
  readonly answerBytesMax: number
}

export const forwarderLimitsByDefault: ForwarderLimits = {
  ...limitsByDefault,
  // Each waiting request costs its body. A client's request has few of them.
  laneQueueMax: 1_000,
  queueMax: 10_000,
  laneBytesMax: Number.POSITIVE_INFINITY,
  bytesMax: Number.POSITIVE_INFINITY,
  lanesMax: 1_000,
  timeLeftShareMin: 0.1,
  answerBytesMax: 10 * 1024 * 1024,
}

export interface ForwarderOptions {
  /** Time of one request, from the moment it was asked for. */
  readonly timeoutMs: number
  /** Bytes of a request, headers included. */
  readonly messageBytesMax: number
  readonly limits?: ForwarderLimits | undefined
  /** Whether a socket ends at this broker itself; undefined: no socket does. */
  readonly isOwn?: ((socket: Socket) => boolean) | undefined
}

interface Ask {
  readonly onAnswer: (answer: ProviderAnswer) => void
  readonly cancelDeadline: () => void
  isSent: boolean
}

/** Bytes of a request besides path, headers and body: `POST `, ` HTTP/1.1`, `host`, `content-length`, line ends. */
const framingBytes = 64

const noContext = {}

export class Forwarder implements Providers {
  private readonly lanes: Lanes<Ask>
  private readonly sender: LazySender
  /** Requests that have not been answered. */
  private readonly jobs = new Set<Job<Ask>>()
  private isClosed = false

  constructor(
    private readonly clock: Clock,
    openSocket: OpenSocket,
    private readonly options: ForwarderOptions,
  ) {
    const { timeoutMs, isOwn, limits = forwarderLimitsByDefault } = options
    const { answerBytesMax: wholeAnswerBytesMax, sendsMax, timeLeftShareMin } = limits
    this.sender = new LazySender(async () => {
      const { HttpSender } = await import('./http-sender.js')
      const fixed = { connectionsMax: sendsMax + 1, mayReachItself: mayProvideItself, wholeAnswerBytesMax }
      return new HttpSender(clock, openSocket, { timeoutMs, isOwn, ...fixed })
    })
    const timeLeftMsMin = timeoutMs * timeLeftShareMin
    this.lanes = new Lanes(
      clock,
      { mode: 'transient', retries: false, limits, fraction: () => 0, timeLeftMsMin },
      {
        send: job => this.send(job),
        settled: () => {},
        room: () => {},
        wake: () => {},
        later: () => clock.endOfTick(() => this.lanes.onLater()),
        changed: () => {},
        answers: () => {},
      },
    )
  }

  ask({ url, headers, body, isRepeatable, ...time }: ProviderRequest, onAnswer: Ask['onAnswer']): void {
    const fail = (reason: string): void => queueMicrotask(() => onAnswer({ kind: 'failed', reason }))
    const named = headers.flatMap((name, at): NamedText[] => (at % 2 === 0 ? [[name, headers[at + 1]!]] : []))
    const { timeoutMs, messageBytesMax } = this.options
    const message = { transport: 'http', method: 'POST', url, headers: named, body, timeoutMs, isRepeatable } as const
    const address = httpAddress(message)
    if (!address) return fail('Not a URL of a provider')
    if (this.isClosed) return fail(stopping)
    const bodyBytes = Buffer.byteLength(body)
    const bytes = framingBytes + httpHeadBytes(message) + bodyBytes
    if (bytes > messageBytesMax) return fail(reasons.tooBig)
    const lane = this.lanes.laneFor('', address)
    if (!lane) return fail(noRoom)
    const sinceMs = this.clock.monoMs()
    const endByMs = (time.sinceMs ?? sinceMs) + timeoutMs
    if (endByMs <= sinceMs) return fail(reasons.timeout)
    const job: Job<Ask> = {
      subject: {
        onAnswer,
        cancelDeadline: this.clock.after(endByMs - sinceMs, () => this.onDeadline(job)),
        isSent: false,
      },
      message,
      address,
      lane,
      bytes,
      bodyBytes,
      order: undefined,
      context: noContext,
      endByMs,
      tries: 0,
      sinceMs,
      ...untried,
    }
    this.jobs.add(job)
    if (this.lanes.offer(job, undefined) === 'full') queueMicrotask(() => this.finish(job, failed(noRoom)))
  }

  close(): void {
    this.isClosed = true
    this.lanes.clear()
    for (const job of [...this.jobs]) this.finish(job, failed(stopping))
    this.sender.close()
  }

  private send(job: Job<Ask>): void {
    job.subject.isSent = true
    this.sender.send(job, result => {
      if (this.isClosed) return
      this.lanes.onEnd(job, result)
      this.finish(job, answerOf(result))
    })
  }

  /** The sender ends its requests at the same moment. */
  private onDeadline(job: Job<Ask>): void {
    if (!job.subject.isSent) this.lanes.withdraw(job)
    this.finish(job, failed(reasons.timeout))
  }

  private finish(job: Job<Ask>, answer: ProviderAnswer): void {
    if (!this.jobs.delete(job)) return
    job.subject.cancelDeadline()
    job.subject.onAnswer(answer)
  }
}

const stopping = 'The broker is stopping'
const noRoom = 'Too many requests wait for providers'

const failed = (reason: string): ProviderAnswer => ({ kind: 'failed', reason })

function answerOf(result: SendResult): ProviderAnswer {
  if (result.kind !== 'answered') return failed(result.reason)
  const { code: status = 0, answer } = result
  return {
    kind: 'answered',
    status,
    body: answer?.body ?? Buffer.alloc(0),
    header(name) {
      const value = answer?.headers[name]
      return typeof value === 'string' ? value : undefined
    },
  }
}

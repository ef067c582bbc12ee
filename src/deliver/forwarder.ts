// Asks context providers over HTTP: so many at a time of each and of all (limits.ts), each within its deadline, which waiting is part of.
//
// Connections are kept alive and used again. One that has served before and is lost before an answer was most likely closed by the provider
// at that moment: a request that may reach it twice goes out once more on a fresh one. Others, which make a device do something, are
// sent on a connection that has rested for a moment only, or on a fresh one, and never twice.
//
// Redirects are not followed: a provider is where it has been registered.
//
// Not here: what is asked of whom, and what an answer means (broker/forwarding.ts).

import type { Socket } from 'node:net'
import { parseReceiverUrl } from '../domain/subscriptions/receiver-url.js'
import type { Clock, ProviderAnswer, ProviderRequest, Providers } from '../ports.js'
import { type ForwarderLimits, limitsByDefault } from './forwarder-limits.js'
import type { Connection, SendEnd, Sent } from './provider-connection.js'
import { type Endpoint, isLost, type OpenSocket, reasonOf, reasons } from './sockets/sockets.js'

export interface ForwarderOptions {
  /** Time of one request, from when it was asked for. */
  readonly timeoutMs: number
  /** Bytes of a request, headers included. */
  readonly messageBytesMax: number
  readonly limits?: ForwarderLimits | undefined
  /** Whether a socket ends at this broker itself; undefined: none does. */
  readonly isOwn?: ((socket: Socket) => boolean) | undefined
}

type OnAnswer = (answer: ProviderAnswer) => void

/** A provider: an origin. */
interface Lane {
  readonly origin: string
  readonly endpoint: Endpoint
  readonly waiting: Set<Job>
  /** The one used last is the last. */
  readonly idle: Connection[]
  sends: number
  /** Whether it has answered the last time. */
  isProven: boolean
}

/** A request, from when it was asked for until its end. */
interface Job {
  readonly lane: Lane
  readonly sent: Sent
  readonly isRepeatable: boolean
  readonly onAnswer: OnAnswer
  /** When it is too late to begin it. */
  readonly beginByMs: number
  takeBack: () => void
  /** undefined: it waits. */
  connection: Connection | undefined
  /** It counts among those to providers that do not answer. */
  isUnproven: boolean
  isAgain: boolean
  hasEnded: boolean
}

/** A connection that has rested longer than this may be closed by the provider any moment. */
const restMsMax = 1_000

/** Bytes of a request besides path, headers and body: `POST `, ` HTTP/1.1`, `content-length`, line ends. */
const framingBytes = 64

export class Forwarder implements Providers {
  private readonly clock: Pick<Clock, 'monoMs' | 'after'>
  private readonly openSocket: OpenSocket
  private readonly options: ForwarderOptions
  private readonly limits: ForwarderLimits
  /** The one used last is the last. */
  private readonly lanes = new Map<string, Lane>()
  private readonly waitingLanes = new Set<Lane>()
  private readonly jobs = new Set<Job>()
  private sends = 0
  private unprovenSends = 0
  private waiting = 0
  private isClosed = false
  /** Loaded when the first provider is asked: it takes 0.1 s, which a start should not wait for. */
  private library: typeof import('./provider-connection.js') | undefined
  private loading: Promise<void> | undefined

  constructor(clock: Pick<Clock, 'monoMs' | 'after'>, openSocket: OpenSocket, options: ForwarderOptions) {
    this.clock = clock
    this.openSocket = openSocket
    this.options = options
    this.limits = options.limits ?? limitsByDefault
  }

  ask({ url, headers, body, isRepeatable }: ProviderRequest, onAnswer: OnAnswer): void {
    const fail = (reason: string): void => queueMicrotask(() => onAnswer({ kind: 'failed', reason }))
    const parts = parseReceiverUrl(url)
    if (!parts || parts.scheme === 'mqtt') return fail('Not a URL of a provider')
    if (this.isClosed) return fail('The broker is stopping')
    const { scheme, host, port } = parts
    const sent = { path: requestPath(parts.path), headers: [...headers.map(asBytes), 'Host', `${host}:${port}`], body }
    if (bytesOf(sent) > this.options.messageBytesMax) return fail(reasons.tooBig)
    const lane = this.laneOf({ protocol: `${scheme}:`, host, port })
    const { laneQueueMax, queueMax } = this.limits
    if (lane.waiting.size >= laneQueueMax || this.waiting >= queueMax)
      return fail('Too many requests wait for providers')
    const job: Job = {
      lane,
      sent,
      isRepeatable,
      onAnswer,
      beginByMs: this.clock.monoMs() + this.options.timeoutMs * (1 - this.limits.timeLeftShareMin),
      takeBack: () => {},
      connection: undefined,
      isUnproven: false,
      isAgain: false,
      hasEnded: false,
    }
    job.takeBack = this.clock.after(this.options.timeoutMs, () => this.onLate(job))
    this.jobs.add(job)
    this.waiting++
    lane.waiting.add(job)
    this.waitingLanes.add(lane)
    this.pump()
  }

  private load(): void {
    this.loading ??= import('./provider-connection.js').then(library => {
      this.library = library
      this.pump()
    })
  }

  /** Ends everything; what is under way fails. */
  close(): void {
    this.isClosed = true
    for (const job of [...this.jobs]) this.giveUp(job, 'The broker is stopping')
    for (const lane of this.lanes.values()) this.forget(lane)
  }

  /** Starts what may be started. */
  private pump(): void {
    if (!this.library) return this.load()
    const nowMs = this.clock.monoMs()
    for (const lane of this.waitingLanes) {
      for (const job of lane.waiting) {
        if (!this.mayStart(lane)) break
        if (nowMs <= job.beginByMs) this.start(job)
      }
      if (lane.waiting.size === 0) this.waitingLanes.delete(lane)
      if (this.sends >= this.limits.sendsMax) return
    }
  }

  private mayStart({ sends, isProven }: Lane): boolean {
    const { laneSendsMax, laneUnprovenSendsMax, sendsMax, unprovenSendsMax } = this.limits
    if (this.sends >= sendsMax) return false
    return isProven ? sends < laneSendsMax : sends < laneUnprovenSendsMax && this.unprovenSends < unprovenSendsMax
  }

  private start(job: Job): void {
    const { lane } = job
    lane.waiting.delete(job)
    this.waiting--
    lane.sends++
    this.sends++
    job.isUnproven = !lane.isProven
    if (job.isUnproven) this.unprovenSends++
    this.send(job, this.idleOne(job) ?? this.open(lane))
  }

  private send(job: Job, connection: Connection): void {
    job.connection = connection
    const hasServed = connection.answers > 0
    connection.send(job.sent, end => {
      if (!job.hasEnded) this.onEnd(job, connection, hasServed, end)
    })
  }

  private onEnd(job: Job, connection: Connection, hasServed: boolean, end: SendEnd): void {
    const { lane } = job
    if (end.kind === 'answered') {
      connection.idleSinceMs = this.clock.monoMs()
      if (!connection.isClosed) lane.idle.push(connection)
      const { status, headers, body } = end
      const header = (name: string): string | undefined => {
        const value = headers[name]
        return typeof value === 'string' ? value : undefined
      }
      return this.finish(job, { kind: 'answered', status, body, header })
    }
    connection.destroy()
    if (end.kind === 'tooLarge') return this.finish(job, { kind: 'failed', reason: 'The answer is too large' })
    if (hasServed && job.isRepeatable && !job.isAgain && isLost(end.error)) {
      job.isAgain = true
      return this.send(job, this.open(lane))
    }
    this.finish(job, { kind: 'failed', reason: reasonOf(end.error) })
  }

  private onLate(job: Job): void {
    this.giveUp(job, reasons.timeout)
    this.pump()
  }

  private giveUp(job: Job, reason: string): void {
    job.connection?.destroy()
    if (!job.connection) {
      job.lane.waiting.delete(job)
      this.waiting--
    }
    this.finish(job, { kind: 'failed', reason })
  }

  private finish(job: Job, answer: ProviderAnswer): void {
    const { lane } = job
    job.hasEnded = true
    job.takeBack()
    this.jobs.delete(job)
    if (job.connection) {
      lane.sends--
      this.sends--
      if (job.isUnproven) this.unprovenSends--
      lane.isProven = answer.kind === 'answered'
    }
    job.onAnswer(answer)
    this.pump()
  }

  private idleOne({ lane, isRepeatable }: Job): Connection | undefined {
    const last = lane.idle.at(-1)
    if (!last) return undefined
    return isRepeatable || this.clock.monoMs() - last.idleSinceMs <= restMsMax ? lane.idle.pop() : undefined
  }

  private open(lane: Lane): Connection {
    const onClosed = (): void => {
      const at = lane.idle.indexOf(connection)
      if (at >= 0) lane.idle.splice(at, 1)
      connection.destroy()
    }
    const { endpoint } = lane
    const { answerBytesMax } = this.limits
    const connection = new this.library!.Connection(
      endpoint,
      this.openSocket,
      answerBytesMax,
      onClosed,
      this.options.isOwn,
    )
    return connection
  }

  private laneOf(endpoint: Endpoint): Lane {
    const origin = `${endpoint.protocol}//${endpoint.host.toLowerCase()}:${endpoint.port}`
    let lane = this.lanes.get(origin)
    if (lane) this.lanes.delete(origin)
    else {
      if (this.lanes.size >= this.limits.lanesMax) this.forgetIdle()
      lane = { origin, endpoint, waiting: new Set(), idle: [], sends: 0, isProven: false }
    }
    this.lanes.set(origin, lane)
    return lane
  }

  /** Forgets the provider that was asked longest ago and has nothing under way. If all have, there is one more for a while. */
  private forgetIdle(): void {
    for (const lane of this.lanes.values())
      if (lane.sends === 0 && lane.waiting.size === 0) {
        this.forget(lane)
        return
      }
  }

  private forget(lane: Lane): void {
    this.lanes.delete(lane.origin)
    for (const connection of lane.idle) connection.destroy()
    lane.idle.length = 0
  }
}

/** Anything but the printable characters of ASCII. */
const notPlain = /[^\x21-\x7e]+/g

/** A path as it stands in a request line. */
const requestPath = (path: string): string =>
  path.search(notPlain) < 0 ? path : path.toWellFormed().replace(notPlain, encodeURIComponent)

// biome-ignore lint/suspicious/noControlCharactersInRegex: what is not ASCII is looked for
const notAscii = /[^\x00-\x7f]/

/** undici writes each character as one byte. */
const asBytes = (text: string): string => (notAscii.test(text) ? Buffer.from(text).toString('latin1') : text)

function bytesOf({ path, headers, body }: Sent): number {
  let bytes = framingBytes + path.length + Buffer.byteLength(body)
  for (const text of headers) bytes += text.length + 2
  return bytes
}

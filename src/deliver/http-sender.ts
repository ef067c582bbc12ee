// Sends HTTP messages over connections that are kept alive, one message at a time on each.
//
// Each connection is an undici `Client` and not a place in a `Pool`. So the bound on sockets holds over all receivers,
// the longest idle connection gives way to a new one, and it is known whether a connection has served before. If it
// has, and is lost before a byte of an answer, the message goes out once more on a fresh connection: most likely the
// receiver closed an idle connection at that moment. Connecting, TLS, deadlines and the `Host` header are ours, because
// undici's view of a URL would lose parts of it.
//
// For a notification the status is the answer, whatever happens to the rest (docs/interface/notifications.md#outcomes).
// The body is read up to a bound and thrown away, so that the connection can be used again. Redirects are followed with
// the same verb and body (docs/interface/notifications.md#timeouts-and-redirects), but never from TLS to plain text.
// Another receiver than the intended one does not get its token.
//
// From a context provider the whole answer is needed. A partial answer is a failure, and a redirect is an answer like
// others. A request that must not reach it twice goes on a fresh connection or one that was idle for a moment only, and
// is never repeated.
//
// Importing this file loads undici, which takes 0.1 s.
//
// Not here: how many messages are sent at a time, and further tries (lanes).

import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Client, type Dispatcher } from 'undici'
import type { HttpMessage } from '../domain/subscriptions/message.js'
import type { NamedText } from '../domain/subscriptions/subscription.js'
import type { Clock } from '../ports.js'
import { type Address, httpAddress } from './address.js'
import type { OnSent, Sendable, Sender, SenderStats, SendResult } from './sender.js'
import { mayNotifyItself, OwnListenerDenied } from './sockets/egress.js'
import type { Endpoint, OpenSocket } from './sockets/sockets.js'
import { connectedEvent, connectorTo, isDenied, isLost, reasonOf, reasons } from './sockets/sockets.js'

/** Bytes of an answer's body that are read to keep the connection. A longer body closes the connection. */
const answerBytesMax = 1024 * 1024

const redirectsMax = 10

/** A connection that was idle longer than this may be closed by the receiver at any moment. */
const restMsMax = 1_000

/** Idle connections close after `idleMs`, or at the time that the other end announces, at most `idleMsMax`. */
const idleMs = 4_000
const idleMsMax = 60_000

export interface HttpSenderOptions {
  /** Time of one try when the message sets none (`-httpTimeout`). */
  readonly timeoutMs: number
  /** Connections at a time; at least as many as messages at a time. */
  readonly connectionsMax: number
  /** Whether a socket ends at this broker itself; undefined: no socket does. */
  readonly isOwn?: ((socket: Socket) => boolean) | undefined
  /** Which messages may end at this broker itself; undefined: the rule for notifications applies. */
  readonly mayReachItself?: ((path: string, leavesScope: boolean) => boolean) | undefined
  /** Bytes of an answer that is needed as a whole; undefined: its status is enough. */
  readonly wholeAnswerBytesMax?: number
}

interface Sending {
  readonly address: Address
  readonly message: HttpMessage
  readonly onSent: OnSent
  readonly deadlineMs: number
  /** It was already sent on a connection that was lost. */
  isAgain: boolean
  /** Redirects that it has followed. */
  readonly redirects: number
}

export class HttpSender implements Sender<HttpMessage> {
  private readonly connections = new Set<Connection>()
  /** By receiver; the most recently used one is taken first. */
  private readonly idle = new Map<string, Connection[]>()
  private cancelTimer = (): void => {}
  private timerAtMs = Number.POSITIVE_INFINITY

  constructor(
    private readonly clock: Pick<Clock, 'monoMs' | 'after'>,
    private readonly openSocket: OpenSocket,
    readonly options: HttpSenderOptions,
  ) {}

  stats(): SenderStats {
    return { connections: this.connections.size }
  }

  /** Nothing to prepare: the module is loaded already. */
  prepare(): void {}

  // [hot] Once per notification.
  send({ address, message, endByMs }: Sendable<HttpMessage>, onSent: OnSent): void {
    const deadlineMs = Math.min(endByMs, this.clock.monoMs() + (message.timeoutMs || this.options.timeoutMs))
    this.begin({ address, message, onSent, deadlineMs, isAgain: false, redirects: 0 })
  }

  private begin(sending: Sending): void {
    const { deadlineMs } = sending
    const idle = this.idleOne(sending)
    if (idle?.isOwn && !this.mayReachItself(sending)) {
      this.rest(idle)
      // No callback before `send` returns.
      this.clock.after(0, () => sending.onSent({ kind: 'unsendable', reason: reasons.own }))
      return
    }
    this.start(sending, idle ?? this.open(sending.address))
    if (deadlineMs < this.timerAtMs) this.arm(deadlineMs)
  }

  mayReachItself({ address: { path }, message: { leavesScope = false } }: Sending): boolean {
    return (this.options.mayReachItself ?? mayNotifyItself)(path, leavesScope)
  }

  /** Sends a message to the location that its receiver answered; false if a rule forbids that. */
  redirect(sending: Sending, location: string): boolean {
    const { address, message, redirects } = sending
    const { protocol, host, port, path, receiver } = address
    const from = `${protocol}//${host}:${port}${path}`
    if (redirects >= redirectsMax || !URL.canParse(location, from)) return false
    const next = httpAddress({ url: new URL(location, from).href })
    if (!next || (protocol === 'https:' && next.protocol !== 'https:')) return false
    const shown = next.receiver === receiver ? message : { ...message, headers: withoutToken(message.headers) }
    this.begin({ ...sending, address: next, message: shown, isAgain: false, redirects: redirects + 1 })
    return true
  }

  private start(sending: Sending, connection: Connection): void {
    const { address, message } = sending
    connection.sending = sending
    connection.code = undefined
    connection.location = undefined
    connection.bytes = undefined
    connection.answerBytes = 0
    connection.headers = undefined
    connection.chunks = undefined
    connection.isStarting = true
    connection.client.dispatch(
      {
        path: address.path,
        method: message.method,
        headers: framed(message.headers, address),
        body: message.body ?? null,
      },
      connection,
    )
    connection.isStarting = false
  }

  private idleOne({ address: { receiver }, message: { isRepeatable = true } }: Sending): Connection | undefined {
    const idle = this.idle.get(receiver)
    if (!idle || (!isRepeatable && this.clock.monoMs() - idle.at(-1)!.idleSinceMs > restMsMax)) return undefined
    const connection = idle.pop()
    if (idle.length === 0) this.idle.delete(receiver)
    return connection
  }

  private open(address: Address): Connection {
    if (this.connections.size >= this.options.connectionsMax) this.dropLongestIdle()
    const connection = new Connection(address, this.openSocket, this.clock, this)
    this.connections.add(connection)
    return connection
  }

  private dropLongestIdle(): void {
    let longest: Connection | undefined
    for (const connection of this.connections)
      if (!connection.sending && (!longest || connection.idleSinceMs < longest.idleSinceMs)) longest = connection
    assert(longest, 'every connection is in use')
    this.drop(longest)
  }

  /** A message ended and the connection can be used again. */
  rest(connection: Connection): void {
    const { receiver } = connection.address
    const idle = this.idle.get(receiver)
    if (idle) idle.push(connection)
    else this.idle.set(receiver, [connection])
  }

  /** Closes a connection and forgets it. Its message, if any, no longer belongs to it. */
  drop(connection: Connection): void {
    if (!this.connections.delete(connection)) return
    const idle = this.idle.get(connection.address.receiver)
    const at = idle ? idle.indexOf(connection) : -1
    if (at >= 0) idle!.splice(at, 1)
    if (idle?.length === 0) this.idle.delete(connection.address.receiver)
    connection.destroy()
  }

  /** The connection was lost while it was sending. */
  onLost(connection: Connection, sending: Sending, error: Error): void {
    this.drop(connection)
    if (connection.answers > 0 && !sending.isAgain && sending.message.isRepeatable !== false && isLost(error)) {
      sending.isAgain = true
      this.start(sending, this.open(sending.address))
    } else sending.onSent({ kind: isDenied(error) ? 'unsendable' : 'failed', reason: reasonOf(error) })
  }

  private arm(atMs: number): void {
    this.cancelTimer()
    this.timerAtMs = atMs
    this.cancelTimer = this.clock.after(atMs - this.clock.monoMs(), () => this.onTimer())
  }

  /** One timer for all: once per timeout it checks the messages in flight, at most a few hundred. */
  private onTimer(): void {
    const nowMs = this.clock.monoMs()
    let nextMs = Number.POSITIVE_INFINITY
    const late: Connection[] = []
    for (const connection of this.connections) {
      if (!connection.sending) continue
      if (connection.sending.deadlineMs <= nowMs) late.push(connection)
      else nextMs = Math.min(nextMs, connection.sending.deadlineMs)
    }
    this.timerAtMs = Number.POSITIVE_INFINITY
    if (nextMs < Number.POSITIVE_INFINITY) this.arm(nextMs)
    for (const connection of late) connection.giveUp(reasons.timeout)
  }

  /** Closes all connections; messages in flight get no result. */
  close(): void {
    this.cancelTimer()
    for (const connection of this.connections) {
      connection.sending = undefined
      this.drop(connection)
    }
  }
}

/** A client for one connection at a time; `onSocket` receives each socket while it is still connecting. */
const openClient = (endpoint: Endpoint, openSocket: OpenSocket, onSocket: (socket: Socket) => void): Client =>
  new Client('http://peer', {
    connect: connectorTo(endpoint, openSocket, onSocket),
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: idleMs,
    keepAliveMaxTimeout: idleMsMax,
  })

/** A connection, and the undici handler of its message. */
class Connection implements Dispatcher.DispatchHandler {
  readonly client: Client
  sending: Sending | undefined
  isStarting = false
  /** Of the answer, once it is known. */
  code: number | undefined
  location: string | undefined
  /** Bytes of the body according to the answer's header, if it has one. */
  bytes: number | undefined
  answerBytes = 0
  /** Of the answer, if it is needed as a whole. */
  headers: IncomingHttpHeaders | undefined
  chunks: Buffer[] | undefined
  /** Answers that came over the present socket. */
  answers = 0
  idleSinceMs = 0
  /** It ends at this broker itself. */
  isOwn = false
  private socket: Socket | undefined
  private readonly wholeAnswerBytesMax: number | undefined

  constructor(
    readonly address: Address,
    openSocket: OpenSocket,
    private readonly clock: Pick<Clock, 'monoMs' | 'after'>,
    private readonly owner: HttpSender,
  ) {
    const { isOwn, wholeAnswerBytesMax } = owner.options
    this.wholeAnswerBytesMax = wholeAnswerBytesMax
    this.client = openClient(address, openSocket, socket => {
      this.socket = socket
      this.answers = 0
      this.isOwn = false
      if (isOwn) socket.once(connectedEvent(address), () => this.onSocket(isOwn(socket)))
    })
    this.client.on('disconnect', () => {
      if (!this.sending) owner.drop(this)
    })
  }

  /** Runs before anything is sent. */
  private onSocket(isOwn: boolean): void {
    const { sending, socket } = this
    this.isOwn = isOwn
    if (isOwn && sending && !this.owner.mayReachItself(sending)) socket?.destroy(new OwnListenerDenied())
  }

  onRequestStart(): void {}

  onResponseStart(_controller: Dispatcher.DispatchController, code: number, headers: IncomingHttpHeaders): void {
    // A status below 200 is followed by another one.
    if (code >= 200) this.code = code
    if (this.wholeAnswerBytesMax !== undefined) {
      this.headers = headers
      this.chunks = []
    } else if (redirecting.has(code)) this.location = headers.location
    this.bytes = Number(headers['content-length']) || undefined
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.answerBytes += chunk.length
    if (this.answerBytes > (this.wholeAnswerBytesMax ?? answerBytesMax)) this.giveUp('The answer is too large')
    else this.chunks?.push(chunk)
  }

  onResponseEnd(): void {
    this.answers++
    this.end(this.answered)
  }

  private get answered(): SendResult {
    const { code, bytes, headers, chunks } = this
    if (headers && chunks) {
      this.chunks = undefined
      return { kind: 'answered', code, answer: { headers, body: Buffer.concat(chunks) } }
    }
    return bytes === undefined ? { kind: 'answered', code } : { kind: 'answered', code, bytes }
  }

  onRequestUpgrade(_controller: Dispatcher.DispatchController, code: number, _headers: object, socket: Duplex): void {
    socket.destroy()
    this.code = code
    this.giveUp('The receiver speaks another protocol')
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const { sending } = this
    if (!sending) return
    if (this.isStarting) {
      // undici refused it before anything was sent. No callback before `send` returns.
      const reason = `Not a message: ${error.message}`
      this.clock.after(0, () => this.end({ kind: 'unsendable', reason }))
      return
    }
    if (this.isStatusEnough) return this.giveUp('')
    this.sending = undefined
    aside(() => this.owner.onLost(this, sending, error))
  }

  end(result: SendResult): void {
    const { sending } = this
    if (!sending) return
    this.sending = undefined
    this.idleSinceMs = this.clock.monoMs()
    this.owner.rest(this)
    const { location } = this
    aside(() => {
      if (location === undefined || !this.owner.redirect(sending, location)) sending.onSent(result)
    })
  }

  /** Stops waiting, and closes the connection. The result is an answer if its status is known, else a failure. */
  giveUp(reason: string): void {
    const { sending } = this
    if (!sending) return
    const result: SendResult = this.isStatusEnough ? this.answered : { kind: 'failed', reason }
    this.chunks = undefined
    this.sending = undefined
    this.owner.drop(this)
    aside(() => sending.onSent(result))
  }

  private get isStatusEnough(): boolean {
    return this.code !== undefined && this.wholeAnswerBytesMax === undefined
  }

  /** Also while it is connecting, which undici alone would not stop. */
  destroy(): void {
    this.client.destroy().catch(() => {})
    this.socket?.on('error', () => {}).destroy()
  }
}

/** Statuses whose `Location` is the right destination of the message. */
const redirecting = new Set([301, 302, 303, 307, 308])

/** Headers without those that are meant only for the first receiver, and without its host. */
const withoutToken = (headers: readonly NamedText[]): readonly NamedText[] =>
  headers.filter(([name]) => !/^(x-auth-token|authorization|cookie|host)$/i.test(name))

/** undici swallows exceptions of its callbacks, but a bug must surface. */
function aside(run: () => void): void {
  try {
    run()
  } catch (error) {
    queueMicrotask(() => {
      throw error
    })
  }
}

const framing = /^(content-length|transfer-encoding|connection|keep-alive|upgrade|expect|te|trailer|proxy-connection)$/i

// Most headers can be sent as they are. So their names are compared by length before anything else.
const framingLengths = new Set([2, 6, 7, 10, 14, 16, 17])

// [hot] `flat` takes ten times as long.
/** Names and values in turn, as they are sent: with a host, without framing, and as bytes of UTF-8. */
function framed(headers: readonly NamedText[], { host, port }: Address): string[] {
  const sent: string[] = []
  let hasHost = false
  for (const header of headers) {
    const name = header[0]
    if (framingLengths.has(name.length) && framing.test(name)) continue
    if (name.length === 4 && name.toLowerCase() === 'host') {
      if (hasHost) continue
      hasHost = true
    }
    sent.push(name, asBytes(header[1]))
  }
  if (!hasHost) sent.push('Host', `${host}:${port}`)
  return sent
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: what is not ASCII is looked for
const notAscii = /[^\x00-\x7f]/

/** undici writes each character as one byte. */
const asBytes = (text: string): string => (notAscii.test(text) ? Buffer.from(text).toString('latin1') : text)

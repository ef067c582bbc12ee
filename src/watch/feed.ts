// Follows one watch over WebSocket connections, one after the other, until it is stopped or refused
// (docs/interface/live.md#orrery-watch).
//
// After a cut it connects again, with growing pauses. Only the very first connection has to be made: an address at
// which nothing listens is most likely a typing error. A broker that answers, but has no room, counts as a cut.
//
// Not here: the meaning of messages and the length of pauses (resuming.ts), printing (display.ts). The timers do not
// keep the process alive (command.ts does).

import type { ClientRequest, IncomingMessage } from 'node:http'
import { type RawData, WebSocket } from 'ws'
import { type OpenSocket, reasonOf } from '../deliver/sockets/sockets.js'
import { parseJson } from '../http/body.js'
import { endpointOf, reasonIn } from '../move/broker-client.js'
import type { Chance, Clock } from '../ports.js'
import { type WatchOrder, watchMessage } from './arguments.js'
import {
  beginning,
  pauseAfter,
  pauseMsMax,
  received,
  reconnecting,
  type WatchedEvent,
  type WatchState,
} from './resuming.js'

/** A message of the broker. A longer one ends the command: the broker would send it again after each new connection. */
export const messageBytesMax = 8 * 1024 * 1024

/** Time to open a connection, and then to begin the watch: owners of shards have 10 s to learn the filter. */
const handshakeMsMax = 10_000
const beginMsMax = 15_000
/** Without a message or a ping for so long the connection counts as cut: the broker sends a bookmark every 15 s. */
const silenceMsMax = 45_000
/** A watch that lasted so long starts the pauses from the shortest one again. */
const steadyMsMin = pauseMsMax
/** Of the answer to a refused connection. */
const answerBytesMax = 64 * 1024

export interface WatchFeedParts {
  readonly order: WatchOrder
  readonly openSocket: OpenSocket
  readonly clock: Pick<Clock, 'after' | 'monoMs'>
  readonly chance: Pick<Chance, 'fraction'>
  /** A watch has begun. `isAnew`: earlier states are unknown. */
  readonly onBegun: (isAnew: boolean) => void
  readonly onEvent: (event: WatchedEvent) => void
  /** A line for the user: a cut, and the way back from it. */
  readonly onNote: (line: string) => void
}

/** undefined: it was stopped. Otherwise the reason why it cannot go on. */
export type FeedEnd = string | undefined

type ConnectionEnd =
  | { readonly kind: 'cut'; readonly reason: string; readonly waitMsMin: number; readonly isAnswered: boolean }
  | { readonly kind: 'refused'; readonly reason: string }

export class WatchFeed {
  private state: WatchState
  private socket: WebSocket | undefined
  private hasBegun = false
  private cuts = 0
  private begunMs: number | undefined
  private isPaused = false
  /** Of the pause between two connections, or of the wait for the next message. */
  private stopTimer: (() => void) | undefined
  private resolve: ((end: FeedEnd) => void) | undefined

  constructor(private readonly parts: WatchFeedParts) {
    this.state = beginning(parts.order.hasSnapshot, parts.order.from)
  }

  /** Follows the watch; resolves when it has ended. Called once. */
  run(): Promise<FeedEnd> {
    return new Promise(resolve => {
      this.resolve = resolve
      this.connect()
    })
  }

  /** Ends it: `run` resolves. */
  stop(): void {
    this.end(undefined)
  }

  /** Reads nothing more until `resume`: the reader of the output is slower than the broker. */
  pause(): void {
    this.isPaused = true
    this.socket?.pause()
  }

  resume(): void {
    this.isPaused = false
    this.socket?.resume()
  }

  private end(end: FeedEnd): void {
    const { resolve, socket } = this
    this.resolve = undefined
    this.stopTimer?.()
    this.socket = undefined
    if (socket) quit(socket)
    resolve?.(end)
  }

  private connect(): void {
    const { order, openSocket, clock } = this.parts
    this.state = reconnecting(this.state)
    this.begunMs = undefined
    const endpoint = endpointOf(order.url)
    const socket = new WebSocket(streamUrl(order.url), {
      headers: headersOf(order),
      maxPayload: messageBytesMax,
      createConnection: () => openSocket(endpoint),
    })
    this.socket = socket

    let isOpen = false
    let failure: Error | undefined
    const over = (end: ConnectionEnd): void => {
      if (this.socket !== socket) return
      this.stopTimer?.()
      this.socket = undefined
      quit(socket)
      this.onOver(end)
    }
    const cut = (reason: string): void => over({ kind: 'cut', reason, waitMsMin: 0, isAnswered: isOpen })
    const wait = (ms: number, reason: string): void => {
      this.stopTimer?.()
      this.stopTimer = clock.after(ms, () => (this.isPaused ? wait(ms, reason) : cut(reason)))
    }

    socket.on('error', error => {
      failure ??= error
    })
    socket.on('unexpected-response', (_request: ClientRequest, response: IncomingMessage) => {
      void answerOf(response).then(over)
    })
    socket.on('open', () => {
      isOpen = true
      if (this.isPaused) socket.pause()
      socket.send(watchMessage(order, this.state.cursor))
      wait(beginMsMax, 'the watch did not begin in time')
    })
    socket.on('ping', () => {
      if (this.begunMs !== undefined) wait(silenceMsMax, silent)
    })
    socket.on('message', (data, isBinary) => {
      if (this.socket !== socket) return
      const json = isBinary ? undefined : parseJson(bytesOf(data), messageBytesMax)
      const [state, outcome] = json?.ok ? received(this.state, json.value.value) : [this.state, foreignOutcome]
      this.state = state
      switch (outcome.kind) {
        case 'begun':
          this.onBegun(outcome.isAnew)
          break
        case 'event':
          this.parts.onEvent(outcome.event)
          break
        case 'ending':
          // The connection may stay open, for watches that others have.
          return cut(outcome.reason)
        case 'refused':
          return outcome.isTemporary ? cut(outcome.reason) : over({ kind: 'refused', reason: outcome.reason })
        case 'foreign':
          return over({ kind: 'refused', reason: foreign })
      }
      if (this.begunMs !== undefined) wait(silenceMsMax, silent)
    })
    socket.on('close', (code, reason) => {
      if (isTooLong(failure)) return over({ kind: 'refused', reason: tooLong })
      const closed = reason.length > 0 ? `closed: ${reason.toString()}` : `closed with code ${code}`
      if (code === policyViolation) return over({ kind: 'refused', reason: closed })
      cut(failure ? reasonOf(failure) : closed)
    })
    wait(handshakeMsMax, 'there was no answer in time')
  }

  private onBegun(isAnew: boolean): void {
    this.begunMs = this.parts.clock.monoMs()
    if (this.hasBegun) this.parts.onNote(isAnew ? 'connected again, begins anew' : 'connected again, continues')
    this.hasBegun = true
    this.parts.onBegun(isAnew)
  }

  private onOver(end: ConnectionEnd): void {
    const { clock, chance, onNote } = this.parts
    if (end.kind === 'refused') return this.end(end.reason)
    if (!this.hasBegun && !end.isAnswered) return this.end(end.reason)
    const wasSteady = this.begunMs !== undefined && clock.monoMs() - this.begunMs >= steadyMsMin
    this.cuts = wasSteady ? 1 : this.cuts + 1
    const waitMs = Math.max(pauseAfter(this.cuts, chance.fraction()), end.waitMsMin)
    onNote(`${end.reason}; connects again in ${(waitMs / 1000).toFixed(1)} s`)
    this.stopTimer = clock.after(waitMs, () => this.connect())
  }
}

/** The code with which a server closes a connection that may not be. Another try would end in the same way. */
const policyViolation = 1008
const silent = 'nothing was received for a while'
const foreign = 'the answer is not that of a broker with a live feed'
const foreignOutcome = { kind: 'foreign' } as const
const tooLong = `a message has more than ${messageBytesMax / 1024 / 1024} MB: narrow the watch, or choose attributes with --attrs`

const isTooLong = (error: Error | undefined): boolean =>
  (error as NodeJS.ErrnoException | undefined)?.code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH'

/** Closes a connection in any state. Its events are ignored from now on. */
function quit(socket: WebSocket): void {
  socket.removeAllListeners()
  // A connection that is still being opened ends with an error.
  socket.on('error', () => {})
  if (socket.readyState === WebSocket.OPEN) socket.close()
  socket.terminate()
}

function streamUrl(url: URL): string {
  const base = url.pathname.replace(/\/+$/, '')
  return `${url.protocol === 'https:' ? 'wss' : 'ws'}://${url.host}${base}/v2/stream`
}

/** The headers as Node wants them: a name that occurs twice has a list. */
function headersOf({ headers }: WatchOrder): Record<string, string> {
  const all = new Map<string, readonly [name: string, value: string]>()
  for (const [name, value] of headers) {
    const before = all.get(name.toLowerCase())
    all.set(name.toLowerCase(), [name, before ? `${before[1]}, ${value}` : value])
  }
  return Object.fromEntries(all.values())
}

function bytesOf(data: RawData): Buffer {
  if (Array.isArray(data)) return Buffer.concat(data)
  return Buffer.isBuffer(data) ? data : Buffer.from(data)
}

/** The end of a connection that was answered otherwise than with an upgrade. */
async function answerOf(response: IncomingMessage): Promise<ConnectionEnd> {
  const { statusCode: status = 0, headers } = response
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes > answerBytesMax) break
    }
  } catch {
    // The status is enough.
  }
  const reason = `answered ${status}: ${reasonIn({ body: Buffer.concat(chunks) })}`
  if (!mayPass(status)) return { kind: 'refused', reason: status < 400 ? `answered ${status}: ${foreign}` : reason }
  const seconds = Number(headers['retry-after'])
  const waitMsMin = Number.isFinite(seconds) ? Math.min(Math.max(seconds, 0) * 1000, pauseMsMax) : 0
  return { kind: 'cut', reason, waitMsMin, isAnswered: true }
}

const mayPass = (status: number): boolean =>
  status === 408 || status === 429 || (status >= 500 && status !== 501 && status !== 505)

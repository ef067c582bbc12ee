// Fronts that speak WebSocket, and their clients: what the tests of socket-contract.ts and socket-answers.ts share.
//
// A client is `ws`, or a Wire where a test names the bytes. A `Listener` keeps what the front has reported.

import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import type { Test } from 'tap'
import { WebSocket } from 'ws'
import type { Exchange, Front, FrontOptions, MessageSocket, SocketListener } from '../../src/http/front.js'
import { type FrameForm, frame, framesOf, handshake, opcodes } from './frames.js'
import { type Open, plainOptions } from './front-contract.js'
import { Wire } from './wire.js'

export const path = '/socket'
export const messageBytesMax = 100_000
export const sockets = { paths: [path], messageBytesMax, compression: false }

/** Keeps what the front reports about a connection. */
export class Listener implements SocketListener {
  readonly texts: string[] = []
  /** The names of all calls but those for messages. */
  readonly calls: string[] = []
  private opened: MessageSocket | undefined

  get socket(): MessageSocket {
    if (!this.opened) throw new Error('it is not open yet')
    return this.opened
  }

  get isOpen(): boolean {
    return this.opened !== undefined
  }

  get isGone(): boolean {
    return this.calls.includes('gone')
  }

  onOpen(socket: MessageSocket): void {
    this.opened = socket
    this.calls.push('open')
  }

  onMessage(bytes: Uint8Array): void {
    this.texts.push(Buffer.from(bytes).toString())
  }

  onRoom(): void {
    this.calls.push('room')
  }

  onGone(): void {
    this.calls.push('gone')
  }
}

export async function until(what: string, isSo: () => boolean, waitMsMax = 30_000): Promise<void> {
  const untilMs = performance.now() + waitMsMax
  while (!isSo()) {
    if (performance.now() > untilMs) throw new Error(`waited too long for ${what}`)
    await pause(2)
  }
}

/** A front whose handler opens each WebSocket, unless the test has another one. */
export async function begin(
  t: Test,
  open: Open,
  options: Partial<FrontOptions> = {},
  onRequest?: (exchange: Exchange, listener: Listener) => void,
) {
  const listeners: Listener[] = []
  const front = await open(
    { ...plainOptions, sockets, ...options },
    {
      onRequest: exchange => {
        const listener = new Listener()
        if (onRequest) onRequest(exchange, listener)
        else if (exchange.asksForWebSocket) exchange.webSocket([], '', listener)
        else return body => exchange.reply(200, [], `${exchange.method} ${exchange.path} ${Buffer.from(body)}`)
        if (exchange.asksForWebSocket) listeners.push(listener)
        return undefined
      },
    },
  )
  const port = await front.listen()
  t.teardown(() => front.close(0))
  const scheme = options.tls ? 'wss' : 'ws'
  const connect = (protocols: string[] = []): Client =>
    new Client(t, new WebSocket(`${scheme}://127.0.0.1:${port}${path}`, protocols, { rejectUnauthorized: false }))
  const wire = () => (options.tls ? Wire.overTls(port) : Wire.to(port))
  return { front, port, connect, wire, listeners }
}

/** A client that keeps what it receives. */
export class Client {
  readonly texts: string[] = []
  /** The code and reason of the end. */
  ended: { readonly code: number; readonly reason: string } | undefined

  constructor(
    t: Test,
    readonly native: WebSocket,
  ) {
    t.teardown(() => native.terminate())
    native.on('error', () => {})
    native.on('message', (text: Buffer) => this.texts.push(String(text)))
    native.on('close', (code, reason) => {
      this.ended = { code, reason: String(reason) }
    })
  }

  async opened(): Promise<this> {
    if (this.native.readyState === this.native.CONNECTING) await once(this.native, 'open')
    return this
  }

  async end(): Promise<{ readonly code: number; readonly reason: string }> {
    await until('the end of the connection', () => this.ended !== undefined)
    return this.ended!
  }
}

/** A client of bytes, behind its handshake. */
export async function shakenHands(wire: Wire): Promise<Wire> {
  await wire.request(`GET ${path}`, handshake)
  const { status } = await wire.answer()
  if (status !== 101) throw new Error(`the handshake was answered ${status}`)
  return wire
}

export const sendFrames = (wire: Wire, ...forms: FrameForm[]): Promise<void> =>
  wire.send(Buffer.concat(forms.map(frame)))

export const framesAt = (wire: Wire) => framesOf(Buffer.from(wire.unread, 'latin1'))

export const countOf = (front: Front): number => front.connections.reduce((sum, { count }) => sum + count, 0)

export const text = (payload: string | Uint8Array): FrameForm => ({ opcode: opcodes.text, payload })

// A client of the live feed over WebSocket: it sends messages, and keeps those that come
// (docs/interface/live.md#websocket).

import { WebSocket } from 'ws'
import type { Teardown } from './broker-process.js'
import type { EventData, EventEntity } from './event-reader.js'

/** A message of the broker: the answer to a message, or an event. */
export interface SocketMessage extends Partial<Omit<EventData, 'id' | 'payload' | 'headers'>> {
  readonly op: string
  readonly id?: string
  readonly event?: string
  readonly cursor?: string
  readonly ref?: number | string
  readonly status?: number
  readonly error?: string
  readonly description?: string
  readonly entity?: EventEntity
}

export interface SocketClientOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly protocols?: readonly string[]
  /** The certificate that the client shows, and its key. */
  readonly shown?: { readonly cert: string; readonly key: string }
}

export class StreamSocketClient {
  readonly messages: SocketMessage[] = []
  /** How the connection has ended. */
  ended: { readonly code: number; readonly reason: string } | undefined
  /** The status of a request that was refused. */
  refused: number | undefined
  private waiting: (() => void)[] = []

  private constructor(readonly native: WebSocket) {
    native.on('error', () => {})
    native.on('message', (text: Buffer) => {
      this.messages.push(JSON.parse(String(text)))
      this.wake()
    })
    native.on('close', (code, reason) => {
      this.ended = { code, reason: String(reason) }
      this.wake()
    })
    native.on('unexpected-response', (_, { statusCode }) => {
      this.refused = statusCode
      native.terminate()
    })
    native.on('open', () => this.wake())
    native.on('pong', () => this.wake())
  }

  /** Resolves when the connection is open, or was refused. */
  static async open(t: Teardown, url: string, options: SocketClientOptions = {}): Promise<StreamSocketClient> {
    const { headers = {}, protocols = [], shown } = options
    const native = new WebSocket(url, [...protocols], { headers, rejectUnauthorized: false, ...shown })
    const client = new StreamSocketClient(native)
    t.teardown(() => native.terminate())
    await client.until('the connection', ({ ended }) => ended !== undefined || native.readyState === native.OPEN)
    return client
  }

  /** Sends messages: texts as they are, others as JSON. */
  send(...messages: unknown[]): void {
    for (const message of messages) this.native.send(typeof message === 'string' ? message : JSON.stringify(message))
  }

  /** Waits until the messages, or the end of the connection, are as wanted. */
  async until(what: string, isSo: (client: this) => boolean, waitMsMax = 60_000): Promise<void> {
    const untilMs = performance.now() + waitMsMax
    while (!isSo(this)) {
      const leftMs = untilMs - performance.now()
      if (leftMs <= 0) throw new Error(`waited too long for ${what}: ${JSON.stringify(this.messages.slice(-5))}`)
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, leftMs)
        this.waiting.push(() => {
          clearTimeout(timer)
          resolve()
        })
      })
    }
  }

  /** Waits for the first message behind `from` that is as wanted. */
  async next(what: string, isWanted: (message: SocketMessage) => boolean, from = 0): Promise<SocketMessage> {
    const find = (): SocketMessage | undefined => this.messages.slice(from).find(isWanted)
    await this.until(what, () => find() !== undefined)
    return find()!
  }

  /** Sends a message, and waits for the next answer that is no event. */
  ask(message: unknown): Promise<SocketMessage> {
    const from = this.messages.length
    this.send(message)
    return this.next('an answer', ({ op }) => op !== 'event', from)
  }

  /** Begins a watch, and waits until it has begun. */
  async watch(id: string, members: object = {}): Promise<SocketMessage> {
    const answer = await this.ask({ op: 'watch', id, ...members })
    if (answer.op !== 'watching') throw new Error(`the watch was answered ${JSON.stringify(answer)}`)
    return answer
  }

  /** The events of a watch, without bookmarks. */
  events(watch: string): SocketMessage[] {
    return this.messages.filter(({ op, id, event }) => op === 'event' && id === watch && event !== 'bookmark')
  }

  /** The code and the reason of the end. */
  async end(): Promise<{ readonly code: number; readonly reason: string }> {
    await this.until('the end of the connection', ({ ended }) => ended !== undefined)
    return this.ended!
  }

  private wake(): void {
    const { waiting } = this
    this.waiting = []
    for (const one of waiting) one()
  }
}

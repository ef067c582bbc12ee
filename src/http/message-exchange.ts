// A request that came as a message on a WebSocket, as an exchange of a front: it takes the path of any other request
// (docs/interface/live.md#updates).

import type { AnswerBody, EventAnswer, Exchange } from './front.js'

/** Who sends it, and for whom. */
export interface MessageHead {
  /** As in the headers; '' for the default. */
  readonly tenant: string
  readonly path: string
  /** Words of `options`, separated by commas; '' for none. */
  readonly options: string
  /** '' for none. */
  readonly authToken: string
  /** Bytes of the body. */
  readonly length: number
  /** The address of the client. */
  readonly client: string
  /** The address of the connection, if a header has named `client`. */
  readonly peer?: string | undefined
}

export class MessageExchange implements Exchange {
  readonly method = 'POST'
  readonly query: string
  readonly asksForWebSocket = false
  private isAnswered = false
  private readonly headers: ReadonlyMap<string, string>

  /** `onReply` gets the status, and the body as text; '' when there is none. */
  constructor(
    readonly path: string,
    private readonly head: MessageHead,
    private readonly onReply: (status: number, body: string) => void,
  ) {
    const { tenant, path: servicePath, options, authToken, length, client, peer } = head
    this.query = options === '' ? '' : `options=${encodeURIComponent(options)}`
    this.headers = new Map([
      ['content-type', 'application/json'],
      ['content-length', String(length)],
      ['fiware-service', tenant],
      ['fiware-servicepath', servicePath],
      ['x-auth-token', authToken],
      ['x-real-ip', peer === undefined ? '' : client],
    ])
  }

  header(name: string): string {
    return this.headers.get(name) ?? ''
  }

  headerTimes(name: string): number {
    return this.header(name) === '' ? 0 : 1
  }

  clientAddress(): string {
    return this.head.peer ?? this.head.client
  }

  reply(status: number, _headers: readonly string[], body?: AnswerBody, onSent?: () => void): void {
    if (this.isAnswered) return
    this.isAnswered = true
    this.onReply(status, textOf(body))
    onSent?.()
  }

  replyAndClose(status: number, headers: readonly string[], body?: Uint8Array | string): void {
    this.reply(status, headers, body)
  }

  stream(): void {
    throw new Error('an answer to a message has one part')
  }

  events(): EventAnswer | undefined {
    return undefined
  }

  webSocket(): boolean {
    return false
  }
}

function textOf(body: AnswerBody | undefined): string {
  if (body === undefined || typeof body === 'string') return body ?? ''
  return Buffer.concat(body instanceof Uint8Array ? [body] : body).toString()
}

// One keep-alive connection with one request at a time: servers built on uWebSockets.js accept no second one before the
// first is answered.
//
// It supports just enough HTTP: answers carry Content-Length or no body at all, and the bench stores only ASCII.

import { connect, type Socket } from 'node:net'

export interface Answer {
  readonly isSuccess: boolean
  /** Status line and headers. */
  readonly head: string
  readonly body: string
}

export class Connection {
  private readonly socket: Socket
  private readonly host: string
  private received = ''
  private waiting: { answered(answer: Answer): void; failed(error: Error): void } | undefined
  private failure: Error | undefined

  private constructor(socket: Socket, host: string) {
    this.socket = socket
    this.host = host
    socket.setNoDelay(true)
    socket.on('data', chunk => this.onBytes(chunk))
    socket.on('error', cause => this.fail(new Error(`${host}: ${cause.message}`, { cause })))
    socket.on('close', () => this.fail(new Error(`${this.host} closed the connection`)))
  }

  static open(url: string): Promise<Connection> {
    const { hostname, port, host } = new URL(url)
    return new Promise((opened, failed) => {
      const socket = connect(Number(port || 80), hostname)
      socket.once('error', failed)
      socket.once('connect', () => opened(new Connection(socket, host)))
    })
  }

  /** Whether the other side has closed it, or it has failed. */
  get isBroken(): boolean {
    return this.failure !== undefined
  }

  /** Sends a request; its answer may be of any status. Fails when the connection breaks. */
  ask(request: string): Promise<Answer> {
    return new Promise((answered, failed) => {
      if (this.failure) return failed(this.failure)
      if (this.waiting) return failed(new Error('one request at a time'))
      this.waiting = { answered, failed }
      this.socket.write(request)
    })
  }

  close(): void {
    this.socket.destroy()
  }

  private onBytes(chunk: Buffer): void {
    this.received += chunk.toString('latin1')
    const end = this.received.indexOf('\r\n\r\n')
    if (end === -1) return
    const head = this.received.slice(0, end + 2)
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
    if (this.received.length < end + 4 + length) return
    const answer = { isSuccess: head[9] === '2', head, body: this.received.slice(end + 4) }
    this.received = ''
    const { waiting } = this
    this.waiting = undefined
    waiting?.answered(answer)
  }

  private fail(error: Error): void {
    this.failure ??= error
    this.waiting?.failed(this.failure)
    this.waiting = undefined
  }
}

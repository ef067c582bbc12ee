// A client made of one socket: it sends exactly the bytes that a test names, and reads answers one after the other.
//
// Not here: the requirements on a front (front-contract).

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'

export interface Answer {
  readonly status: number
  readonly reason: string
  /** By lower-case name. */
  readonly headers: Record<string, string>
  readonly body: string
}

export class Wire {
  /** Receives all bytes that any Wire sends, while it is set. */
  static onSent: ((bytes: Uint8Array) => void) | undefined
  /** Resolves with true when the connection is over, in any way. */
  readonly closed: Promise<boolean>
  /** The common name of the server's certificate; undefined: without TLS. */
  subject: string | undefined
  /** The latest session of TLS with which it may be continued. */
  session: Buffer | undefined
  /** Whether it continues an earlier session of TLS. */
  isResumed = false
  /** The code of the error that ended the connection; undefined: it is open, or ended in order. */
  failure: string | undefined
  readonly #socket: Socket
  /** The received bytes that no answer has taken: the gathered ones, and the chunks after them. */
  #bytes: Buffer = Buffer.alloc(0)
  #chunks: Buffer[] = []
  #length = 0
  /** With so many bytes the next answer is complete; 0: not known yet. */
  #wanted = 0
  #isOver = false
  #wake: () => void = () => {}

  constructor(socket: Socket) {
    this.#socket = socket
    this.closed = new Promise(resolve => {
      socket.on('error', (error: NodeJS.ErrnoException) => {
        this.failure = error.code
      })
      socket.on('close', () => {
        this.#isOver = true
        this.#wake()
        resolve(true)
      })
    })
    socket.on('data', chunk => {
      this.#chunks.push(chunk)
      this.#length += chunk.length
      if (this.#length >= this.#wanted) this.#wake()
    })
  }

  /** `localAddress` is the address of this side; undefined: the system chooses. */
  static async to(port: number, host = '127.0.0.1', localAddress?: string): Promise<Wire> {
    const socket = connect({ port, host, localAddress, noDelay: true })
    const wire = new Wire(socket)
    await once(socket, 'connect')
    return wire
  }

  /** As `to`, over TLS, with any certificate of the server. `options`: what the client shows. */
  static async overTls(port: number, options: ConnectionOptions = {}): Promise<Wire> {
    const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options })
    socket.setNoDelay()
    const wire = new Wire(socket)
    socket.on('session', session => {
      wire.session = session
    })
    await once(socket, 'secureConnect')
    wire.subject = String(socket.getPeerCertificate().subject.CN)
    wire.isResumed = socket.isSessionReused()
    return wire
  }

  /** Writes bytes, and waits until the system has taken them. */
  send(bytes: string | Uint8Array): Promise<void> {
    const sent = typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes
    Wire.onSent?.(sent)
    return new Promise(resolve => {
      this.#socket.write(sent, () => resolve())
    })
  }

  /** Sends one request; adds `Host`, and the length of a body. */
  request(line: string, headers: readonly string[] = [], body: string | Uint8Array = ''): Promise<void> {
    const length = body.length > 0 ? [`Content-Length: ${body.length}`] : []
    const head = [`${line} HTTP/1.1`, 'Host: test', ...headers, ...length].join('\r\n')
    return this.send(Buffer.concat([Buffer.from(`${head}\r\n\r\n`, 'latin1'), Buffer.from(body)]))
  }

  /**
   * The next answer; `isHead` if the request was a HEAD. Throws when the connection ends before the answer is complete.
   */
  async answer(isHead = false): Promise<Answer> {
    for (;;) {
      const bytes = this.#gathered()
      const end = bytes.indexOf('\r\n\r\n')
      if (end >= 0) {
        const [first = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
        const headers: Record<string, string> = {}
        for (const line of lines)
          headers[line.slice(0, line.indexOf(':')).toLowerCase()] = line.slice(line.indexOf(':') + 2)
        const [, status = '', reason = ''] = /^HTTP\/1\.1 (\d{3}) (.*)$/.exec(first) ?? []
        this.#wanted = end + 4 + (isHead ? 0 : Number(headers['content-length'] ?? 0))
        if (bytes.length >= this.#wanted) {
          const body = bytes.toString('latin1', end + 4, this.#wanted)
          this.#bytes = bytes.subarray(this.#wanted)
          this.#length = this.#bytes.length
          this.#wanted = 0
          return { status: Number(status), reason, headers, body }
        }
      }
      if (this.#isOver) throw new Error(`the connection ended after: ${bytes.toString('latin1')}`)
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
    }
  }

  /** The port of this side. */
  get localPort(): number | undefined {
    return this.#socket.localPort
  }

  /** The received bytes that were not read as an answer. */
  get unread(): string {
    return this.#gathered().toString('latin1')
  }

  #gathered(): Buffer {
    if (this.#chunks.length > 0) {
      this.#bytes = Buffer.concat([this.#bytes, ...this.#chunks])
      this.#chunks = []
    }
    return this.#bytes
  }

  /** Stops or resumes reading; meanwhile the system buffers the bytes of the server. */
  read(on: boolean): void {
    if (on) this.#socket.resume()
    else this.#socket.pause()
  }

  leave(): void {
    this.#socket.destroy()
  }

  /** Ends this side of the connection, and reads on. */
  end(): void {
    this.#socket.end()
  }

  /** Resets the connection; not over TLS. */
  reset(): void {
    this.#socket.resetAndDestroy()
  }
}

// A client that reads its answers slowly, or not at all, and keeps only a hash of them.

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

const pauseEachBytes = 256 * 1024

export class SlowReader {
  /** Bytes of the body that have arrived. */
  bytes = 0
  status = 0
  private readonly socket: Socket
  private readonly pauseMs: number
  private head = Buffer.alloc(0)
  private hash = createHash('sha256')
  private wanted = 0
  private sincePause = 0
  private isOver = false
  private wake: () => void = () => {}

  constructor(socket: Socket, pauseMs: number) {
    this.socket = socket
    this.pauseMs = pauseMs
    socket.on('error', () => {})
    socket.on('close', () => {
      this.isOver = true
      this.wake()
    })
    socket.on('data', (chunk: Buffer) => this.take(chunk))
  }

  /** Connects a reader that pauses for `pauseMs` after each 256 KB. */
  static async to(port: number, isTls = false, pauseMs = 5): Promise<SlowReader> {
    const at = { port, host: '127.0.0.1' }
    const socket = isTls ? connectTls({ ...at, rejectUnauthorized: false }) : connect(at)
    const reader = new SlowReader(socket, pauseMs)
    await once(socket, isTls ? 'secureConnect' : 'connect')
    return reader
  }

  ask(path: string): void {
    this.head = Buffer.alloc(0)
    this.hash = createHash('sha256')
    this.bytes = 0
    this.status = 0
    this.socket.write(`GET ${path} HTTP/1.1\r\nHost: test\r\n\r\n`)
  }

  /** Reads nothing from now on. */
  stop(): void {
    this.socket.pause()
  }

  /** The hash of the whole body, in hexadecimal. Throws when the connection ends before `length` bytes. */
  async bodyHash(length: number): Promise<string> {
    this.wanted = length
    while (this.bytes < length) {
      if (this.isOver) throw new Error(`the connection ended after ${this.bytes} bytes`)
      await new Promise<void>(resolve => {
        this.wake = resolve
      })
    }
    return this.hash.digest('hex')
  }

  leave(): void {
    this.socket.destroy()
  }

  private take(chunk: Buffer): void {
    this.sincePause += chunk.length
    if (this.sincePause > pauseEachBytes) {
      this.sincePause = 0
      this.socket.pause()
      setTimeout(() => this.socket.resume(), this.pauseMs)
    }
    if (this.status === 0) {
      this.head = Buffer.concat([this.head, chunk])
      const end = this.head.indexOf('\r\n\r\n')
      if (end < 0) return
      this.status = Number(this.head.toString('latin1', 9, 12))
      this.body(this.head.subarray(end + 4))
    } else this.body(chunk)
  }

  private body(bytes: Buffer): void {
    this.bytes += bytes.length
    this.hash.update(bytes)
    if (this.bytes >= this.wanted) this.wake()
  }
}

// Batches over a WebSocket, one at a time (docs/interface/live.md#updates).

import { once } from 'node:events'
import { WebSocket } from 'ws'

interface Done {
  readonly status: number
  readonly text: string
}

export class UpdateSocket {
  private refs = 0
  private waiting: ((done: Done | undefined) => void) | undefined

  private constructor(private readonly socket: WebSocket) {
    socket.on('message', (text: Buffer) => this.take(JSON.parse(String(text))))
    socket.on('close', () => this.answer(undefined))
    socket.on('error', () => {})
  }

  /** Undefined: no connection could be made. */
  static async open(url: string, tenant: string): Promise<UpdateSocket | undefined> {
    const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/v2/stream?tenant=${tenant}`)
    try {
      await once(socket, 'open')
      return new UpdateSocket(socket)
    } catch {
      return undefined
    }
  }

  /** The outcome; undefined: the connection has ended before. */
  update(members: Readonly<Record<string, unknown>>): Promise<Done | undefined> {
    if (this.socket.readyState !== this.socket.OPEN) return Promise.resolve(undefined)
    return new Promise(resolve => {
      this.waiting = resolve
      this.socket.send(JSON.stringify({ op: 'update', ref: ++this.refs, ...members }))
    })
  }

  close(): void {
    this.socket.terminate()
  }

  private take(message: { op?: string; ref?: unknown; status?: number; error?: string; description?: string }): void {
    const { op, ref, status = 0, error = '', description = '' } = message
    // Such as that the server stops.
    if (op === 'event') return
    const isAnswer = op === 'done' && ref === this.refs
    this.answer(isAnswer ? { status, text: `${error} ${description}` } : { status: 0, text: JSON.stringify(message) })
  }

  private answer(done: Done | undefined): void {
    const { waiting } = this
    this.waiting = undefined
    waiting?.(done)
  }
}

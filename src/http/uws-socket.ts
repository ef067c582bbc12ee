// A WebSocket of the uWebSockets.js front.
//
// The binary checks frames, puts fragments together, answers pings, and sends one before a silent connection is cut off
// (`silenceSMax`). It cuts off, without a closing handshake, a client whose message is too long or not UTF-8.
//
// `#native` is valid while `#isOpen`: a later use ends the process.

import type { WebSocket, WebSocketBehavior } from 'uWebSockets.js'
import type { SlowAnswer, StallWatch } from './connections.js'
import type { MessageSocket, SocketListener, SocketOptions } from './front.js'
import { noBinary, silenceSMax } from './front.js'

/** What the binary keeps with a connection. */
export interface SocketData {
  readonly listener: SocketListener
  /** The connection has ended. */
  readonly onEnd: () => void
  socket?: UwsSocket
}

export type NativeSocket = WebSocket<SocketData>

class UwsSocket implements MessageSocket, SlowAnswer {
  readonly #native: NativeSocket
  readonly #stalls: StallWatch
  #isOpen = true
  /** Bytes that were given to the binary. */
  #given = 0

  constructor(native: NativeSocket, stalls: StallWatch) {
    this.#native = native
    this.#stalls = stalls
  }

  send(texts: readonly string[]): boolean {
    if (!this.#isOpen) return false
    this.#native.cork(() => {
      for (const text of texts) {
        this.#given += text.length
        this.#native.send(text, false, true)
      }
    })
    // Not the result of a send: the system may have taken the rest since, and then the binary does not report it.
    const isAll = this.#native.getBufferedAmount() === 0
    if (!isAll) this.#stalls.add(this)
    return isAll
  }

  close(code: number, reason: string): void {
    if (this.#isOpen) this.#native.end(code, reason)
  }

  destroy(): void {
    if (this.#isOpen) this.#native.close()
  }

  taken(): number {
    return this.#isOpen ? this.#given - this.#native.getBufferedAmount() : 0
  }

  /** The binary sends the rest by itself. */
  retry(): void {}

  giveUp(): void {
    this.destroy()
  }

  /** The system has taken some bytes. True: it has taken all of them. */
  drained(): boolean {
    if (!this.#isOpen || this.#native.getBufferedAmount() > 0) return false
    this.#stalls.remove(this)
    return true
  }

  ended(): void {
    this.#isOpen = false
    this.#stalls.remove(this)
  }
}

/** How the binary treats WebSockets; `upgrade` decides which requests become one. */
export function socketBehavior(
  { messageBytesMax, compression }: SocketOptions,
  compressor: number,
  stalls: StallWatch,
  upgrade: NonNullable<WebSocketBehavior<SocketData>['upgrade']>,
): WebSocketBehavior<SocketData> {
  return {
    maxPayloadLength: messageBytesMax,
    idleTimeout: silenceSMax,
    sendPingsAutomatically: true,
    // The protocol above limits what waits.
    maxBackpressure: 0,
    compression: compression ? compressor : 0,
    upgrade,
    open: native => {
      const data = native.getUserData()
      data.socket = new UwsSocket(native, stalls)
      data.listener.onOpen(data.socket)
    },
    message: (native, message, isBinary) => {
      const { listener, socket } = native.getUserData()
      if (isBinary) socket?.close(noBinary.code, noBinary.reason)
      else listener.onMessage(new Uint8Array(message))
    },
    drain: native => {
      const { listener, socket } = native.getUserData()
      if (socket?.drained()) listener.onRoom()
    },
    close: native => {
      const { listener, socket, onEnd } = native.getUserData()
      socket?.ended()
      onEnd()
      listener.onGone()
    },
  }
}

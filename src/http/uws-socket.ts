// A WebSocket of the uWebSockets.js front.
//
// The binary checks frames, puts fragments together, answers pings, and sends one before a silent connection is cut off
// (`silenceSMax`). It cuts off, without a closing handshake, a client whose message is too long or not UTF-8.
//
// With TLS, a write inside a `message` call makes the binary forget the bytes that it has received and not decrypted
// yet, of whichever connection it is reading. The rest of that connection cannot be decrypted then, and the binary cuts
// it off. So what is sent in such a call waits until the end of the turn (`TlsReads`). The binary's own answers to
// pings are such writes as well, and nothing can be done about them here
// (docs/operations/http-servers.md#what-differs).
//
// `#native` is valid while `#isOpen`: a later use ends the process.

import type { WebSocket, WebSocketBehavior } from 'uWebSockets.js'
import type { SlowAnswer, StallWatch } from './connections.js'
import type { MessageSocket, SocketListener, SocketOptions } from './front.js'
import { noBinary, pingsWaitingMax, silenceSMax } from './front.js'

/** What the binary keeps with a connection, as a copy. */
interface KeptData {
  readonly data: SocketData
}

export interface SocketData {
  readonly listener: SocketListener
  /** Called when its client begins to wait for answers (1), and when it does not any more (-1). */
  readonly onExpecting: (change: 1 | -1) => void
  /** Called when the connection has ended. */
  readonly onEnd: () => void
  /** The connection has ended. */
  isOver?: boolean
  socket?: UwsSocket
}

type NativeSocket = WebSocket<KeptData>

/** Characters that wait for the end of a turn until `send` reports that there is no room. */
const lateCharactersMax = 64 * 1024

/** Bytes of the answer to a ping besides its payload. */
const pongHeadBytes = 2

/** The `message` calls of a front with TLS, and the sockets whose texts wait for the end of the turn. */
export class TlsReads {
  isReading = false
  private late: UwsSocket[] = []

  during(run: () => void): void {
    this.isReading = true
    try {
      run()
    } finally {
      this.isReading = false
    }
  }

  add(socket: UwsSocket): void {
    if (this.late.length === 0) setImmediate(() => this.flush())
    this.late.push(socket)
  }

  private flush(): void {
    const { late } = this
    this.late = []
    for (const socket of late) socket.flush()
  }
}

/** What a socket sends at the end of the turn. */
interface Late {
  readonly texts: string[]
  characters: number
  /** A `send` has returned false. */
  isFull: boolean
  closing: { readonly code: number; readonly reason: string } | undefined
}

class UwsSocket implements MessageSocket, SlowAnswer {
  readonly #native: NativeSocket
  readonly #data: SocketData
  readonly #stalls: StallWatch
  readonly #reads: TlsReads | undefined
  #isOpen = true
  /** Bytes that were given to the binary. */
  #given = 0
  #late: Late | undefined
  #isExpecting = false
  /** Pings since the system had last taken everything. */
  #pings = 0
  #isLooking = false

  constructor(native: NativeSocket, data: SocketData, stalls: StallWatch, reads: TlsReads | undefined) {
    this.#native = native
    this.#data = data
    this.#stalls = stalls
    this.#reads = reads
  }

  /** Whether messages of the client are still wanted. */
  get isListening(): boolean {
    return this.#isOpen && !this.#late?.closing
  }

  send(texts: readonly string[]): boolean {
    if (!this.isListening) return false
    const late = this.#lateNow()
    if (!late) return this.#send(texts)
    for (const text of texts) {
      late.texts.push(text)
      late.characters += text.length
    }
    if (late.characters > lateCharactersMax) late.isFull = true
    return !late.isFull
  }

  #send(texts: readonly string[]): boolean {
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
    if (!this.isListening) return
    const late = this.#lateNow()
    if (late) late.closing = { code, reason }
    else this.#native.end(code, reason)
  }

  /** What is sent at the end of the turn; undefined: it can be sent now. */
  #lateNow(): Late | undefined {
    const reads = this.#reads
    if (this.#late || !reads?.isReading) return this.#late
    this.#late = { texts: [], characters: 0, isFull: false, closing: undefined }
    reads.add(this)
    return this.#late
  }

  /** Sends what was late. */
  flush(): void {
    const late = this.#late
    this.#late = undefined
    if (!late || !this.#isOpen) return
    const isAll = late.texts.length === 0 || this.#send(late.texts)
    if (late.closing) this.#native.end(late.closing.code, late.closing.reason)
    else if (late.isFull && isAll) this.#data.listener.onRoom()
  }

  destroy(): void {
    if (this.#isOpen) this.#native.close()
  }

  taken(): number {
    return this.#isOpen ? this.#given - this.#native.getBufferedAmount() : 0
  }

  /** The binary has answered a ping. */
  pinged(payloadBytes: number): void {
    this.#given += pongHeadBytes + payloadBytes
    this.#pings++
    if (this.#isLooking) return
    this.#isLooking = true
    // In this turn the binary still collects answers.
    setImmediate(() => this.#look())
  }

  #look(): void {
    this.#isLooking = false
    if (!this.#isOpen) return
    if (this.#native.getBufferedAmount() === 0) this.#pings = 0
    else if (this.#pings > pingsWaitingMax) this.destroy()
  }

  /** The binary sends the rest by itself. */
  retry(): void {}

  giveUp(): void {
    this.destroy()
  }

  /** The system has taken some bytes. */
  drained(): void {
    if (!this.#isOpen || this.#native.getBufferedAmount() > 0) return
    this.#pings = 0
    this.#stalls.remove(this)
    this.#data.listener.onRoom()
  }

  expectsAnswers(isExpecting: boolean): void {
    if (!this.#isOpen || isExpecting === this.#isExpecting) return
    this.#isExpecting = isExpecting
    this.#data.onExpecting(isExpecting ? 1 : -1)
  }

  ended(): void {
    this.expectsAnswers(false)
    this.#isOpen = false
    this.#stalls.remove(this)
  }
}

/** The WebSockets of one application. */
export interface UwsSockets {
  readonly behavior: WebSocketBehavior<KeptData>
  /** Called directly after a response has become a WebSocket, with what was given to the binary. */
  begin(data: SocketData): void
}

/**
 * How the binary treats WebSockets; `upgrade` decides which requests become one. `reads`: those of a front with TLS.
 *
 * As little as possible happens in the call of `cork` in which a response becomes a WebSocket: an uncorrected binary
 * (uws-addon.ts) may close the connection if memory is taken there. So `open` is a function of the engine, which takes
 * none.
 */
export function uwsSockets(
  { messageBytesMax, compression }: SocketOptions,
  compressor: number,
  stalls: StallWatch,
  reads: TlsReads | undefined,
  upgrade: NonNullable<WebSocketBehavior<KeptData>['upgrade']>,
): UwsSockets {
  const opened: NativeSocket[] = []
  const open: (native: NativeSocket) => void = opened.push.bind(opened)
  const behavior: WebSocketBehavior<KeptData> = {
    maxPayloadLength: messageBytesMax,
    idleTimeout: silenceSMax,
    sendPingsAutomatically: true,
    // The protocol above limits what waits.
    maxBackpressure: 0,
    compression: compression ? compressor : 0,
    upgrade,
    open,
    message: (native, message, isBinary) => {
      const { listener, socket } = native.getUserData().data
      if (!socket?.isListening) return
      const receive = (): void => {
        if (isBinary) socket.close(noBinary.code, noBinary.reason)
        else listener.onMessage(new Uint8Array(message))
      }
      if (reads) reads.during(receive)
      else receive()
    },
    ping: (native, payload) => native.getUserData().data.socket?.pinged(payload.byteLength),
    drain: native => native.getUserData().data.socket?.drained(),
    close: native => {
      const { data } = native.getUserData()
      data.isOver = true
      data.socket?.ended()
      data.onEnd()
      data.listener.onGone()
    },
  }
  const begin = (data: SocketData): void => {
    const native = opened.pop()
    if (!native || data.isOver) return
    data.socket = new UwsSocket(native, data, stalls, reads)
    data.listener.onOpen(data.socket)
  }
  return { behavior, begin }
}

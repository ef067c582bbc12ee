// A tracked connection of the uWebSockets.js front. The server can close it, and counts it for its address.
//
// The binary reports that some connection has ended, but not which one, and a request does not name its connection. So
// tracked connections live in a separate application (uws-front). From its beginning, each has two handlers registered
// with the binary. One is called at the end of the connection. The other is called with the body of a request, also an
// empty one, directly after its head. In between, the head waits in `RequestHeads`. An answer removes both handlers, so
// both are registered again after each answer. That costs a request some 2 us, so most connections are not tracked
// (docs/operations/connections.md).
//
// `handle` is valid while `#isOpen`: a later use ends the process.

import type { Admission, WaitingConnection } from './connections.js'

/**
 * The functions of the binary's object that it needs. The object is a response that was passed at the beginning of the
 * connection, and not with a request.
 */
export interface Handle {
  onAborted(handler: () => void): unknown
  onData(handler: (chunk: ArrayBuffer, isLast: boolean) => void): unknown
  close(): unknown
}

/** The functions of a request that its connection calls. */
export interface ConnectionRequest {
  /** The request was linked to its connection. */
  linked(connection: UwsConnection): void
  onChunk(chunk: ArrayBuffer, isLast: boolean): void
  /** The connection has ended before the answer. */
  onAborted(): void
}

/** Passes a head to its connection. */
export interface RequestHeads<Request> {
  /** The latest head, which belongs to no connection yet. */
  take(): Request | undefined
}

export class UwsConnection implements WaitingConnection {
  readonly address: string
  readonly #handle: Handle
  readonly #heads: RequestHeads<ConnectionRequest>
  readonly #admission: Admission
  readonly #onEnd = () => this.ended()
  readonly #onData = (chunk: ArrayBuffer, isLast: boolean) => this.#received(chunk, isLast)
  #isOpen = true
  #request: ConnectionRequest | undefined

  constructor(handle: Handle, address: string, heads: RequestHeads<ConnectionRequest>, admission: Admission) {
    this.address = address
    this.#handle = handle
    this.#heads = heads
    this.#admission = admission
    admission.enter(address)
    this.#register()
    admission.waits(this)
  }

  /** Its request was answered. An open connection may send another one. */
  answered(state: 'open' | 'closing' | 'closed'): void {
    this.#request = undefined
    if (state === 'closed') return this.ended()
    this.#register()
    if (state === 'closing') this.#admission.waitsNoMore(this)
    else this.#admission.waits(this)
  }

  /** Its request has made it a WebSocket, so no other one will come. */
  upgraded(): void {
    this.#request = undefined
  }

  /** The connection has ended. */
  ended(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#admission.waitsNoMore(this)
    this.#admission.leave(this.address)
    const request = this.#request
    this.#request = undefined
    request?.onAborted()
  }

  close(): void {
    if (this.#isOpen) this.#handle.close()
  }

  #register(): void {
    this.#handle.onAborted(this.#onEnd)
    this.#handle.onData(this.#onData)
  }

  #received(chunk: ArrayBuffer, isLast: boolean): void {
    if (!this.#request) {
      this.#request = this.#heads.take()
      this.#request?.linked(this)
    }
    if (isLast) this.#admission.waitsNoMore(this)
    this.#request?.onChunk(chunk, isLast)
  }
}

// A connection of the uWebSockets.js front that the server knows, so that it can close it and count it for its address.
//
// The binary says that some connection has ended, but not which one, and a request does not say on which connection it
// comes. So the connections of this kind live in an application of their own (uws-front), and keep two handlers
// registered with the binary from their beginning: one that is called at the end of the connection, and one that is
// called with the body of a request, also with none, right after its head. A head is handed over in between (`Heads`).
// An answer makes the binary forget both, so both are registered again after each one. That costs a request some 2 us,
// which is why most connections do without (docs/operations/connections.md).
//
// `handle` is valid as long as `#isOpen`: the binary ends the process when it is touched later.

import type { Admission, WaitingConnection } from './connections.js'

/**
 * What it needs of the binary's object: a response that was given at the beginning of the connection, and not with a
 * request.
 */
export interface Handle {
  onAborted(handler: () => void): unknown
  onData(handler: (chunk: ArrayBuffer, isLast: boolean) => void): unknown
  close(): unknown
}

/** What a connection needs of the request that it carries. */
export interface ConnectionRequest {
  /** Now it is known on which connection the request comes. */
  linked(connection: UwsConnection): void
  onChunk(chunk: ArrayBuffer, isLast: boolean): void
  /** The connection has ended before the answer. */
  onAborted(): void
}

/** The way of a head to its connection. */
export interface RequestHeads<Request> {
  /** The head that has come last and belongs to no connection yet. */
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

  /** Its request has been answered. A connection that is open may send another one. */
  answered(state: 'open' | 'closing' | 'closed'): void {
    this.#request = undefined
    if (state === 'closed') return this.ended()
    this.#register()
    if (state === 'closing') this.#admission.waitsNoMore(this)
    else this.#admission.waits(this)
  }

  /** The connection is no more. */
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

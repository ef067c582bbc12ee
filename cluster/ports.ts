// The interfaces that the cluster library needs from the outside, and the types of its messages.
//
// The library knows nodes, shards and bytes. The broker passes the host and the clock. The transport is in
// grpc-transport.ts; in tests it is a simulated network.

/**
 * A node and its address for others. `address` is `unix:/path` or `host:port`, or `socket:/path` where there is no
 * gRPC.
 */
export interface Peer {
  readonly name: string
  readonly address: string
}

export interface AskHost {
  /**
   * Receives an ask's request and replies exactly once, now or later. Both buffers may be parts of larger ones. Must
   * not throw. `view`: the epoch in which the asker believes that this node owns the shard; 0: the asker gave none.
   * `node`: the asker.
   */
  onAsk(shard: number, request: Uint8Array, onReply: (reply: Uint8Array) => void, view: number, node: string): void
}

/** Time. `monoMs` must advance while the process is stopped: the promise of deadlines depends on it (README.md). */
export interface ClusterClock {
  /** Milliseconds that only grow. */
  monoMs(): number
  /** Milliseconds since 1970, as the machine's clock shows them. Nodes compare them (clocks/). */
  wallMs(): number
  /** Calls `run` once after `delayMs`. The returned function cancels the call. */
  after(delayMs: number, run: () => void): () => void
  /** Calls `run` once, after the event loop has handled everything that is ready now. */
  endOfTick(run: () => void): void
}

export type AskResult =
  | { readonly kind: 'reply'; readonly reply: Buffer }
  /** Certain: the ask has not been executed and never will be. */
  | { readonly kind: 'unavailable'; readonly reason: string }
  /** The ask was sent, and no answer came in time. */
  | { readonly kind: 'unknown'; readonly reason: string }

export type OnOutcome = (outcome: AskResult) => void

/** One open stream to another process: messages arrive whole and in order, or not at all. */
export interface Stream {
  /** Sends a message. False: the message was accepted, but the next one should wait for `onDrain`. */
  send(message: Buffer): boolean
  /**
   * Ends the stream; messages that were already sent still leave. With a reason the stream is torn down, and the other
   * side gets the reason if possible. The listener is not called any more.
   */
  close(reason?: string): void
}

/** Receives the events of a stream until it is closed. Never called before `dial` or `onStream` has returned. */
export interface StreamListener {
  onMessage(message: Buffer): void
  onDrain(): void
  /** The stream has ended, and not by our `close`. */
  onClosed(reason: string): void
}

/**
 * Receives a message of another process and replies once, or never: then the caller's time runs out. Must not throw.
 */
export type OnCall = (message: Buffer, onReply: (reply: Uint8Array) => void) => void

/**
 * Why a call has no reply, as far as callers act on it:
 * - `unreadable`: the other process sent bytes that are no packet.
 * - `refused`: a machine has that address, and no process listens there.
 */
export type CallFault = 'unreadable' | 'refused'

/** Receives the reply, or undefined and a reason. */
export type OnCallReply = (reply: Buffer | undefined, reason: string, fault?: CallFault) => void

export interface Guests {
  onStream(stream: Stream): StreamListener
  /** Absent: calls are refused. */
  readonly onCall?: OnCall | undefined
  /** A call was refused because its bytes cannot be read. */
  readonly onUnreadableCall?: (() => void) | undefined
}

export interface Transport {
  /** Accepts streams and calls. Fails with a sentence for the operator when it cannot listen on the address. */
  listen(address: string, guests: Guests): Promise<OpenListener>
  /** Opens a stream; messages may be sent at once. If no process listens there, the stream ends with `onClosed`. */
  dial(address: string, listener: StreamListener): Stream
  /**
   * Sends one short message (`callBytesMax`) and waits up to `waitMs` for the reply. Calls back once, after this has
   * returned. Without a reply the message may have arrived or not; it is never sent again. Calls have no order.
   */
  call(address: string, message: Uint8Array, waitMs: number, onReply: OnCallReply): void
}

export interface OpenListener {
  /** The address on which it really listens: port 0 is replaced by the chosen port. */
  readonly address: string
  /** Accepts no more, ends all open streams and calls, and resolves when the address is free again. */
  close(): Promise<void>
}

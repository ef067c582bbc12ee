// What the cluster library needs of the world, and what it calls the things it carries.
//
// It knows nodes, shards and bytes. The broker hands in the host and the clock. The transport is in grpc-transport.ts,
// in tests on a simulated network.

/** A node as others find it. `address` is `unix:/path` or `host:port`, and `socket:/path` where there is no gRPC. */
export interface Peer {
  readonly name: string
  readonly address: string
}

export interface AskHost {
  /**
   * Takes an ask's request and replies exactly once, now or later. Both buffers may be parts of larger ones. Must not
   * throw. `view`: the epoch in which the asker believes that this node owns the shard; 0: it has not said. `node`: who
   * asks.
   */
  onAsk(shard: number, request: Uint8Array, onReply: (reply: Uint8Array) => void, view: number, node: string): void
}

/** Time. `monoMs` must go on while the process is stopped: the promise of deadlines rests on it (README.md). */
export interface ClusterClock {
  /** Milliseconds that only grow. */
  monoMs(): number
  /** Calls `run` once after `delayMs`; the function returned takes the call back. */
  after(delayMs: number, run: () => void): () => void
  /** Calls `run` once, when the event loop has taken what is ready now. */
  endOfTick(run: () => void): void
}

export type AskResult =
  | { readonly kind: 'reply'; readonly reply: Buffer }
  /** Certain: nothing has happened and nothing will. */
  | { readonly kind: 'unavailable'; readonly reason: string }
  /** It was sent, and no answer came in time. */
  | { readonly kind: 'unknown'; readonly reason: string }

export type OnOutcome = (outcome: AskResult) => void

/** One open stream to another process: messages arrive whole and in order, or not at all. */
export interface Stream {
  /** Hands a message over. False: it was taken, and the next should wait for `onDrain`. */
  send(message: Buffer): boolean
  /**
   * Ends the stream; what was handed over still leaves. With a reason it is torn down, and the other side gets the
   * reason if possible. The listener is told nothing any more.
   */
  close(reason?: string): void
}

/** Told what happens on a stream, until it is closed. Never called before `dial` or `onStream` has returned. */
export interface StreamListener {
  onMessage(message: Buffer): void
  onDrain(): void
  /** The stream has ended, and not by our `close`. */
  onClosed(reason: string): void
}

/** Takes a message of another process and replies once, or never: then the caller's time runs out. Must not throw. */
export type OnCall = (message: Buffer, onReply: (reply: Uint8Array) => void) => void

/**
 * Told the reply, or (undefined) why there is none. `isUnreadable`: the other process sent bytes that nobody can read.
 */
export type OnCallReply = (reply: Buffer | undefined, reason: string, isUnreadable?: boolean) => void

export interface Guests {
  onStream(stream: Stream): StreamListener
  /** Absent: calls are turned away. */
  readonly onCall?: OnCall | undefined
  /** A call was refused because its bytes cannot be read. */
  readonly onUnreadableCall?: (() => void) | undefined
}

export interface Transport {
  /** Takes in streams and calls. Fails with a sentence for the operator when the address cannot be had. */
  listen(address: string, guests: Guests): Promise<OpenListener>
  /** Opens a stream; messages may be sent at once. Where nobody listens, `onClosed` tells. */
  dial(address: string, listener: StreamListener): Stream
  /**
   * Sends one short message (`callBytesMax`) and waits up to `waitMs` for the reply. Calls back once, after this has
   * returned. Without a reply the message may have arrived or not; it is never sent again. Calls have no order.
   */
  call(address: string, message: Uint8Array, waitMs: number, onReply: OnCallReply): void
}

export interface OpenListener {
  /** Where it really listens: a port 0 has become one. */
  readonly address: string
  /** Takes in no more, ends what is open, and resolves when the address is free again. */
  close(): Promise<void>
}

// Connections at the port of the cluster that nobody has spoken on yet: how many there may be, and for how long.
//
// A node opens its stream, or makes a call, as soon as it has connected. A connection on which neither happens comes from somebody else, and must not
// keep nodes out: it is closed after a while, and sooner where many of its kind come. A connection is known by its client's address and port, as the
// library names it with each stream and call.
//
// Not here: who is let in (grpc-tls.ts), streams that bring no greeting (asks.ts), connections that have spoken and rest (grpc-transport.ts).

import type { Socket } from 'node:net'

/** Connections that have not spoken; for another one the one that has waited longest goes. Hundreds of nodes may start at once. */
export const silentConnectionsMax = 256

/** How long a connection may stay without a stream or a call. */
export const silentConnectionMsMax = 5_000

export class Arrivals {
  /** In the order in which they came. */
  private readonly silent = new Map<string, { readonly socket: Socket; readonly timer: NodeJS.Timeout }>()

  /** A connection has come. */
  add(socket: Socket): void {
    const peer = `${socket.remoteAddress}:${socket.remotePort}`
    const timer = setTimeout(() => socket.destroy(), silentConnectionMsMax).unref()
    const one = { socket, timer }
    this.silent.set(peer, one)
    socket.once('close', () => {
      if (this.silent.get(peer) === one) this.forget(peer)
    })
    if (this.silent.size <= silentConnectionsMax) return
    const [longest] = this.silent
    if (!longest) return
    this.forget(longest[0])
    longest[1].socket.destroy()
  }

  /** A stream or a call has come from this client. */
  spoke(peer: string): void {
    this.forget(peer)
  }

  private forget(peer: string): void {
    clearTimeout(this.silent.get(peer)?.timer)
    this.silent.delete(peer)
  }
}

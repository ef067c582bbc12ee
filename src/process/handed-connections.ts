// Connections of workers that serve with node:http: the supervisor accepts them, and passes them on in turn.
//
// node:cluster would do the same. But when the workers stop listening, it closes the connections that it has accepted
// and not passed on yet. Here the supervisor stops listening before the workers drain. Orders and connections come to a
// worker in the order in which they were sent, so it has all its connections when it gets the order to drain. uws has a
// socket for each worker instead.
//
// A worker that does not answer gets no further connection while another one can take it. A connection that no worker
// can take waits for one. At most `waitingMax` of them wait, in all.

import { createServer, type Server, type Socket } from 'node:net'
import { Arrivals } from '../http/drain.js'
import { type ListenAddress, listenFailure, listenOptions } from '../http/front.js'

/** Accepted connections that were not passed on yet; further ones are closed. */
const waitingMax = 1024

/** The recipient of connections: a worker. */
export interface Taker {
  /** A connection is still in flight to it. */
  readonly isBusy: boolean
  /** Receives a connection. `onLost`: it could not be delivered. */
  take(port: number, socket: Socket, onLost: () => void): void
}

/** The side of the supervisor. Each of its ports has one address. */
export class ConnectionSharing {
  private readonly listeners = new Map<number, Listener>()

  /** Listens at an address, unless it is listening at its port already. Rejects with a sentence for the operator. */
  async listen(at: ListenAddress): Promise<void> {
    const { port } = at
    let listener = this.listeners.get(port)
    if (!listener) {
      listener = new Listener(at)
      this.listeners.set(port, listener)
    }
    try {
      await listener.listening
    } catch (error) {
      if (this.listeners.get(port) === listener) this.listeners.delete(port)
      throw error
    }
  }

  /** Also gives connections of a port to this worker. */
  add(port: number, taker: Taker): void {
    this.listeners.get(port)?.add(taker)
  }

  /** A worker has ended. */
  remove(taker: Taker): void {
    for (const listener of this.listeners.values()) listener.remove(taker)
  }

  /** Accepts connections that have already arrived, and stops listening. */
  async close(): Promise<void> {
    await Promise.all([...this.listeners.values()].map(listener => listener.close()))
  }
}

class Listener {
  readonly listening: Promise<void>
  private readonly server: Server
  private readonly arrivals = new Arrivals()
  /** The first one that is not busy is the next to get a connection. */
  private readonly takers: Taker[] = []
  private waiting: Socket[] = []

  constructor(private readonly at: ListenAddress) {
    this.server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, socket => this.onConnection(socket))
    this.server.maxConnections = waitingMax
    this.listening = new Promise((resolve, reject) => {
      // Later an error means that a connection could not be accepted: its client has gone, or there are no descriptors.
      this.server.on('error', error => reject(listenFailure(error, at)))
      this.server.listen({ ...listenOptions(at), exclusive: true }, resolve)
    })
  }

  add(taker: Taker): void {
    this.takers.push(taker)
    for (const socket of this.waiting.splice(0)) this.hand(socket)
  }

  remove(taker: Taker): void {
    const at = this.takers.indexOf(taker)
    if (at >= 0) this.takers.splice(at, 1)
  }

  async close(): Promise<void> {
    await this.arrivals.still(Number.POSITIVE_INFINITY)
    this.server.close()
    for (const socket of this.waiting.splice(0)) socket.destroy()
  }

  private onConnection(socket: Socket): void {
    this.arrivals.count++
    socket.on('error', () => {}) // It is the worker's.
    this.hand(socket)
  }

  private hand(socket: Socket): void {
    const at = this.takers.findIndex(({ isBusy }) => !isBusy)
    const [taker] = this.takers.splice(Math.max(at, 0), 1)
    if (!taker) {
      if (this.server.listening) this.waiting.push(socket)
      else socket.destroy()
      return
    }
    this.takers.push(taker)
    taker.take(this.at.port, socket, () => this.hand(socket))
  }
}

/** The side of a worker. */
export class HandedConnections {
  private readonly ports = new Map<number, Port>()

  constructor(private readonly ask: (at: ListenAddress) => void) {}

  /** Resolves when the supervisor listens; from then on `take` receives connections. */
  open(at: ListenAddress, take: (socket: Socket) => void): Promise<number> {
    const { port } = at
    return new Promise((resolve, reject) => {
      this.ports.set(port, { take, resolve: () => resolve(port), reject })
      this.ask(at)
    })
  }

  /** The supervisor listens at a port, or cannot. */
  listens(port: number, reason: string | undefined): void {
    if (reason === undefined) this.ports.get(port)?.resolve()
    else this.ports.get(port)?.reject(new Error(reason))
  }

  /** A connection has arrived; undefined: it ended on the way. */
  came(port: number, socket: Socket | undefined): void {
    if (socket) this.ports.get(port)?.take(socket)
  }
}

interface Port {
  take(socket: Socket): void
  resolve(): void
  reject(failure: Error): void
}

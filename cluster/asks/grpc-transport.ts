// Streams and calls over gRPC, on unix sockets and TCP, plain or with TLS.
//
// Every dialed stream has a connection of its own. A message is a frame's bytes; nothing is encoded here. A stream
// counts the bytes that it holds, since the library counts only messages, from bytes to megabytes each. An accepted
// client may use both, streams and calls.
//
// Listening sockets are our own, and the library gets the accepted connections. So we count them, and destroy them when
// we close. A node does not listen where other machines can connect without TLS, unless the operator allows it.
//
// Not here: which nodes are accepted (grpc-tls.ts), connections to others (grpc-channel.ts), calls (grpc-calls.ts),
// streams without a greeting (asks.ts).

import { createServer, type Server as Listener, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import {
  logVerbosity,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServiceDefinition,
  setLogVerbosity,
  status,
} from '@grpc/grpc-js'
import { bufferBytesMax, callIdleMs, callsPerConnectionMax, messageBytesMax, reasonLengthMax } from '../options.js'
import type { Guests, OpenListener, Stream, StreamListener, Transport } from '../ports.js'
import { begin, clearSocket, end, hostPort, isAddress, isLocal, nowhere, protectSocket, socketPath } from './address.js'
import { Calls, callService, callTaker } from './grpc-calls.js'
import { Channel, channelOptions, rawStream, same } from './grpc-channel.js'
import { type Certificates, Identity, unprotected } from './grpc-tls.js'

/**
 * Connections to one listener; further ones are closed at once. Each of hundreds of nodes has one for its stream and
 * one for its calls.
 */
const connectionsMax = 4096

/** As in proto/asks.proto. */
const converse = '/orrery.cluster.Asks/Converse'

const service = { converse: rawStream(converse) } satisfies ServiceDefinition

const options = channelOptions(messageBytesMax)

/** Connections that do not answer, or are unused for longer than their other side keeps them, end soon. */
const serverOptions = {
  ...options,
  'grpc.max_concurrent_streams': callsPerConnectionMax,
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 10_000,
  'grpc.max_connection_idle_ms': callIdleMs + 10_000,
}

export interface GrpcTransportOptions {
  /** For TLS with every other node; absent: plain. A caller that keeps the `Identity` can renew it. */
  readonly tls?: Certificates | Identity | undefined
  /** Lets `listen` without TLS where other machines can connect: for networks that are protected otherwise. */
  readonly plaintext?: boolean
}

export interface GrpcTransport extends Transport {
  /**
   * Ends all calls, and closes the connections that are kept for them. Streams and listeners belong to their owners.
   */
  close(): void
}

/** Streams and calls over gRPC. Fails with a sentence for the operator when the given certificates are of no use. */
export function grpcTransport({ tls, plaintext = false }: GrpcTransportOptions = {}): GrpcTransport {
  // Failures are reported as the reason of a stream's end, or thrown; standard error is not ours.
  setLogVerbosity(logVerbosity.NONE)
  const identity = tls && (tls instanceof Identity ? tls : new Identity(tls))
  const calls = new Calls(identity)
  return {
    listen: async (address, guests) => {
      if (!identity && !plaintext && !isLocal(address)) throw new Error(unprotected(address))
      return listen(address, identity, guests)
    },
    dial: (address, listener) => dial(address, identity, listener),
    call: (address, message, waitMs, onReply) => calls.call(address, message, waitMs, onReply),
    close: () => calls.close(),
  }
}

async function listen(address: string, identity: Identity | undefined, guests: Guests): Promise<OpenListener> {
  const path = socketPath(address)
  const place = path === undefined ? hostPort(address) : { path }
  if (!place) throw new Error(`cannot listen on ${address}: it is neither host:port nor unix:/path`)
  if (path !== undefined) await clearSocket(path)
  const server = new Server(serverOptions)
  const arrivals = new ArrivingSockets()
  const takeCall = callTaker(guests)
  server.addService(service, {
    converse: (call: ServerDuplexStream<Buffer, Buffer>) => {
      arrivals.spoke(call.getPeer())
      serve(call, guests.onStream)
    },
  })
  server.addService(callService, {
    exchange: (call: ServerDuplexStream<Buffer, Buffer>) => {
      arrivals.spoke(call.getPeer())
      takeCall(call)
    },
  })
  const entrance = server.createConnectionInjector(ServerCredentials.createInsecure())
  const { listener, stopRenewing } = openListener(identity)
  listener.maxConnections = connectionsMax
  const sockets = new Set<Socket>()
  const hold = (socket: Socket): void => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
  }
  listener.on('connection', hold)
  // For a unix socket the file system decides which processes may connect. Such clients have no address.
  if (path === undefined) listener.on('connection', socket => arrivals.add(socket))
  if (identity) listener.on('secureConnection', hold)
  listener.on(identity ? 'secureConnection' : 'connection', socket => entrance.injectConnection(socket))
  // TLS itself reports the reason to a client that is not accepted.
  listener.on('tlsClientError', (_error: Error, socket: Socket) => socket.destroy())
  await begin(listener, address, place)
  if (path !== undefined) protectSocket(path)
  return {
    address: boundTo(listener, address),
    close: () => {
      stopRenewing()
      return end(listener, sockets, () => server.tryShutdown(() => {}))
    },
  }
}

/** A listener that shows each new connection the present certificates of `identity`. */
function openListener(identity: Identity | undefined): { readonly listener: Listener; stopRenewing(): void } {
  if (!identity) return { listener: createServer({ noDelay: true }), stopRenewing: () => {} }
  const listener = createTlsServer({ ...identity.server, noDelay: true })
  return { listener, stopRenewing: identity.onRenew(() => listener.setSecureContext(identity.server)) }
}

function boundTo(listener: Listener, address: string): string {
  const bound = listener.address()
  if (bound === null || typeof bound === 'string') return address
  return `${address.slice(0, address.lastIndexOf(':'))}:${bound.port}`
}

function serve(call: ServerDuplexStream<Buffer, Buffer>, onStream: (stream: Stream) => StreamListener): void {
  const state = { over: false }
  const listener = onStream({
    send: sender(call, state, () => listener.onDrain()),
    close: reason => {
      state.over = true
      if (reason === undefined) call.end()
      else call.emit('error', { code: status.ABORTED, details: reason.slice(0, reasonLengthMax) })
    },
  })
  const finish = (reason: string): void => {
    if (state.over) return
    state.over = true
    listener.onClosed(reason)
  }
  call.on('data', (message: Buffer) => {
    if (!state.over) listener.onMessage(message)
  })
  call.on('end', () => {
    call.end()
    finish('it has ended the conversation')
  })
  call.on('cancelled', () => finish('the connection is lost'))
  call.on('error', (error: Error) => finish(error.message))
}

function dial(address: string, identity: Identity | undefined, listener: StreamListener): Stream {
  if (!isAddress(address)) return nowhere(address, listener)
  const channel = new Channel(address, identity, options)
  const call = channel.client.makeBidiStreamRequest(converse, same, same)
  const state = { over: false }
  const release = (): void => {
    state.over = true
    channel.close()
  }
  const finish = (reason: string): void => {
    if (state.over) return
    release()
    listener.onClosed(reason)
  }
  call.on('data', (message: Buffer) => {
    if (!state.over) listener.onMessage(message)
  })
  call.on('error', (error: Error & { readonly details?: string }) =>
    finish(channel.explain(error.details ?? error.message)),
  )
  call.on('status', () => finish('it has ended the conversation'))
  return {
    send: sender(call, state, () => listener.onDrain()),
    close: reason => {
      if (reason === undefined) call.end()
      else call.cancel()
      release()
    },
  }
}

/** The `send` of a stream: counts the bytes that it holds. */
function sender(
  call: { write(message: Buffer, onWritten: () => void): boolean },
  state: { readonly over: boolean },
  onDrain: () => void,
): (message: Buffer) => boolean {
  let held = 0
  let waited = false
  return message => {
    held += message.length
    call.write(message, () => {
      held -= message.length
      if (!waited || held >= bufferBytesMax) return
      waited = false
      if (!state.over) onDrain()
    })
    waited = held >= bufferBytesMax
    return !waited
  }
}

/**
 * Connections without a stream or call yet; at the limit the one that has waited longest is closed. Hundreds of nodes
 * may start at once.
 */
export const silentConnectionsMax = 256

/** How long a connection may stay without a stream or a call. */
export const silentConnectionMsMax = 5_000

/**
 * Connections without a stream or call yet. A node opens its stream, or makes a call, as soon as it has connected. A
 * connection without either comes from another program, and must not keep nodes out. It is identified by the client's
 * address and port, which the library also reports with each stream and call.
 */
export class ArrivingSockets {
  private readonly silent = new Map<string, { readonly socket: Socket; readonly timer: NodeJS.Timeout }>()

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

  spoke(peer: string): void {
    this.forget(peer)
  }

  private forget(peer: string): void {
    clearTimeout(this.silent.get(peer)?.timer)
    this.silent.delete(peer)
  }
}

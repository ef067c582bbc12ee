// One connection to another process, with its socket in hand.
//
// The library keeps a socket until the other side lets go of it: with a stopped process, every redial would leave one
// behind. Here closing takes the socket away. The library's retries, redials, proxies and service config are off.
//
// A channel is good until its first failure; the user opens another one to try again.
//
// Not here: what goes over it (grpc-transport.ts: a stream, grpc-calls.ts: calls).

import type { Socket } from 'node:net'
import { connect } from 'node:tls'
import { ChannelCredentials, type ChannelOptions, Client, credentials, type MethodDefinition } from '@grpc/grpc-js'
import { bufferBytesMax } from '../options.js'
import { closeMs, socketPath } from './address.js'
import { type Identity, inWords, protocols, whyClosed } from './grpc-tls.js'

/** Options of both sides; the first two say how long a message may be. */
export const channelOptions = (bytesMax: number): ChannelOptions => ({
  'grpc.max_receive_message_length': bytesMax,
  'grpc.max_send_message_length': bytesMax,
  'grpc.enable_retries': 0,
  'grpc.enable_channelz': 0,
  'grpc.enable_http_proxy': 0,
  'grpc.service_config_disable_resolution': 1,
  'grpc.use_local_subchannel_pool': 1,
  'grpc-node.flow_control_window': bufferBytesMax,
})

export const same = (message: Buffer): Buffer => message

/** A method that streams messages as they are, both ways. */
export const rawStream = (path: string): MethodDefinition<Buffer, Buffer> => ({
  path,
  requestStream: true,
  responseStream: true,
  requestSerialize: same,
  requestDeserialize: same,
  responseSerialize: same,
  responseDeserialize: same,
})

/** What the library says first when a connection did not come about. */
const notConnected = 'No connection established'

export class Channel {
  readonly client: Client
  private readonly held: HeldCredentials

  /** To an address that `isAddress`; it is connected when it is used. `identity`: for TLS. */
  constructor(
    address: string,
    private readonly identity: Identity | undefined,
    options: ChannelOptions,
  ) {
    this.held = new HeldCredentials(identity)
    // The library takes what stands before a colon for a scheme: a host could be called like one.
    const target = socketPath(address) === undefined ? `dns:${address}` : address
    this.client = new Client(target, this.held, options)
  }

  explain(said: string): string {
    if (!said.startsWith(notConnected)) return said
    const { failure, reached } = this.held
    return (failure && inWords(failure)) ?? (reached ? whyClosed(this.identity) : said)
  }

  close(): void {
    this.client.close()
    setTimeout(() => this.held.letGo(), closeMs).unref()
  }
}

type Connector = ReturnType<ChannelCredentials['_createSecureConnector']>
type Connected = Awaited<ReturnType<Connector['connect']>>

/** Credentials that keep the sockets, secured or plain. */
class HeldCredentials extends ChannelCredentials {
  /** Why a connection could not be secured. */
  failure: NodeJS.ErrnoException | undefined
  /** Somebody has accepted a connection. */
  reached = false
  private readonly sockets = new Set<Socket>()
  private gone = false
  private readonly insecure = credentials.createInsecure()

  constructor(private readonly identity: Identity | undefined) {
    super()
  }

  letGo(): void {
    this.gone = true
    for (const socket of this.sockets) socket.destroy()
  }

  override _isSecure(): boolean {
    return this.identity !== undefined
  }

  override _equals(other: ChannelCredentials): boolean {
    return other === this
  }

  override _createSecureConnector(...given: Parameters<ChannelCredentials['_createSecureConnector']>): Connector {
    const connector = this.insecure._createSecureConnector(...given)
    const connectPlain = connector.connect.bind(connector)
    return {
      ...connector,
      connect: (socket: Socket) => {
        this.reached = true
        this.hold(socket)
        return this.identity ? this.secure(socket, this.identity) : connectPlain(socket)
      },
    }
  }

  private hold(socket: Socket): void {
    this.sockets.add(socket)
    socket.once('close', () => this.sockets.delete(socket))
    if (this.gone) socket.destroy()
  }

  private secure(socket: Socket, { context }: Identity): Promise<Connected> {
    return new Promise((resolve, reject) => {
      // No server name: it may not be an address, and nobody looks at it.
      const secured = connect({
        socket,
        secureContext: context,
        rejectUnauthorized: true,
        checkServerIdentity: () => undefined,
        ALPNProtocols: protocols,
      })
      this.hold(secured)
      secured.once('secureConnect', () => resolve({ socket: secured, secure: true }))
      secured.once('close', () => reject(new Error('the connection was closed')))
      // Also after the greeting: only then the other side says that it does not accept our certificate.
      secured.on('error', (error: NodeJS.ErrnoException) => {
        this.failure ??= error
        reject(error)
      })
    })
  }
}

// One connection to another process, with access to its socket.
//
// The library keeps a socket until the other side closes it: with a stopped process, every redial would leave one
// behind. Here closing destroys the socket. The library's retries, redials, proxies and service config are off.
//
// A channel is good until its first failure; the user opens another one to try again.
//
// Not here: its use (grpc-transport.ts: a stream, grpc-calls.ts: calls).

import type { Socket } from 'node:net'
import { connect } from 'node:tls'
import { ChannelCredentials, type ChannelOptions, Client, credentials, type MethodDefinition } from '@grpc/grpc-js'
import { bufferBytesMax } from '../options.js'
import { closeMs, socketPath } from './address.js'
import { type Identity, inWords, protocols, whyClosed } from './grpc-tls.js'

/** Options of both sides; the first two limit the length of a message. */
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

/** The beginning of the library's text when a connection was not established. */
const notConnected = 'No connection established'

export class Channel {
  readonly client: Client
  private readonly held: HeldCredentials

  /** To an address for which `isAddress` is true; it connects when it is used. `identity`: for TLS. */
  constructor(
    address: string,
    private readonly identity: Identity | undefined,
    options: ChannelOptions,
  ) {
    this.held = new HeldCredentials(identity)
    // The library takes a word before a colon for a scheme, and a host could have such a name.
    const target = socketPath(address) === undefined ? `dns:${address}` : address
    this.client = new Client(target, this.held, options)
  }

  explain(said: string): string {
    if (!said.startsWith(notConnected)) return said
    const { failure, reached } = this.held
    return (failure && inWords(failure)) ?? (reached ? whyClosed(this.identity) : said)
  }

  /**
   * Whether the machine has refused the connection: no process listens there. The library reports that in a text only.
   */
  isRefused(said: string): boolean {
    return said.startsWith(notConnected) && said.includes('ECONNREFUSED')
  }

  close(): void {
    this.client.close()
    setTimeout(() => this.held.destroySockets(), closeMs).unref()
  }
}

type Connector = ReturnType<ChannelCredentials['_createSecureConnector']>
type Connected = Awaited<ReturnType<Connector['connect']>>

/** Credentials that keep the sockets, secured or plain. */
class HeldCredentials extends ChannelCredentials {
  /** Why a connection could not be secured. */
  failure: NodeJS.ErrnoException | undefined
  /** A process has accepted a connection. */
  reached = false
  private readonly sockets = new Set<Socket>()
  private gone = false
  private readonly insecure = credentials.createInsecure()

  constructor(private readonly identity: Identity | undefined) {
    super()
  }

  destroySockets(): void {
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
      // No server name: it may not be an address, and neither side checks it.
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
      // Also after the handshake: only then the other side reports that it does not accept our certificate.
      secured.on('error', (error: NodeJS.ErrnoException) => {
        this.failure ??= error
        reject(error)
      })
    })
  }
}

// Streams over gRPC, on unix sockets and TCP: the only file that knows the library.
//
// Every dialed stream has a connection of its own and none of the library's habits: no retries, since it would write asks a second time; no
// redials of its own, no proxies, no names from the service config. A message is a frame's bytes; nothing is coded here.
//
// How much a stream takes is counted in bytes here, since the library counts messages, from bytes to megabytes each.

import type { Socket } from 'node:net'
import {
  ChannelCredentials,
  type ChannelOptions,
  Client,
  credentials,
  logVerbosity,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServiceDefinition,
  setLogVerbosity,
  status,
} from '@grpc/grpc-js'
import { messageBytesMax } from './options.js'
import type { Listening, Stream, StreamListener, Transport } from './ports.js'
import { clearSocket, protectSocket, socketPath } from './unix-socket.js'

/** Bytes that a stream may hold before it asks to wait: enough to keep the wire busy, little enough that what waits can still be taken back. */
const bufferBytesMax = 1024 * 1024

/** How long streams and connections may take to end in peace. */
const closeMs = 500

/** Characters of a reason that goes to the other side. */
const reasonLengthMax = 200

const same = (message: Buffer): Buffer => message

/** As in proto/asks.proto. */
const converse = '/orrery.cluster.Asks/Converse'

const service = {
  converse: {
    path: converse,
    requestStream: true,
    responseStream: true,
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  },
} satisfies ServiceDefinition

const options: ChannelOptions = {
  'grpc.max_receive_message_length': messageBytesMax,
  'grpc.max_send_message_length': messageBytesMax,
  'grpc.enable_retries': 0,
  'grpc.enable_channelz': 0,
  'grpc.enable_http_proxy': 0,
  'grpc.service_config_disable_resolution': 1,
  'grpc.use_local_subchannel_pool': 1,
  'grpc.max_concurrent_streams': 1,
  'grpc-node.flow_control_window': bufferBytesMax,
}

/** Connections that do not answer, or carry nothing, are no burden for long. */
const serverOptions: ChannelOptions = {
  ...options,
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 10_000,
  'grpc.max_connection_idle_ms': 10_000,
}

export const grpcTransport: Transport = { listen, dial }

async function listen(address: string, onStream: (stream: Stream) => StreamListener): Promise<Listening> {
  // What goes wrong is told as the reason of a stream's end, or thrown; standard error is not ours.
  setLogVerbosity(logVerbosity.NONE)
  const path = socketPath(address)
  if (path !== undefined) await clearSocket(path)
  const server = new Server(serverOptions)
  server.addService(service, { converse: (call: ServerDuplexStream<Buffer, Buffer>) => serve(call, onStream) })
  const port = await bind(server, address)
  if (path !== undefined) protectSocket(path)
  return {
    address: path === undefined ? `${address.slice(0, address.lastIndexOf(':'))}:${port}` : address,
    close: () => shutDown(server),
  }
}

function bind(server: Server, address: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(address, ServerCredentials.createInsecure(), (error, port) => {
      if (error) reject(new Error(`cannot listen on ${address}: ${error.message}`, { cause: error }))
      else resolve(port)
    })
  })
}

function shutDown(server: Server): Promise<void> {
  return new Promise(resolve => {
    const impatient = setTimeout(() => server.forceShutdown(), closeMs)
    server.tryShutdown(() => {
      clearTimeout(impatient)
      resolve()
    })
  })
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

function dial(address: string, listener: StreamListener): Stream {
  setLogVerbosity(logVerbosity.NONE)
  const plain = new PlainCredentials()
  const client = new Client(address, plain, options)
  const call = client.makeBidiStreamRequest(converse, same, same)
  const state = { over: false }
  const letGo = (): void => {
    state.over = true
    client.close()
    setTimeout(() => plain.letGo(), closeMs).unref()
  }
  const finish = (reason: string): void => {
    if (state.over) return
    letGo()
    listener.onClosed(reason)
  }
  call.on('data', (message: Buffer) => {
    if (!state.over) listener.onMessage(message)
  })
  call.on('error', (error: Error & { readonly details?: string }) => finish(error.details ?? error.message))
  call.on('status', () => finish('it has ended the conversation'))
  return {
    send: sender(call, state, () => listener.onDrain()),
    close: reason => {
      if (reason === undefined) call.end()
      else call.cancel()
      letGo()
    },
  }
}

/**
 * Credentials that protect nothing, and keep the socket. The library ends a socket in peace only, and waits for the other side: with a
 * process that is stopped, every redial would leave one behind.
 */
class PlainCredentials extends ChannelCredentials {
  private socket: Socket | undefined
  private gone = false
  private readonly insecure = credentials.createInsecure()

  letGo(): void {
    this.gone = true
    this.socket?.destroy()
  }

  override _isSecure(): boolean {
    return false
  }

  override _equals(other: ChannelCredentials): boolean {
    return other === this
  }

  override _createSecureConnector(...given: Parameters<ChannelCredentials['_createSecureConnector']>) {
    const connector = this.insecure._createSecureConnector(...given)
    return {
      ...connector,
      connect: (socket: Socket) => {
        this.socket = socket
        if (this.gone) socket.destroy()
        return connector.connect(socket)
      },
    }
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

// Streams between processes of one machine: messages on a unix socket as they are, without gRPC.
//
//   message   u32 length, little endian | its bytes
//   reason    u32 length, its highest bit set | why the stream is torn down, UTF-8; nothing follows
//
// [hot] A message there and one back cost 33 us of CPU in both processes together, and 113 us over gRPC (150 and 300
// bytes, one at a time, medians on a shared machine; with 16 at a time 12 and 45). Between workers nearly every request
// of a client is such a pair. Workers do not need gRPC's features for other machines: only this user can open the
// socket, and both sides are one program. The promises of a stream are the same.
//
// Not here: calls, which workers do not make; checks of the path (address.ts).

import { connect, createServer, type Socket } from 'node:net'
import { bufferBytesMax, messageBytesMax, reasonLengthMax } from '../options.js'
import type { Guests, OpenListener, Stream, StreamListener, Transport } from '../ports.js'
import { barePath, begin, clearSocket, closeMs, end, isBareAddress, nowhere, protectSocket } from './address.js'

/**
 * Connections to one listener; further ones are closed at once. Workers have one each, and more while they dial again.
 */
const connectionsMax = 256

const headBytes = 4
const reasonMark = 0x8000_0000

/** Messages up to this size are copied behind their head: a copy costs less than a second buffer for the socket. */
const copiedBytesMax = 16 * 1024

export const socketTransport: Transport = {
  listen,
  dial,
  call: (_address, _message, _waitMs, onReply) =>
    void setImmediate(() => onReply(undefined, 'there are no calls over a bare socket')),
}

async function listen(address: string, guests: Guests): Promise<OpenListener> {
  const path = barePath(address)
  if (path === undefined) throw new Error(`cannot listen on ${address}: it is not socket:/path`)
  await clearSocket(path)
  const sockets = new Set<Socket>()
  const listener = createServer(socket => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    const stream = new SocketStream(socket)
    stream.listener = guests.onStream(stream)
  })
  listener.maxConnections = connectionsMax
  await begin(listener, address, { path })
  protectSocket(path)
  return { address, close: () => end(listener, sockets) }
}

function dial(address: string, listener: StreamListener): Stream {
  const path = barePath(address)
  if (path === undefined || !isBareAddress(address)) return nowhere(address, listener)
  const stream = new SocketStream(connect(path))
  stream.listener = listener
  return stream
}

class SocketStream implements Stream {
  listener: StreamListener | undefined
  private isOver = false
  /** `send` was false. */
  private isFull = false
  /** The bytes received so far of an incomplete message. At least `missing` more bytes are needed to continue. */
  private parts: Buffer[] = []
  private missing = headBytes
  private failure = 'the connection is lost'

  constructor(private readonly socket: Socket) {
    socket.on('data', (chunk: Buffer) => this.onChunk(chunk))
    socket.on('drain', () => this.onDrain())
    socket.on('error', ({ message }) => {
      this.failure = message
    })
    socket.once('end', () => this.finish('it has ended the conversation'))
    socket.once('close', () => this.finish(this.failure))
  }

  // [hot] Once per frame.
  send(message: Buffer): boolean {
    if (this.isOver) return true
    this.write(message.length, message)
    this.isFull = this.socket.writableLength >= bufferBytesMax
    return !this.isFull
  }

  close(reason?: string): void {
    if (this.isOver) return
    if (reason !== undefined) {
      const text = Buffer.from(reason.slice(0, reasonLengthMax))
      this.write(reasonMark + text.length, text)
    }
    this.isOver = true
    this.socket.end()
    setTimeout(() => this.socket.destroy(), closeMs).unref()
  }

  private write(head: number, bytes: Buffer): void {
    const { socket } = this
    const isCopied = bytes.length <= copiedBytesMax
    const first = Buffer.allocUnsafe(isCopied ? headBytes + bytes.length : headBytes)
    first.writeUInt32LE(head)
    if (isCopied) {
      first.set(bytes, headBytes)
      return void socket.write(first)
    }
    socket.cork()
    socket.write(first)
    socket.write(bytes)
    socket.uncork()
  }

  private onDrain(): void {
    if (!this.isFull || this.isOver) return
    this.isFull = false
    this.listener?.onDrain()
  }

  // [hot] Once per read of the socket: nearly always one whole frame, or several.
  private onChunk(chunk: Buffer): void {
    if (chunk.length < this.missing) {
      this.parts.push(chunk)
      this.missing -= chunk.length
      return
    }
    let bytes = chunk
    if (this.parts.length > 0) {
      bytes = Buffer.concat([...this.parts, chunk])
      this.parts = []
    }
    let at = 0
    let needed = headBytes
    while (bytes.length - at >= headBytes && !this.isOver) {
      const head = bytes.readUInt32LE(at)
      const length = head % reasonMark
      if (length > messageBytesMax) return this.refuse()
      needed = headBytes + length
      if (bytes.length - at < needed) break
      const message = bytes.subarray(at + headBytes, at + needed)
      at += needed
      needed = headBytes
      if (head >= reasonMark) this.finish(message.toString('utf8', 0, 4 * reasonLengthMax))
      else this.listener?.onMessage(message)
    }
    const rest = bytes.length - at
    if (rest > 0) this.parts.push(bytes.subarray(at))
    this.missing = needed - rest
  }

  private refuse(): void {
    this.finish('it sent something that is no message')
  }

  private finish(reason: string): void {
    if (this.isOver) return
    this.isOver = true
    this.socket.destroy()
    this.listener?.onClosed(reason)
  }
}

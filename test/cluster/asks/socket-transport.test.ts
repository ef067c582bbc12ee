// Streams on bare sockets: valid and invalid messages, ends and their reasons, and full sockets. The behaviour that
// they share with gRPC: asks.test.ts.

import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { socketTransport } from '../../../cluster/asks/socket-transport.js'
import { bufferBytesMax, messageBytesMax } from '../../../cluster/options.js'
import type { Stream, StreamListener } from '../../../cluster/ports.js'
import { inTime, socketDirectory } from '../nodes.js'

/** The events of a stream. */
class RecordingListener implements StreamListener {
  readonly messages: string[] = []
  drains = 0
  reason: string | undefined
  private look = (): void => {}

  onMessage(message: Buffer): void {
    this.messages.push(message.toString())
    this.look()
  }

  onDrain(): void {
    this.drains++
    this.look()
  }

  onClosed(reason: string): void {
    this.reason = reason
    this.look()
  }

  until(what: string, holds: (listener: RecordingListener) => boolean): Promise<void> {
    return inTime(what, resolve => {
      this.look = () => {
        if (holds(this)) resolve(undefined)
      }
      this.look()
    })
  }
}

const placeOf = (t: Test): { readonly path: string; readonly address: string } => {
  const path = join(socketDirectory(t), 's')
  return { path, address: `socket:${path}` }
}

/** A stream and its other side. */
async function pair(
  t: Test,
): Promise<{ near: Stream; far: Stream; nearListener: RecordingListener; farListener: RecordingListener }> {
  const { address } = placeOf(t)
  const [nearListener, farListener] = [new RecordingListener(), new RecordingListener()]
  let far: Stream | undefined
  const listening = await socketTransport.listen(address, {
    onStream: stream => {
      far = stream
      return farListener
    },
  })
  t.teardown(() => listening.close())
  const near = socketTransport.dial(address, nearListener)
  near.send(Buffer.from('first'))
  await farListener.until('the first message', ({ messages }) => messages.length === 1)
  return { near, far: far!, nearListener, farListener }
}

/** A stream whose other side is a socket that the test writes to, and the events of the stream. */
async function raw(t: Test): Promise<{ socket: Socket; listener: RecordingListener }> {
  const { path, address } = placeOf(t)
  const listener = new RecordingListener()
  const listening = await socketTransport.listen(address, { onStream: () => listener })
  t.teardown(() => listening.close())
  const socket = connect(path)
  socket.on('error', () => {})
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  return { socket, listener }
}

const framed = (text: string): Buffer => {
  const bytes = Buffer.alloc(4 + Buffer.byteLength(text))
  bytes.writeUInt32LE(bytes.length - 4)
  bytes.write(text, 4)
  return bytes
}

t.test('messages arrive whole and in order, wherever the bytes are cut', async t => {
  const texts = ['one', '', 'x'.repeat(70_000), 'fóur']
  const bytes = Buffer.concat(texts.map(framed))
  const cuts = [1, 2, 3, 5, 6, 7, 8, 11, 13, 15, 40_000, bytes.length - 3, bytes.length - 1]
  const { socket, listener } = await raw(t)
  for (const [index, cut] of [...cuts, bytes.length].entries()) {
    socket.write(bytes.subarray(cuts[index - 1] ?? 0, cut))
    await new Promise(resolve => setImmediate(resolve))
  }
  await listener.until('all messages', ({ messages }) => messages.length === texts.length)
  t.strictSame(
    listener.messages.map(message => message.length),
    texts.map(text => text.length),
  )
  t.ok(listener.messages.every((message, at) => message === texts[at]))
})

t.test('a length beyond the limit, as the first words of gRPC are, ends the stream', async t => {
  const tooLong = Buffer.alloc(4)
  tooLong.writeUInt32LE(messageBytesMax + 1)
  for (const words of [tooLong, Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')]) {
    const { socket, listener } = await raw(t)
    const closed = once(socket, 'close')
    socket.resume().write(words)
    await listener.until('the end', ({ reason }) => reason !== undefined)
    t.equal(listener.reason, 'it sent something that is no message')
    await closed
  }
})

t.test('a closed stream ends on the other side, after all sent messages', async t => {
  const { near, farListener, nearListener } = await pair(t)
  near.send(Buffer.from('last'))
  near.close()
  await farListener.until('the end', ({ reason }) => reason !== undefined)
  t.strictSame(farListener.messages, ['first', 'last'])
  t.equal(farListener.reason, 'it has ended the conversation')
  t.equal(nearListener.reason, undefined, 'who has closed is told nothing')
})

t.test('the reason for closing a stream reaches the other side', async t => {
  const { far, nearListener, farListener } = await pair(t)
  far.close('because')
  await nearListener.until('the end', ({ reason }) => reason !== undefined)
  t.equal(nearListener.reason, 'because')
  t.equal(farListener.reason, undefined)
})

t.test('a sender that is too fast for the other side must wait, and is called when there is room', async t => {
  const { path, address } = placeOf(t)
  const server = createServer({ pauseOnConnect: true })
  const connected = once(server, 'connection') as Promise<[Socket]>
  server.listen(path)
  await once(server, 'listening')
  const listener = new RecordingListener()
  const stream = socketTransport.dial(address, listener)
  const [socket] = await connected
  t.teardown(() => {
    socket.destroy()
    server.close()
  })
  const message = Buffer.alloc(bufferBytesMax / 4)
  let sent = 1
  while (stream.send(message)) sent++
  t.ok(sent >= 4, `${sent} messages before it is full`)
  t.equal(listener.drains, 0)
  socket.resume()
  await listener.until('room', ({ drains }) => drains > 0)
  t.equal(listener.drains, 1)
  stream.close()
})

t.test('for a path without a server, and for an invalid address, the reason is reported', async t => {
  const cases = [
    [placeOf(t).address, /ENOENT/],
    ['socket:here', /^not an address: "socket:here"$/],
    ['127.0.0.1:1', /^not an address/],
  ] as const
  for (const [address, reason] of cases) {
    const listener = new RecordingListener()
    socketTransport.dial(address, listener)
    await listener.until('the reason', one => one.reason !== undefined)
    t.match(listener.reason, reason, address)
  }
  await t.rejects(
    socketTransport.listen('127.0.0.1:0', { onStream: () => new RecordingListener() }),
    /it is not socket:\/path/,
  )
})

t.test('there are no calls', async t => {
  const [reply, reason] = await new Promise<[Buffer | undefined, string]>(resolve =>
    socketTransport.call('socket:/x', Buffer.alloc(0), 1000, (reply, reason) => resolve([reply, reason])),
  )
  t.equal(reply, undefined)
  t.match(reason, /no calls/)
})

// Silent connections at the port of a cluster: they are few, they do not stay, and nodes connect beside them.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import {
  type GrpcTransportOptions,
  grpcTransport,
  silentConnectionMsMax,
  silentConnectionsMax,
} from '../../../cluster/asks/grpc-transport.js'
import type { Guests, Stream } from '../../../cluster/ports.js'
import { Authority } from '../certificates.js'
import { inTime } from '../nodes.js'

/** Echoes messages. */
const mirror: Guests = {
  onStream: stream => ({ onMessage: message => stream.send(message), onDrain: () => {}, onClosed: () => {} }),
  onCall: (message, onReply) => onReply(message),
}

async function listen(t: Test, options: GrpcTransportOptions): Promise<string> {
  const listening = await grpcTransport(options).listen('127.0.0.1:0', mirror)
  t.teardown(() => listening.close())
  return listening.address
}

/** A connection that sends only `word`, and then nothing. */
async function silent(t: Test, address: string, word = ''): Promise<Socket> {
  const socket = connect(Number(address.split(':')[1]), '127.0.0.1')
  socket.on('error', () => {}).on('data', () => {})
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  if (word !== '') socket.write(word)
  return socket
}

/** An open stream, and the words that come back on it. */
function talk(t: Test, options: GrpcTransportOptions, address: string) {
  const transport = grpcTransport(options)
  t.teardown(() => transport.close())
  let onWord: (word: string) => void = () => {}
  const stream: Stream = transport.dial(address, {
    onMessage: message => onWord(message.toString()),
    onDrain: () => {},
    onClosed: reason => onWord(`closed: ${reason}`),
  })
  const say = (word: string) =>
    inTime<string>('an answer', resolve => {
      onWord = resolve
      stream.send(Buffer.from(word))
    })
  return { say, close: () => stream.close() }
}

/** The beginning of HTTP/2, and an empty frame of settings. */
const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0'

for (const kind of ['plain', 'with TLS'] as const) {
  const optionsFor = (t: Test): GrpcTransportOptions => (kind === 'plain' ? {} : { tls: new Authority(t).member() })

  t.test(`${kind}: connections without a stream or a call are closed, those with one stay`, async t => {
    const options = optionsFor(t)
    const address = await listen(t, options)
    const node = talk(t, options, address)
    t.equal(await node.say('before'), 'before')
    const startedMs = performance.now()
    const quiet = await Promise.all([silent(t, address), silent(t, address, preface), silent(t, address, 'PRI')])
    await Promise.all(quiet.map(socket => socket.closed || once(socket, 'close')))
    const tookMs = performance.now() - startedMs
    t.ok(tookMs < 3 * silentConnectionMsMax, `closed after ${tookMs} ms`)
    t.equal(await node.say('after'), 'after')
    node.close()
  })

  t.test(`${kind}: the one that has waited longest goes for another one, and nodes come in`, async t => {
    const options = optionsFor(t)
    const address = await listen(t, options)
    const node = talk(t, options, address)
    t.equal(await node.say('before'), 'before')
    const crowd: Socket[] = []
    const startedMs = performance.now()
    for (let nth = 0; nth < silentConnectionsMax + 50; nth++) crowd.push(await silent(t, address))
    for (const first of crowd.slice(0, 50)) if (!first.closed) await once(first, 'close')
    const tookMs = performance.now() - startedMs
    t.ok(tookMs < 3 * silentConnectionMsMax, `closed after ${tookMs} ms`)
    const other = talk(t, options, address)
    t.equal(await other.say('beside them'), 'beside them')
    t.equal(await node.say('after'), 'after')
    other.close()
    node.close()
  })
}

// Which peers may connect: with TLS those with a certificate of the cluster's CA, for streams and calls alike; without
// it, only this machine.

import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import t, { type Test } from 'tap'
import { type GrpcTransportOptions, grpcTransport } from '../../cluster/asks/grpc-transport.js'
import { type Certificates, Identity, type Peer } from '../../cluster/index.js'
import type { Guests } from '../../cluster/ports.js'
import { Authority } from './certificates.js'
import { ask, echo, inTime, openFiles, socketDirectory, startNode, untilLink, Wire } from './nodes.js'

/** Echoes messages. */
const mirror: Guests = {
  onStream: stream => ({ onMessage: message => stream.send(message), onDrain: () => {}, onClosed: () => {} }),
  onCall: (message, onReply) => onReply(message),
}

async function listen(t: Test, options: GrpcTransportOptions, address = '127.0.0.1:0'): Promise<string> {
  const listening = await grpcTransport(options).listen(address, mirror)
  t.teardown(() => listening.close())
  return listening.address
}

/** The outcome of a stream and of a call: the word that was sent, or the reason of the failure. */
function attempts(t: Test, options: GrpcTransportOptions, address: string): Promise<readonly [string, string]> {
  const transport = grpcTransport(options)
  t.teardown(() => transport.close())
  const stream = inTime<string>('the end of a stream', resolve => {
    const dialed = transport.dial(address, {
      onMessage: message => {
        resolve(message.toString())
        dialed.close()
      },
      onDrain: () => {},
      onClosed: resolve,
    })
    dialed.send(Buffer.from('word'))
  })
  const call = inTime<string>('the end of a call', resolve =>
    transport.call(address, Buffer.from('word'), 10_000, (reply, reason) => resolve(reply?.toString() ?? reason)),
  )
  return Promise.all([stream, call])
}

t.test('members of one CA talk with each other, with any names and addresses', async t => {
  const authority = new Authority(t)
  for (const address of ['127.0.0.1:0', `unix:${join(socketDirectory(t), 's')}`]) {
    const at = await listen(t, { tls: authority.member() }, address)
    t.strictSame(await attempts(t, { tls: authority.member() }, at), ['word', 'word'], address)
  }
})

t.test('other nodes are rejected, each with the reason', async t => {
  const [ours, theirs] = [new Authority(t), new Authority(t)]
  const stranger = theirs.member()
  const cases: readonly [says: string, server: Certificates | undefined, client: Certificates | undefined, RegExp][] = [
    ['two CAs', ours.member(), stranger, /^its certificate is not of this cluster's CA$/],
    ['a certificate of another CA', ours.member(), { ...stranger, ca: ours.ca }, /perhaps it does not accept the cert/],
    ['a certificate that has expired', ours.member(), ours.member(-1), /the certificate of this node has expired$/],
    ['a server whose certificate has expired', ours.member(-1), ours.member(), /^its certificate has expired$/],
    ['plain words to TLS', ours.member(), undefined, /perhaps it wants TLS$/],
    ['TLS to who speaks plainly', undefined, ours.member(), /^it does not speak TLS$/],
  ]
  for (const [says, server, client, reason] of cases) {
    const at = await listen(t, { tls: server })
    const beganMs = performance.now()
    for (const outcome of await attempts(t, { tls: client }, at)) t.match(outcome, reason, says)
    const tookMs = performance.now() - beganMs
    t.ok(tookMs < 1000, `within the time of a greeting: ${tookMs} ms`)
  }
})

t.test('a renewal is for new connections, in both directions, and those that are open go on', async t => {
  const [before, after] = [new Authority(t), new Authority(t)]
  const [served, own] = [new Identity(before.member()), new Identity(before.member())]
  const at = await listen(t, { tls: served })
  const transport = grpcTransport({ tls: own })
  t.teardown(() => transport.close())
  const lines: string[] = []
  let wake = (): void => {}
  const stream = transport.dial(at, {
    onMessage: message => {
      lines.push(message.toString())
      wake()
    },
    onDrain: () => {},
    onClosed: reason => t.fail(reason),
  })
  const say = (word: string) =>
    inTime<void>('an echo', resolve => {
      wake = resolve
      stream.send(Buffer.from(word))
    })
  await say('before')

  served.renew(after.member())
  t.strictSame(await attempts(t, { tls: after.member() }, at), ['word', 'word'])
  const notOurs = "its certificate is not of this cluster's CA"
  t.strictSame(await attempts(t, { tls: own }, at), [notOurs, notOurs])
  own.renew(after.member())
  t.strictSame(await attempts(t, { tls: own }, at), ['word', 'word'])
  const wrong = { ...after.member(), key: after.member().key }
  t.throws(() => own.renew(wrong), /^the cluster's certificate, key and CA cannot be used: /)
  t.strictSame(await attempts(t, { tls: own }, at), ['word', 'word'], 'and the old ones go on')
  await say('after')
  t.strictSame(lines, ['before', 'after'])
  stream.close()
})

t.test('without a certificate, or with an old version of TLS, no node gets through', async t => {
  const authority = new Authority(t)
  const { cert, key, ca } = authority.member()
  const at = await listen(t, { tls: authority.member() })
  const cases = [
    ['no certificate', { ca }],
    ['TLS 1.1', { ca, cert, key, minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'ALL@SECLEVEL=0' }],
  ] as const
  for (const [says, options] of cases) {
    const socket = connectTls({ ...options, port: Number(at.split(':')[1]), checkServerIdentity: () => undefined })
    socket.on('secureConnect', () => socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'))
    let received = 0
    socket.on('data', ({ length }) => {
      received += length
    })
    const failure = new Promise(resolve => socket.on('error', error => resolve((error as NodeJS.ErrnoException).code)))
    t.match(await failure, /^ERR_SSL_.*(CERTIFICATE_REQUIRED|VERSION|PROTOCOL)/, says)
    t.equal(received, 0)
  }
})

t.test('noise at the door changes nothing for members', async t => {
  const authority = new Authority(t)
  const at = await listen(t, { tls: authority.member() })
  for (const noise of ['GET / HTTP/1.1\r\n\r\n', '\x16\x03\x01\x02\x00\x01', '\x00'.repeat(1000), '']) {
    const socket = connect(Number(at.split(':')[1]), '127.0.0.1')
    socket.on('error', () => {})
    await once(socket, 'connect')
    socket.end(noise, 'latin1')
  }
  t.strictSame(await attempts(t, { tls: authority.member() }, at), ['word', 'word'])
})

t.test('closing does not wait for a silent connection', async t => {
  for (const tls of [new Authority(t).member(), undefined]) {
    const listening = await grpcTransport({ tls }).listen('127.0.0.1:0', mirror)
    const socket = connect(Number(listening.address.split(':')[1]), '127.0.0.1')
    t.teardown(() => socket.destroy())
    socket.on('error', () => {})
    await once(socket, 'connect')
    const beganMs = performance.now()
    await listening.close()
    const tookMs = performance.now() - beganMs
    t.ok(tookMs < 2000, `closed after ${tookMs} ms`)
  }
})

t.test('asks go over TLS, requests of 30 MB too', async t => {
  const authority = new Authority(t)
  const unused = '127.0.0.1:0'
  const start = (name: string, peer: Peer) =>
    startNode(t, { name, address: unused }, [peer], echo, { askDeadlineMs: 20_000 }, { tls: authority.member() })
  const b = await start('b', { name: 'a', address: unused })
  const a = await start('a', { name: 'b', address: b.address })
  await untilLink(a, 'b')
  const request = Buffer.alloc(30_000_000, 'request')
  const outcome = await ask(a, 'b', 0, request)
  t.ok(outcome.kind === 'reply' && outcome.reply.equals(request), outcome.kind)
})

t.test('a link between two CAs stays down with the reason, retries slowly, and leaves no sockets behind', async t => {
  const [ours, theirs] = [{ tls: new Authority(t).member() }, { tls: new Authority(t).member() }]
  const hasty = { pingMs: 20, silentMs: 200, abandonMs: 200, redialMsMin: 20, redialMsMax: 20 }
  const b = await startNode(
    t,
    { name: 'b', address: '127.0.0.1:0' },
    [{ name: 'a', address: '127.0.0.1:0' }],
    echo,
    {},
    ours,
  )
  const wire = await Wire.to(t, b.address)
  const peers = [{ name: 'b', address: wire.address }]
  const a = await startNode(t, { name: 'a', address: '127.0.0.1:0' }, peers, echo, hasty, theirs)
  const files: number[] = []
  while (wire.dialed < 60) {
    const dialed = wire.dialed
    while (wire.dialed === dialed) await new Promise(resolve => setTimeout(resolve, 2))
    files.push(openFiles())
  }
  t.ok(files.at(-1)! - files[20]! < 8, `open files: ${files}`)
  t.notOk(a.reachable('b') || b.reachable('a'))
  const reason = "node b cannot be reached: its certificate is not of this cluster's CA"
  t.strictSame(await ask(a, 'b', 0, ''), { kind: 'unavailable', reason })
  const [dialed, beganMs] = [wire.dialed, performance.now()]
  while (performance.now() - beganMs < 500) await new Promise(resolve => setTimeout(resolve, 20))
  // A timer may run a millisecond early. On a busy machine the loop above takes longer, and counts some dials from
  // before it.
  const [dials, lastedMs] = [wire.dialed - dialed, performance.now() - beganMs]
  t.ok(dials <= lastedMs / 9 + 10, `${dials} dials in ${lastedMs.toFixed(0)} ms, half of 20 ms apart at least`)
})

t.test('without TLS no node listens where other machines can connect, unless an option allows it', async t => {
  const { tls } = { tls: new Authority(t).member() }
  for (const address of ['0.0.0.0:0', '[::]:0', 'some.host:0', '192.0.2.1:0', '127.0.0.1.example:0']) {
    await t.rejects(
      grpcTransport().listen(address, mirror),
      /without TLS .* -clusterCert.* or -clusterInsecure/,
      address,
    )
  }
  for (const address of ['127.0.0.1:0', 'localhost:0']) t.ok(await listen(t, {}, address))
  t.match(await listen(t, { plaintext: true }, '0.0.0.0:0'), /^0\.0\.0\.0:[1-9]/)
  t.match(await listen(t, { tls }, '0.0.0.0:0'), /^0\.0\.0\.0:[1-9]/)
})

t.test('an invalid address is reported', async t => {
  await t.rejects(grpcTransport({ plaintext: true }).listen('nowhere', mirror), /neither host:port nor unix:\/path/)
})

t.test('invalid certificates, or those of another key, are reported, without the key', async t => {
  const authority = new Authority(t)
  const [one, other] = [authority.member(), authority.member()]
  for (const wrong of [
    { ...one, cert: 'x' },
    { ...one, key: 'secret' },
    { ...one, ca: '' },
    { ...one, key: other.key },
  ]) {
    t.throws(() => grpcTransport({ tls: wrong }), /^the cluster's certificate, key and CA cannot be used: (?!.*secret)/)
  }
})

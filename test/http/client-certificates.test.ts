// Certificates that clients show to the node:http front: which connections it serves, what it reports of them, and when
// they end.

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import t, { type Test } from 'tap'
import type { FrontHandler, FrontOptions } from '../../src/http/front.js'
import { openNodeFront } from '../../src/http/node-front.js'
import { openUwsFront } from '../../src/http/uws-front.js'
import type { DropReason } from '../../src/ports.js'
import { ClientAuthority } from '../support/client-authority.js'
import { certificate, plainOptions } from './front-contract.js'
import { Wire } from './wire.js'

t.setTimeout(120_000)

const authority = new ClientAuthority(t)
const other = new ClientAuthority(t)
const ours = authority.issue('/O=City/CN=gateway-9')
const theirs = other.issue('/O=City/CN=gateway-9')

/** Answers with the subject of the certificate. */
const greet: FrontHandler['onRequest'] = exchange => {
  exchange.reply(200, [], exchange.certificate?.subject ?? 'nothing')
  return undefined
}

async function serve(t: Test, isRequired: boolean, given: Partial<FrontOptions> = {}, onRequest = greet) {
  const files = certificate(t)
  const tls = { ...files, clients: { caFile: authority.caFile, isRequired } }
  const dropped: DropReason[] = []
  const onDropped = (reason: DropReason): void => void dropped.push(reason)
  const front = await openNodeFront({ ...plainOptions, tls, onDropped, ...given }, { onRequest })
  const port = await front.listen()
  t.teardown(() => front.close(0))
  const [key, cert] = [readFileSync(files.keyFile), readFileSync(files.certFile)]
  const trust = (...authorities: readonly ClientAuthority[]): void =>
    front.renewTls({ key, cert, clientCa: Buffer.concat(authorities.map(one => one.ca)) })
  return { front, port, dropped, trust, key, cert }
}

async function ask(wire: Wire): Promise<string> {
  await wire.request('GET /')
  return (await wire.answer()).body
}

/** The answer on a new connection; `refused`: it ends before there is one. */
async function asked(port: number, shown: ConnectionOptions = {}): Promise<string> {
  try {
    const wire = await Wire.overTls(port, shown)
    try {
      return await ask(wire)
    } finally {
      wire.leave()
    }
  } catch {
    return 'refused'
  }
}

const gateway = 'O=City\nCN=gateway-9'

for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const)
  t.test(`who is served, over ${maxVersion}`, async t => {
    const { port, dropped } = await serve(t, true)
    t.equal(await asked(port, { maxVersion, ...ours }), gateway)
    t.equal(await asked(port, { maxVersion }), 'refused', 'nothing where something is required')
    t.equal(await asked(port, { maxVersion, ...theirs }), 'refused', 'of another authority of the same name')
    const ended = authority.issue('/CN=ended', { endsMs: Date.now() - 1000 })
    t.equal(await asked(port, { maxVersion, ...ended }), 'refused', 'one that has ended')
    t.strictSame(dropped, ['certificate', 'certificate', 'certificate'])

    const open = await serve(t, false)
    t.equal(await asked(open.port, { maxVersion, ...ours }), gateway)
    t.equal(await asked(open.port, { maxVersion }), 'nothing')
    t.equal(await asked(open.port, { maxVersion, ...theirs }), 'refused', 'never as one without')
    t.strictSame(open.dropped, ['certificate'])
  })

t.test('a client may send the authority between its own and the trusted one', async t => {
  const between = authority.below('between')
  const { port } = await serve(t, true)
  t.equal(await asked(port, between.issue('/CN=deep')), 'CN=deep')
  t.equal(await asked(port, other.below('between').issue('/CN=deep')), 'refused')
})

t.test('the requests of a connection have one certificate', async t => {
  const seen = new Set<unknown>()
  const { port } = await serve(t, false, {}, exchange => {
    seen.add(exchange.certificate)
    return greet(exchange)
  })
  const wires = [await Wire.overTls(port, ours), await Wire.overTls(port, ours)]
  for (let nth = 0; nth < 3; nth++) for (const wire of wires) await ask(wire)
  t.equal(seen.size, 2)
  for (const wire of wires) wire.leave()
})

/** Two connections from one port of this machine. Another process may take a port that was free, so some are tried. */
async function fromOnePort(port: number, triesLeft = 20): Promise<readonly [Socket, Socket]> {
  const probe = await Wire.to(port)
  const localPort = probe.localPort!
  probe.reset()
  await probe.closed
  const open = async (host: string): Promise<Socket> => {
    const socket = connect({ port, host, localAddress: '127.0.0.1', localPort })
    await once(socket, 'connect')
    return socket
  }
  try {
    return [await open('127.0.0.1'), await open('127.0.0.2')]
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || triesLeft === 0) throw error
    return fromOnePort(port, triesLeft - 1)
  }
}

t.test('connections from one port of a client to two addresses are kept apart', async t => {
  const { port } = await serve(t, false, { host: '0.0.0.0' })
  const [one, two] = await fromOnePort(port)
  const shown = await Wire.overTls(port, { socket: one, ...ours })
  const hidden = await Wire.overTls(port, { socket: two })
  for (let nth = 0; nth < 2; nth++) {
    t.equal(await ask(hidden), 'nothing')
    t.equal(await ask(shown), gateway)
  }
  for (const wire of [shown, hidden]) wire.leave()
})

for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const)
  t.test(`no session is resumed, so a certificate is shown each time, over ${maxVersion}`, async t => {
    const { port } = await serve(t, false)
    const first = await Wire.overTls(port, { maxVersion, ...ours })
    t.equal(await ask(first), gateway)
    first.leave()
    const { session } = first
    t.ok(session)
    const again = await Wire.overTls(port, { maxVersion, session, ...ours })
    t.equal(await ask(again), gateway)
    t.notOk(again.isResumed)
    again.leave()
    t.equal(await asked(port, { maxVersion, session }), 'nothing')
    const closed = await serve(t, true)
    t.equal(await asked(closed.port, { maxVersion, session }), 'refused')
  })

t.test('new authorities count for new connections, and end those that they do not verify', async t => {
  const between = authority.below('between')
  const { port, trust, dropped } = await serve(t, false)
  const [kept, deep, plain] = [
    await Wire.overTls(port, ours),
    await Wire.overTls(port, between.issue('/CN=deep')),
    await Wire.overTls(port),
  ]
  const wires = [kept, deep, plain]
  for (const wire of wires) await ask(wire)
  trust(authority, other)
  t.equal(await asked(port, theirs), gateway)
  for (const wire of wires) await ask(wire)
  const newer = await Wire.overTls(port, theirs)
  t.equal(await ask(newer), gateway)
  t.strictSame(dropped, [])

  trust(other)
  t.ok(await kept.closed)
  t.ok(await deep.closed)
  t.equal(await ask(newer), gateway)
  t.equal(await ask(plain), 'nothing', 'it has shown none')
  t.equal(await asked(port, ours), 'refused')
  t.strictSame(dropped, ['certificate', 'certificate', 'certificate'])
  for (const wire of [newer, plain]) wire.leave()
})

t.test('an authority of the same name does not keep connections', async t => {
  const { port, trust } = await serve(t, true)
  const wire = await Wire.overTls(port, ours)
  await ask(wire)
  trust(other)
  t.ok(await wire.closed)
})

t.test('files without an authority change nothing', async t => {
  const { front, port, key, cert } = await serve(t, true)
  for (const clientCa of [undefined, Buffer.alloc(0), Buffer.from('nothing'), key])
    t.throws(() => front.renewTls({ key, cert, clientCa }), /^cannot use the TLS files .* holds no certificate$/)
  t.equal(await asked(port, ours), gateway)
  t.equal(await asked(port, theirs), 'refused')
  const caFile = certificate(t).keyFile
  const tls = { ...certificate(t), clients: { caFile, isRequired: true } }
  await t.rejects(openNodeFront({ ...plainOptions, tls }, { onRequest: greet }), /holds no certificate$/)
})

t.test('a request in progress is answered, then its connection ends; events end soon', async t => {
  const answers: (() => void)[] = []
  const onRequest: FrontHandler['onRequest'] = exchange => {
    if (exchange.path === '/events')
      exchange
        .events(
          200,
          [],
          () => {},
          () => {},
        )
        ?.write('begun')
    else answers.push(() => exchange.reply(200, [], 'late'))
    return undefined
  }
  const { port, trust } = await serve(t, true, {}, onRequest)
  const [late, events] = [await Wire.overTls(port, ours), await Wire.overTls(port, ours)]
  await late.request('GET /late')
  await events.request('GET /events')
  while (answers.length < 1 || !events.unread.includes('begun')) await new Promise(resolve => setTimeout(resolve, 5))
  trust(other)
  answers[0]?.()
  t.equal((await late.answer()).body, 'late')
  t.ok(await late.closed)
  t.ok(await events.closed)
})

t.test('a connection ends when its certificate does', async t => {
  const { port, dropped } = await serve(t, true)
  const brief = await Wire.overTls(port, authority.issue('/CN=brief', { endsMs: Date.now() + 2_000 }))
  const long = await Wire.overTls(port, ours)
  t.equal(await ask(brief), 'CN=brief')
  t.ok(await brief.closed)
  t.equal(await ask(long), gateway)
  t.strictSame(dropped, ['certificate'])
  long.leave()
})

t.test('uWebSockets.js does not take such settings', async t => {
  const tls = { ...certificate(t), clients: { caFile: authority.caFile, isRequired: false } }
  await t.rejects(openUwsFront({ ...plainOptions, tls }, { onRequest: greet }), /cannot require certificates/)
})

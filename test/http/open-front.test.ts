// Two listeners of one program: the second one serves requests, and both end together. And which server is chosen.

import { once } from 'node:events'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import t from 'tap'
import { openFront } from '../../src/http/open-front.js'
import { freePort } from '../support/broker-process.js'
import { certificate, echo, plainOptions } from './front-contract.js'
import { Wire } from './wire.js'

const silent = { info: () => {}, warn: () => {} }

t.test('HTTP/1.0 is served at the second port, and HTTP/1.1 at both', async t => {
  const front = await openFront('uws', { ...plainOptions, http1Port: 0 }, { onRequest: echo }, silent)
  const port = await front.listen()
  t.teardown(() => front.close(0))
  const old = await Wire.to(front.http1Port!)
  await old.send('POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi')
  t.match(await old.answer(), { status: 200, body: 'hi' })
  for (const either of [port, front.http1Port!]) {
    const wire = await Wire.to(either)
    await wire.request('POST /', [], 'new')
    t.match(await wire.answer(), { status: 200, body: 'new' })
    wire.leave()
  }
})

t.test('a connection that rests at the second port stays open for the time of -reqTimeout', async t => {
  const options = { ...plainOptions, http1Port: 0, idleTimeoutS: 1 }
  const front = await openFront('uws', options, { onRequest: echo }, silent)
  await front.listen()
  t.teardown(() => front.close(0))
  const wire = await Wire.to(front.http1Port!)
  await wire.request('POST /', [], 'x')
  await wire.answer()
  t.ok(await wire.closed)
})

t.test('both ports are free again after closing', async t => {
  const front = await openFront('node', { ...plainOptions, http1Port: 0 }, { onRequest: echo }, silent)
  const ports = [await front.listen(), front.http1Port!]
  await front.close(0)
  for (const port of ports) await t.rejects(Wire.to(port), { code: 'ECONNREFUSED' })
})

t.test('where the second port is taken, the first one is not kept', async t => {
  const first = await openFront('node', { ...plainOptions, http1Port: 0 }, { onRequest: echo }, silent)
  await first.listen()
  t.teardown(() => first.close(0))
  const taken = { ...plainOptions, http1Port: first.http1Port! }
  const second = await openFront('node', taken, { onRequest: echo }, silent)
  await t.rejects(second.listen(), { message: /^address already in use: / })
})

const admin = { options: { ...plainOptions, connectionsMax: 3 }, handler: { onRequest: echo } }

t.test('a port for operators has limits of its own, and ends with the others', async t => {
  const options = { ...plainOptions, http1Port: 0, connectionsMax: 1, connectionsPerAddressMax: 1 }
  const front = await openFront('uws', options, { onRequest: echo }, silent, admin)
  const ports = [await front.listen(), front.http1Port!, front.adminPort!]
  t.equal(new Set(ports).size, 3)
  const wires = await Promise.all([1, 2, 3].map(() => Wire.to(front.adminPort!)))
  for (const wire of wires) {
    await wire.request('POST /', [], 'x')
    t.match(await wire.answer(), { status: 200, body: 'x' })
  }
  t.strictSame(
    front.connections.map(({ server }) => server),
    ['uws', 'node', 'node'],
  )
  t.equal(await front.close(1_000), undefined)
  for (const wire of wires) t.ok(await wire.closed)
  for (const port of ports) await t.rejects(Wire.to(port), { code: 'ECONNREFUSED' })
})

t.test('where the port for operators is taken, no other one is kept', async t => {
  const first = await openFront('node', plainOptions, { onRequest: echo }, silent, admin)
  await first.listen()
  t.teardown(() => first.close(0))
  const taken = { ...admin, options: { ...admin.options, port: first.adminPort! } }
  const port = await freePort()
  const second = await openFront('node', { ...plainOptions, port, http1Port: 0 }, { onRequest: echo }, silent, taken)
  await t.rejects(second.listen(), { message: `address already in use: 127.0.0.1:${first.adminPort}` })
  for (const one of [port, second.http1Port!]) await t.rejects(Wire.to(one), { code: 'ECONNREFUSED' })
})

/** The version of TLS of a connection; `refused`: there is none. */
async function versionAt(port: number, options: ConnectionOptions): Promise<string | null> {
  const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options })
  try {
    await once(socket, 'secureConnect')
    return socket.getProtocol()
  } catch {
    return 'refused'
  } finally {
    socket.destroy()
  }
}

t.test('the oldest version of TLS is the one that is asked for, at both ports', async t => {
  for (const minVersion of ['1.2', '1.3'] as const) {
    const tls = { ...certificate(t), minVersion }
    const front = await openFront(undefined, { ...plainOptions, tls, http1Port: 0 }, { onRequest: echo }, silent)
    const port = await front.listen()
    t.teardown(() => front.close(0))
    for (const one of [port, front.http1Port!]) {
      t.equal(await versionAt(one, {}), 'TLSv1.3')
      t.equal(await versionAt(one, { maxVersion: 'TLSv1.2' }), minVersion === '1.2' ? 'TLSv1.2' : 'refused')
    }
  }
})

t.test('what uws cannot do is served by node, and the log says so', async t => {
  const lines: string[] = []
  const logger = { ...silent, info: (line: string) => void lines.push(line) }
  const clients = { caFile: certificate(t).certFile, isRequired: false }
  for (const tls of [{ minVersion: '1.3' } as const, { clients }]) {
    const front = await openFront(
      undefined,
      { ...plainOptions, tls: { ...certificate(t), ...tls } },
      { onRequest: echo },
      logger,
    )
    t.equal(front.connections[0]?.server, 'node')
    await front.close(0)
  }
  t.match(lines, [/cannot leave out TLS 1\.2$/, /cannot require certificates of clients$/])
})

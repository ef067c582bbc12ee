// The supervisor accepts connections for its workers, over real sockets.

import type { Socket } from 'node:net'
import t, { type Test } from 'tap'
import { ConnectionSharing, HandedConnections, type Taker } from '../../src/process/handed-connections.js'
import { Wire } from '../http/wire.js'
import { freePort } from '../support/broker-process.js'

/** A worker that greets each connection with its name; a lost one gives each back. */
function worker(name: string, isLost = false): Taker & { readonly taken: Socket[] } {
  const taken: Socket[] = []
  return {
    taken,
    isBusy: false,
    take(_, socket, onLost) {
      taken.push(socket)
      if (isLost) onLost()
      else socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${name.length}\r\n\r\n${name}`)
    },
  }
}

const loopback = (port: number) => ({ port, host: '127.0.0.1', family: 'both' }) as const

async function share(t: Test): Promise<{ readonly sharing: ConnectionSharing; readonly port: number }> {
  const port = await freePort()
  const sharing = new ConnectionSharing()
  await sharing.listen(loopback(port))
  t.teardown(() => sharing.close())
  return { sharing, port }
}

const greeting = async (port: number): Promise<string> => (await (await Wire.to(port)).answer()).body

t.test('connections are distributed in turn', async t => {
  const { sharing, port } = await share(t)
  for (const name of ['one', 'two']) sharing.add(port, worker(name))
  t.strictSame([await greeting(port), await greeting(port), await greeting(port)], ['one', 'two', 'one'])
})

t.test('a worker to which a connection is still on its way gets no other one, unless all are busy', async t => {
  const { sharing, port } = await share(t)
  const [busy, free] = [{ ...worker('busy'), isBusy: true }, worker('free')]
  for (const taker of [busy, free]) sharing.add(port, taker)
  t.strictSame([await greeting(port), await greeting(port)], ['free', 'free'])
  sharing.remove(free)
  t.equal(await greeting(port), 'busy')
})

t.test('a connection waits while there is no worker', async t => {
  const { sharing, port } = await share(t)
  const wire = await Wire.to(port)
  sharing.add(port, worker('late'))
  t.equal((await wire.answer()).body, 'late')
})

t.test('a connection that a worker could not take goes to another one, and an ended worker gets no more', async t => {
  const { sharing, port } = await share(t)
  const [lost, other] = [worker('lost', true), worker('other')]
  for (const taker of [lost, other]) sharing.add(port, taker)
  t.equal(await greeting(port), 'other')
  t.equal(lost.taken.length, 1)
  sharing.remove(lost)
  t.equal(await greeting(port), 'other')
  t.equal(lost.taken.length, 1)
})

t.test('closing distributes the accepted connections, and then the port is closed', async t => {
  const { sharing, port } = await share(t)
  const one = worker('one')
  sharing.add(port, one)
  const connecting = Array.from({ length: 20 }, () => greeting(port))
  // The system, if not the listener, has accepted each of them before the first has its answer.
  await connecting[0]
  await sharing.close()
  for (const text of await Promise.all(connecting)) t.equal(text, 'one')
  await t.rejects(Wire.to(port), { code: 'ECONNREFUSED' })
})

t.test('a port in use is reported, and requested again', async t => {
  const { port } = await share(t)
  const second = new ConnectionSharing()
  for (let times = 0; times < 2; times++)
    await t.rejects(second.listen(loopback(port)), { message: `address already in use: 127.0.0.1:${port}` })
})

t.test('a worker asks for a port, and gets its connections', async t => {
  const asked: number[] = []
  const connections = new HandedConnections(({ port }) => asked.push(port))
  const opened = connections.open(loopback(7), socket => socket.end('HTTP/1.1 204 No Content\r\n\r\n'))
  const refused = connections.open(loopback(8), () => {})
  t.strictSame(asked, [7, 8])
  connections.listens(7, undefined)
  connections.listens(8, 'no')
  t.equal(await opened, 7)
  await t.rejects(refused, { message: 'no' })
  const { sharing, port } = await share(t)
  sharing.add(port, { isBusy: false, take: (_, socket) => connections.came(7, socket) })
  const wire = await Wire.to(port)
  t.equal((await wire.answer()).status, 204)
  t.doesNotThrow(() => connections.came(7, undefined), 'a connection may end on its way')
})

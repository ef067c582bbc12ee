// Streams over WebSocket, from outside: every message of docs/interface/live.md#websocket and its answer, on both
// servers.
//
// Not here: streams over Server-Sent Events (live.test.ts), all wrong messages (http/stream-socket.test.ts).

import { once } from 'node:events'
import t, { type Test } from 'tap'
import { handshake } from '../http/frames.js'
import { certificate } from '../http/front-contract.js'
import { Wire } from '../http/wire.js'
import { startBroker } from '../support/broker-process.js'
import { numberIn } from '../support/event-reader.js'
import { type SocketClientOptions, type SocketMessage, StreamSocketClient } from '../support/stream-socket-client.js'

t.setTimeout(400_000)

const lamp = (id: string, level: number) => ({ id, type: 'Lamp', level: { value: level, type: 'Number' } })
const upsert = (...entities: object[]) => ({ actionType: 'append', entities })
const levelsOf = (events: readonly SocketMessage[]): number[] => events.map(({ data }) => numberIn(data?.[0], 'level'))

/** A client of a tenant: tests that share a broker have a tenant each. */
function clientOf(port: number, tenant: string) {
  const open = (t: Test, query = '', options: SocketClientOptions = {}) =>
    StreamSocketClient.open(t, `ws://127.0.0.1:${port}/v2/stream?tenant=${tenant}${query}`, options)
  const send = async (method: string, path: string, body?: object): Promise<number> => {
    const headers = { 'Ctx-Service': tenant, ...(body && { 'Content-Type': 'application/json' }) }
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) }
    return (await fetch(`http://127.0.0.1:${port}${path}`, init)).status
  }
  const set = (id: string, level: number) => send('POST', '/v2/entities?options=upsert', lamp(id, level))
  return { open, send, set }
}

/** The number of open WebSockets that the broker counts as streams. */
async function socketsAt(port: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  return Number(/^orrery_streams\{transport="websocket"\} (\d+)$/m.exec(text)?.[1])
}

async function untilSockets(port: number, count: number): Promise<void> {
  for (const untilMs = performance.now() + 30_000; (await socketsAt(port)) !== count; )
    if (performance.now() > untilMs) throw new Error(`${await socketsAt(port)} WebSockets are counted, not ${count}`)
}

for (const server of ['uws', 'node'] as const)
  t.test(server, async t => {
    const { port } = await startBroker(t, { args: ['-multiservice', '-httpServer', server] })

    t.test('the subprotocol is chosen if it is offered, and no other one', async t => {
      const { open } = clientOf(port, 'protocol')
      const chosen = await open(t, '', { protocols: ['other', 'ngsi-v2.stream'] })
      t.equal(chosen.native.protocol, 'ngsi-v2.stream')
      t.equal((await open(t)).native.protocol, '')
      const wire = await Wire.to(port)
      await wire.request('GET /v2/stream', [...handshake, 'Sec-WebSocket-Protocol: other'])
      const { status, headers } = await wire.answer()
      t.strictSame([status, headers['sec-websocket-protocol']], [101, undefined])
      wire.leave()
    })

    t.test('a handshake that is wrong, or of a page of another origin, is refused', async t => {
      const wire = await Wire.to(port)
      await wire.request(
        'GET /v2/stream',
        handshake.filter(header => !header.startsWith('Sec-WebSocket-Key')),
      )
      t.match(await wire.answer(), { status: 400, body: /a WebSocket needs a Sec-WebSocket-Key/ })
      wire.leave()
      const { open } = clientOf(port, 'refused')
      t.equal((await open(t, '', { headers: { Origin: 'http://other.example' } })).refused, 403)
      t.equal((await open(t, '', { headers: { 'Ctx-Service': 'another' } })).refused, 400)
    })

    t.test('a watch is answered with a cursor, and then each change is one event', async t => {
      const { open, send, set } = clientOf(port, 'watch')
      const client = await open(t)
      t.match(await client.watch('w1', { type: 'Lamp', q: 'level<100', options: 'leave' }), {
        id: 'w1',
        cursor: /^1\./,
      })
      await set('a', 1)
      await set('a', 2)
      await set('a', 2)
      await set('a', 200)
      await set('a', 3)
      await send('DELETE', '/v2/entities/a')
      await client.next('the deletion', ({ event }) => event === 'entityDelete')
      t.match(client.events('w1'), [
        {
          ...{ op: 'event', id: 'w1', event: 'entityCreate', cursor: /^1\./, alterationType: 'entityCreate' },
          ...{ data: [lamp('a', 1)], changed: ['level'], servicePath: '/', time: /^\d{4}-.*Z$/, correlator: /./ },
        },
        { event: 'entityChange', data: [lamp('a', 2)] },
        { event: 'entityUpdate', data: [lamp('a', 2)], changed: [] },
        { event: 'entityLeave', entity: { id: 'a', type: 'Lamp', servicePath: '/' } },
        { event: 'entityChange', data: [lamp('a', 3)] },
        { event: 'entityDelete', data: [lamp('a', 3)] },
      ])
    })

    t.test('the watches of a connection have their own filters and forms', async t => {
      const { open, set, send } = clientOf(port, 'several')
      const client = await open(t, '&path=/north')
      await client.watch('all', { options: ['keyValues'] })
      await client.watch('b', { entities: [{ id: 'b', type: 'Lamp' }], attrs: 'none', path: '/#' })
      await client.watch('high', { expression: { q: 'level>10' }, path: '/#', alterationTypes: ['entityChange'] })
      await client.watch('other', { tenant: 'several_other', path: '/#' })
      const north = { 'Ctx-Service': 'several', 'Ctx-ServicePath': '/north', 'Content-Type': 'application/json' }
      const body = JSON.stringify(lamp('north', 1))
      await fetch(`http://127.0.0.1:${port}/v2/entities`, { method: 'POST', headers: north, body })
      await set('b', 5)
      await set('b', 50)
      await clientOf(port, 'several_other').set('o', 1)
      await send('DELETE', '/v2/entities/b')
      await client.next('the last event', ({ id, event }) => id === 'b' && event === 'entityDelete')
      await client.next('the other tenant', ({ id, event }) => id === 'other' && event === 'entityCreate')
      const kinds = (watch: string) => client.events(watch).map(({ event, data }) => [event, data?.[0]])
      t.strictSame(kinds('all'), [['entityCreate', { id: 'north', type: 'Lamp', level: 1 }]])
      const b = { id: 'b', type: 'Lamp' }
      t.strictSame(
        kinds('b'),
        ['entityCreate', 'entityChange', 'entityDelete'].map(kind => [kind, b]),
      )
      t.match(kinds('high'), [['entityChange', { id: 'b', level: { value: 50 } }]])
      t.match(kinds('other'), [['entityCreate', { id: 'o' }]])
    })

    t.test('parameters of the request are a first watch without a name', async t => {
      const { open, set } = clientOf(port, 'first')
      const client = await open(t, '&type=Lamp&q=level%3E1')
      await client.next('the watch', ({ op, id }) => op === 'watching' && id === '')
      await set('a', 1)
      await set('a', 2)
      await client.next('the event', ({ op }) => op === 'event')
      t.strictSame(levelsOf(client.events('')), [2])
      const wrong = await open(t, '&q=a%3C')
      t.match(await wrong.next('an error', ({ op }) => op === 'error'), { id: '', error: 'BadRequest' })
      t.match(await wrong.ask({ op: 'ping' }), { op: 'pong' })
    })

    t.test('unwatch ends the events of a watch', async t => {
      const { open, set } = clientOf(port, 'unwatch')
      const client = await open(t)
      await client.watch('w1')
      await client.watch('w2')
      t.strictSame(await client.ask({ op: 'unwatch', id: 'w1' }), { op: 'unwatched', id: 'w1' })
      await set('a', 1)
      await client.next('the event', ({ id, op }) => id === 'w2' && op === 'event')
      t.strictSame(client.events('w1'), [])
      t.match(await client.ask({ op: 'unwatch', id: 'w1' }), { op: 'error', id: 'w1', error: 'NotFound' })
    })

    t.test('a token may be the first message', async t => {
      const client = await clientOf(port, 'token').open(t)
      t.strictSame(await client.ask({ op: 'token', token: 'secret' }), { op: 'ok' })
      t.match(await client.ask({ op: 'token', token: 7 }), { op: 'error', error: 'BadRequest' })
      await client.watch('w1')
      t.strictSame(await client.ask({ op: 'token', token: 'next' }), { op: 'ok' })
    })

    t.test('pings of messages and of the protocol are answered', async t => {
      const client = await clientOf(port, 'ping').open(t)
      t.strictSame(await client.ask({ op: 'ping' }), { op: 'pong' })
      client.native.ping('bytes')
      t.equal(String((await once(client.native, 'pong'))[0]), 'bytes')
    })

    t.test('an update is answered as over HTTP', async t => {
      const { open, send } = clientOf(port, 'update')
      const client = await open(t)
      await client.watch('w1', { path: '/#' })
      const ask = (ref: number | string, body: object, more: object = {}) =>
        client.ask({ op: 'update', ref, body, ...more })
      t.strictSame(await ask(1, upsert(lamp('a', 1))), { op: 'done', ref: 1, status: 204 })
      const values = upsert({ id: 'b', type: 'Lamp', level: 2 })
      t.match(await ask('two', values, { options: 'keyValues', path: '/b' }), { ref: 'two', status: 204 })
      t.match(await ask(3, { actionType: 'update', entities: [lamp('none', 1)] }), {
        ...{ op: 'done', ref: 3, status: 404, error: 'NotFound', description: /./ },
      })
      t.match(await ask(4, { actionType: 'fly', entities: [] }), { ref: 4, status: 400, error: 'BadRequest' })
      t.match(await ask(5, upsert(lamp('c d', 1))), { ref: 5, status: 400 })
      t.match(await ask(6, upsert(lamp('e', 1)), { tenant: 'a-b' }), { ref: 6, status: 400 })
      t.match(await ask(7, upsert(lamp('e', 1)), { tenant: 'update_other' }), { ref: 7, status: 204 })
      t.match(await ask(8, { actionType: 'delete', entities: [{ id: 'a', type: 'Lamp' }] }), { status: 204 })
      await client.next('the deletion', ({ event }) => event === 'entityDelete')
      t.match(
        client.events('w1').map(({ event, servicePath, data }) => [event, servicePath, data?.[0]?.id]),
        [
          ['entityCreate', '/', 'a'],
          ['entityCreate', '/b', 'b'],
          ['entityDelete', '/', 'a'],
        ],
      )
      t.equal(await clientOf(port, 'update_other').send('GET', '/v2/entities/e'), 200)
      t.equal(await send('GET', '/v2/entities/e'), 404)
    })

    t.test('anything else is answered with an error, and the connection goes on', async t => {
      const client = await clientOf(port, 'else').open(t)
      for (const message of ['', '{', '[]', '{"op":"ping","op":"ping"}', { op: 'fly' }, { op: 'update', body: {} }])
        t.match(await client.ask(message), { op: 'error', error: /^(?:ParseError|BadRequest)$/, description: /./ })
      t.match(await client.ask({ op: 'watch', id: 'w1', minInterval: -1 }), { op: 'error', id: 'w1' })
      await client.watch('w1')
      t.match(await client.ask({ op: 'watch', id: 'w1' }), {
        op: 'error',
        id: 'w1',
        description: /there is a watch w1/,
      })
    })

    t.test('256 updates of one entity without an answer run in their order; more are refused', async t => {
      const client = await clientOf(port, 'order').open(t)
      await client.watch('w1')
      const count = 400
      const lamps = (at: number) => (at % 2 === 0 ? [lamp('a', at)] : [lamp('a', at), lamp('b', at)])
      client.send(...Array.from({ length: count }, (_, ref) => ({ op: 'update', ref, body: upsert(...lamps(ref)) })))
      const done = (): SocketMessage[] => client.messages.filter(({ op }) => op === 'done')
      await client.until('all answers', () => done().length === count)
      t.equal(new Set(done().map(({ ref }) => ref)).size, count)
      const taken = done().filter(({ status }) => status === 204)
      const refs = taken.map(({ ref }) => ref as number)
      t.strictSame(
        refs,
        [...refs].sort((a, b) => a - b),
      )
      t.ok(taken.length >= 256, `${taken.length} were taken`)
      for (const { status, description } of done())
        if (status !== 204) t.match({ status, description }, { status: 503, description: /there are 256 updates/ })
      const ofA = (): SocketMessage[] => client.events('w1').filter(({ data }) => data?.[0]?.id === 'a')
      await client.until('all events', () => ofA().length === taken.length)
      t.strictSame(levelsOf(ofA()), refs)
      t.match(await client.ask({ op: 'update', ref: 'again', body: upsert(lamp('a', 1)) }), { status: 204 })
    })

    t.test('updates without an answer have at most four times the bytes of a largest message', async t => {
      const client = await clientOf(port, 'bytes').open(t)
      const body = upsert({ id: 'a', type: 'Lamp', text: { value: 'x'.repeat(200_000) } })
      client.send(...Array.from({ length: 60 }, (_, ref) => ({ op: 'update', ref, body })))
      const done = (): SocketMessage[] => client.messages.filter(({ op }) => op === 'done')
      await client.until('all answers', () => done().length === 60)
      const taken = done().filter(({ status }) => status === 204)
      t.ok(taken.length >= 20, `${taken.length} were taken`)
      for (const { status, description } of done())
        if (status !== 204)
          t.match({ status, description }, { status: 503, description: /have more than 4194304 bytes/ })
    })

    t.test('a connection has at most 100 watches', async t => {
      const client = await clientOf(port, 'hundred').open(t)
      for (let n = 0; n < 100; n++) client.send({ op: 'watch', id: `w${n}`, type: `T${n}` })
      await client.until('all watches', ({ messages }) => messages.filter(({ op }) => op === 'watching').length === 100)
      t.match(await client.ask({ op: 'watch', id: 'more' }), { op: 'error', id: 'more', description: /watches/ })
    })

    t.test('a snapshot, and the changes that a reader has missed, come before new changes', async t => {
      const { open, set } = clientOf(port, 'snapshot')
      const entities = Array.from({ length: 150 }, (_, at) => lamp(`l${at}`, at))
      const client = await open(t)
      t.match(await client.ask({ op: 'update', ref: 1, body: upsert(...entities) }), { status: 204 })
      await client.watch('w1', { options: 'snapshot,keyValues' })
      const end = await client.next('the end of the snapshot', message => message.end === true)
      t.equal(end.count, 150)
      t.strictSame(
        client.events('w1').map(({ event, data }) => [event, data?.length]),
        [
          ['snapshot', 100],
          ['snapshot', 50],
          ['snapshot', undefined],
        ],
      )
      client.native.terminate()
      for (let level = 1000; level < 1010; level++) await set('l1', level)
      const again = await open(t)
      await again.watch('w2', { from: end.cursor, options: 'snapshot' })
      await again.until('all changes', one => one.events('w2').length === 10)
      t.strictSame(
        levelsOf(again.events('w2')),
        Array.from({ length: 10 }, (_, at) => 1000 + at),
      )
    })

    t.test('binary messages are refused with 1003', async t => {
      const client = await clientOf(port, 'binary').open(t)
      client.native.send(Buffer.from('{"op":"ping"}'))
      t.strictSame(await client.end(), { code: 1003, reason: 'binary messages are not accepted' })
      t.strictSame(client.messages, [])
    })

    t.test('a message of more than 1 MB ends the connection', async t => {
      const client = await clientOf(port, 'large').open(t)
      const message = (length: number): string => `{"op":"ping"}${' '.repeat(length - 13)}`
      t.strictSame(await client.ask(message(1024 * 1024)), { op: 'pong' })
      client.send(message(1024 * 1024 + 1))
      t.equal((await client.end()).code, server === 'node' ? 1009 : 1006)
    })

    t.test('a reader that is too slow gets a message about it, and loses its connection with 1013', async t => {
      const { open, send } = clientOf(port, 'slow')
      const [slow, quick] = [await open(t), await open(t)]
      for (const client of [slow, quick]) await client.watch('w1', { options: 'keyValues' })
      slow.native.pause()
      let sent = 0
      const text = 'x'.repeat(800_000)
      // More than the system buffers, and than may wait; each entity is another one, so nothing is folded.
      for (; (await socketsAt(port)) > 1 && sent < 60; sent++)
        t.equal(await send('POST', '/v2/entities?options=keyValues', { id: `e${sent}`, type: 'T', text }), 201)
      await quick.until('all events', one => one.events('w1').length === sent)
      slow.native.resume()
      t.strictSame(await slow.end(), { code: 1013, reason: 'too slow' })
      t.match(slow.messages.at(-1), { op: 'event', id: '', event: 'end', reason: 'too slow' })
      t.ok(slow.events('w1').length < sent)
      t.match(await quick.ask({ op: 'ping' }), { op: 'pong' })
    })

    t.test('all of them have ended, and none is counted', async () => untilSockets(port, 0))
  })

for (const server of ['uws', 'node'] as const)
  t.test(`${server}: a stop answers updates, sends the end, and closes with 1001`, async t => {
    const tls = certificate(t)
    const args = ['-httpServer', server, '-maxStreams', '2', '-https', '-key', tls.keyFile, '-cert', tls.certFile]
    const broker = await startBroker(t, { args })
    const url = `wss://127.0.0.1:${broker.port}/v2/stream`
    const [client, other] = [await StreamSocketClient.open(t, url), await StreamSocketClient.open(t, url)]
    t.equal((await StreamSocketClient.open(t, url)).refused, 503, '-maxStreams')
    await client.watch('w1')
    client.send(...Array.from({ length: 200 }, (_, ref) => ({ op: 'update', ref, body: upsert(lamp('a', ref)) })))
    const done = (): SocketMessage[] => client.messages.filter(({ op }) => op === 'done')
    await client.until('some answers', () => done().length > 0)
    await broker.kill('SIGTERM')
    for (const one of [client, other]) t.strictSame(await one.end(), { code: 1001, reason: 'stopping' })
    t.match(client.messages.at(-1), { op: 'event', event: 'end', reason: 'stopping' })
    t.equal(done().length, 200)
  })

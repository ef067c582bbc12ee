// Streams over Server-Sent Events, from outside: what a reader receives, also after it was away, after a restart, and
// beside a reader that has stopped (docs/interface/live.md).

import t, { type Test } from 'tap'
import { startBroker, tempDir } from '../support/broker-process.js'
import { EventReader, numberIn } from '../support/event-reader.js'

t.setTimeout(400_000)

const json = { 'Content-Type': 'application/json' }

/** A broker, and a client of it. */
async function begin(t: Test, args: readonly string[] = [], dataDir = tempDir(t)) {
  const broker = await startBroker(t, { dataDir, args: ['-multiservice', ...args] })
  return { broker, dataDir, ...clientOf(broker.port, '') }
}

/** A client of a tenant: tests that share a broker have a tenant each. */
function clientOf(port: number, tenant: string) {
  const url = `http://127.0.0.1:${port}`
  const headers = tenant === '' ? json : { ...json, 'Ctx-Service': tenant }
  const send = async (method: string, path: string, body?: unknown): Promise<number> => {
    const response = await fetch(url + path, {
      method,
      headers: body === undefined ? { 'Ctx-Service': tenant } : headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    await response.arrayBuffer()
    return response.status
  }
  const upsert = (id: string, level: number, type = 'Lamp') =>
    send('POST', '/v2/entities?options=upsert', { id, type, level: { value: level, type: 'Number' } })
  const read = async (path: string): Promise<unknown> =>
    (await fetch(url + path, { headers: { 'Ctx-Service': tenant } })).json()
  const stream = (t: Test, query: string, more: Readonly<Record<string, string>> = {}) =>
    EventReader.open(t, `${url}/v2/stream?${query}`, { 'Ctx-Service': tenant, ...more })
  return { url, send, upsert, read, stream }
}

/** The last level of each entity, as a reader that folds events has it. */
function folded(reader: EventReader): Record<string, number> {
  const levels = new Map<string, number>()
  for (const { kind, data } of reader.events) {
    if (kind === 'entityDelete') levels.delete(data.data[0]?.id ?? '')
    else if (kind === 'entityLeave') levels.delete(data.id)
    else if (kind === 'gap') levels.clear()
    else if (data.data) for (const entity of data.data) levels.set(entity.id, numberIn(entity, 'level'))
  }
  return Object.fromEntries([...levels].sort())
}

for (const args of [[], ['-httpServer', 'node'], ['-workers', '2']])
  t.test(args.join(' ') || 'one process', async t => {
    const { broker } = await begin(t, args)

    t.test('a reader receives each change of the watched entities, in order', async t => {
      const { stream, send, upsert } = clientOf(broker.port, 'order')
      const reader = await stream(t, 'type=Lamp&options=leave&q=level<100')
      await upsert('lamp', 1)
      await send('PATCH', '/v2/entities/lamp/attrs', { level: { value: 2, type: 'Number' } })
      await send('PATCH', '/v2/entities/lamp/attrs', { level: { value: 2, type: 'Number' } })
      await upsert('room', 1, 'Room')
      await send('PATCH', '/v2/entities/lamp/attrs', { level: { value: 200, type: 'Number' } })
      await send('PATCH', '/v2/entities/lamp/attrs', { level: { value: 3, type: 'Number' } })
      await send('DELETE', '/v2/entities/lamp')
      await reader.first('entityDelete')
      t.strictSame(reader.kinds(), [
        'entityCreate',
        'entityChange',
        'entityUpdate',
        'entityLeave',
        'entityChange',
        'entityDelete',
      ])
      const [created] = reader.events.filter(({ kind }) => kind === 'entityCreate')
      t.match(created, {
        cursor: /^1\./,
        data: {
          data: [{ id: 'lamp', type: 'Lamp', level: { type: 'Number', value: 1 } }],
          alterationType: 'entityCreate',
          changed: ['level'],
          servicePath: '/',
          time: /^\d{4}-.*Z$/,
        },
      })
    })

    t.test('a reader that comes back gets what it has missed', async t => {
      const { stream, upsert } = clientOf(broker.port, 'again')
      const query = 'type=Lamp&options=keyValues'
      const first = await stream(t, query)
      await upsert('a', 1)
      await first.first('entityCreate')
      await first.until('a cursor behind it', ({ events }) => events.at(-1)?.kind === 'bookmark')
      first.close()
      for (let level = 2; level < 40; level++) await upsert(level % 2 === 0 ? 'a' : 'b', level)
      const again = await stream(t, query, { 'Last-Event-ID': first.cursor as string })
      await upsert('a', 100)
      await again.until('the last changes', reader => folded(reader).a === 100 && folded(reader).b === 39)
      // The order of an entity's events is that of its changes; between entities there is none.
      const levelsOf = (id: string): number[] =>
        again.events
          .filter(({ kind, data }) => kind.startsWith('entity') && data.data?.[0]?.id === id)
          .map(({ data }) => numberIn(data.data[0], 'level'))
          .filter(level => level > 1)
      const every2nd = (first: number): number[] => Array.from({ length: 19 }, (_, at) => first + 2 * at)
      t.strictSame(levelsOf('a'), [...every2nd(2), 100])
      t.strictSame(levelsOf('b'), every2nd(3))
      t.notOk(again.kinds().includes('gap'))
    })

    t.test('a snapshot and the changes behind it leave no gap', async t => {
      const { stream, send, upsert, read } = clientOf(broker.port, 'snapshot')
      const entities = Array.from({ length: 450 }, (_, at) => ({
        id: `l${at}`,
        type: 'Lamp',
        level: { value: 0, type: 'Number' },
      }))
      t.equal(await send('POST', '/v2/op/update', { actionType: 'append', entities }), 204)
      const writes = (async () => {
        for (let n = 0; n < 200; n++) await upsert(`l${(n * 7) % 450}`, n)
      })()
      const reader = await stream(t, 'type=Lamp&options=snapshot')
      await writes
      await upsert('l449', 1_000)
      await reader.until('the last change', one => folded(one).l449 === 1_000)
      const end = reader.events.find(({ kind, data }) => kind === 'snapshot' && data.end)
      t.strictSame(end?.data, { end: true, count: 450 })
      const list = (await read('/v2/entities?type=Lamp&limit=1000&options=keyValues')) as {
        id: string
        level: number
      }[]
      t.strictSame(folded(reader), Object.fromEntries(list.map(({ id, level }) => [id, level]).sort()))
    })
  })

t.test('after a restart a reader that comes back gets a gap, and a new snapshot if it wants one', async t => {
  const { broker, url, upsert, dataDir } = await begin(t)
  const reader = await EventReader.open(t, `${url}/v2/stream?type=Lamp&options=snapshot,keyValues`)
  await upsert('a', 1)
  const created = await reader.first('entityCreate')
  await broker.kill('SIGTERM')
  t.match(reader.events.at(-1), { kind: 'end', data: { reason: 'stopping' } })
  t.ok(reader.isClosed)
  const second = await begin(t, [], dataDir)
  await second.upsert('b', 2)
  const headers = { 'Last-Event-ID': created.cursor as string }
  const again = await EventReader.open(t, `${second.url}/v2/stream?type=Lamp&options=snapshot,keyValues`, headers)
  await again.until('the snapshot', ({ events }) => events.some(({ data }) => data.end))
  t.strictSame(again.kinds(), ['gap', 'snapshot', 'snapshot'])
  t.match(again.events[0]?.data, { reason: 'restarted', since: /^\d{4}-/ })
  t.strictSame(folded(again), { a: 1, b: 2 })
})

t.test('changes that do not fit the buffer are a gap', async t => {
  const { url, send, upsert } = await begin(t, ['-streamBuffer', '1'])
  const path = `${url}/v2/stream?type=Lamp&options=keyValues`
  const reader = await EventReader.open(t, path)
  await upsert('a', 1)
  const { cursor } = await reader.first('entityCreate')
  reader.close()
  const text = { value: 'x'.repeat(300_000), type: 'Text' }
  for (let n = 0; n < 8; n++)
    await send('POST', '/v2/entities?options=upsert', { id: 'big', type: 'Lamp', text, n: { value: n } })
  const again = await EventReader.open(t, path, { 'Last-Event-ID': cursor as string })
  t.match(await again.first('gap'), { data: { reason: 'too old' } })
})

t.test('minInterval sends the latest state, and loses none', async t => {
  const { stream, upsert } = await begin(t)
  const reader = await stream(t, 'type=Lamp&options=keyValues&minInterval=400')
  for (let level = 1; level <= 30; level++) await upsert('a', level)
  await upsert('b', 1)
  await reader.until('the last state', one => folded(one).a === 30)
  const ofA = reader.events.filter(({ data }) => data.data?.[0]?.id === 'a')
  t.ok(ofA.length < 30, `${ofA.length} events for 30 changes`)
  t.strictSame(folded(reader), { a: 30, b: 1 })
})

t.test('a reader that stops delays no other one, and gets the newest states when it continues', async t => {
  const { url, send } = await begin(t)
  const path = `${url}/v2/stream?type=Lamp`
  const slow = await EventReader.open(t, path)
  const quick = await EventReader.open(t, path)
  slow.pause()
  const text = { value: 'x'.repeat(20_000), type: 'Text' }
  const rounds = 1_000
  for (let n = 1; n <= rounds; n += 50)
    await Promise.all(
      Array.from({ length: 50 }, (_, at) =>
        send('POST', '/v2/entities?options=upsert', {
          id: `lamp${at % 5}`,
          type: 'Lamp',
          text,
          level: { value: n + at, type: 'Number' },
        }),
      ),
    )
  await quick.until(
    'all changes',
    ({ events }) => events.filter(({ kind }) => kind.startsWith('entity')).length >= rounds,
  )
  slow.resume()
  const isLast = (reader: EventReader): boolean => JSON.stringify(folded(reader)) === JSON.stringify(folded(quick))
  await slow.until('the last states', isLast)
  const { data } = await slow.first('coalesced')
  t.ok(data.count > 0)
  t.ok(slow.events.length < quick.events.length)
})

t.test('how many streams there may be, and none at all', async t => {
  const { url } = await begin(t, ['-maxStreams', '2'])
  for (let n = 0; n < 2; n++) t.notOk((await EventReader.open(t, `${url}/v2/stream`)).refused)
  const third = await EventReader.open(t, `${url}/v2/stream`)
  t.match(third.refused, { status: 503, text: /there are 2 streams, and no room for more/ })
  const off = await begin(t, ['-noStreams'])
  t.match((await EventReader.open(t, `${off.url}/v2/stream`)).refused, { status: 404 })
})

t.test('a wrong request is answered before anything is sent', async t => {
  const { url } = await begin(t)
  for (const [query, status, text] of [
    ['q=a<', 400, /./],
    ['id=a&idPattern=b', 400, /Incompatible parameters: id, IdPattern/],
    ['alterationTypes=entityBirth', 400, /unknown subscription alterationType: entityBirth/],
    ['options=values', 400, /Invalid value for URI param/],
    ['minInterval=soon', 400, /minInterval must be a whole number/],
    ['gather=soon', 400, /gather must be a whole number/],
    ['gather=1001', 400, /gather must be a whole number of milliseconds, at most 1000/],
    ['minInterval=3600001', 400, /minInterval must be a whole number/],
    ['from=here', 400, /is not a cursor/],
    ['tenant=a-b', 400, /bad character in tenant name/],
    ['path=a', 400, /Only \/absolute\/ Service Paths/],
    [
      `id=${Array.from({ length: 50 }, (_, n) => n)}&type=${Array.from({ length: 50 }, (_, n) => n)}`,
      400,
      /too many entities/,
    ],
  ] as const) {
    const { refused } = await EventReader.open(t, `${url}/v2/stream?${query.replaceAll('<', '%3C')}`)
    t.match(refused, { status, text }, query)
  }
  const accept = await EventReader.open(t, `${url}/v2/stream`, { Accept: 'application/json' })
  t.match(accept.refused, { status: 406, text: /text\/event-stream/ })
  const both = await EventReader.open(t, `${url}/v2/stream?tenant=a`, { 'Ctx-Service': 'b' })
  t.match(both.refused, { status: 400, text: /differ/ })
})

t.test('a tenant and a path in parameters mean what the headers mean', async t => {
  const { url } = await begin(t)
  const reader = await EventReader.open(t, `${url}/v2/stream?tenant=City&path=/north/%23`)
  for (const [service, path] of [
    ['city', '/north'],
    ['city', '/south'],
    ['town', '/north'],
    ['city', '/north/a'],
    ['city', '/north/b/c'],
  ])
    await fetch(`${url}/v2/entities?options=upsert`, {
      method: 'POST',
      headers: { ...json, 'Ctx-Service': service!, 'Ctx-ServicePath': path! },
      body: JSON.stringify({ id: 'a', type: 'T' }),
    })
  await reader.until(
    'three events',
    ({ events }) => events.filter(({ kind }) => kind.startsWith('entity')).length === 3,
  )
  t.strictSame(
    reader.events.filter(({ kind }) => kind.startsWith('entity')).map(({ data }) => data.servicePath),
    ['/north', '/north/a', '/north/b/c'],
  )
})

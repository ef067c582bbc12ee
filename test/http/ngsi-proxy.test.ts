// The paths of ngsi-proxy over both servers: the answers and events that ngsijs reads, readers that stop and come back,
// and requests that mean no good (docs/interface/live.md#ngsi-proxy).
//
// Not here: ngsijs itself (test/clients/ngsi-proxy.test.ts), how long event sources live (test/broker/streams/).

import t, { type Test } from 'tap'
import type { Exchange } from '../../src/http/front.js'
import { proxyHeadOf } from '../../src/http/proxy-head.js'
import { EventReader } from '../support/event-reader.js'
import { httpServers, type LocalNode, type LocalNodeOptions, startLocalNode } from '../support/local-node.js'

t.setTimeout(300_000)

const uuid = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'
const unknown = '6d3ab640-345c-41e8-aee8-4fe128ae5aa3'
const origin = 'Origin: https://a.example'

class Scene {
  private constructor(
    readonly t: Test,
    readonly node: LocalNode,
  ) {}

  static async start(t: Test, options: LocalNodeOptions): Promise<Scene> {
    return new Scene(t, await startLocalNode(t, { ngsiProxy: true, ...options }))
  }

  get url(): string {
    return `http://127.0.0.1:${this.node.port}`
  }

  async open(): Promise<string> {
    const { status, json } = await this.node.ask('POST /eventsource', ['Content-Length: 0'])
    if (status !== 201) throw new Error(`an event source was answered ${status}`)
    return (json as { connection_id: string }).connection_id
  }

  async read(id: string): Promise<EventReader> {
    const reader = await EventReader.open(this.t, `${this.url}/eventsource/${id}`)
    await reader.first('init')
    return reader
  }

  /** Registers a callback, and returns its id. */
  async register(id: string): Promise<string> {
    const { status, json } = await this.node.json('POST /callbacks', { connection_id: id })
    if (status !== 201) throw new Error(`a callback was answered ${status}`)
    return (json as { callback_id: string }).callback_id
  }

  async notify(callback: string, body: string, headers: readonly string[] = []): Promise<number> {
    const type = headers.some(header => header.startsWith('Content-Type')) ? [] : ['Content-Type: application/json']
    return (await this.node.ask(`POST /callbacks/${callback}`, [...type, ...headers], body)).status
  }

  async metric(name: string): Promise<number> {
    const { text } = await this.node.ask('GET /metrics')
    const line = text.split('\n').find(one => one.startsWith(`${name} `))
    return Number(line?.slice(name.length + 1) ?? Number.NaN)
  }

  async untilMetric(name: string, value: number): Promise<void> {
    for (const untilMs = performance.now() + 60_000; (await this.metric(name)) !== value; ) {
      if (performance.now() > untilMs) throw new Error(`${name} is ${await this.metric(name)}, not ${value}`)
      await new Promise(resolve => setTimeout(resolve, 10))
    }
  }
}

/** The outcome of the last delivery of a subscription, once there is one. */
async function outcomeOf(node: LocalNode, location: string, headers: readonly string[] = []): Promise<string> {
  for (const untilMs = performance.now() + 60_000; performance.now() < untilMs; ) {
    const { json } = await node.ask(`GET ${location}/deliveries`, headers)
    const [last] = (json as { deliveries: { outcome: string }[] }).deliveries
    if (last) return last.outcome
  }
  throw new Error(`no delivery of ${location}`)
}

const notifications = ({ events }: EventReader) => events.filter(({ kind }) => kind === 'notification')

for (const server of httpServers)
  t.test(`over ${server}`, async t => {
    t.test('an event source, a callback and a notification are answered as ngsi-proxy answers', async t => {
      const scene = await Scene.start(t, { server })
      const { node, url } = scene
      const opened = await node.ask('POST /eventsource', ['Content-Length: 0'])
      const { connection_id: id } = opened.json as { connection_id: string }
      t.match(id, new RegExp(`^${uuid}$`))
      t.match(opened, {
        status: 201,
        headers: { location: `http://test/eventsource/${id}`, 'cache-control': 'no-store' },
      })
      t.strictSame(opened.json, { connection_id: id, url: `http://test/eventsource/${id}` })

      const reader = await EventReader.open(t, `${url}/eventsource/${id}`)
      t.strictSame((await reader.first('init')).data, { id, url: `${url}/eventsource/${id}` })

      const registered = await node.json('POST /callbacks', { connection_id: id })
      const { callback_id: callback } = registered.json as { callback_id: string }
      t.match(registered, { status: 201, headers: { location: `http://test/callbacks/${callback}` } })
      t.strictSame(registered.json, { callback_id: callback, url: `http://test/callbacks/${callback}` })

      const body = '{"data":[\n{"id":"ä \\u2028"}]}'
      const headers = ['Ngsiv2-AttrsFormat: normalized', 'Fiware-Service: city', 'Authorization: Bearer x']
      t.equal(await scene.notify(callback, body, headers), 204)
      t.strictSame((await reader.first('notification')).data, {
        callback_id: callback,
        payload: body,
        headers: {
          'content-type': 'application/json',
          'ngsiv2-attrsformat': 'normalized',
          'fiware-service': 'city',
        },
      })
      t.equal((await node.ask(`DELETE /callbacks/${callback}`)).status, 204)
      t.equal((await node.ask(`DELETE /callbacks/${callback}`)).status, 404)
      t.equal(await scene.notify(callback, body), 404)
      t.equal((await node.ask(`DELETE /eventsource/${id}`)).status, 204)
      await reader.until('its end', ({ isClosed }) => isClosed)
      t.equal((await node.ask(`DELETE /eventsource/${id}`)).status, 404)
    })

    t.test('any body passes as it is', async t => {
      const scene = await Scene.start(t, { server })
      const id = await scene.open()
      const reader = await scene.read(id)
      const callback = await scene.register(id)
      const large = JSON.stringify({ text: 'x'.repeat(900_000), quotes: '"'.repeat(50_000) })
      const bodies = ['not json {', '{"a":1,"a":2}', 'event: x\n\ndata: y\r\n', large]
      for (const body of bodies) t.equal(await scene.notify(callback, body), 204)
      t.equal(await scene.notify(callback, 'a=b', ['Content-Type: application/ld+json; charset=utf-8']), 204)
      t.equal(await scene.notify(callback, 'a=b', ['Content-Type: application/x-www-form-urlencoded']), 204)
      await reader.until('all', one => notifications(one).length === 6)
      t.strictSame(
        notifications(reader).map(({ data }) => data.payload),
        [...bodies, 'a=b', 'a=b'],
      )
      t.equal(notifications(reader)[4]?.data.headers['content-type'], 'application/ld+json; charset=utf-8')
      const beyond = await scene.node.ask(
        `POST /callbacks/${callback}`,
        ['Content-Type: application/json'],
        'x'.repeat(1_048_577),
      )
      t.match(beyond, { status: 413, json: { error: 'RequestEntityTooLarge' } })
    })

    t.test('a wrong request is answered with a reason', async t => {
      const scene = await Scene.start(t, { server })
      const { node } = scene
      const id = await scene.open()
      const json = ['Content-Type: application/json']
      for (const [line, headers, body, status, text] of [
        [`GET /eventsource/${unknown}`, ['Accept: text/event-stream'], '', 204, /^$/],
        ['GET /eventsource/%00', [], '', 204, /^$/],
        [`GET /eventsource/${'x'.repeat(5_000)}`, [], '', 204, /^$/],
        [`DELETE /eventsource/${unknown}`, [], '', 404, /there is no such event source/],
        [`DELETE /callbacks/${unknown}`, [], '', 404, /there is no such callback/],
        [`POST /callbacks/${unknown}`, json, '{}', 404, /there is no such callback/],
        [`POST /callbacks/${id}`, json, '{}', 404, /there is no such callback/],
        ['POST /callbacks/constructor', json, '{}', 404, /there is no such callback/],
        ['POST /callbacks', json, JSON.stringify({ connection_id: unknown }), 404, /no such event source/],
        ['POST /callbacks', json, '{"connection_id":"__proto__"}', 404, /no such event source/],
        ['POST /callbacks', json, '{"connection_id":{"a":1}}', 400, /connection_id must be the id/],
        ['POST /callbacks', json, '{"__proto__":{"connection_id":"x"}}', 400, /connection_id must be the id/],
        ['POST /callbacks', json, '[]', 400, /connection_id must be the id/],
        ['POST /callbacks', json, 'null', 400, /connection_id must be the id/],
        ['POST /callbacks', json, '{', 400, /ParseError/],
        ['POST /callbacks', ['Content-Type: text/plain'], '{}', 415, /text\/plain/],
        ['POST /callbacks', ['Content-Length: 0'], '', 411, /Content-Length/],
        ['GET /callbacks', [], '', 405, /method not allowed/],
        ['GET /eventsource', [], '', 405, /method not allowed/],
        [`PUT /eventsource/${id}`, json, '{}', 405, /method not allowed/],
        ['GET /eventsources', [], '', 400, /Service not found/],
        [`GET /eventsource/${id}/x`, [], '', 400, /Service not found/],
        ['POST /eventsource', ['X-Forwarded-Host: a b'], '', 400, /must be a host/],
        ['POST /eventsource', ['X-Forwarded-Host: evil.example/x?'], '', 400, /must be a host/],
        ['POST /eventsource', ['X-Forwarded-Host: a.example:99999'], '', 400, /must be a host/],
        ['POST /eventsource', ['X-Forwarded-Host: "><script>'], '', 400, /must be a host/],
      ] as const) {
        const answer = await node.ask(line, headers, body)
        t.match(
          { status: answer.status, text: answer.text },
          { status, text },
          `${line.slice(0, 60)} ${body} ${headers}`,
        )
      }
    })

    t.test('URLs begin with the address that the client or its proxy names', async t => {
      const { node } = await Scene.start(t, { server })
      const locationOf = async (...headers: string[]): Promise<string> =>
        (await node.ask('POST /eventsource', [...headers, 'Content-Length: 0'])).headers.location ?? ''
      for (const [headers, address] of [
        [[], 'http://test'],
        [['X-Forwarded-Proto: https'], 'https://test'],
        [['X-Forwarded-Proto: https', 'X-Forwarded-Host: broker.example'], 'https://broker.example'],
        [['X-Forwarded-Proto: https, http', 'X-Forwarded-Host: a.example:8443, b'], 'https://a.example:8443'],
        [['X-Forwarded-Host: [2001:db8::1]:1026'], 'http://[2001:db8::1]:1026'],
        [['X-Forwarded-Proto: javascript'], 'http://test'],
      ] as const)
        t.match(
          await locationOf(...headers),
          new RegExp(`^${address.replaceAll(/[[\]]/g, '\\$&')}/eventsource/${uuid}$`),
        )
    })

    t.test('pages of allowed origins see answers and events, and others do not', async t => {
      const { node } = await Scene.start(t, { server, cors: { origins: 'all', maxAgeS: 600 } })
      const opened = await node.ask('POST /eventsource', [origin, 'Content-Length: 0'])
      const id = (opened.json as { connection_id: string }).connection_id
      t.match(opened.headers, { 'access-control-allow-origin': '*', 'access-control-expose-headers': /Location/ })
      for (const [path, methods] of [
        ['/eventsource', 'POST, OPTIONS'],
        [`/eventsource/${id}`, 'GET, DELETE, OPTIONS'],
        ['/callbacks', 'POST, OPTIONS'],
        [`/callbacks/${id}`, 'POST, DELETE, OPTIONS'],
      ] as const) {
        const { status, headers } = await node.ask(`OPTIONS ${path}`, [origin])
        t.match({ status, headers }, { status: 200, headers: { 'access-control-allow-methods': methods } }, path)
        t.match(headers, { 'access-control-allow-headers': /Content-Type/, 'access-control-allow-origin': '*' })
      }
      const gone = await node.ask(`GET /eventsource/${unknown}`, [origin, 'Accept: text/event-stream'])
      t.match(gone, { status: 204, headers: { 'access-control-allow-origin': '*' } })
      const events = await fetch(`http://127.0.0.1:${node.port}/eventsource/${id}`, {
        headers: { Origin: 'https://a.example' },
      })
      t.equal(events.headers.get('access-control-allow-origin'), '*')
      await events.body?.cancel()
      const strict = await Scene.start(t, { server })
      const other = await strict.node.ask('POST /eventsource', [origin, 'Content-Length: 0'])
      t.equal(other.headers['access-control-allow-origin'], undefined)
      t.equal((await strict.node.ask('OPTIONS /eventsource', [origin])).status, 405)
    })

    t.test('a reader that comes back goes on with its callbacks, and a second one takes its place', async t => {
      const scene = await Scene.start(t, { server })
      const id = await scene.open()
      const callback = await scene.register(id)
      const first = await scene.read(id)
      const second = await scene.read(id)
      await first.until('its end', ({ isClosed }) => isClosed)
      t.equal(await scene.notify(callback, '1'), 204)
      await second.first('notification')
      t.equal(notifications(first).length, 0)
      second.close()
      await scene.untilMetric('orrery_streams{transport="proxy"}', 0)
      t.equal(await scene.notify(callback, '2'), 204, 'nobody reads it')
      t.equal(await scene.metric('orrery_ngsi_proxy_lost_total'), 1)
      const third = await scene.read(id)
      t.equal(await scene.notify(callback, '3'), 204)
      t.equal((await third.first('notification')).data.payload, '3')
    })

    t.test('a reader that stops is closed when too much waits, and delays no other one', async t => {
      const scene = await Scene.start(t, { server })
      const [slow, quick] = [await scene.open(), await scene.open()]
      const [toSlow, toQuick] = [await scene.register(slow), await scene.register(quick)]
      const stopped = await scene.read(slow)
      const going = await scene.read(quick)
      stopped.pause()
      const body = 'x'.repeat(500_000)
      let sent = 0
      const closed = 'orrery_streams_closed_total{cause="slow"}'
      for (; (await scene.metric(closed)) === 0 && sent < 200; sent++) {
        t.equal(await scene.notify(toSlow, body), 204)
        t.equal(await scene.notify(toQuick, String(sent)), 204)
        await going.until('its notification', one => notifications(one).length === sent + 1)
      }
      t.equal(await scene.metric(closed), 1, `after ${sent} notifications`)
      t.ok(sent > 8, 'at least 4 MB were kept for it')
      stopped.resume()
      await stopped.until('its end', ({ isClosed }) => isClosed)
      const back = await scene.read(slow)
      t.equal(await scene.notify(toSlow, 'again'), 204)
      t.equal((await back.first('notification')).data.payload, 'again')
    })

    t.test('a reader that was slow for a moment gets everything in order', async t => {
      const scene = await Scene.start(t, { server })
      const id = await scene.open()
      const callback = await scene.register(id)
      const reader = await scene.read(id)
      reader.pause()
      const body = 'x'.repeat(100_000)
      const count = 60
      for (let n = 0; n < count; n++) t.equal(await scene.notify(callback, `${n} ${body}`), 204)
      reader.resume()
      await reader.until('all', one => notifications(one).length === count)
      t.strictSame(
        notifications(reader).map(({ data }) => Number.parseInt(data.payload, 10)),
        Array.from({ length: count }, (_, n) => n),
      )
    })

    t.test("the broker's own notifications reach a page, as they reach no other path of its own", async t => {
      const scene = await Scene.start(t, { server, tenants: true })
      const { node, url } = scene
      const id = await scene.open()
      const reader = await scene.read(id)
      const callback = await scene.register(id)
      const subject = { entities: [{ idPattern: '.*', type: 'Room' }] }
      const city = ['Fiware-Service: city', 'Fiware-ServicePath: /north']
      const subscribe = async (to: string): Promise<string> => {
        const body = { subject, notification: { http: { url: to } } }
        const { headers } = await node.json('POST /v2/subscriptions', body, city)
        return headers.location as string
      }
      await subscribe(`${url}/callbacks/${callback}`)
      const others = await Promise.all(
        [`${url}/callbacks`, `${url}/eventsource/${id}`, `${url}/callbacks/${callback}/x`].map(subscribe),
      )
      await node.json('POST /v2/entities', { id: 'R1', type: 'Room', temperature: { value: 21 } }, city)
      const { payload, headers } = (await reader.first('notification')).data
      t.match(JSON.parse(payload), { data: [{ id: 'R1', temperature: { value: 21 } }] })
      t.match(headers, { 'ngsiv2-attrsformat': 'normalized', 'ctx-service': 'city', 'ctx-servicepath': '/north' })
      for (const location of others) t.equal(await outcomeOf(node, location, city), 'dead', location)
    })

    t.test('without -ngsiProxy there are no such paths, and no notification to them', async t => {
      const node = await startLocalNode(t, { server })
      for (const line of ['POST /eventsource', `GET /eventsource/${unknown}`, `DELETE /callbacks/${unknown}`])
        t.match(await node.ask(line), { status: 400, json: { description: /Service not found/ } }, line)
      const url = `http://127.0.0.1:${node.port}/callbacks/${unknown}`
      const { headers } = await node.json('POST /v2/subscriptions', {
        subject: { entities: [{ idPattern: '.*' }] },
        notification: { http: { url } },
      })
      await node.json('POST /v2/entities', { id: 'R1', type: 'Room', a: { value: 1 } })
      t.equal(await outcomeOf(node, headers.location as string), 'dead')
    })

    t.test('when the node stops, its readers end', async t => {
      const scene = await Scene.start(t, { server })
      const reader = await scene.read(await scene.open())
      await scene.node.running?.unlisten()
      await reader.until('its end', ({ isClosed }) => isClosed)
      t.ok(reader.isClosed)
    })

    t.test('floods of event sources and callbacks leave the broker as it was', async t => {
      const scene = await Scene.start(t, { server })
      const id = await scene.open()
      const reader = await scene.read(id)
      const callback = await scene.register(id)
      const flood = async (count: number, path: string, body?: unknown): Promise<Map<number, number>> => {
        const statuses = new Map<number, number>()
        const one = async (): Promise<void> => {
          const response = await fetch(scene.url + path, {
            method: 'POST',
            ...(body !== undefined && {
              headers: { 'Content-Type': 'application/json' },
              body: JSON.stringify(body),
            }),
          })
          await response.arrayBuffer()
          statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
        }
        for (let n = 0; n < count; n += 50) await Promise.all(Array.from({ length: 50 }, one))
        return statuses
      }
      t.strictSame([...(await flood(10_100, '/eventsource'))], [[201, 10_100]])
      const callbacks = await flood(1_050, '/callbacks', { connection_id: id })
      t.strictSame([...callbacks].sort(), [
        [201, 999],
        [503, 51],
      ])
      t.equal(await scene.notify(callback, 'still there'), 204)
      t.equal((await reader.first('notification')).data.payload, 'still there')
    })
  })

t.test('a broker elsewhere notifies as well', async t => {
  const page = await Scene.start(t, {})
  const broker = await startLocalNode(t)
  const id = await page.open()
  const reader = await page.read(id)
  const callback = await page.register(id)
  await broker.json('POST /v2/subscriptions', {
    subject: { entities: [{ idPattern: '.*' }] },
    notification: { http: { url: `${page.url}/callbacks/${callback}` } },
  })
  await broker.json('POST /v2/entities', { id: 'R1', type: 'Room', a: { value: 1 } })
  t.match(JSON.parse((await reader.first('notification')).data.payload), { data: [{ id: 'R1' }] })
})

t.test('over TLS the URLs begin with https, unless a proxy in front says otherwise', async t => {
  const originOf = (headers: Readonly<Record<string, string>>): string | undefined => {
    const exchange = { method: 'POST', header: (name: string) => headers[name] ?? '' } as Exchange
    return proxyHeadOf(exchange, ['eventsource'], true)?.origin
  }
  t.equal(originOf({ host: 'a.example:1026' }), 'https://a.example:1026')
  t.equal(originOf({ host: 'a.example', 'x-forwarded-proto': 'http' }), 'http://a.example')
  t.equal(originOf({}), undefined)
})

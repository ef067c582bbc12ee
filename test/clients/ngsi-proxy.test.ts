// A page that was written for ngsi-proxy works with Orrery alone: `NGSI.ProxyConnection` of ngsijs, unmodified, with
// the broker as its proxy (docs/interface/live.md#ngsi-proxy).
//
// ngsijs runs in Node here, over its own adapter. A browser has `EventSource`; event-source.ts takes its place.
//
// Not here: the paths themselves, and hostile clients (test/http/ngsi-proxy.test.ts).

import { createRequire } from 'node:module'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startBroker, tempDir } from '../support/broker-process.js'
import { root } from '../support/project.js'
import { NodeEventSource } from './event-source.js'
import type { Connection as PlainConnection } from './ngsijs.js'

t.setTimeout(300_000)

interface Notification {
  readonly subscriptionId: string
  readonly data: readonly Readonly<Record<string, unknown>>[]
  readonly attrsformat: string
}

type Callback = (
  notification: Notification | null,
  headers: Readonly<Record<string, string>> | null,
  isStateChange: boolean,
  state: string | null,
) => void

interface ProxyConnection {
  readonly connected: boolean
  readonly connection_id: string | null
  readonly subscriptionCallbacks: Readonly<Record<string, string>>
  connect(): Promise<void>
  requestCallback(callback: (payload: string) => void): Promise<{ callback_id: string; url: string }>
  closeCallback(id: string): Promise<void>
  closeSubscriptionCallback(subscription: string): Promise<void>
  close(): Promise<void>
}

interface Library {
  readonly Connection: new (
    url: string,
    options: Readonly<Record<string, unknown>>,
  ) => PlainConnection & { readonly ngsi_proxy: ProxyConnection }
  readonly ProxyConnection: new (url: string, makeRequest: unknown) => ProxyConnection
}

// The same package as in the workspace of clients: the project has it for its tests in browsers.
const NGSI = createRequire(join(root, 'package.json'))('ngsijs') as Library
Object.assign(globalThis, { EventSource: NodeEventSource })
t.teardown(() => NodeEventSource.closeAll())

async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (const untilMs = performance.now() + 60_000; !(await isSo()); ) {
    if (performance.now() > untilMs) throw new Error(`waited too long for ${what}`)
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}

/** A page with a connection to a broker that is its ngsi-proxy as well. */
class Page {
  readonly notifications: Notification[] = []
  readonly headers: Readonly<Record<string, string>>[] = []
  readonly states: (string | null)[] = []
  readonly connection

  constructor(url: string) {
    this.connection = new NGSI.Connection(url, { ngsi_proxy_url: url })
  }

  get proxy(): ProxyConnection {
    return this.connection.ngsi_proxy
  }

  async subscribe(type: string): Promise<string> {
    const callback: Callback = (notification, headers, isStateChange, state) => {
      if (isStateChange) this.states.push(state)
      if (notification) this.notifications.push(notification)
      if (headers) this.headers.push(headers)
    }
    const { subscription } = await this.connection.v2.createSubscription({
      subject: { entities: [{ idPattern: '.*', type }] },
      notification: { attrsFormat: 'keyValues', callback },
    })
    return subscription.id
  }

  room(temperature: number, type = 'Room') {
    const entity = { id: `${type}1`, type, temperature: { type: 'Number', value: temperature } }
    return this.connection.v2.createEntity(entity, { upsert: true })
  }

  get temperatures(): readonly unknown[] {
    return this.notifications.map(({ data: [entity] }) => entity?.temperature)
  }
}

const start = (t: Test, args: readonly string[] = [], dataDir = tempDir(t), port?: number) =>
  startBroker(t, { args: ['-ngsiProxy', ...args], dataDir, ...(port !== undefined && { port }) })

for (const args of [[], ['-httpServer', 'node'], ['-compat', 'fiware']]) {
  const how = args.join(' ') || 'as it is'

  t.test(`a subscription with a function calls it for each update (${how})`, async t => {
    const broker = await start(t, args)
    const page = new Page(broker.baseUrl)
    const [rooms, halls] = [await page.subscribe('Room'), await page.subscribe('Hall')]
    t.ok(page.proxy.connected)
    t.strictSame(Object.keys(page.proxy.subscriptionCallbacks), [rooms, halls])
    for (const temperature of [21, 22, 23]) {
      await page.room(temperature)
      await until('its notification', () => page.temperatures.includes(temperature))
    }
    await page.room(18, 'Hall')
    await until('the notification of the other subscription', () => page.temperatures.includes(18))
    t.strictSame(
      page.notifications.map(({ subscriptionId, attrsformat, data }) => [subscriptionId, attrsformat, data]),
      [
        [rooms, 'keyValues', [{ id: 'Room1', type: 'Room', temperature: 21 }]],
        [rooms, 'keyValues', [{ id: 'Room1', type: 'Room', temperature: 22 }]],
        [rooms, 'keyValues', [{ id: 'Room1', type: 'Room', temperature: 23 }]],
        [halls, 'keyValues', [{ id: 'Hall1', type: 'Hall', temperature: 18 }]],
      ],
    )
    const prefix = args.includes('fiware') ? 'fiware' : 'ctx'
    t.match(page.headers[0], { 'content-type': /^application\/json/, [`${prefix}-servicepath`]: '/' })

    await page.proxy.closeSubscriptionCallback(rooms)
    await page.room(24)
    await page.room(19, 'Hall')
    await until('the notification of the other subscription', () => page.temperatures.includes(19))
    t.notOk(page.temperatures.includes(24))
    await page.proxy.close()
    t.notOk(page.proxy.connected)
    t.strictSame(page.proxy.subscriptionCallbacks, {})
  })
}

t.test('a page that loses its connection gets it back with its callbacks', async t => {
  const broker = await start(t)
  const page = new Page(broker.baseUrl)
  await page.subscribe('Room')
  await page.room(21)
  await until('a notification', () => page.temperatures.includes(21))
  const { connection_id: id } = page.proxy
  NodeEventSource.loseAll()
  await until('the connection', () => page.states.includes('connected'))
  t.strictSame(page.states, ['disconnected', 'connected'])
  t.equal(page.proxy.connection_id, id)
  await page.room(22)
  await until('a notification', () => page.temperatures.includes(22))
  t.strictSame(page.temperatures, [21, 22])
})

t.test('a page learns that its event source has ended with the broker, and begins anew', async t => {
  const dataDir = tempDir(t)
  const broker = await start(t, [], dataDir)
  const page = new Page(broker.baseUrl)
  const old = await page.subscribe('Room')
  await broker.kill('SIGTERM')
  await start(t, [], dataDir, broker.port)
  await until('its end', () => page.states.includes('closed'))
  t.equal(page.states[0], 'disconnected')
  t.notOk(page.proxy.connected)
  const again = await page.subscribe('Room')
  await page.room(23)
  await until('a notification', () => page.temperatures.includes(23))
  t.strictSame(
    page.notifications.map(({ subscriptionId }) => subscriptionId),
    [again],
    `and none of ${old}`,
  )
})

t.test('after a refused subscription the page goes on, with callbacks of its own', async t => {
  const broker = await start(t)
  const page = new Page(broker.baseUrl)
  await t.rejects(
    page.connection.v2.createSubscription({
      subject: { entities: [{ idPattern: '(', type: 'Room' }] },
      notification: { callback: () => {} },
    }),
  )
  const texts: string[] = []
  const { callback_id: id, url } = await page.proxy.requestCallback(text => texts.push(text))
  t.match(url, `${broker.baseUrl}/callbacks/${id}`)
  const response = await fetch(url, { method: 'POST', headers: { 'Content-Type': 'text/plain' }, body: 'hello' })
  t.equal(response.status, 204)
  await until('the text', () => texts.length > 0)
  t.strictSame(texts, ['hello'])
  await page.proxy.closeCallback(id)
  await t.rejects(page.proxy.closeCallback(id), { name: 'InvalidResponse' })
})

t.test('without -ngsiProxy the page gets the answer that there is no proxy', async t => {
  const broker = await startBroker(t)
  const page = new Page(broker.baseUrl)
  await t.rejects(page.subscribe('Room'), { name: 'InvalidResponse', message: /400/ })
})

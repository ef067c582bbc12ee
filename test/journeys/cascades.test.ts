// Subscriptions that notify the broker itself: the number of notifications that one request causes
// (docs/interface/cascades.md).

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: macros of notifications look like templates

import t from 'tap'
import { startBroker, tempDir } from '../support/broker-process.js'
import { HttpClient } from '../support/http-client.js'

const max = 300
const subscriptions = 10

interface Shown {
  readonly notification: { readonly timesSent?: number }
}

/** A number of `/metrics`. */
async function metric(client: HttpClient, name: string): Promise<number> {
  const { text } = await client.get('/metrics')
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1])
}

const dropped = 'orrery_notification_descendants_dropped_total'

async function sent(client: HttpClient): Promise<number> {
  const { json } = await client.get('/v2/subscriptions')
  return (json as Shown[]).reduce((sum, { notification }) => sum + (notification.timesSent ?? 0), 0)
}

const waitMs = 20_000

/** Resolves when the condition holds; throws when that takes too long. */
async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + waitMs
  while (!(await holds())) if (performance.now() > endMs) throw new Error(`waited ${waitMs} ms until ${what}`)
}

/** Resolves when no notification is pending. */
const settled = (client: HttpClient): Promise<void> =>
  until('nothing is owed', async () => (await metric(client, 'orrery_outbox_rows')) === 0)

for (const kill of [false, true])
  t.test(`ten subscriptions that make ten entities of each${kill ? ', through a crash' : ''}`, async t => {
    const dataDir = tempDir(t)
    const args = ['-notifDescendants', String(max)]
    let broker = await startBroker(t, { dataDir, args })
    const { port } = new URL(broker.baseUrl)
    let client = new HttpClient(broker.baseUrl)
    for (let n = 0; n < subscriptions; n++) {
      // Each change is that of another entity, so no cycle is ever closed.
      const httpCustom = { url: `http://127.0.0.1:${port}/v2/op/notify`, ngsi: { id: `\${id}${n}` } }
      const subscription = { subject: { entities: [{ idPattern: '.*' }] }, notification: { httpCustom } }
      t.equal((await client.send('POST', '/v2/subscriptions', subscription)).status, 201)
    }
    t.equal((await client.send('POST', '/v2/entities', { id: 'E', type: 'T', n: { value: 1 } })).status, 201)
    if (kill) {
      await until('half of them are sent', async () => (await sent(client)) >= max / 2)
      await broker.kill('SIGKILL')
      client.close()
      broker = await startBroker(t, { dataDir, args, port: Number(port) })
      client = new HttpClient(broker.baseUrl)
    }
    await until('some are dropped', async () => (await metric(client, dropped)) > 0)
    await settled(client)
    const { text } = await client.get('/v2/entities?limit=1&options=count')
    t.equal(JSON.parse(text).length, 1)
    const count = Number((await client.get('/v2/entities?limit=1&options=count')).headers['ctx-total-count'])
    // If the broker was killed while a notification was in flight, it sends it again: the entity exists already.
    t.ok(count <= max + 1, `${count} entities`)
    t.ok((await sent(client)) <= max, `${await sent(client)} notifications`)
    const lines = broker.stdout.split('\n').filter(line => line.includes('notifications descend from one request'))
    t.equal(lines.length, 1, 'told once')
    client.close()
  })

t.test('a patched entity that comes back to where it came from triggers no custom notification', async t => {
  const broker = await startBroker(t)
  const client = new HttpClient(broker.baseUrl)
  const attribute = { value: '${n}${n}' }
  const subscriptionTo = (ngsi: object) => ({
    subject: { entities: [{ idPattern: '.*' }], condition: { alterationTypes: ['entityUpdate'] } },
    notification: { httpCustom: { url: `${broker.baseUrl}/v2/op/notify`, ngsi } },
  })
  for (const name of ['a', 'b'])
    t.equal((await client.send('POST', '/v2/subscriptions', subscriptionTo({ [name]: attribute }))).status, 201)
  t.equal((await client.send('POST', '/v2/entities', { id: 'E', type: 'T', n: { value: 1 } })).status, 201)
  t.equal((await client.send('PATCH', '/v2/entities/E/attrs', { n: { value: 2 } })).status, 204)
  const derived = async () => (await client.get('/v2/entities/E?options=keyValues&attrs=a,b')).json as object
  await until('both are derived', async () => Object.keys(await derived()).length === 4)
  await settled(client)
  t.same(await derived(), { id: 'E', type: 'T', a: '22', b: '22' })
  t.equal(await sent(client), 2)
  client.close()
})

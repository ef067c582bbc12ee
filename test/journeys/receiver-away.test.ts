// A receiver goes away, many changes happen, and it comes back: the broker notices within five seconds, and sends all
// pending notifications, in order. Also when the broker is killed meanwhile, with several workers, and over MQTT.
//
// `ORRERY_AWAY_SECONDS` is how long the receiver stays away; more than 156 are longer than five tries of one delivery
// take.
//
// Not here: the lanes (test/deliver/lanes.test.ts), the rows (test/shard/notify/outbox.test.ts).

import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { aedesBroker } from '../deliver/brokers.js'
import { httpReceiver, type Received, until } from '../deliver/receivers.js'
import { freePort, startBroker, tempDir } from '../support/broker-process.js'
import { brief, Tenant } from './notified.js'

const awayMs = 1000 * Number(process.env.ORRERY_AWAY_SECONDS ?? 0)
const noticeMsMax = 5_000
/** For the messages themselves, on a machine that is busy. */
const sendMsMax = 15_000
const entities = ['R1', 'R2', 'R3', 'R4']
const rounds = 200

t.setTimeout(400_000 + 2 * awayMs)

async function changeAll(tenant: Tenant, from: number): Promise<void> {
  for (let n = from; n < from + rounds; n++)
    await tenant.send('POST /v2/op/update', {
      actionType: 'append',
      entities: entities.map(id => ({ id, type: 'Room', n: { type: 'Number', value: n } })),
    })
}

/** Values of each entity, in the order of arrival. */
function valuesByEntity(received: readonly Received[]): Map<string, number[]> {
  const values = new Map<string, number[]>()
  for (const { body } of received) {
    const { id, n } = JSON.parse(body) as { readonly id: string; readonly n: number }
    values.set(id, [...(values.get(id) ?? []), n])
  }
  return values
}

const range = (count: number): number[] => Array.from({ length: count }, (_, n) => n)

/** Opens the receiver, and expects all notifications to arrive in order within the time. */
async function expectAll(t: Test, port: number, count: number): Promise<void> {
  const backMs = performance.now()
  const receiver = await httpReceiver(t, undefined, undefined, port)
  await until(() => receiver.received.length > 0, 'the first one')
  const noticedMs = performance.now() - backMs
  await until(() => receiver.received.length >= entities.length * count, 'the last one')
  const tookMs = performance.now() - backMs
  t.comment(`noticed after ${noticedMs.toFixed()} ms, all of ${receiver.received.length} after ${tookMs.toFixed()} ms`)
  t.ok(noticedMs < noticeMsMax, `${noticedMs.toFixed()} ms`)
  t.ok(tookMs < noticeMsMax + sendMsMax, `${tookMs.toFixed()} ms`)
  const values = valuesByEntity(receiver.received)
  for (const id of entities) t.strictSame(values.get(id), range(count), id)
}

for (const workers of ['1', '2'])
  t.test(
    `a receiver that comes back gets all that waits, in order, and has failed once: workers ${workers}`,
    async t => {
      const tenant = new Tenant(t, await startBroker(t, { args: ['-workers', workers] }))
      const port = await freePort()
      const id = await tenant.subscribe(brief(`http://127.0.0.1:${port}`))
      await changeAll(tenant, 0)
      await pause(awayMs)
      const { notification } = await tenant.subscription(id)
      t.ok(notification.failsCounter! <= entities.length * rounds, `${notification.failsCounter} failures`)
      await expectAll(t, port, rounds)
      await tenant.until(id, shown => shown.notification.failsCounter === undefined)
      const dead = (await tenant.send(`GET /v2/subscriptions/${id}/deliveries`)).json as { deadLettersCount: number }
      t.equal(dead.deadLettersCount, 0)
    },
  )

t.test('all that waits comes in order when the broker is killed twice meanwhile', async t => {
  const dataDir = tempDir(t)
  const port = await freePort()
  const first = await startBroker(t, { dataDir })
  await new Tenant(t, first).subscribe(brief(`http://127.0.0.1:${port}`))
  await changeAll(new Tenant(t, first), 0)
  await pause(awayMs)
  await first.kill('SIGKILL')
  const second = await startBroker(t, { dataDir })
  await changeAll(new Tenant(t, second), rounds)
  await second.kill('SIGKILL')
  await startBroker(t, { dataDir })
  await expectAll(t, port, 2 * rounds)
})

/** Resolves when a try has ended since the start. */
async function untilTried(tenant: Tenant, id: string): Promise<void> {
  for (let tries = 0; tries === 0; ) {
    const { json } = await tenant.send(`GET /v2/subscriptions/${id}/deliveries`)
    tries = (json as { readonly deliveries: readonly unknown[] }).deliveries.length
  }
}

t.test('a notification that waits does not switch its subscription off by restarts', async t => {
  const dataDir = tempDir(t)
  const port = await freePort()
  let broker = await startBroker(t, { dataDir })
  const body = { ...brief(`http://127.0.0.1:${port}`), maxFailsLimit: 2 }
  const id = await new Tenant(t, broker).subscribe(body)
  await new Tenant(t, broker).create('R1', { n: 0 })
  await new Tenant(t, broker).until(id, ({ notification }) => notification.failsCounter === 1)
  for (let restarts = 0; restarts < 3; restarts++) {
    await broker.kill('SIGTERM')
    broker = await startBroker(t, { dataDir })
    await untilTried(new Tenant(t, broker), id)
    const { status, notification } = await new Tenant(t, broker).subscription(id)
    t.strictSame([status, notification.failsCounter], ['active', 1])
  }
  const receiver = await httpReceiver(t, undefined, undefined, port)
  await until(() => receiver.received.length === 1)
})

t.test('an MQTT broker that comes back gets all that waits, in order', async t => {
  const tenant = new Tenant(t, await startBroker(t))
  const port = await freePort()
  const mqtt = { url: `mqtt://127.0.0.1:${port}`, topic: 'rooms', qos: 1 }
  await tenant.subscribe({ mqtt, attrsFormat: 'simplifiedKeyValues' })
  for (let n = 0; n < 50; n++)
    await tenant.send('POST /v2/entities?options=keyValues,upsert', { id: 'R1', type: 'Room', n })
  const backMs = performance.now()
  const { published } = await aedesBroker(t, { port })
  await until(() => published.length >= 50)
  t.ok(performance.now() - backMs < noticeMsMax + sendMsMax)
  t.strictSame(
    published.map(({ payload }) => (JSON.parse(payload) as { readonly n: number }).n),
    range(50),
  )
})

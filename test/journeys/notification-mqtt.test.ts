// Subscriptions whose receiver is an MQTT broker: aedes in this process, and mosquitto.
//
// Not here: connections, idle times, certificates (test/deliver/mqtt-sender.test.ts).

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: macros of notifications look like templates

import t from 'tap'
import { aedesBroker, hasMosquitto, mosquitto, untilPublished } from '../deliver/brokers.js'
import { freePort, startBroker } from '../support/broker-process.js'
import { Tenant } from './notified.js'

t.setTimeout(600_000)
const broker = await startBroker(t, { args: ['-multiservice', '-mqttTimeout', '2000'] })

const format = { attrsFormat: 'simplifiedKeyValues' }
const qualities = [0, 1, 2] as const

t.test('aedes gets a message with topic, QoS and retain flag, and one made of templates', async t => {
  const tenant = new Tenant(t, broker, 'aedes')
  const { port, published } = await aedesBroker(t)
  const url = `mqtt://127.0.0.1:${port}`
  const plain = await tenant.subscribe({ mqtt: { url, topic: 'rooms/all', qos: 1, retain: true }, ...format })
  const custom = { url, topic: '${service}/${type}/${id}', qos: 2, payload: '%22${n}%22 at ${servicePath}' }
  await tenant.subscribe({ mqttCustom: custom })
  await tenant.create('R1', { n: 21.5 }, { 'Ctx-ServicePath': '/b1' })
  await untilPublished(published, 2)
  t.strictSame(
    [...published].sort((a, b) => a.qos - b.qos),
    [
      { topic: 'rooms/all', payload: '{"id":"R1","type":"Room","n":21.5}', qos: 1, retain: true },
      { topic: 'aedes/Room/R1', payload: '"21.5" at /b1', qos: 2, retain: false },
    ],
  )
  const shown = await tenant.until(plain, ({ notification }) => notification.lastSuccess !== undefined)
  t.match(shown.notification, { timesSent: 1, lastSuccessCode: undefined, failsCounter: undefined })
})

t.test('a message that no broker takes comes when there is one', async t => {
  const tenant = new Tenant(t, broker, 'later')
  const port = await freePort()
  const id = await tenant.subscribe({ mqtt: { url: `mqtt://127.0.0.1:${port}`, topic: 'rooms', qos: 1 }, ...format })
  await tenant.create('R1', { n: 1 })
  const failed = await tenant.until(id, ({ notification }) => notification.failsCounter === 1)
  t.match(failed.notification, { timesSent: 1, lastSuccess: undefined, lastFailureReason: undefined })
  t.type(failed.notification.lastFailure, 'string')
  const { published } = await aedesBroker(t, { port })
  await untilPublished(published, 1)
  t.equal(published[0]!.payload, '{"id":"R1","type":"Room","n":1}')
  await tenant.until(id, ({ notification }) => notification.failsCounter === undefined)
})

const noMosquitto = !hasMosquitto() && 'mosquitto is not installed and cannot be'

t.test('mosquitto gets messages at any QoS from a client with the password', { skip: noMosquitto }, async t => {
  const tenant = new Tenant(t, broker, 'mosquitto')
  const { port, seen } = await mosquitto(t, 'ann', 'secret')
  const at = { url: `mqtt://127.0.0.1:${port}`, user: 'ann' }
  for (const qos of qualities)
    await tenant.subscribe({ mqtt: { ...at, passwd: 'secret', topic: `t/${qos}`, qos, retain: qos === 1 }, ...format })
  const stranger = await tenant.subscribe({ mqtt: { ...at, passwd: 'wrong', topic: 't/wrong' }, ...format })
  t.match((await tenant.send(`GET /v2/subscriptions/${stranger}`)).json, {
    notification: { mqtt: { passwd: '*****' } },
  })
  await tenant.create('R1', { n: 1 })
  await untilPublished(seen, 3)
  await tenant.until(stranger, ({ notification }) => notification.failsCounter === 1)
  // A connected client gets the retain flag only with messages that were stored for it.
  t.strictSame(
    [...seen].sort((a, b) => a.qos - b.qos),
    qualities.map(qos => ({ topic: `t/${qos}`, payload: '{"id":"R1","type":"Room","n":1}', qos, retain: false })),
  )
})

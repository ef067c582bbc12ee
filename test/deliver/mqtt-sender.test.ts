// Publishing to real brokers: the received messages, the connections, and the reported failures.

import t, { type Test } from 'tap'
import { systemClock } from '../../src/clock.js'
import { mqttAddress } from '../../src/deliver/address.js'
import { MqttSender, type MqttSenderOptions } from '../../src/deliver/mqtt-sender.js'
import type { SendResult } from '../../src/deliver/sender.js'
import { openSockets } from '../../src/deliver/sockets/sockets.js'
import type { MqttMessage } from '../../src/domain/subscriptions/message.js'
import type { Clock } from '../../src/ports.js'
import { freePort } from '../support/broker-process.js'
import { FakeClock } from '../support/fake-clock.js'
import { aedesBroker, hasMosquitto, mosquitto, untilPublished } from './brokers.js'
import { publication, sendable } from './messages.js'
import { certificateFor, plainReceiver, until } from './receivers.js'

const verified: Parameters<typeof openSockets>[0] = { insecure: false, caFile: undefined }

function senderFor(
  t: Test,
  options: Partial<MqttSenderOptions> = {},
  { tls = verified, clock = systemClock }: { readonly tls?: typeof verified; readonly clock?: Clock } = {},
) {
  const all = { timeoutMs: 5000, idleMsMax: 0, connectionsMax: 10, ...options }
  const sender = new MqttSender(clock, openSockets(tls), all)
  t.teardown(() => sender.close())
  const send = (message: MqttMessage): Promise<SendResult> =>
    new Promise(resolve => sender.send(sendable(message, mqttAddress(message)), resolve))
  return { sender, send }
}

const delivered: SendResult = { kind: 'answered', code: undefined }

t.test('a message arrives with its topic, payload, QoS and retain flag', async t => {
  const broker = await aedesBroker(t)
  const { send } = senderFor(t)
  const url = `mqtt://127.0.0.1:${broker.port}`
  for (const qos of [0, 1, 2] as const)
    for (const retain of [false, true]) {
      const message = publication(url, { topic: `t/${qos}`, body: 'ä', qos, retain })
      t.same(await send(message), delivered)
    }
  await untilPublished(broker.published, 6)
  t.same(
    broker.published.map(({ topic, payload, qos, retain }) => [topic, payload, qos, retain]),
    [0, 1, 2].flatMap(qos => [false, true].map(retain => [`t/${qos}`, 'ä', qos, retain])),
  )
  t.equal(broker.connections, 1)
})

t.test('messages in flight together share a connection and keep their order', async t => {
  const broker = await aedesBroker(t)
  const { send } = senderFor(t)
  const url = `mqtt://127.0.0.1:${broker.port}`
  const numbers = Array.from({ length: 50 }, (_, n) => `${n}`)
  await Promise.all(numbers.map(n => send(publication(url, { body: n, qos: 1 }))))
  t.same(
    broker.published.map(({ payload }) => payload),
    numbers,
  )
  t.equal(broker.connections, 1)
})

t.test('each pair of credentials has a connection of its own', async t => {
  const broker = await aedesBroker(t, { passwords: { ann: 'a', bob: 'b' } })
  const { send, sender } = senderFor(t)
  const url = `mqtt://127.0.0.1:${broker.port}`
  t.same(await send(publication(url, { login: { user: 'ann', passwd: 'a' } })), delivered)
  t.same(await send(publication(url, { login: { user: 'bob', passwd: 'b' } })), delivered)
  t.same(await send(publication(url, { login: { user: 'ann', passwd: 'a' } })), delivered)
  t.equal(broker.connections, 2)
  t.match(await send(publication(url, { login: { user: 'ann', passwd: 'wrong' } })), {
    kind: 'failed',
    reason: /^Connection refused: /,
  })
  t.match(await send(publication(url)), { kind: 'failed', reason: /^Connection refused: / })
  t.equal(sender.stats().connections, 2)
})

t.test('after the broker has been away the next message connects again', async t => {
  const port = await freePort()
  const before = await aedesBroker(t, { port })
  const { send, sender } = senderFor(t)
  const message = publication(`mqtt://127.0.0.1:${port}`, { qos: 1 })
  t.same(await send(message), delivered)
  await before.stop()
  await until(() => sender.stats().connections === 0)
  t.same(await send(message), { kind: 'failed', reason: "Couldn't connect to server" })
  const after = await aedesBroker(t, { port })
  t.same(await send(message), delivered)
  t.equal(after.published.length, 1)
})

t.test('a message that is not acknowledged in time has failed, and so has the connection', async t => {
  const broker = await aedesBroker(t, { isDeaf: true })
  const { send, sender } = senderFor(t, { timeoutMs: 100 })
  const message = publication(`mqtt://127.0.0.1:${broker.port}`, { qos: 1 })
  const timeout = { kind: 'failed', reason: 'Timeout was reached' }
  t.same(await Promise.all([send(message), send(message)]), [timeout, timeout])
  t.equal(sender.stats().connections, 0)
  await until(() => broker.open === 0)
})

t.test('a broker that never greets is given up in time', async t => {
  const silent = await plainReceiver(t, socket => socket.resume())
  const { send } = senderFor(t, { timeoutMs: 50 })
  const message = publication(`mqtt://127.0.0.1:${silent.port}`)
  t.same(await send(message), { kind: 'failed', reason: 'Timeout was reached' })
  await until(() => silent.open === 0)
})

t.test('a broker that hangs up or talks nonsense is a failure', async t => {
  const closing = await plainReceiver(t, socket => socket.end())
  const garbage = await plainReceiver(t, socket =>
    socket.once('data', () => socket.write('HTTP/1.1 400 Bad Request\r\n')),
  )
  const { send } = senderFor(t)
  const reason = 'Server returned nothing (no headers, no data)'
  t.same(await send(publication(`mqtt://127.0.0.1:${closing.port}`)), { kind: 'failed', reason })
  t.match(await send(publication(`mqtt://127.0.0.1:${garbage.port}`)), { kind: 'failed' })
})

t.test('mqtts is verified, with the operator’s certificates too', async t => {
  const tls = certificateFor(t, 'IP:127.0.0.1')
  const broker = await aedesBroker(t, { tls })
  const message = publication(`mqtts://127.0.0.1:${broker.port}`, { qos: 1 })
  const reason = 'Peer certificate cannot be authenticated with given CA certificates'
  t.same(await senderFor(t).send(message), { kind: 'failed', reason })
  const vouched = senderFor(t, {}, { tls: { insecure: false, caFile: tls.certFile } })
  t.same(await vouched.send(message), delivered)
  const insecure = senderFor(t, {}, { tls: { insecure: true, caFile: undefined } })
  t.same(await insecure.send(message), delivered)
})

t.test('connections are closed when they have not been used for long', async t => {
  const clock = new FakeClock()
  const broker = await aedesBroker(t)
  const { send, sender } = senderFor(t, { idleMsMax: 60_000 }, { clock })
  const message = publication(`mqtt://127.0.0.1:${broker.port}`)
  t.same(await send(message), delivered)
  clock.advance(60_000)
  t.equal(sender.stats().connections, 1)
  clock.advance(60_000)
  t.equal(sender.stats().connections, 0)
  await until(() => broker.open === 0)
})

t.test('the longest idle connection gives way to a new broker', async t => {
  const clock = new FakeClock()
  const [a, b, c] = [await aedesBroker(t), await aedesBroker(t), await aedesBroker(t)]
  const { send, sender } = senderFor(t, { connectionsMax: 2 }, { clock })
  for (const { port } of [a, b, c]) {
    clock.advance(1)
    t.same(await send(publication(`mqtt://127.0.0.1:${port}`)), delivered)
  }
  t.equal(sender.stats().connections, 2)
  await until(() => a.open === 0)
  t.same([b.open, c.open], [1, 1])
})

const noMosquitto = !hasMosquitto() && 'mosquitto is not installed and cannot be'

t.test('mosquitto gets messages at any QoS from a client with the password', { skip: noMosquitto }, async t => {
  const { port, seen } = await mosquitto(t, 'ann', 'secret')
  const { send } = senderFor(t)
  const url = `mqtt://127.0.0.1:${port}`
  const credentials = { login: { user: 'ann', passwd: 'secret' } }
  for (const qos of [0, 1, 2] as const)
    t.same(await send(publication(url, { ...credentials, topic: `t/${qos}`, qos })), delivered)
  await untilPublished(seen, 3)
  t.same(
    seen.map(({ topic, payload, qos }) => [topic, payload, qos]),
    [0, 1, 2].map(qos => [`t/${qos}`, '21', qos]),
  )
  t.match(await send(publication(url, { login: { user: 'ann', passwd: 'wrong' } })), {
    kind: 'failed',
    reason: /Not authorized/,
  })
  t.match(await send(publication(url)), { kind: 'failed', reason: /Not authorized/ })
})

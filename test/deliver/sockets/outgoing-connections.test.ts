// When the access file changes, connections to what it denies now are closed and not used again: idle ones, those with a
// message under way, and those that are still connecting.

import { Socket } from 'node:net'
import t, { type Test } from 'tap'
import { systemClock } from '../../../src/clock.js'
import { mqttAddress } from '../../../src/deliver/address.js'
import { Forwarder } from '../../../src/deliver/forwarder.js'
import { HttpSender } from '../../../src/deliver/http-sender.js'
import { MqttSender } from '../../../src/deliver/mqtt-sender.js'
import type { SendResult } from '../../../src/deliver/sender.js'
import { Egress } from '../../../src/deliver/sockets/egress.js'
import { OutgoingConnections } from '../../../src/deliver/sockets/outgoing-connections.js'
import { openSockets } from '../../../src/deliver/sockets/sockets.js'
import { aedesBroker } from '../brokers.js'
import { post, publication, sendable } from '../messages.js'
import { certificateFor, httpReceiver, until } from '../receivers.js'

const limits = { timeoutMs: 5000, connectionsMax: 10 }
const denied: SendResult = { kind: 'unsendable', reason: 'The target is denied here' }

function rules(): { readonly egress: Egress; readonly deny: () => void; readonly allow: () => void } {
  const egress = new Egress({ allow: [], deny: [], reserved: [] })
  const allow = () => egress.useFile({ egress: undefined })
  const deny = () => egress.useFile({ egress: { allow: [], deny: ['127.0.0.1', '::1'] } })
  allow()
  return { egress, deny, allow }
}

function httpSender(t: Test, egress: Egress, insecure = false) {
  const sender = new HttpSender(systemClock, openSockets({ insecure, caFile: undefined }, egress), limits)
  t.teardown(() => sender.close())
  const send = (url: string) => new Promise<SendResult>(resolve => sender.send(sendable(post(url)), resolve))
  return { sender, send }
}

for (const host of ['127.0.0.1', 'localhost'])
  t.test(`an idle connection to ${host} is closed and not used again`, async t => {
    const { egress, deny, allow } = rules()
    const receiver = await httpReceiver(t)
    const { sender, send } = httpSender(t, egress)
    const url = `http://${host}:${receiver.port}/`
    t.match(await send(url), { kind: 'answered', code: 204 })
    t.match(await send(url), { kind: 'answered', code: 204 })
    t.equal(receiver.connections, 1, 'it is kept')
    deny()
    t.same(await send(url), denied, 'in the same turn of the event loop')
    await until(() => receiver.open === 0 && sender.stats().connections === 0, 'it is closed')
    t.equal(receiver.received.length, 2)
    t.equal(receiver.connections, 1)
    allow()
    t.match(await send(url), { kind: 'answered', code: 204 })
    t.equal(receiver.connections, 2)
  })

t.test('a connection to what stays allowed is kept', async t => {
  const { egress } = rules()
  const receiver = await httpReceiver(t)
  const { send } = httpSender(t, egress)
  await send(`${receiver.url}/`)
  egress.useFile({ egress: { allow: ['127.0.0.0/8'], deny: ['127.0.0.2'] } })
  await send(`${receiver.url}/`)
  t.equal(receiver.connections, 1)
})

t.test('a message under way ends as denied, over TLS as well', async t => {
  for (const tls of [undefined, certificateFor(t, 'IP:127.0.0.1')]) {
    const { egress, deny } = rules()
    const receiver = await httpReceiver(t, () => {}, tls)
    const { send } = httpSender(t, egress, true)
    const sent = send(`${receiver.url}/`)
    await until(() => receiver.received.length === 1, 'it has arrived')
    deny()
    t.same(await sent, denied)
    await until(() => receiver.open === 0, 'it is closed')
    t.equal(receiver.connections, 1, 'it is not sent again')
  }
})

t.test('a request to a provider under way fails with that reason', async t => {
  const { egress, deny } = rules()
  const provider = await httpReceiver(t, () => {})
  const openSocket = openSockets({ insecure: false, caFile: undefined }, egress)
  const forwarder = new Forwarder(systemClock, openSocket, { timeoutMs: 5000, messageBytesMax: 10_000 })
  t.teardown(() => forwarder.close())
  const request = { url: `${provider.url}/op/query`, headers: [], body: '{}', isRepeatable: true }
  const answer = new Promise(resolve => forwarder.ask(request, resolve))
  await until(() => provider.received.length === 1, 'it has arrived')
  deny()
  t.same(await answer, { kind: 'failed', reason: 'The target is denied here' })
})

t.test('connections to MQTT brokers are closed, idle ones and those with messages under way', async t => {
  for (const isDeaf of [false, true]) {
    const { egress, deny, allow } = rules()
    const broker = await aedesBroker(t, { isDeaf })
    const openSocket = openSockets({ insecure: false, caFile: undefined }, egress)
    const sender = new MqttSender(systemClock, openSocket, { ...limits, idleMsMax: 0 })
    t.teardown(() => sender.close())
    const message = publication(`mqtt://127.0.0.1:${broker.port}`, { qos: 1 })
    const send = () => new Promise<SendResult>(resolve => sender.send(sendable(message, mqttAddress(message)), resolve))
    const first = send()
    if (isDeaf) await until(() => broker.open === 1, 'it is connected')
    else t.match(await first, { kind: 'answered' })
    deny()
    const next = send()
    if (isDeaf) t.same(await first, denied)
    t.same(await next, denied)
    await until(() => broker.open === 0 && sender.stats().connections === 0, 'it is closed')
    t.same(await send(), denied)
    t.equal(broker.connections, 1)
    if (isDeaf) continue
    allow()
    t.match(await send(), { kind: 'answered' })
  }
})

t.test('a socket that is connected after the change is closed before anything is sent', async t => {
  const { egress, deny } = rules()
  const open = new OutgoingConnections(egress)
  const receiver = await httpReceiver(t)
  const ends: string[] = []
  for (const host of ['localhost', '127.0.0.1']) {
    const socket = open.add(new Socket(), { host, port: receiver.port })
    socket.on('error', error => ends.push(`${host}: ${error.message}`))
    socket.connect(receiver.port, '127.0.0.1')
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  }
  deny()
  await until(() => ends.length === 2, 'both have ended')
  t.strictSame(ends.sort(), ['127.0.0.1: the target is denied here', 'localhost: the target is denied here'])
  await until(() => receiver.open === 0, 'both are closed')
  t.equal(receiver.received.length, 0)
})

t.test('the ports of new members are closed as well', async t => {
  const { egress } = rules()
  const receiver = await httpReceiver(t)
  const { send } = httpSender(t, egress)
  await send(`${receiver.url}/`)
  egress.reserveMembers([`127.0.0.1:${receiver.port}`])
  await until(() => receiver.open === 0, 'it is closed')
  t.same(await send(`${receiver.url}/`), denied)
})

t.test('what was closed is forgotten', async t => {
  const { egress, deny } = rules()
  const open = new OutgoingConnections(egress)
  const receiver = await httpReceiver(t)
  const socket = open.add(new Socket(), { host: '127.0.0.1', port: receiver.port })
  socket.connect(receiver.port, '127.0.0.1')
  await new Promise(resolve => socket.once('connect', resolve))
  await new Promise(resolve => socket.destroy().once('close', resolve))
  socket.on('error', () => t.fail('it is destroyed again'))
  deny()
  t.notOk(socket.errored)
})

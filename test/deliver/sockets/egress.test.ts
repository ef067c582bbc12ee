// Allowed and denied addresses of messages: the decision by name and by address, and its effect on sockets.

import { randomInt } from 'node:crypto'
import { networkInterfaces } from 'node:os'
import t from 'tap'
import { systemClock } from '../../../src/clock.js'
import { type Address, httpAddress, mqttAddress } from '../../../src/deliver/address.js'
import { Forwarder } from '../../../src/deliver/forwarder.js'
import { HttpSender } from '../../../src/deliver/http-sender.js'
import { MqttSender } from '../../../src/deliver/mqtt-sender.js'
import type { Sender, SendResult } from '../../../src/deliver/sender.js'
import { Egress, mayNotifyItself, mayNotifyPages } from '../../../src/deliver/sockets/egress.js'
import { openSockets } from '../../../src/deliver/sockets/sockets.js'
import type { AccessEgress } from '../../../src/domain/access/access-file.js'
import type { NotificationMessage } from '../../../src/domain/subscriptions/message.js'
import { aedesBroker } from '../brokers.js'
import { post, publication, sendable } from '../messages.js'
import { httpReceiver } from '../receivers.js'

const egress = (allow: string[], deny: string[] = [], reserved: string[] = []) => new Egress({ allow, deny, reserved })

/** allow | deny | reserved | host | port | resolved address of the host | by name | by address. */
const decisions: readonly (readonly [string, string, string, string, number, string, boolean, boolean])[] = [
  ['', '', '', 'a.example', 80, '10.0.0.1', true, true],
  ['', '', '', '169.254.169.254', 80, '169.254.169.254', false, false],
  ['', '', '', 'rebound.example', 80, '169.254.169.254', true, false],
  ['', '', '', 'rebound.example', 80, '::ffff:169.254.169.254', true, false],
  ['', '', '', 'rebound.example', 80, '::ffff:a9fe:a9fe', true, false],
  ['', '', '', '[fe80::1]', 80, 'fe80::1', false, false],
  ['', '', '', 'rebound.example', 80, 'fe80::1%eth0', true, false],
  ['*', '', '', '169.254.169.254', 80, '169.254.169.254', true, true],
  ['*.city.example', '', '', 'a.city.example', 80, '10.0.0.1', true, true],
  ['*.city.example', '', '', 'A.B.City.Example.', 80, '10.0.0.1', true, true],
  ['*.city.example', '', '', 'city.example', 80, '10.0.0.1', false, false],
  ['*.city.example', '', '', 'a.city.example.evil.example', 80, '10.0.0.1', false, false],
  ['quantumleap:8668', '', '', 'quantumleap', 8668, '10.0.0.1', true, true],
  ['quantumleap:8668', '', '', 'quantumleap', 8669, '10.0.0.1', false, false],
  ['10.20.0.0/16', '', '', '10.20.3.4', 80, '10.20.3.4', true, true],
  ['10.20.0.0/16', '', '', '10.21.3.4', 80, '10.21.3.4', false, false],
  ['10.20.0.0/16', '', '', 'inside.example', 80, '10.20.3.4', true, true],
  ['10.20.0.0/16', '', '', 'outside.example', 80, '10.21.3.4', true, false],
  ['10.20.0.0/16', '10.20.0.1', '', 'router.example', 80, '10.20.0.1', true, false],
  ['*', '*.intern.example', '', 'db.intern.example', 80, '10.0.0.1', false, false],
  ['', '127.0.0.0/8,::1', '', 'localhost', 80, '127.0.0.1', true, false],
  ['', '127.0.0.0/8,::1', '', '[::ffff:127.0.0.1]', 80, '::ffff:127.0.0.1', false, false],
  ['', '[2001:db8::1]:80', '', '[2001:DB8:0:0::1]', 80, '2001:DB8:0:0::1', false, false],
  ['', '[2001:db8::1]:80', '', '[2001:db8::1]', 81, '2001:db8::1', true, true],
  ['*', '', '127.0.0.1:2379', '127.0.0.1', 2379, '127.0.0.1', false, false],
  ['*', '', '127.0.0.1:2379', '127.1.2.3', 2379, '127.1.2.3', false, false],
  ['*', '', '127.0.0.1:2379', '0.0.0.0', 2379, '0.0.0.0', false, false],
  ['*', '', '127.0.0.1:2379', '[::]', 2379, '::', false, false],
  ['*', '', '127.0.0.1:2379', '[::ffff:7f00:1]', 2379, '::ffff:7f00:1', false, false],
  ['*', '', '127.0.0.1:2379', 'localhost', 2379, '127.0.0.1', true, false],
  ['*', '', '127.0.0.1:2379', '127.0.0.1', 2380, '127.0.0.1', true, true],
  ['*', '', '127.0.0.1:2379', 'etcd.example', 2379, '10.0.0.9', true, true],
  ['*', '', 'etcd.example:2379', '10.0.0.9', 2379, '10.0.0.9', false, false],
  ['*', '', 'etcd.example:2379', 'other.example', 2379, '10.0.0.9', false, false],
  ['*', '', '[2001:db8::9]:2379', '[2001:db8:0::9]', 2379, '2001:db8:0::9', false, false],
]

t.test('allowed, denied and reserved targets, by name and by address', async t => {
  for (const [allow, deny, reserved, host, port, address, byName, byAddress] of decisions) {
    const list = (text: string) => text.split(',').filter(one => one !== '')
    const rules = egress(list(allow), list(deny), list(reserved))
    const what = `allow ${allow || '-'}, deny ${deny || '-'}, reserved ${reserved || '-'}: ${host}:${port} at ${address}`
    t.equal(rules.mayName(host, port), byName, `${what}, by name`)
    t.equal(rules.mayConnect(host, port, address), byAddress, `${what}, by address`)
    const ofFile = egress([], [], list(reserved))
    ofFile.useFile({ egress: { allow: list(allow), deny: list(deny) } })
    t.equal(ofFile.mayName(host, port), byName, `${what}, by name, in the access file`)
    t.equal(ofFile.mayConnect(host, port, address), byAddress, `${what}, by address, in the access file`)
  }
})

/** -egressAllow | -egressDeny | `egress` of the file | host | resolved address of the host | by name | by address. */
const both: readonly (readonly [string, string, AccessEgress | undefined, string, string, boolean, boolean])[] = [
  ['*.example', '', { allow: ['*.city.example'], deny: [] }, 'a.city.example', '10.0.0.1', true, true],
  ['*.example', '', { allow: ['*.city.example'], deny: [] }, 'a.other.example', '10.0.0.1', false, false],
  ['*.city.example', '', { allow: ['*.example'], deny: [] }, 'a.other.example', '10.0.0.1', false, false],
  ['*.a.example', '', { allow: ['*.b.example'], deny: [] }, 'x.a.example', '10.0.0.1', false, false],
  ['10.0.0.0/8', '', { allow: ['*.example'], deny: [] }, 'a.example', '10.0.0.1', true, true],
  ['10.0.0.0/8', '', { allow: ['*.example'], deny: [] }, 'a.example', '11.0.0.1', true, false],
  ['', 'a.example', { allow: ['*'], deny: [] }, 'a.example', '10.0.0.1', false, false],
  ['*', '', { allow: [], deny: ['a.example'] }, 'a.example', '10.0.0.1', false, false],
  ['*', '', { allow: ['*'], deny: ['10.0.0.1'] }, 'a.example', '10.0.0.1', true, false],
  ['', '', undefined, 'a.example', '10.0.0.1', true, true],
  ['10.0.0.0/8', '', undefined, 'a.example', '11.0.0.1', true, false],
  ['', '', { allow: ['*'], deny: [] }, 'a.example', '169.254.0.1', true, true],
  ['*', '', { allow: ['*'], deny: [] }, 'a.example', '::ffff:169.254.0.1', true, true],
  ['', '', { allow: ['*'], deny: ['fe80::/10'] }, 'a.example', 'fe80::1%eth0', true, false],
  ['*', '', undefined, 'a.example', '169.254.0.1', true, false],
  ['*', '', undefined, 'a.example', 'fe80::1%2', true, false],
  ['169.254.0.0/16', '', { allow: [], deny: ['10.0.0.1'] }, 'a.example', '169.254.0.1', true, false],
  ['', '169.254.0.1', { allow: ['*'], deny: [] }, 'a.example', '169.254.0.1', true, false],
]

t.test('with an access file, options and file have to allow a target, and each can deny it', async t => {
  for (const [allow, deny, ofFile, host, address, byName, byAddress] of both) {
    const list = (text: string) => text.split(',').filter(one => one !== '')
    const rules = egress(list(allow), list(deny), ['10.0.0.9:2379'])
    rules.useFile({ egress: ofFile })
    const what = `allow ${allow || '-'}, deny ${deny || '-'}, file ${JSON.stringify(ofFile)}: ${host} at ${address}`
    t.equal(rules.mayName(host, 80), byName, `${what}, by name`)
    t.equal(rules.mayConnect(host, 80, address), byAddress, `${what}, by address`)
    t.notOk(rules.mayConnect('etcd.example', 2379, '10.0.0.9'), 'what is reserved is denied')
  }
})

t.test('a new access file counts at once, and may do without egress', async t => {
  const rules = egress([])
  const may = () => rules.mayConnect('a.example', 80, '10.0.0.1')
  let changes = 0
  rules.onChange(() => changes++)
  t.ok(may())
  for (const [ofFile, expected] of [
    [{ allow: ['b.example'], deny: [] }, false],
    [{ allow: [], deny: [] }, true],
    [{ allow: [], deny: ['10.0.0.1'] }, false],
    [undefined, true],
  ] as const) {
    rules.useFile({ egress: ofFile })
    t.equal(may(), expected)
  }
  t.equal(changes, 4)
})

t.test('ports of members are denied as long as they are members, and reserved addresses are always denied', async t => {
  const rules = egress(['*'], [], ['10.0.0.1:2379'])
  const may = (address: string, port: number) => [
    rules.mayName(address, port),
    rules.mayConnect('name.example', port, address),
  ]
  t.strictSame(may('10.0.0.2', 7026), [true, true])
  rules.reserveMembers(['10.0.0.2:7026', '[2001:db8::2]:7026', 'unix:/run/orrery/a'])
  t.strictSame(may('10.0.0.2', 7026), [false, false])
  t.strictSame(may('2001:db8::2', 7026), [false, false])
  t.strictSame(may('10.0.0.2', 1026), [true, true])
  rules.reserveMembers(['10.0.0.3:7026'])
  t.strictSame(may('10.0.0.2', 7026), [true, true])
  t.strictSame(may('10.0.0.3', 7026), [false, false])
  t.strictSame(may('10.0.0.1', 2379), [false, false])
})

t.test('a denied port of all addresses is denied at every address of this machine', async t => {
  const own = Object.values(networkInterfaces()).flatMap(found => found ?? [])
  const rules = egress(['*'], [], ['0.0.0.0:7000'])
  for (const { address } of own) t.notOk(rules.mayConnect(address, 7000, address), address)
})

t.test('no notation of a denied address gets through', async t => {
  const rules = egress([], ['10.9.0.0/16', '2001:db8:9::/48'])
  for (let n = 0; n < 1000; n++) {
    const [x, y] = [randomInt(256), randomInt(256)]
    const hex = ((x << 8) | y).toString(16)
    const notations = [
      `10.9.${x}.${y}`,
      `::ffff:10.9.${x}.${y}`,
      `0:0:0:0:0:ffff:a09:${hex}`,
      `::FFFF:0A09:${hex.padStart(4, '0')}`,
      `2001:db8:9:${hex}::${x.toString(16)}`,
      `2001:0DB8:0009:0:0:0:0:${hex}`,
    ]
    const passed = notations.filter(one => rules.mayConnect('x.example', 80, one) || rules.mayConnect(one, 80, one))
    if (passed.length > 0) return void t.fail(`let through: ${passed}`)
  }
  t.pass('a thousand addresses')
})

t.test('an invalid pattern is refused', async t => {
  for (const text of [
    '',
    'a b',
    '1.2.3',
    '10.0.0.0/33',
    'h:0',
    'h:65536',
    '::g',
    '[::1',
    '*x',
    'a..b',
    '1.2.3.4/',
    '/8',
  ])
    t.throws(() => egress([text]), { message: /^not a host, host:port, address or network: / }, JSON.stringify(text))
})

// Real sockets

const noTls = { insecure: false, caFile: undefined }
const noLoopback = egress([], ['127.0.0.0/8', '::1'])
const denied: SendResult = { kind: 'unsendable', reason: 'The target is denied here' }

const limits = { timeoutMs: 5000, connectionsMax: 10 }

function sent<M extends NotificationMessage>(
  sender: Sender<M>,
  message: M,
  address: Address | undefined,
): Promise<SendResult> {
  return new Promise(resolve => sender.send(sendable(message, address), resolve))
}

const posted = (sender: HttpSender, url: string): Promise<SendResult> => {
  const message = post(url)
  return sent(sender, message, httpAddress(message))
}

t.test('a notification over HTTP does not reach a denied address, by number, by name or by redirect', async t => {
  const target = await httpReceiver(t)
  const sender = new HttpSender(systemClock, openSockets(noTls, noLoopback), limits)
  t.teardown(() => sender.close())
  for (const host of ['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]'])
    t.same(await posted(sender, `http://${host}:${target.port}/x`), denied, host)
  const door = await httpReceiver(t, (_request, response) =>
    response.writeHead(307, { Location: `http://127.0.0.2:${target.port}/` }).end(),
  )
  const open = new HttpSender(systemClock, openSockets(noTls, egress([], ['127.0.0.2'])), limits)
  t.teardown(() => open.close())
  t.same(await posted(open, `${door.url}/`), denied, 'redirect')
  t.equal(door.received.length, 1)
  t.equal(target.received.length, 0)
})

t.test('a closed port that is denied looks like an open one', async t => {
  const sender = new HttpSender(systemClock, openSockets(noTls, noLoopback), limits)
  t.teardown(() => sender.close())
  t.same(await posted(sender, 'http://127.0.0.1:1/'), denied)
})

t.test('a notification over MQTT does not reach a denied address', async t => {
  const broker = await aedesBroker(t)
  const sender = new MqttSender(systemClock, openSockets(noTls, noLoopback), { ...limits, idleMsMax: 0 })
  t.teardown(() => sender.close())
  for (const host of ['127.0.0.1', 'localhost']) {
    const message = publication(`mqtt://${host}:${broker.port}`)
    t.same(await sent(sender, message, mqttAddress(message)), denied, host)
  }
  t.equal(broker.connections, 0)
})

t.test('a provider at a denied address is not asked', async t => {
  const provider = await httpReceiver(t)
  const forwarder = new Forwarder(systemClock, openSockets(noTls, noLoopback), {
    timeoutMs: 5000,
    messageBytesMax: 10_000,
  })
  t.teardown(() => forwarder.close())
  for (const host of ['127.0.0.1', 'localhost']) {
    const url = `http://${host}:${provider.port}/op/query`
    const answer = await new Promise(resolve =>
      forwarder.ask({ url, headers: [], body: '{}', isRepeatable: true }, resolve),
    )
    t.same(answer, { kind: 'failed', reason: 'The target is denied here' }, host)
  }
  t.equal(provider.received.length, 0)
})

t.test('of the addresses of a name only those that are allowed are connected to', async t => {
  const receiver = await httpReceiver(t)
  const sender = new HttpSender(systemClock, openSockets(noTls, egress(['127.0.0.1'])), limits)
  t.teardown(() => sender.close())
  t.match(await posted(sender, `http://localhost:${receiver.port}/`), { kind: 'answered' })
})

t.test(
  'with ngsi-proxy a notification may reach a callback of this broker, and nothing else besides entities',
  async t => {
    const callback = '/callbacks/6d3ab640-345c-41e8-aee8-4fe128ae5aa3'
    t.ok(mayNotifyPages(callback, false))
    t.ok(mayNotifyPages('/v2/op/notify', false))
    t.notOk(mayNotifyPages(callback, true), 'in the name of another tenant')
    t.notOk(mayNotifyItself(callback, false))
    for (const path of [
      '/callbacks',
      '/callbacks/',
      `${callback}/`,
      `${callback}?x`,
      `${callback}/../../admin/log`,
      '/callbacks/%2e%2e/admin/log',
      callback.replace('callbacks', 'eventsource'),
      callback.toUpperCase(),
      `/x${callback}`,
      '/admin/log',
    ])
      t.notOk(mayNotifyPages(path, false), path)
  },
)

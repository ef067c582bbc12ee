// The notifier as its owner sees it, with real receivers: outcomes, refusals, log, numbers and stopping.

import t, { type Test } from 'tap'
import { systemClock } from '../../src/clock.js'
import { Notifier, type NotifierOptions } from '../../src/deliver/notifier.js'
import { transportsOf } from '../../src/deliver/transports.js'
import type { NotificationMessage } from '../../src/domain/subscriptions/message.js'
import type { LogLevel } from '../../src/messages/admin.js'
import type { Clock, DeliveryOutcome, LogContext, Logger } from '../../src/ports.js'
import { freePort } from '../support/broker-process.js'
import { FakeClock } from '../support/fake-clock.js'
import { Random } from '../support/random.js'
import { aedesBroker } from './brokers.js'
import { type PendingFacts, pendingOf, post, publication, timeouts } from './messages.js'
import { httpReceiver, plainReceiver, until } from './receivers.js'

const unconnected = { http: { connections: 0 }, mqtt: { connections: 0 } }

const byDefault: NotifierOptions = {
  delivery: 'atLeastOnce',
  mode: 'transient',
  messageBytesMax: 8_388_608,
  simulated: false,
  loggedBytesMax: 5000,
}

type Setting = Partial<NotifierOptions> & {
  readonly clock?: Clock
  readonly level?: LogLevel
  readonly httpTimeoutMs?: number
}

interface Facts extends PendingFacts {
  readonly entity?: string
  readonly context?: LogContext
}

function start(t: Test, { clock = systemClock, level = 'WARN', httpTimeoutMs = 5000, ...options }: Setting = {}) {
  const outcomes: { readonly key: string; readonly outcome: DeliveryOutcome }[] = []
  const rooms: (string | undefined)[] = []
  const lines: string[] = []
  const contexts: (LogContext | undefined)[] = []
  const line = (level: string) => (text: string, context?: LogContext) => {
    lines.push(`${level} ${text}`)
    contexts.push(context)
  }
  const logger: Logger = {
    level,
    fatal: line('FATAL'),
    error: line('ERROR'),
    warn: line('WARN'),
    info: line('INFO'),
    debug: line('DEBUG'),
    summary: line('SUMMARY'),
  }
  const notifier = new Notifier(
    {
      clock,
      fraction: () => 0.5,
      logger,
      transports: transportsOf({ ...timeouts, httpTimeoutMs }),
      onOutcome: ({ subject: { id: key } }, outcome) => outcomes.push({ key, outcome }),
      onRoom: lane => rooms.push(lane),
    },
    { ...byDefault, ...options },
  )
  t.teardown(() => notifier.stop(0))
  const settled = async (count: number): Promise<DeliveryOutcome[]> => {
    await until(() => outcomes.length >= count, `${count} outcomes`)
    return outcomes.map(({ outcome }) => outcome)
  }
  const offer = (message: NotificationMessage, { entity, context = {}, ...facts }: Facts = {}) => {
    const pending = pendingOf(facts)
    return notifier.offer(pending, message, `${pending.subscription} ${entity ?? pending.id}`, context)
  }
  return { notifier, offer, outcomes, rooms, lines, contexts, settled }
}

t.test('a delivery is taken, sent, and ends with the code of its answer', async t => {
  const receiver = await httpReceiver(t, ({ path }, response) => response.writeHead(Number(path.slice(1))).end())
  const { offer, settled, lines } = start(t)
  for (const code of [200, 404]) {
    t.equal(offer(post(`${receiver.url}/${code}`), { subscription: 'abc' }), 'taken')
    await settled(receiver.received.length)
  }
  t.same(await settled(2), [
    { kind: 'delivered', code: 200 },
    { kind: 'delivered', code: 404 },
  ])
  t.same(lines, ['WARN Notification (subId: abc) response NOT OK, http code: 404'])
})

t.test('an answer of 503 is tried again and ends when the receiver has recovered', async t => {
  const clock = new FakeClock()
  const receiver = await httpReceiver(t, (_request, response) => {
    response.writeHead(receiver.received.length < 3 ? 503 : 204).end()
  })
  const { offer, settled } = start(t, { clock })
  offer(post(receiver.url))
  await settled(1)
  clock.advance(1000)
  await settled(2)
  clock.advance(5000)
  t.match(await settled(3), [
    { kind: 'failed', code: 503, attempts: 1, held: true },
    { kind: 'failed', code: 503, attempts: 2, held: true },
    { kind: 'delivered', code: 204 },
  ])
  t.equal(new Set(receiver.received.map(({ body }) => body)).size, 1)
})

t.test('a receiver that is away is noticed when it is back, and its notification has failed once', async t => {
  const clock = new FakeClock()
  const port = await freePort()
  const { offer, outcomes, settled, lines } = start(t, { clock })
  offer(post(`http://127.0.0.1:${port}`), { subscription: 'abc' })
  for (let tries = 1; tries <= 8; tries++) {
    await settled(tries)
    if (tries === 8) await httpReceiver(t, undefined, undefined, port)
    clock.advance(4000)
  }
  await settled(9)
  t.match(
    outcomes.map(({ outcome }) => outcome),
    [...Array(8).fill({ kind: 'failed', attempts: 1, held: true }), { kind: 'delivered' }],
  )
  t.match(lines, [/^WARN Receiver http.* does not answer/, /^WARN Receiver http.* answers again/])
})

t.test('a dead receiver delays no other one', async t => {
  const dead = await plainReceiver(t, socket => socket.resume())
  const live = await Promise.all(Array.from({ length: 20 }, () => httpReceiver(t)))
  const { offer, outcomes, notifier } = start(t, { httpTimeoutMs: 60_000 })
  for (let round = 0; round < 50; round++) {
    for (let n = 0; n < 20; n++) offer(post(dead.url), { subscription: 'dead' })
    for (const { url } of live) offer(post(url))
  }
  await until(() => outcomes.length === 20 * 50, 'all to the living')
  t.ok(outcomes.every(({ outcome }) => outcome.kind === 'delivered'))
  t.equal(dead.connections, 4, 'and holds four sockets')
  t.equal(notifier.stats().queue.size, 996, 'the rest waits for the dead one')
})

t.test('many dead receivers leave room for those that answer', async t => {
  const dead = await Promise.all(Array.from({ length: 10 }, () => plainReceiver(t, socket => socket.resume())))
  const live = await httpReceiver(t)
  const { offer, settled, outcomes } = start(t, { httpTimeoutMs: 60_000, limits: { sendsMax: 16 } })
  offer(post(live.url))
  await settled(1)
  for (const { url } of dead) for (let n = 0; n < 10; n++) offer(post(url))
  for (let n = 0; n < 100; n++) offer(post(live.url))
  await until(() => outcomes.length === 101, 'all to the living')
})

t.test('first tries of a subscription and an entity arrive in order, however slow the answers', async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  const receiver = await httpReceiver(t, (_request, response) => {
    setTimeout(() => response.writeHead(204).end(), random.between(0, 3))
  })
  const { offer, settled } = start(t)
  const count = 600
  for (let n = 0; n < count; n++) offer(post(receiver.url, { body: `${n % 7} ${n}` }), { entity: `${n % 7}` })
  await settled(count)
  const last = new Map<string, number>()
  const overtaken: string[] = []
  for (const { body } of receiver.received) {
    const [entity, number] = body.split(' ') as [string, string]
    if (Number(number) < (last.get(entity) ?? -1)) overtaken.push(body)
    last.set(entity, Number(number))
  }
  t.same(overtaken, [])
  t.equal(receiver.received.length, count)
  t.ok(receiver.connections > 1, 'and not one at a time')
})

t.test('a full lane refuses, and its owner gets a report of room', async t => {
  const held: (() => void)[] = []
  const receiver = await httpReceiver(t, (_request, response) => {
    held.push(() => response.writeHead(204).end())
  })
  const { offer, rooms, notifier, settled } = start(t, { limits: { laneQueueMax: 2 } })
  const answers = Array.from({ length: 7 }, () => offer(post(receiver.url)))
  t.same(answers, [...Array(6).fill('taken'), 'full'])
  t.equal(notifier.queueLength(''), 2)
  await until(() => held.length === 4)
  for (const answer of held.splice(0)) answer()
  await settled(4)
  await until(() => rooms.length === 1)
  t.same(rooms, [notifier.laneOf('', post(receiver.url))])
})

t.test('in bestEffort there is one try, and a message without room is dropped, counted and logged', async t => {
  const silent = await plainReceiver(t, socket => socket.resume())
  const options = { delivery: 'bestEffort', mode: 'threadpool:2:1,acme:1:1', httpTimeoutMs: 50 } as const
  const { offer, settled, lines, notifier } = start(t, options)
  t.same(
    [1, 2, 3, 4].map(() => offer(post(silent.url))),
    ['taken', 'taken', 'taken', 'dropped'],
  )
  t.same(
    [1, 2, 3].map(() => offer(post(silent.url), { tenant: 'acme' })),
    ['taken', 'taken', 'dropped'],
  )
  t.same(lines, [
    'ERROR Runtime Error (default notification queue is full)',
    'ERROR Runtime Error (acme notification queue is full)',
  ])
  const timeout = { kind: 'dead', reason: 'Timeout was reached', attempts: 1 }
  t.match(await settled(5), Array(5).fill(timeout))
  const { dropped, dead, queue } = notifier.stats()
  t.match({ dropped, dead, queue }, { dropped: 2, dead: 5, queue: { in: 5, out: 5, reject: 2, sentError: 5, size: 0 } })
})

t.test('a message beyond the limit is not sent and is dead', async t => {
  const receiver = await httpReceiver(t)
  const { offer, outcomes, settled, lines } = start(t, { messageBytesMax: 1000 })
  offer(post(receiver.url, { body: 'x'.repeat(500) }))
  offer(post(receiver.url, { body: 'x'.repeat(500), headers: ['X', 'y'.repeat(500)] }), { id: 'large' })
  t.same(outcomes, [], 'never before offer returns')
  const reason = 'total outgoing message size is too big'
  await settled(2)
  t.match(outcomes.find(({ key }) => key === 'large')?.outcome, { kind: 'dead', reason, sent: false, attempts: 1 })
  t.match(lines, [/^ERROR Runtime Error \(HTTP request to send is too large: \d+ bytes\)$/])
  t.equal(receiver.received.length, 1)
})

t.test('an unsendable message is dropped, and is no failure', async t => {
  const { offer, settled, lines, contexts, notifier } = start(t)
  const context = { correlator: 'c' }
  offer(post('http://host:99999/x'), { context })
  offer(publication('http://host'), { context })
  const outcomes = await settled(2)
  t.ok(outcomes.every(({ kind }) => kind === 'dropped'))
  t.same(lines, [
    "ERROR Runtime Error (not sending notification: malformed URL: 'http://host:99999/x')",
    "ERROR Runtime Error (not sending notification: malformed URL: 'http://host')",
  ])
  t.ok(contexts.every(one => one === context))
  t.equal(notifier.stats().dropped, 2)
  t.equal(notifier.laneOf('', post('nonsense')), undefined)
})

t.test('simulated notifications are counted and not sent', async t => {
  const receiver = await httpReceiver(t)
  const { offer, settled, notifier } = start(t, { simulated: true })
  offer(post(receiver.url))
  t.same(await settled(1), [{ kind: 'simulated' }])
  t.equal(receiver.connections, 0)
  t.match(notifier.stats(), { simulated: 1, delivered: 0, transports: { http: { sent: 0 } } })
})

t.test('deliveries are logged at INFO, with the beginning of their payload', async t => {
  const receiver = await httpReceiver(t)
  const broker = await aedesBroker(t)
  const nobody = await freePort()
  const { offer, settled, lines } = start(t, { level: 'INFO', loggedBytesMax: 4, delivery: 'bestEffort' })
  const login = { user: 'u', passwd: 'very secret' }
  const steps = [
    post(`${receiver.url}/x`, { body: '1234' }),
    post(`${receiver.url}/x`, { body: '12345', method: 'PUT' }),
    post(`http://127.0.0.1:${nobody}`, { body: undefined }),
    publication(`mqtt://127.0.0.1:${broker.port}`, { qos: 1, login }),
  ]
  for (const [index, message] of steps.entries()) {
    offer(message, { subscription: 'abc' })
    await settled(index + 1)
  }
  const http = `127.0.0.1:${receiver.port}/x`
  const delivered = 'INFO Notif delivered (subId: abc):'
  t.same(lines, [
    `${delivered} POST ${http}, payload (4 bytes): 1234, response code: 204`,
    `${delivered} PUT ${http}, payload (5 bytes): 1234(...), response code: 204`,
    `${delivered} POST 127.0.0.1:${nobody}/, payload (0 bytes): , Couldn't connect to server`,
    `INFO MQTT Notif delivered (subId: abc): broker: 127.0.0.1:${broker.port}, topic: rooms/1, payload (2 bytes): 21`,
  ])
})

t.test(
  'that a receiver has ceased to answer, and answers again, is logged once, and never with a password',
  async t => {
    const clock = new FakeClock()
    const port = await freePort()
    const { offer, settled, lines } = start(t, { clock, level: 'INFO' })
    const message = publication(`mqtt://127.0.0.1:${port}`, { login: { user: 'u', passwd: 'very secret' } })
    for (let n = 1; n <= 5; n++) {
      offer(message)
      await settled(n)
    }
    await aedesBroker(t, { port })
    clock.advance(1000)
    await settled(6)
    const receiver = `Receiver mqtt://127.0.0.1:${port}`
    t.match(
      lines.filter(line => line.includes('Receiver')),
      [
        `WARN ${receiver} does not answer, notifications to it are held back: Couldn't connect`,
        `WARN ${receiver} answers`,
      ],
    )
    t.notMatch(lines.join(), /very secret/)
  },
)

t.test('stopping waits for messages in flight, forgets the rest and closes everything', async t => {
  const receiver = await httpReceiver(t, (_request, response) => {
    setTimeout(() => response.writeHead(204).end(), 50)
  })
  const { notifier, offer, outcomes } = start(t)
  for (let n = 0; n < 10; n++) offer(post(receiver.url))
  await until(() => receiver.received.length === 4)
  const stopped = notifier.stop(5000)
  t.equal(offer(post(receiver.url)), 'full')
  await stopped
  t.equal(outcomes.length, 4)
  t.ok(outcomes.every(({ outcome }) => outcome.kind === 'delivered'))
  t.match(notifier.stats(), { sending: 0, transports: unconnected, queue: { size: 0 } })
  await until(() => receiver.open === 0)
})

t.test('stopping does not wait for a dead receiver, and reports nothing more', async t => {
  const dead = await plainReceiver(t, socket => socket.resume())
  const deaf = await aedesBroker(t, { isDeaf: true })
  const { notifier, offer, outcomes } = start(t)
  offer(post(dead.url))
  offer(publication(`mqtt://127.0.0.1:${deaf.port}`, { qos: 1 }))
  await until(() => dead.open === 1 && deaf.open === 1)
  const before = performance.now()
  await notifier.stop(100)
  const took = performance.now() - before
  t.ok(took >= 95 && took < 2000, `${took} ms`)
  t.match(notifier.stats(), { transports: unconnected })
  await until(() => dead.open + deaf.open === 0)
  t.same(outcomes, [])
})

t.test('stopping in bestEffort sends waiting messages, and counts those that it could not send', async t => {
  const receiver = await httpReceiver(t)
  const sends = start(t, { delivery: 'bestEffort', mode: 'persistent' })
  for (let n = 0; n < 100; n++) sends.offer(post(receiver.url))
  await sends.notifier.stop(5000)
  t.equal(receiver.received.length, 100)
  t.equal(sends.offer(post(receiver.url)), 'dropped')
  const dead = await plainReceiver(t, socket => socket.resume())
  const loses = start(t, { delivery: 'bestEffort', mode: 'persistent' })
  for (let n = 0; n < 10; n++) loses.offer(post(dead.url))
  await loses.notifier.stop(20)
  t.equal(loses.notifier.stats().dropped, 9)
})

t.test('the numbers count all outcomes', async t => {
  const receiver = await httpReceiver(t, ({ path }, response) => response.writeHead(Number(path.slice(1))).end())
  const broker = await aedesBroker(t)
  const { notifier, offer, settled } = start(t)
  offer(post(`${receiver.url}/204`))
  offer(post(`${receiver.url}/500`))
  offer(post(`http://127.0.0.1:${await freePort()}`))
  offer(publication(`mqtt://127.0.0.1:${broker.port}`))
  await settled(4)
  const stats = notifier.stats()
  t.match(stats, {
    queue: { in: 4, out: 4, reject: 0, sentOk: 2, sentError: 1, size: 1 },
    transports: { http: { sent: 3 }, mqtt: { sent: 1, connections: 1 } },
    delivered: 2,
    failed: 2,
    retried: 0,
    dead: 0,
    heldBack: 0,
    sending: 0,
    retrying: 1,
    lanes: 3,
  })
})

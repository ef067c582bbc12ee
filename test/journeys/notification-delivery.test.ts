// The delivery of notifications to receivers that fail, are dead, are brokers themselves or need a certificate; the
// pending ones after a kill; and the options of delivery.
//
// Not here: the content and the triggers (notifications.test.ts), MQTT (notification-mqtt.test.ts), random runs
// (notification-oracle.test.ts).

import { execFileSync } from 'node:child_process'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { certificateFor, httpReceiver, plainReceiver, type Received, until } from '../deliver/receivers.js'
import { freePort, startBroker, tempDir } from '../support/broker-process.js'
import { brief, headerOf, Tenant, valuesOf } from './notified.js'

t.setTimeout(400_000)
const shared = await startBroker(t, { args: ['-multiservice'] })

const idOf = (one: Received) => headerOf(one, 'Ctx-Notification-Id')

for (const [fault, fail] of [
  ['answers 503', (answer: () => void) => answer()],
  ['hangs up', (_answer: () => void, hangUp: () => void) => hangUp()],
] as const)
  t.test(`when a receiver ${fault} the same notification comes again, and counts once`, async t => {
    const tenant = new Tenant(t, shared, fault.replace(' ', '_'))
    const atMs: number[] = []
    const receiver = await httpReceiver(t, (_request, response) => {
      atMs.push(performance.now())
      if (atMs.length > 1) return void response.writeHead(200).end()
      fail(
        () => response.writeHead(503).end(),
        () => response.destroy(),
      )
    })
    const id = await tenant.subscribe(brief(receiver.url))
    await tenant.create('R1', { n: 1 })
    await until(() => receiver.received.length === 2)
    const [first, again] = receiver.received as [Received, Received]
    t.strictSame({ ...again, headers: [] }, { ...first, headers: [] })
    t.equal(idOf(again), idOf(first))
    t.equal(headerOf(again, 'Ctx-Correlator'), headerOf(first, 'Ctx-Correlator'))
    const delayMs = atMs[1]! - atMs[0]!
    t.ok(delayMs > 750, `after about a second (${delayMs.toFixed()} ms)`)
    const shown = await tenant.until(id, ({ notification }) => notification.lastSuccessCode === 200)
    t.match(shown.notification, { timesSent: 1, failsCounter: undefined })
  })

t.test('a retry does not hold back newer notifications', async t => {
  const tenant = new Tenant(t, shared, 'newer')
  const receiver = await httpReceiver(t, ({ body }, response) =>
    response.writeHead(body.includes('"n":1}') ? 500 : 200).end(),
  )
  await tenant.subscribe(brief(receiver.url))
  await tenant.create('R1', { n: 1 })
  await tenant.update('R1', { n: 2 })
  await tenant.update('R1', { n: 3 })
  await until(() => receiver.received.length === 3)
  t.strictSame(valuesOf(receiver.received), [1, 2, 3])
})

t.test('a dead receiver delays no other one', async t => {
  const tenant = new Tenant(t, shared, 'dead')
  const dead = await plainReceiver(t, socket => socket.resume())
  const live = await httpReceiver(t)
  const timeout = 10_000
  const doomed = await tenant.subscribe(brief(dead.url, { timeout }))
  await tenant.subscribe(brief(live.url))
  const beganMs = performance.now()
  const entities = Array.from({ length: 100 }, (_, n) => ({ id: `R${n}`, type: 'Room', n: { value: n } }))
  for (let round = 0; round < 3; round++)
    await tenant.send('POST /v2/op/update?options=forcedUpdate', { actionType: 'append', entities })
  await until(() => live.received.length === 300)
  t.ok(performance.now() - beganMs < timeout, 'all came before the dead one was given up for the first time')
  t.ok(dead.connections > 0, 'which was tried')
  t.match(await tenant.subscription(doomed), { notification: { timesSent: 300, failsCounter: undefined } })
})

t.test('a chain of three brokers takes an entity from the first to the last', async t => {
  const [second, third] = await Promise.all([1, 2].map(() => startBroker(t, { args: ['-multiservice'] })))
  const [a, b, c] = [shared, second!, third!].map(broker => new Tenant(t, broker, 'chain')) as [Tenant, Tenant, Tenant]
  const receiver = await httpReceiver(t)
  await a.subscribe({ http: { url: `${second!.baseUrl}/v2/op/notify` } })
  await b.subscribe({ http: { url: `${third!.baseUrl}/v2/op/notify` } })
  await c.subscribe(brief(receiver.url))
  const headers = { 'Ctx-ServicePath': '/far/away', 'Ctx-Correlator': 'root' }
  await a.create('R1', { n: 1, where: { x: [1, null] } }, headers)
  await until(() => receiver.received.length === 1)
  const [one] = receiver.received as [Received]
  t.equal(one.body, '{"id":"R1","type":"Room","n":1,"where":{"x":[1,null]}}')
  t.equal(headerOf(one, 'Ctx-Correlator'), 'root; cbnotif=1; cbnotif=1; cbnotif=1')
  t.equal(headerOf(one, 'Ctx-Service'), 'chain')
  t.equal(headerOf(one, 'Ctx-ServicePath'), '/far/away')
  const text = async (tenant: Tenant) => (await tenant.send('GET /v2/entities/R1')).text
  t.equal(await text(c), await text(a))
})

t.test('notifications that a killed broker had not delivered come as soon as it is back, and once', async t => {
  const dataDir = tempDir(t)
  let isWell = false
  const receiver = await httpReceiver(t, (_request, response) => response.writeHead(isWell ? 200 : 503).end())
  const first = await startBroker(t, { dataDir })
  const tenant = new Tenant(t, first)
  await tenant.subscribe({ http: { url: receiver.url } })
  const headers = { 'X-Auth-Token': 'secret', 'Ctx-Correlator': 'before' }
  await tenant.create('R1', { n: 1 }, headers)
  await until(() => receiver.received.length === 1)
  // Too late to cancel the pending one.
  await tenant.update('R1', { n: 2 })
  await until(() => receiver.received.length === 2)
  await first.kill('SIGKILL')
  isWell = true
  const tried = receiver.received.splice(0)
  const second = await startBroker(t, { dataDir })
  await until(() => receiver.received.length === 2)
  const byId = (all: readonly Received[]) => new Map(all.map(one => [idOf(one), one]))
  t.strictSame(byId(receiver.received), byId(tried), 'to the byte, headers and token included')
  await second.kill('SIGTERM')
  const third = await startBroker(t, { dataDir })
  await new Tenant(t, third).update('R1', { n: 3 })
  await until(() => receiver.received.length === 3)
  t.match(receiver.received[2]!.body, '"n":{"type":"Number","value":3')
})

for (const workers of ['1', '2'])
  t.test(
    `pending notifications of a killed broker come from any number of workers afterwards, and once: ${workers}`,
    async t => {
      const dataDir = tempDir(t)
      const port = await freePort()
      const first = await startBroker(t, { dataDir })
      const tenant = new Tenant(t, first)
      await tenant.subscribe(brief(`http://127.0.0.1:${port}`))
      const entities = Array.from({ length: 100 }, (_, n) => ({ id: `R${n}`, type: 'Room', n: { value: n } }))
      await tenant.send('POST /v2/op/update', { actionType: 'append', entities })
      // Kills at once: all pending notifications are still in one row.
      await first.kill('SIGKILL')
      const receiver = await httpReceiver(t, undefined, undefined, port)
      const second = await startBroker(t, { dataDir, args: ['-workers', workers] })
      await until(() => receiver.received.length === entities.length)
      const numbers = (from: number): number[] => valuesOf(receiver.received.slice(from)).map(Number)
      t.strictSame(
        numbers(0).sort((a, b) => a - b),
        entities.map(({ n }) => n.value),
      )
      await new Tenant(t, second).update('R1', { n: 1000 })
      await until(() => receiver.received.length === entities.length + 1)
      await second.kill('SIGTERM')
      const third = await startBroker(t, { dataDir })
      await new Tenant(t, third).update('R2', { n: 1001 })
      await until(() => receiver.received.length >= entities.length + 2)
      t.strictSame(numbers(entities.length), [1000, 1001])
    },
  )

t.test(
  'a broker that is stopped in the middle of a batch sends nothing twice, and the next one sends the rest',
  async t => {
    const dataDir = tempDir(t)
    const receiver = await httpReceiver(t)
    const first = await startBroker(t, { dataDir })
    const tenant = new Tenant(t, first)
    await tenant.subscribe(brief(receiver.url))
    const entities = Array.from({ length: 5000 }, (_, n) => ({ id: `R${n}`, type: 'Room', n: { value: n } }))
    await tenant.send('POST /v2/op/update', { actionType: 'append', entities })
    await until(() => receiver.received.length > 0)
    t.equal((await first.kill('SIGTERM')).code, 0)
    t.ok(receiver.received.length < entities.length, 'in the middle')
    const second = await startBroker(t, { dataDir })
    await new Tenant(t, second).update('R1', { n: 5000 })
    await until(() => receiver.received.length > entities.length)
    t.strictSame(
      valuesOf(receiver.received)
        .map(Number)
        .sort((a, b) => a - b),
      Array.from({ length: 5001 }, (_, n) => n),
    )
  },
)

const noStrace = lacksStrace()

t.test('no notification leaves before its change is on the disk', { skip: noStrace }, async t => {
  const delayMs = 300
  const inject = `inject=fdatasync:delay_enter=${delayMs * 1000}`
  const wrapper = ['strace', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=fdatasync', '-e', inject]
  const tenant = new Tenant(t, await startBroker(t, { wrapper }))
  const receiver = await httpReceiver(t)
  await tenant.subscribe(brief(receiver.url))
  const beganMs = performance.now()
  const created = tenant.create('R1', { n: 1 })
  await until(() => receiver.received.length === 1)
  t.ok(performance.now() - beganMs >= delayMs, 'it waited for the disk')
  await created
})

t.test('with bestEffort there is one try, and nothing is left for the next start', async t => {
  const dataDir = tempDir(t)
  const args = ['-notifDelivery', 'bestEffort']
  const first = await startBroker(t, { dataDir, args })
  const receiver = await httpReceiver(t, (_request, response) => response.writeHead(503).end())
  const tenant = new Tenant(t, first)
  const id = await tenant.subscribe(brief(receiver.url))
  await tenant.create('R1', { n: 1 })
  await tenant.until(id, ({ notification }) => notification.lastSuccessCode === 503)
  // The first retry would come after 1.2 s at the latest.
  await pause(1500)
  await first.kill('SIGKILL')
  const second = await startBroker(t, { dataDir, args })
  await new Tenant(t, second).update('R1', { n: 2 })
  await until(() => receiver.received.length === 2)
  t.strictSame(valuesOf(receiver.received), [1, 2])
})

t.test('with -simulatedNotification everything happens but the sending', async t => {
  const broker = await startBroker(t, { args: ['-simulatedNotification'] })
  const receiver = await httpReceiver(t)
  const tenant = new Tenant(t, broker)
  const id = await tenant.subscribe(brief(receiver.url), { status: 'oneshot' })
  await tenant.create('R1', { n: 1 })
  const shown = await tenant.until(id, ({ notification }) => notification.timesSent === 1)
  t.match(shown, { status: 'inactive', notification: { lastSuccess: undefined, lastFailure: undefined } })
  await broker.kill('SIGTERM')
  t.equal(receiver.connections, 0)
})

t.test('an untrusted certificate is refused', async t => {
  const tls = certificateFor(t, 'IP:127.0.0.1')
  const receiver = await httpReceiver(t, undefined, tls)
  const tenant = new Tenant(t, shared, 'tls')
  const id = await tenant.subscribe(brief(receiver.url))
  await tenant.create('R1', { n: 1 })
  const shown = await tenant.until(id, ({ notification }) => notification.failsCounter === 1)
  t.match(shown.notification, {
    lastFailureReason: 'Peer certificate cannot be authenticated with given CA certificates',
    lastSuccess: undefined,
  })
  t.equal(receiver.received.length, 0)
})

t.test('-insecureNotif trusts it, and -disableCustomNotifications makes custom ones regular', async t => {
  const broker = await startBroker(t, { args: ['-insecureNotif', '-disableCustomNotifications'] })
  const receiver = await httpReceiver(t, undefined, certificateFor(t, 'DNS:elsewhere'))
  const tenant = new Tenant(t, broker)
  const custom = { url: `${receiver.url}/in`, method: 'PUT', headers: { 'x-a': 'b' }, payload: 'text' }
  const id = await tenant.subscribe({ httpCustom: custom, attrsFormat: 'keyValues' })
  await tenant.create('R1', { n: 1 })
  await until(() => receiver.received.length === 1)
  const [one] = receiver.received as [Received]
  t.match(one, {
    method: 'POST',
    path: '/in',
    body: `{"subscriptionId":"${id}","data":[{"id":"R1","type":"Room","n":1}]}`,
  })
  t.equal(headerOf(one, 'X-A'), undefined)
  t.equal(headerOf(one, 'Ngsiv2-AttrsFormat'), 'keyValues')
  t.match((await tenant.send(`GET /v2/subscriptions/${id}`)).json, { notification: { httpCustom: custom } })
})

t.test('with flow control a batch is answered when its notifications have left the queue', async t => {
  const mode = ['-notificationMode', 'threadpool:1000:2', '-notifFlowControl', '1:10:1000']
  const tenant = new Tenant(t, await startBroker(t, { args: mode }))
  const receiver = await httpReceiver(t, (_request, response) => {
    setTimeout(() => response.writeHead(200).end(), 50)
  })
  await tenant.subscribe(brief(receiver.url))
  const batch = async (count: number, options: string) => {
    const entities = Array.from({ length: count }, (_, n) => ({ id: `R${n}`, type: 'Room', n: { value: n } }))
    const already = receiver.received.length
    const beganMs = performance.now()
    await tenant.send(`POST /v2/op/update?options=${options}`, { actionType: 'append', entities })
    const [tookMs, received] = [performance.now() - beganMs, receiver.received.length - already]
    await until(() => receiver.received.length === already + count)
    return { tookMs, received }
  }
  let held = await batch(20, 'forcedUpdate,flowControl')
  // On a machine so slow that the longest wait ended it, a batch shows nothing.
  for (let tries = 0; held.tookMs >= 1000 && tries < 5; tries++) held = await batch(20, 'forcedUpdate,flowControl')
  t.ok(held.received >= 17, `${held.received} of 20 had been received; the others were on their way`)
  const free = await batch(20, 'forcedUpdate')
  t.ok(free.received < 17, `without it ${free.received} had`)
  const long = await batch(60, 'forcedUpdate,flowControl')
  t.ok(long.tookMs >= 1000 && long.received < 57, `it waits no longer than it is told (${long.tookMs.toFixed()} ms)`)
})

t.test('a notification without room in a threadpool comes later', async t => {
  const tenant = new Tenant(t, await startBroker(t, { args: ['-notificationMode', 'threadpool:2:1'] }))
  const receiver = await httpReceiver(t)
  await tenant.subscribe(brief(receiver.url))
  const entities = Array.from({ length: 300 }, (_, n) => ({ id: `R${n}`, type: 'Room', n: { value: n } }))
  await tenant.send('POST /v2/op/update', { actionType: 'append', entities })
  await until(() => receiver.received.length >= 300)
  t.strictSame(
    (valuesOf(receiver.received) as number[]).sort((a, b) => a - b),
    entities.map((_, n) => n),
  )
})

t.test('of two workers each triggers from the 201 on, and together they throttle and count as one', async t => {
  const broker = await startBroker(t, { args: ['-workers', '2'] })
  const receiver = await httpReceiver(t)
  // Each client has a connection of its own, and the connections are spread over the workers.
  const clients = Array.from({ length: 8 }, () => new Tenant(t, broker))
  const at = (n: number) => clients[n % clients.length]!
  const counted = await at(0).subscribe(brief(`${receiver.url}/each`))
  for (let n = 0; n < 40; n++) {
    await at(n).subscribe(brief(`${receiver.url}/${n}`), { subject: { entities: [{ id: `R${n}` }] } })
    await at(n + 3).create(`R${n}`, { n })
  }
  await until(() => receiver.received.length === 80)
  t.equal(new Set(receiver.received.map(({ path }) => path)).size, 41)
  await at(1).until(counted, ({ notification }) => notification.timesSent === 40)
  const throttled = await at(2).subscribe(brief(`${receiver.url}/throttled`), { throttling: 3600 })
  await Promise.all(Array.from({ length: 40 }, (_, n) => at(n).update(`R${n}`, { n: n + 1 })))
  await until(() => receiver.received.length >= 161)
  t.equal(receiver.received.filter(({ path }) => path === '/throttled').length, 1, 'over all workers')
  for (const client of clients) t.match(await client.subscription(throttled), { notification: { timesSent: 1 } })
})

function lacksStrace(): string | false {
  try {
    const args = ['-f', '-qq', '-o', '/dev/null', '-e', 'trace=fdatasync', '-e', 'inject=fdatasync:delay_enter=1']
    execFileSync('strace', [...args, 'true'], { stdio: 'pipe' })
    return false
  } catch (error) {
    return `strace does not work here: ${(error as Error).message}`
  }
}

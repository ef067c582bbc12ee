// Notifications as subscribers see them: formats, headers, triggers, counters and status, over real sockets.
//
// The journeys share one broker, and each has a tenant of its own; time is real, in steps of a second.
//
// Not here: receivers that fail, restarts, options, MQTT (notification-delivery.test.ts); every rule of triggering
// (test/domain).

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: macros of notifications look like templates

import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { httpReceiver, until } from '../deliver/receivers.js'
import { freePort, startBroker } from '../support/broker-process.js'
import { brief, headerOf, Tenant, valuesOf } from './notified.js'

t.setTimeout(400_000)
const broker = await startBroker(t, { args: ['-multiservice'] })

let tenants = 0
const tenantOf = (t: Test) => new Tenant(t, broker, `t${++tenants}`)

const logged = (line: string) => until(() => broker.stdout.includes(line), `the log line: ${line}`)

t.test('each format has the same contents in its own form', async t => {
  const tenant = tenantOf(t)
  const receiver = await httpReceiver(t)
  await tenant.create('R1', { temperature: 21.5, label: 'north' })
  const formats = ['normalized', 'simplifiedNormalized', 'keyValues', 'simplifiedKeyValues', 'values', 'legacy']
  const ids = new Map<string, string>()
  for (const attrsFormat of formats)
    ids.set(attrsFormat, await tenant.subscribe({ http: { url: `${receiver.url}/${attrsFormat}` }, attrsFormat }))
  await tenant.update('R1', { temperature: 23 })
  await until(() => receiver.received.length === formats.length)
  const temperature = '"temperature":{"type":"Number","value":23,"metadata":{}}'
  const entity = `{"id":"R1","type":"Room",${temperature},"label":{"type":"Text","value":"north","metadata":{}}}`
  const values = '{"id":"R1","type":"Room","temperature":23,"label":"north"}'
  const bodyOf = (format: string, text: string) => `{"subscriptionId":"${ids.get(format)}",${text}}`
  const attributes =
    '[{"name":"temperature","type":"Number","value":23},{"name":"label","type":"Text","value":"north"}]'
  const legacy = `{"contextElement":{"type":"Room","isPattern":"false","id":"R1","attributes":${attributes}},"statusCode":{"code":"200","reasonPhrase":"OK"}}`
  t.strictSame(Object.fromEntries(receiver.received.map(({ path, body }) => [path.slice(1), body])), {
    normalized: bodyOf('normalized', `"data":[${entity}]`),
    simplifiedNormalized: entity,
    keyValues: bodyOf('keyValues', `"data":[${values}]`),
    simplifiedKeyValues: values,
    values: bodyOf('values', '"data":[[23,"north"]]'),
    legacy: bodyOf('legacy', `"originator":"localhost","contextResponses":[${legacy}]`),
  })
  for (const one of receiver.received) {
    const format = one.path.slice(1)
    t.equal(headerOf(one, 'Ngsiv2-AttrsFormat'), format === 'legacy' ? undefined : format)
  }
})

t.test('a batch of three entities and two subscriptions is six notifications with numbers from 1 to 6', async t => {
  const tenant = new Tenant(t, broker, 'Acme')
  const receiver = await httpReceiver(t)
  const first = await tenant.subscribe({ http: { url: `${receiver.url}/in` } })
  const second = await tenant.subscribe({ http: { url: `${receiver.url}/in` } })
  const entities = ['E1', 'E2', 'E3'].map(id => ({ id, type: 'Room', n: { value: 1 } }))
  await tenant.send(
    'POST /v2/op/update',
    { actionType: 'append', entities },
    {
      'Ctx-ServicePath': '/floor/one',
      'Ctx-Correlator': 'trace-7; cbnotif=2',
      'X-Auth-Token': 'secret',
    },
  )
  await until(() => receiver.received.length === 6)
  const numbers = new Map<string, string>()
  for (const one of receiver.received) {
    t.match(one, { method: 'POST', path: '/in' })
    for (const [name, value] of [
      ['Host', `127.0.0.1:${receiver.port}`],
      ['Ctx-Service', 'acme'],
      ['Ctx-ServicePath', '/floor/one'],
      ['X-Auth-Token', 'secret'],
      ['Accept', 'application/json'],
      ['Content-Type', 'application/json; charset=utf-8'],
      ['Content-Length', String(Buffer.byteLength(one.body))],
      ['Ngsiv2-AttrsFormat', 'normalized'],
      ['Expect', undefined],
    ] as const)
      t.equal(headerOf(one, name), value, name)
    t.match(headerOf(one, 'User-Agent'), /^[^/ ]+\/\d/)
    const { subscriptionId, data } = JSON.parse(one.body)
    numbers.set(headerOf(one, 'Ctx-Correlator')!, `${data[0].id} ${subscriptionId}`)
  }
  const inOrder = [1, 2, 3, 4, 5, 6].map(n => numbers.get(`trace-7; cbnotif=2; cbnotif=${n}`))
  t.strictSame(
    inOrder,
    ['E1', 'E2', 'E3'].flatMap(id => [`${id} ${first}`, `${id} ${second}`]),
  )
  t.equal(new Set(receiver.received.map(one => headerOf(one, 'Ctx-Notification-Id'))).size, 6)
})

t.test('an update without tenant, token and correlator is notified without the first two', async t => {
  const tenant = new Tenant(t, broker)
  const receiver = await httpReceiver(t)
  await tenant.subscribe(brief(receiver.url))
  const { headers } = await tenant.create('R1', { n: 1 })
  await until(() => receiver.received.length === 1)
  const [one] = receiver.received
  t.equal(headerOf(one!, 'Ctx-Service'), undefined)
  t.equal(headerOf(one!, 'X-Auth-Token'), undefined)
  t.equal(headerOf(one!, 'Ctx-ServicePath'), '/')
  t.equal(headerOf(one!, 'Ctx-Correlator'), `${headers['ctx-correlator']}; cbnotif=1`)
  t.equal(one!.path, '/')
})

t.test('a custom notification is made of its templates', async t => {
  const tenant = new Tenant(t, broker, 'custom')
  const receiver = await httpReceiver(t)
  await tenant.create('R1', { temperature: 20, where: { floor: 2 }, zone: 'north' }, { 'Ctx-ServicePath': '/b1' })
  const json = { t: '${temperature}', label: 'T is ${temperature}', pos: '${where}', p: '${pressure}' }
  const httpCustom = {
    url: `${receiver.url}/v1/\${type}/\${id}`,
    method: 'PUT',
    qs: { tenant: '${service}', p: '${pressure}' },
    headers: { 'x-auth-token': '', 'x-zone': '${zone}', 'if-match': '%22*%22' },
    json,
  }
  await tenant.subscribe({ httpCustom })
  const headers = { 'Ctx-ServicePath': '/b1', 'X-Auth-Token': 'secret' }
  await tenant.update('R1', { temperature: 21.5 }, headers)
  await until(() => receiver.received.length === 1)
  const [one] = receiver.received
  t.match(one, {
    method: 'PUT',
    path: '/v1/Room/R1?tenant=custom',
    body: '{"t":21.5,"label":"T is 21.5","pos":{"floor":2},"p":null}',
  })
  t.equal(headerOf(one!, 'X-Auth-Token'), undefined)
  t.equal(headerOf(one!, 'X-Zone'), 'north')
  t.equal(headerOf(one!, 'If-Match'), '"*"')
  t.equal(headerOf(one!, 'Ngsiv2-AttrsFormat'), 'custom')
})

t.test('a notification has the result of its request, not later changes', async t => {
  const tenant = tenantOf(t)
  const receiver = await httpReceiver(t)
  await tenant.subscribe(brief(receiver.url), {
    subject: { entities: [{ idPattern: '.*' }], condition: { alterationTypes: ['entityChange', 'entityDelete'] } },
  })
  await tenant.create('R1', { n: 0 })
  const numbers = Array.from({ length: 50 }, (_, n) => n + 1)
  await Promise.all(numbers.map(n => tenant.update('R1', { n })))
  await tenant.send('DELETE /v2/entities/R1')
  await until(() => receiver.received.length === 51)
  t.strictSame(valuesOf(receiver.received), [...numbers, 50])
})

t.test('the update after a 201 always triggers', async t => {
  const tenant = tenantOf(t)
  const receiver = await httpReceiver(t)
  await tenant.create('R1', { n: 0 })
  let received = 0
  for (let n = 1; n <= 20; n++) {
    await tenant.subscribe(brief(receiver.url))
    await tenant.update('R1', { n })
    received += n
  }
  await until(() => receiver.received.length === received)
  t.equal(new Set(receiver.received.map(one => headerOf(one, 'Ctx-Notification-Id'))).size, received)
})

t.test('after a 204 that changed, switched off or removed it, a subscription triggers accordingly', async t => {
  const tenant = tenantOf(t)
  const receiver = await httpReceiver(t)
  const id = await tenant.subscribe(brief(`${receiver.url}/old`))
  const change = (body: object) => tenant.send(`PATCH /v2/subscriptions/${id}`, body)
  await change({ notification: brief(`${receiver.url}/new`) })
  await tenant.create('R1', { n: 1 })
  await change({ status: 'inactive' })
  await tenant.update('R1', { n: 2 })
  await change({ status: 'active', subject: { entities: [{ id: 'R2' }] } })
  await tenant.update('R1', { n: 3 })
  await tenant.create('R2', { n: 4 })
  await tenant.send(`DELETE /v2/subscriptions/${id}`)
  await tenant.update('R2', { n: 5 })
  await tenant.subscribe(brief(`${receiver.url}/last`))
  await tenant.update('R2', { n: 6 })
  await until(() => receiver.received.some(({ path }) => path === '/last'))
  t.strictSame(valuesOf(receiver.received), [1, 4, 6])
  t.strictSame(
    receiver.received.map(({ path }) => path),
    ['/new', '/new', '/last'],
  )
})

t.test('throttling of a second allows one notification a second', async t => {
  const tenant = tenantOf(t)
  const receiver = await httpReceiver(t)
  const id = await tenant.subscribe(brief(receiver.url), { throttling: 1 })
  await tenant.create('Other')
  const began: number[] = []
  const ended: number[] = []
  for (let n = 0; receiver.received.length < 3 && n < 500; n++) {
    began.push(performance.now())
    await tenant.update('Other', { n })
    ended.push(performance.now())
    await pause(20)
  }
  const numbers = valuesOf(receiver.received) as number[]
  t.equal(numbers.length, 3)
  for (const [at, n] of numbers.entries()) {
    const next = numbers[at + 1]
    if (next === undefined) break
    // Date.now has whole milliseconds.
    t.ok(ended[next]! - began[n]! >= 999, `${n} and ${next} are a second apart`)
    const due = began.findIndex(ms => ms >= ended[n]! + 1001)
    t.ok(due < 0 || next <= due, `${next} fired, and ${due} was due for sure`)
  }
  const shown = await tenant.until(id, ({ notification }) => notification.timesSent === 3)
  t.match(shown.notification.lastNotification, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$/)
})

t.test('a oneshot triggers once, and again when its status is set', async t => {
  const tenant = tenantOf(t)
  const receiver = await httpReceiver(t)
  const q = { subject: { entities: [{ idPattern: '.*' }], condition: { expression: { q: 'n>1' } } } }
  const id = await tenant.subscribe(brief(receiver.url), { status: 'oneshot', ...q })
  await tenant.create('R1', { n: 1 })
  t.match(await tenant.subscription(id), { status: 'oneshot' })
  await tenant.update('R1', { n: 2 })
  const shown = await tenant.subscription(id)
  t.match(shown, { status: 'inactive', notification: { timesSent: 1 } }, 'it is consumed when it fires')
  await tenant.update('R1', { n: 3 })
  await tenant.send(`PATCH /v2/subscriptions/${id}`, { status: 'oneshot' })
  await tenant.update('R1', { n: 4 })
  await tenant.update('R1', { n: 5 })
  await tenant.until(id, ({ notification }) => notification.timesSent === 2)
  await until(() => receiver.received.length === 2)
  t.strictSame(valuesOf(receiver.received), [2, 4])
})

t.test('a subscription triggers until it expires, and when it is prolonged', async t => {
  const tenant = tenantOf(t)
  const receiver = await httpReceiver(t)
  await tenant.create('R1', { n: 0 })
  const expiresMs = Date.now() + 2000
  const id = await tenant.subscribe(brief(receiver.url), { expires: new Date(expiresMs).toISOString() })
  await tenant.update('R1', { n: 1 })
  t.ok(Date.now() < expiresMs, 'there was time enough')
  while (Date.now() <= expiresMs) await pause(10)
  t.match(await tenant.subscription(id), { status: 'expired' })
  await tenant.update('R1', { n: 2 })
  await tenant.send(`PATCH /v2/subscriptions/${id}`, { expires: '' })
  t.match(await tenant.subscription(id), { status: 'active' })
  await tenant.update('R1', { n: 3 })
  await until(() => receiver.received.length === 2)
  t.strictSame(valuesOf(receiver.received), [1, 3])
})

t.test('any answer is a success, none is a failure, and the last of both are remembered', async t => {
  const tenant = tenantOf(t)
  let code = 204
  const receiver = await httpReceiver(t, (_request, response) => response.writeHead(code).end())
  const id = await tenant.subscribe(brief(receiver.url))
  const date = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$/
  await tenant.create('R1', { n: 1 })
  const first = await tenant.until(id, ({ notification }) => notification.lastSuccessCode === 204)
  t.match(first.notification, { timesSent: 1, lastSuccess: date, failsCounter: undefined, lastFailure: undefined })
  code = 404
  await tenant.update('R1', { n: 2 })
  await tenant.until(id, ({ notification }) => notification.lastSuccessCode === 404)
  await receiver.close()
  await tenant.update('R1', { n: 3 })
  const last = await tenant.until(id, ({ notification }) => notification.failsCounter === 1)
  t.match(last, {
    status: 'active',
    notification: {
      timesSent: 3,
      lastSuccess: date,
      lastSuccessCode: 404,
      lastFailure: date,
      lastFailureReason: "Couldn't connect to server",
    },
  })
})

t.test('a subscription whose receiver fails too often is switched off', async t => {
  const tenant = tenantOf(t)
  const port = await freePort()
  const notification = { ...brief(`http://127.0.0.1:${port}/`), maxFailsLimit: 2 }
  const id = await tenant.subscribe(notification)
  await tenant.create('R1', { n: 0 })
  const fails = (count: number) => tenant.until(id, ({ notification }) => notification.failsCounter === count)
  t.match(await fails(1), { status: 'active' })
  await tenant.update('R1', { n: 1 })
  t.match(await fails(2), { status: 'active' })
  await tenant.update('R1', { n: 2 })
  t.match(await fails(3), { status: 'inactive' })
  await logged(`Subscription ${id} automatically disabled due to failsCounter (3) overpasses maxFailsLimit (2)`)
  await tenant.update('R1', { n: 3 })
  await tenant.send(`PATCH /v2/subscriptions/${id}`, { status: 'active' })
  await tenant.update('R1', { n: 4 })
  t.match(await fails(4), { status: 'inactive', notification: { timesSent: 4 } }, 'the next failure is enough')
  await tenant.send(`PATCH /v2/subscriptions/${id}`, {
    status: 'active',
    notification: { ...notification, maxFailsLimit: 6 },
  })
  await tenant.update('R1', { n: 5 })
  t.match(await fails(5), { status: 'active' }, 'a higher limit is credit')
  const receiver = await httpReceiver(t)
  await tenant.send(`PATCH /v2/subscriptions/${id}`, {
    notification: { ...notification, http: { url: receiver.url } },
  })
  await tenant.update('R1', { n: 6 })
  const well = await tenant.until(id, ({ notification }) => notification.failsCounter === undefined)
  t.match(well, { status: 'active', notification: { timesSent: 6, lastSuccessCode: 204 } }, 'one success clears it')
})

t.test('an update that came round in a circle of custom notifications applies and triggers nothing', async t => {
  const name = `t${++tenants}`
  const tenant = new Tenant(t, broker, name)
  const receiver = await httpReceiver(t)
  await tenant.create('R1', { n: 0, rounds: 0 })
  await tenant.subscribe(brief(receiver.url))
  await tenant.subscribe({
    httpCustom: {
      url: `${broker.baseUrl}/v2/entities/\${id}/attrs`,
      method: 'PATCH',
      json: { rounds: { value: { $inc: 1 }, type: 'Number' } },
    },
  })
  await tenant.update('R1', { n: 1 }, { 'Ctx-Correlator': 'first' })
  const rounds = async () => (await tenant.send('GET /v2/entities/R1/attrs/rounds/value')).text
  for (const untilMs = performance.now() + 10_000; (await rounds()) !== '1' && performance.now() < untilMs; );
  await tenant.update('R1', { n: 2 }, { 'Ctx-Correlator': 'second' })
  await until(() => receiver.received.length >= 2)
  t.strictSame(valuesOf(receiver.received), [1, 2])
  t.strictSame(
    receiver.received.map(one => headerOf(one, 'Ctx-Correlator')),
    ['first; cbnotif=1', 'second; cbnotif=1'],
  )
  await logged('Notification loop detected for entity id R1 type Room, skipping subscription triggering')
})

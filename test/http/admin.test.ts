// The administration paths over a whole node, with both servers: shapes, texts, wrong verbs, resets; and over two
// workers, where one answer covers both (docs/interface/administration.md).

import t, { type Test } from 'tap'
import type { Config } from '../../src/config/config.js'
import type { LogSettings } from '../../src/messages/admin.js'
import { httpServers, type LocalNode, logForTests, startLocalNode } from '../support/local-node.js'
import { startLocalWorkers } from '../support/local-workers.js'

const everything: Partial<Config['statistics']> = { counters: true, semWait: true, timing: true, notifQueue: true }

for (const server of httpServers)
  t.test(`over ${server}`, async t => {
    const log: LogSettings = { ...logForTests, traces: new Set([1, 2]) }
    const node = await startLocalNode(t, { server, statistics: everything, surroundings: { log } })
    wrongVerbs(t, node)
    logSettings(t, node, log)
    traces(t, node)
    statistics(t, node)
    metrics(t, node)
  })

const room = (id: string) => ({ id, type: 'Room' })

function wrongVerbs(t: Test, node: LocalNode): void {
  for (const [request, allow, hasBody] of [
    ['PUT /version', 'GET', true],
    ['DELETE /admin/sem', 'GET', true],
    ['PUT /admin/metrics', 'GET, DELETE', true],
    ['POST /admin/log', 'GET, PUT', true],
    ['POST /statistics', 'GET, DELETE', false],
    ['PATCH /cache/statistics', 'GET, DELETE', false],
    ['POST /log/trace', 'GET, DELETE', false],
    ['POST /log/trace/1-2', 'PUT, DELETE', false],
  ] as const)
    t.test(`${request} is 405, with the allowed methods`, async t => {
      const needsBody = !request.includes('log') && !request.startsWith('DELETE')
      const answer = needsBody ? await node.json(request, {}) : await node.ask(request)
      t.equal(answer.status, 405)
      t.equal(answer.headers.allow, allow)
      const body = { error: 'MethodNotAlowed', description: 'method not allowed' }
      t.same(answer.json, hasBody ? body : undefined)
      if (!hasBody) t.match(answer, { text: '', headers: { 'content-type': undefined } })
    })
}

function logSettings(t: Test, node: LocalNode, log: LogSettings): void {
  const shown = async () => (await node.ask('GET /admin/log')).json

  t.test('the settings of the log are shown, and changed', async t => {
    t.same(await shown(), { level: 'ERROR', infoPayloadMaxSize: 5120, lineMaxSize: 32768, deprecate: false })
    const query = 'level=wArNiNg&infoPayloadMaxSize=7&lineMaxSize=1000&deprecate=TRUE'
    const { status, text, headers } = await node.ask(`PUT /admin/log?${query}`)
    t.match({ status, text, type: headers['content-type'] }, { status: 200, text: '', type: undefined })
    t.same(await shown(), { level: 'WARN', infoPayloadMaxSize: 7, lineMaxSize: 1000, deprecate: true })
    t.match(log, { level: 'WARN', infoPayloadBytesMax: 7, lineBytesMax: 1000, deprecate: true })
    await node.ask('PUT /admin/log?deprecate=no')
    t.match(await shown(), { deprecate: false })
  })

  for (const [query, error] of [
    ['', 'log config missing'],
    ['?other=1', 'log config missing'],
    ['?level=', 'Empty right-hand-side for URI param /level/'],
    ['?level=loud', 'invalid log level'],
    ['?level=toString', 'invalid log level'],
    ['?lineMaxSize=0', 'invalid lineMaxSize, lineMaxSize should be an integer number > 0'],
    ['?infoPayloadMaxSize=3.1', 'invalid infoPayloadMaxSize, infoPayloadMaxSize should be an integer number > 0'],
    ['?%3Cb%3E=', 'Empty right-hand-side for URI param /&lt;b&gt;/'],
  ] as const)
    t.test(`PUT /admin/log${query} is refused in its own form`, async t => {
      const { status, json } = await node.ask(`PUT /admin/log${query}`)
      t.equal(status, 400)
      t.same(json, { error })
    })

  t.test('a parameter that is wrong does not undo those before it', async t => {
    await node.ask('PUT /admin/log?lineMaxSize=2000&infoPayloadMaxSize=x&level=debug')
    t.match(await shown(), { lineMaxSize: 2000, infoPayloadMaxSize: 7, level: 'WARN' })
  })
}

function traces(t: Test, node: LocalNode): void {
  for (const [request, answer] of [
    ['GET /log/trace', { tracelevels: '1-2' }],
    ['PUT /log/trace/19,21-25', { tracelevels: '19,21-25' }],
    ['GET /log/trace', { tracelevels: '19, 21-25' }],
    ['DELETE /log/trace/23', { tracelevels_removed: '23' }],
    ['GET /log/trace', { tracelevels: '19, 21-22, 24-25' }],
    ['DELETE /log/trace', { tracelevels: 'all trace levels off' }],
    ['GET /log/trace', { tracelevels: 'empty' }],
  ] as const)
    t.test(`then ${request} returns ${JSON.stringify(answer)}`, async t => {
      t.match(await node.ask(request), { status: 200, json: answer })
    })

  t.test('an invalid list of levels is refused', async t => {
    t.match(await node.ask('PUT /log/trace/1-300'), {
      status: 400,
      json: { error: 'BadRequest', description: 'poorly formatted trace level string' },
    })
  })
}

interface Shown {
  readonly counters: { readonly requests: Record<string, Record<string, number>>; readonly invalidRequests?: number }
  readonly timing: { readonly accumulated?: { readonly total: number; readonly jsonV2Parse?: number } }
}

function statistics(t: Test, node: LocalNode): void {
  const read = async (query = '') => (await node.ask(`GET /statistics${query}`)).json as Shown
  const expected = { status: 200, json: { message: 'All statistics counter reset' } }

  t.test('after a reset only later requests are counted, the request itself included', async t => {
    t.match(await node.ask('DELETE /statistics'), expected)
    t.same((await read()).counters.requests, { '/statistics': { GET: 1 } })
  })

  t.test('requests are counted by route and verb, and times are added up', async t => {
    await node.json('POST /v2/entities', room('S1'))
    await node.ask('GET /v2/entities/S1')
    await node.ask('GET /nowhere')
    await node.json('POST /v2/types', {})
    const { counters, timing } = await read()
    t.match(counters, {
      jsonRequests: 2,
      requests: { '/v2/entities': { POST: 1 }, '/v2/entities/{id}[/attrs]': { GET: 1 } },
      missedVerb: 1,
      invalidRequests: 1,
    })
    t.ok(timing.accumulated!.total > 0)
    t.ok(timing.accumulated!.jsonV2Parse! > 0)
  })

  t.test('in full every route is there', async t => {
    const { requests } = (await read('?options=fullCounters')).counters
    t.match(requests['/log/trace[/{level}]'], { PUT: 0, DELETE: 0 })
    t.match(requests['/v2/op/update'], { POST: 0 })
  })

  t.test('the cache of subscriptions shows its contents', async t => {
    t.match(await node.ask('DELETE /cache/statistics'), expected)
    const none = { ids: '', refresh: 0, inserts: 0, removes: 0, updates: 0, items: 0 }
    t.same((await node.ask('GET /cache/statistics')).json, none)
    const { headers } = await node.json('POST /v2/subscriptions', {
      subject: { entities: [{ id: 'nobody' }] },
      notification: { http: { url: 'http://localhost:1/' } },
    })
    const id = headers.location!.slice('/v2/subscriptions/'.length)
    await node.json(`PATCH /v2/subscriptions/${id}`, { throttling: 1 })
    t.same((await node.ask('GET /cache/statistics')).json, { ...none, ids: id, inserts: 1, updates: 1, items: 1 })
    await node.ask(`DELETE /v2/subscriptions/${id}`)
    t.same((await node.ask('GET /cache/statistics')).json, { ...none, inserts: 1, updates: 1, removes: 1 })
  })

  t.test('no semaphore is taken', async t => {
    const { json } = await node.ask('GET /admin/sem')
    t.equal(Object.keys(json as object).length, 12)
    t.match(json, { metrics: { status: 'free' }, dbConnectionPool: { status: 'free' } })
  })
}

interface Tree {
  readonly services: Record<string, { readonly subservs: Record<string, object>; readonly sum: object }>
  readonly sum: { readonly subservs: Record<string, object> }
}

function metrics(t: Test, node: LocalNode): void {
  const read = async (query = '') => (await node.ask(`GET /admin/metrics${query}`)).json as Tree

  t.test('requests are counted by tenant and path, but those whose headers are none', async t => {
    t.equal((await node.ask('DELETE /admin/metrics')).status, 204)
    const entity = JSON.stringify(room('M1'))
    await node.json('POST /v2/entities', room('M1'), ['Ctx-Service: Acme', 'Ctx-ServicePath: /gardens/north'])
    await node.ask('GET /v2/entities/M1', ['Fiware-Service: acme', 'Fiware-ServicePath: /gardens/south'])
    await node.ask('GET /v2/entities', ['Ctx-ServicePath: gardens'])
    await node.ask('GET /v2/entities', ['Ctx-Service: a.b'])
    const { services, sum } = await read('?reset=true')
    t.same(Object.keys(services), ['acme', 'default-service'])
    t.match(services.acme, {
      subservs: {
        'gardens/north': { incomingTransactions: 1, incomingTransactionRequestSize: entity.length },
        'gardens/south': { incomingTransactions: 1, incomingTransactionErrors: 1 },
      },
      sum: { incomingTransactions: 2 },
    })
    t.match(services['default-service'], { subservs: { 'root-subserv': { incomingTransactions: 1 } } })
    t.same(Object.keys(sum.subservs), ['gardens/north', 'gardens/south', 'root-subserv'])
  })

  t.test('a reset counts itself afterwards', async t => {
    const { services } = await read()
    t.match(services, { 'default-service': { subservs: { 'root-subserv': { incomingTransactions: 1 } } } })
    t.same(Object.keys(services), ['default-service'])
  })
}

t.test('with -disableMetrics there are none', async t => {
  const node = await startLocalNode(t, { statistics: { byService: false } })
  const off = { status: 400, json: { error: 'BadRequest', description: 'metrics desactivated' } }
  t.match(await node.ask('GET /admin/metrics'), off)
  t.match(await node.ask('GET /admin/metrics?reset=true'), off)
  t.match(await node.ask('DELETE /admin/metrics'), off)
})

t.test('the options of the start are shown, as the process has read them', async t => {
  const settings = [{ name: 'port', value: '80', source: '-port' }]
  const node = await startLocalNode(t, { settings })
  t.same((await node.ask('GET /admin/settings')).json, { options: settings })
})

t.test('without the flags there are no blocks in /statistics', async t => {
  const node = await startLocalNode(t)
  const { json } = await node.ask('GET /statistics')
  t.same(Object.keys(json as object).sort(), ['measuring_interval_in_secs', 'uptime_in_secs'])
})

t.test('with two workers an answer is about both, and an order reaches both', async t => {
  const [one, other] = (await startLocalWorkers(t, 2, { statistics: everything })) as [LocalNode, LocalNode]
  await one.ask('GET /v2/entities/E1')
  await other.ask('GET /v2/entities/E2')
  t.match((await one.ask('GET /statistics')).json, {
    counters: { requests: { '/v2/entities/{id}[/attrs]': { GET: 2 } } },
  })
  t.match((await other.ask('GET /admin/metrics?reset=true')).json, {
    services: { 'default-service': { sum: { incomingTransactions: 3 } } },
  })
  t.match((await one.ask('GET /admin/metrics')).json, { sum: { sum: { incomingTransactions: 1 } } })
  await one.ask('PUT /admin/log?level=info')
  t.match((await other.ask('GET /admin/log')).json, { level: 'INFO' })
  await other.ask('PUT /log/trace/7')
  t.match((await one.ask('GET /log/trace')).json, { tracelevels: '7' })
})

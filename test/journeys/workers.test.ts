// Several workers on one port, as the operator has them: they act as one broker, also when one is stopped or killed, or
// when their number changes.

import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { placementDefault, ShardMap, workerOf } from '../../src/domain/scope.js'
import { type BrokerProcess, spawnBroker, startBroker, tempDir, within } from '../support/broker-process.js'
import { HttpClient } from '../support/http-client.js'

t.setTimeout(600_000)

const two = ['-workers', '2']
/** Longer than a worker waits for another worker; a request that takes longer has failed. */
const answerMsMax = 6_000

const shardMap = new ShardMap(placementDefault)
const ownerOf = (id: string, workers = 2): number => workerOf(shardMap.shardOf('', '/', id), workers)

/** Ids of entities that a worker owns. */
const idsOf = (worker: number, count: number): string[] =>
  Array.from({ length: 1000 }, (_, n) => `E${n}`)
    .filter(id => ownerOf(id) === worker)
    .slice(0, count)

/** The process ids of a broker's workers, in the order of their numbers if none was restarted. */
function workersOf({ child }: BrokerProcess): number[] {
  return readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ').map(Number)
}

const create = (client: HttpClient, id: string) =>
  client.send('POST', '/v2/entities', { id, type: 'T', n: { type: 'Number', value: 0 } })
const increment = (client: HttpClient, id: string) =>
  client.send('PATCH', `/v2/entities/${id}/attrs`, { n: { type: 'Number', value: { $inc: 1 } } })
const counterOf = async (client: HttpClient, id: string): Promise<number> =>
  Number((await client.get(`/v2/entities/${id}/attrs/n/value`)).text)

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Connections to a broker, enough that each worker has some. */
function connections(t: Test, broker: BrokerProcess): HttpClient[] {
  const clients = Array.from({ length: 24 }, () => new HttpClient(broker.baseUrl))
  t.teardown(() => {
    for (const client of clients) client.close()
  })
  return clients
}

t.test('entities that one connection has created are read, listed and counted by another one', async t => {
  const broker = await startBroker(t, { args: two })
  const clients = connections(t, broker)
  const ids = [...idsOf(0, 12), ...idsOf(1, 12)]
  for (const [at, id] of ids.entries()) t.equal((await create(clients[at]!, id)).status, 201)
  for (const [at, id] of ids.entries()) t.equal(await counterOf(clients[23 - at]!, id), 0)
  for (const client of clients) {
    const answer = await client.get('/v2/entities?options=count,values&attrs=id&limit=1')
    t.equal(answer.headers['ctx-total-count'], '24')
  }
  t.match((await clients[0]!.get('/v2/types')).json, [{ type: 'T', count: 24 }])
})

t.test(
  'a worker that is stopped takes only its shards with it, and nothing is applied twice when it goes on',
  async t => {
    const broker = await startBroker(t, { args: two })
    const [ours, theirs] = [idsOf(0, 1)[0]!, idsOf(1, 1)[0]!]
    const clients = connections(t, broker)
    for (const id of [ours, theirs]) t.equal((await create(clients[0]!, id)).status, 201)
    for (const client of clients) t.equal(await counterOf(client, ours), 0)
    const stopped = workersOf(broker)[1]!
    process.kill(stopped, 'SIGSTOP')
    t.teardown(() => broker.gone || process.kill(stopped, 'SIGCONT'))
    // Half of the connections are with the stopped worker: it answers them when it continues.
    const onOurs = clients.map(client => increment(client, ours))
    const answered = await Promise.all(onOurs.map(answer => within(answerMsMax, answer)))
    const awake = clients.filter((_, at) => answered[at])
    t.ok(awake.length > 0 && awake.length < clients.length, `${awake.length} connections are with the other`)
    for (const answer of answered) if (answer) t.equal(answer.status, 204, answer.text)
    const refused = await Promise.all(awake.map(client => within(answerMsMax, increment(client, theirs))))
    for (const answer of refused) t.equal(answer?.status, 503)
    t.equal(refused[0]?.headers['retry-after'], '1')
    t.equal((await awake[0]!.get('/v2/entities')).status, 503, 'a list needs all')
    t.equal((await awake[0]!.get('/health/ready')).status, 503)
    t.equal(await counterOf(awake[0]!, ours), awake.length)

    process.kill(stopped, 'SIGCONT')
    const late = await Promise.all(onOurs)
    t.ok(late.every(({ status }) => status === 204 || status === 503))
    while ((await awake[0]!.get('/health/ready')).status !== 200) await pause(20)
    const done = late.filter(({ status }) => status === 204).length
    t.equal(await counterOf(awake[0]!, ours), done, 'what was acknowledged, once')
    t.equal(await counterOf(awake[0]!, theirs), 0, 'what was refused was not done later')
  },
)

t.test('a worker that is killed is back within seconds with all it had', async t => {
  const broker = await startBroker(t, { args: two })
  const ids = [...idsOf(0, 20), ...idsOf(1, 20)]
  const client = new HttpClient(broker.baseUrl)
  for (const id of ids) t.equal((await create(client, id)).status, 201)
  client.close()
  for (const victim of workersOf(broker)) {
    process.kill(victim, 'SIGKILL')
    const killedMs = performance.now()
    for (;;) {
      const asking = new HttpClient(broker.baseUrl)
      const answer = await asking.get('/v2/entities?limit=1000').catch(() => undefined)
      asking.close()
      if (answer?.status === 200 && (answer.json as unknown[]).length === ids.length) break
      if (performance.now() - killedMs > 20_000) return void t.fail(`not back\n${broker.printed()}`)
      await pause(10)
    }
    t.equal(workersOf(broker).length, 2)
  }
  const { code, stdout } = await broker.kill('SIGTERM')
  t.equal(code, 0)
  t.match(stdout, /worker 0 is started again/)
})

t.test('SIGTERM ends all workers, and the next start has another number of them and the same entities', async t => {
  const dataDir = tempDir(t)
  const ids = [...idsOf(0, 15), ...idsOf(1, 15)].sort()
  let isFirst = true
  for (const args of [two, ['-workers', '3'], [], two]) {
    const broker = await startBroker(t, { dataDir, args })
    const client = new HttpClient(broker.baseUrl)
    if (isFirst) for (const id of ids) t.equal((await create(client, id)).status, 201)
    isFirst = false
    const page = (await client.get('/v2/entities?limit=1000')).json as { readonly id: string }[]
    t.strictSame(page.map(({ id }) => id).sort(), ids, `with ${args.join(' ') || 'one'}`)
    client.close()
    const children = args.length > 0 ? workersOf(broker) : []
    process.kill(broker.child.pid as number, 'SIGTERM')
    const { code, stderr } = await broker.exited
    t.strictSame([code, stderr], [0, ''])
    t.strictSame(children.filter(isAlive), [], 'the workers have gone')
  }
})

t.test('a supervisor that is killed leaves neither workers nor their sockets behind', async t => {
  const temporary = tempDir(t)
  const broker = await startBroker(t, { args: two, env: { TMPDIR: temporary } })
  const workers = workersOf(broker)
  t.equal(readdirSync(temporary).length, 1)
  process.kill(broker.child.pid as number, 'SIGKILL')
  await broker.exited
  const untilMs = performance.now() + 10_000
  while (workers.some(isAlive) && performance.now() < untilMs) await pause(10)
  t.strictSame(workers.filter(isAlive), [])
  t.strictSame(readdirSync(temporary), [])
})

t.test('a start that is stopped while it divides the data ends well, and the next one goes on', async t => {
  const dataDir = tempDir(t)
  const [steps, entitiesPerStep] = [25, 1000]
  const first = await startBroker(t, { dataDir })
  const client = new HttpClient(first.baseUrl)
  for (let step = 0; step < steps; step++) {
    const entities = Array.from({ length: entitiesPerStep }, (_, n) => ({
      id: `E${step * entitiesPerStep + n}`,
      type: 'T',
    }))
    const { status } = await client.send('POST', '/v2/op/update', { actionType: 'append', entities })
    t.equal(status, 204)
  }
  client.close()
  await first.kill('SIGTERM')
  const stopped = await spawnBroker(t, { dataDir, args: ['-workers', '3', '-logLevel', 'INFO'] })
  await new Promise<void>(resolve =>
    stopped.child.stdout?.on('data', () => {
      if (/divides 25000 entities/.test(stopped.stdout)) resolve()
    }),
  )
  process.kill(stopped.child.pid as number, 'SIGTERM')
  const { code, stdout } = await stopped.exitWithin(20_000)
  t.equal(code, 0)
  t.match(stdout, /the next start goes on dividing/)
  const last = await startBroker(t, { dataDir, args: ['-workers', '3', '-logLevel', 'INFO'] })
  const reader = new HttpClient(last.baseUrl)
  const answer = await reader.get('/v2/entities?options=count&limit=1')
  t.equal(answer.headers['ctx-total-count'], String(steps * entitiesPerStep))
  reader.close()
})

t.test('workers do not share a port with a stranger', async t => {
  const broker = await startBroker(t, { args: two })
  const second = await spawnBroker(t, { port: broker.port, args: two })
  const { code, stderr } = await second.exitWithin(20_000)
  t.equal(code, 1)
  t.match(stderr, /address already in use|in use/)
})

t.test('workers over node:http share one socket', async t => {
  const broker = await startBroker(t, { args: [...two, '-httpServer', 'node'] })
  const clients = connections(t, broker)
  for (const [at, id] of [...idsOf(0, 12), ...idsOf(1, 12)].entries())
    t.equal((await create(clients[at]!, id)).status, 201)
  t.equal((await clients[0]!.get('/v2/entities?options=count&limit=1')).headers['ctx-total-count'], '24')
})

// What a single node has becomes the first content of a cluster: as an operator does it, with the command, a real etcd and three nodes.

import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { ClusterStatus } from '../../src/messages/cluster-status.js'
import { type BrokerProcess, freePort, startBroker, tempDir } from '../support/broker-process.js'
import { bundleAll } from '../support/bundled.js'
import { directoryAt, openAll } from '../support/divided.js'
import { noEtcd, startEtcd } from '../support/etcd.js'
import { type Answer, HttpClient } from '../support/http-client.js'
import { main } from '../support/project.js'

const skip = noEtcd()
t.setTimeout(240_000)

/** How long copies, notifications and new owners may take on a busy machine. */
const waitMsMax = 60_000

const tenants = ['', 'city'] as const
const paths = ['/', '/a', '/a/b'] as const

/** Over a connection of its own: between two requests here a server may close one that is kept. */
async function send(
  broker: BrokerProcess,
  method: string,
  path: string,
  body?: unknown,
  headers = {},
): Promise<Answer> {
  const client = new HttpClient(broker.baseUrl)
  try {
    return await client.send(method, path, body, headers)
  } finally {
    client.close()
  }
}

/** Everything that a client can see: entities with their times, subscriptions and registrations, of both tenants; undefined when a node cannot tell. */
async function visible(broker: BrokerProcess): Promise<unknown> {
  const seen: unknown[] = []
  for (const tenant of tenants) {
    const headers = tenant ? { 'Ctx-Service': tenant } : {}
    for (const path of [
      '/v2/entities?limit=1000&options=count&attrs=*,dateCreated,dateModified&metadata=*,dateCreated,dateModified',
      '/v2/types?options=count',
      '/v2/registrations?limit=1000',
    ]) {
      const { status, headers: answered, json } = await send(broker, 'GET', path, undefined, headers)
      if (status !== 200) return undefined
      seen.push([path, answered['ctx-total-count'], json])
    }
    const { status, json } = await send(broker, 'GET', '/v2/subscriptions?limit=1000', undefined, headers)
    if (status !== 200) return undefined
    seen.push((json as { notification: object }[]).map(withoutTries))
  }
  return seen
}

/** What became of notifications goes on becoming, but for how many there were. */
function withoutTries({ notification, ...subscription }: { readonly notification: object }): unknown {
  const { failsCounter, lastFailure, lastFailureReason, lastSuccess, lastSuccessCode, ...kept } =
    notification as Record<string, unknown>
  return { ...subscription, notification: kept }
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const untilMs = performance.now() + waitMsMax
  while (!(await holds())) {
    if (performance.now() > untilMs) throw new Error(`waited too long for: ${what}`)
    await pause(50)
  }
}

/** A receiver that adds the ids of the entities that it is told of; gives its URL. */
async function receiver(t: Test, heard: string[], port = 0): Promise<string> {
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const part of request) text += part
    heard.push(...JSON.parse(text).data.map(({ id }: { id: string }) => id))
    response.end()
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

function command(words: readonly string[]): Promise<{ status: number; out: string; err: string }> {
  return new Promise(resolve => {
    execFile(process.execPath, [main, 'cluster', ...words], (error, out, err) =>
      resolve({ status: error ? Number(error.code) : 0, out, err }),
    )
  })
}

t.test('the data of two workers becomes that of three nodes', { skip }, async t => {
  const from = tempDir(t)
  const heard: string[] = []
  const alive = await receiver(t, heard)
  const away = `http://127.0.0.1:${await freePort()}/`

  const single = await startBroker(t, { dataDir: from, args: ['-workers', '2', '-multiservice'] })
  const watch = (url: string, type: string) => ({
    subject: { entities: [{ idPattern: '.*', type }] },
    notification: { http: { url } },
    throttling: type === 'Throttled' ? 3600 : 0,
  })
  for (const [url, type] of [
    [alive, 'Lamp'],
    [alive, 'Throttled'],
    [away, 'Owed'],
  ] as const)
    t.equal((await send(single, 'POST', '/v2/subscriptions', watch(url, type))).status, 201)
  const provider = {
    dataProvided: { entities: [{ id: 'elsewhere' }] },
    provider: { http: { url: 'http://127.0.0.1:9/' } },
  }
  t.equal((await send(single, 'POST', '/v2/registrations', provider)).status, 201)
  for (let n = 0; n < 120; n++) {
    const tenant = tenants[n % 2]
    const type = n < 4 ? 'Throttled' : n < 10 ? 'Owed' : 'Lamp'
    const body = { id: `e${n}`, type, level: { value: n, metadata: { unit: { value: 'lx' } } } }
    const scope = { ...(tenant && { 'Ctx-Service': tenant }), 'Ctx-ServicePath': paths[n % 3] }
    t.equal((await send(single, 'POST', '/v2/entities', body, scope)).status, 201)
  }
  await until('the notifications of lamps', async () => new Set(heard).size >= 56)
  const before = await visible(single)
  await single.kill('SIGTERM')

  const etcd = await startEtcd(t)
  const shardLog = `etcd://${etcd.address().members.join(',')}`
  const listens: string[] = []
  for (let n = 0; n < 3; n++) listens.push(`127.0.0.1:${await freePort()}`)
  const wordsOf = (n: number): string[] =>
    [
      '-nodeName',
      `n${n}`,
      '-clusterListen',
      listens[n]!,
      '-clusterJoin',
      listens.join(','),
      '-shardLog',
      shardLog,
    ].concat('-multiservice')
  const dirs = [0, 1, 2].map(() => tempDir(t))

  const busy = await startBroker(t, { dataDir: from, args: ['-workers', '2'] })
  const refused = await command(['init', '--from', from, '-dataDir', dirs[0]!, ...wordsOf(0)])
  t.match(refused, { status: 1, err: /is in use by another process/ })
  await busy.kill('SIGTERM')
  let owedRows = 0
  for (const store of await openAll(directoryAt(from))) {
    owedRows += await bundleAll(store)
    await store.close()
  }
  t.ok(owedRows > 0, 'what is owed was left by a crash')

  const made = await command(['init', '--from', from, '-dataDir', dirs[0]!, ...wordsOf(0)])
  t.match(made, { status: 0, out: /^120 entities, 3 subscriptions and 1 registrations of .* are the first content/ })
  const again = await command(['init', '--from', from, '-dataDir', dirs[1]!, ...wordsOf(1)])
  t.match(again, { status: 1, err: /the log engine keeps a cluster already/ })
  t.match(await command(['init', '--from', from, '-dataDir', dirs[0]!, ...wordsOf(0)]), {
    status: 1,
    err: /is a data directory already/,
  })

  const fresh = tempDir(t)
  const nodes: BrokerProcess[] = []
  const start = async (n: number, dataDir: string): Promise<void> => {
    nodes[n] = await startBroker(t, { dataDir, args: wordsOf(n), readyWaitMs: waitMsMax })
  }
  // All at once: those without anything wait for the one that has all.
  await Promise.all([start(0, dirs[0]!), start(1, fresh), start(2, dirs[2]!)])
  for (const node of nodes) {
    await until('all shards to have owners', async () => (await visible(node)) !== undefined)
    t.strictSame(await visible(node), before, 'every node tells what the single one has told')
  }

  await receiver(t, heard, Number(new URL(away).port))
  const owed = ['e4', 'e6', 'e8']
  await until('what was owed is sent', async () => owed.every(id => heard.includes(id)))

  const throttled = heard.length
  const change = { level: { value: 1000 } }
  t.equal((await send(nodes[2]!, 'PATCH', '/v2/entities/e0/attrs', change, { 'Ctx-ServicePath': '/' })).status, 204)
  const told = { id: 'told', type: 'Lamp', level: { value: 0 } }
  t.equal((await send(nodes[1]!, 'POST', '/v2/entities', told)).status, 201)
  await until('the next notification', async () => heard.includes('told'))
  t.notOk(heard.slice(throttled).includes('e0'), 'throttling goes on')

  await until('every node has a copy of everything', async () => {
    const answers = await Promise.all(nodes.map(node => send(node, 'GET', '/cluster')))
    const shards = answers.flatMap(({ json }) => (json as ClusterStatus).shards)
    return shards.every(({ copy }) => copy === 'owned' || copy === 'following')
  })
  const whole = await visible(nodes[1]!)
  nodes[0]!.signal('SIGKILL')
  for (const n of [1, 2]) {
    await until('the others have taken over', async () => (await visible(nodes[n]!)) !== undefined)
    t.strictSame(await visible(nodes[n]!), whole, 'nothing is lost with the node that had all first')
  }
})

// The data of a single node becomes the first content of a cluster, and later that of a single node again: as an
// operator does it, with the commands, a real etcd and three nodes.

import { execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, watch } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { placementDefault } from '../../src/domain/scope.js'
import type { SubscriptionProgress } from '../../src/domain/subscriptions/subscription.js'
import { mergeProgress } from '../../src/domain/subscriptions/subscription-status.js'
import type { ClusterStatus } from '../../src/messages/cluster-status.js'
import { openStores } from '../../src/move/directory.js'
import type { Store } from '../../src/ports.js'
import { allProgress, parseDocumentKey } from '../../src/shard/documents/document-layout.js'
import { kindsThatGo, under } from '../../src/shard/keys.js'
import { allOutbox, encodeLetterRow, letterKey, parseOutboxKey } from '../../src/shard/notify/notification-layout.js'
import { decodeProgress } from '../../src/shard/notify/progress-book.js'
import { positionKey } from '../../src/shard/replicate/replicated-layout.js'
import { clusterOf, openDataDirectory } from '../../src/storage/data-directory.js'
import { commit, rowsOf } from '../storage/store-contract.js'
import { type BrokerProcess, freePort, startBroker, tempDir } from '../support/broker-process.js'
import { bundleAll } from '../support/bundled.js'
import { directoryAt, openAll } from '../support/divided.js'
import { noEtcd, startEtcd } from '../support/etcd.js'
import { type Answer, HttpClient } from '../support/http-client.js'
import { indexesEqualRebuild } from '../support/inspection.js'
import { main } from '../support/project.js'
import { smallPlacement } from '../support/small-cluster.js'

const skip = noEtcd()
t.setTimeout(900_000)

/** Whether every number of workers is tested, and a kill at every stage: in the soak. */
const isWhole = process.env.CLUSTER_INIT === 'all'

/** Longest wait for copies, notifications and new owners on a busy machine. */
const waitMsMax = 180_000

const tenants = ['', 'city'] as const
const paths = ['/', '/a', '/a/b'] as const

/**
 * Each request has a connection of its own, because a server may close an idle one between two requests. A write that
 * gets 503 is sent again, as the answer asks for.
 */
async function send(
  broker: BrokerProcess,
  method: string,
  path: string,
  body?: unknown,
  headers = {},
): Promise<Answer> {
  const untilMs = performance.now() + waitMsMax
  while (true) {
    const client = new HttpClient(broker.baseUrl)
    try {
      const answer = await client.send(method, path, body, headers)
      if (method === 'GET' || answer.status !== 503 || performance.now() > untilMs) return answer
    } finally {
      client.close()
    }
    await pause(1000)
  }
}

/**
 * All data that a client can see: entities with their times, subscriptions and registrations, of both tenants;
 * undefined when a node cannot answer.
 */
async function visible(broker: BrokerProcess): Promise<unknown> {
  const seen: unknown[] = []
  for (const tenant of tenants) {
    const headers = tenant ? { 'Ctx-Service': tenant } : {}
    for (const path of [
      '/v2/entities?limit=1000&options=count&attrs=*,dateCreated,dateModified&metadata=*,dateCreated,dateModified',
      '/v2/types?options=count',
    ]) {
      const { status, headers: answered, json } = await send(broker, 'GET', path, undefined, headers)
      if (status !== 200) return undefined
      seen.push([path, answered['ctx-total-count'], json])
    }
    const registered = await send(broker, 'GET', '/v2/registrations?limit=1000', undefined, headers)
    if (registered.status !== 200) return undefined
    seen.push((registered.json as object[]).map(withoutForwards))
    const { status, json } = await send(broker, 'GET', '/v2/subscriptions?limit=1000', undefined, headers)
    if (status !== 200) return undefined
    seen.push((json as { notification: object }[]).map(withoutTries))
  }
  return seen
}

/** The same, once the node can answer: every shard has an owner that answers. */
async function untilVisible(broker: BrokerProcess): Promise<unknown> {
  let seen: unknown
  await until('all shards to have owners', async () => {
    seen = await visible(broker)
    return seen !== undefined
  })
  return seen
}

/** A registration without what the asked process has counted. */
function withoutForwards(registration: object): unknown {
  const { forwardingInformation, ...kept } = registration as Record<string, unknown>
  return kept
}

/** A subscription without the outcomes of its notifications, which still change; their number stays. */
function withoutTries({ notification, ...subscription }: { readonly notification: object }): unknown {
  const { failsCounter, lastFailure, lastFailureReason, lastSuccess, lastSuccessCode, ...kept } =
    notification as Record<string, unknown>
  return { ...subscription, notification: kept }
}

/**
 * What is visible, without the numbers of notifications: owners report these to the document owner from time to time.
 */
const withoutNumbers = (seen: unknown): unknown =>
  JSON.parse(JSON.stringify(seen, (name, value) => (numbersOf.includes(name) ? undefined : value)))

const numbersOf = ['timesSent', 'lastNotification']

/** The number of notifications of each subscription in what is visible. */
const numbersSent = (seen: unknown): readonly number[] =>
  [...JSON.stringify(seen).matchAll(/"timesSent":(\d+)/g)].map(([, number]) => Number(number))

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const untilMs = performance.now() + waitMsMax
  while (!(await holds())) {
    if (performance.now() > untilMs) throw new Error(`waited too long for: ${what}`)
    await pause(50)
  }
}

/** A receiver that adds the ids of the entities in its notifications to `received`; returns its URL. */
async function receiver(t: Test, received: string[], port = 0): Promise<string> {
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const part of request) text += part
    received.push(...JSON.parse(text).data.map(({ id }: { id: string }) => id))
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
  openDataDirectory(from, { ...smallPlacement, workers: 2 }, randomUUID)
  const received: string[] = []
  const alive = await receiver(t, received)
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
  await until('the notifications of lamps', async () => new Set(received).size >= 56)
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
  let pendingRows = 0
  for (const store of await openAll(directoryAt(from))) {
    pendingRows += await bundleAll(store)
    await store.close()
  }
  t.ok(pendingRows > 0, 'what is owed was left by a crash')

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
  // All start at once: the nodes without data wait for the one that has all.
  await Promise.all([start(0, dirs[0]!), start(1, fresh), start(2, dirs[2]!)])
  for (const node of nodes) {
    t.strictSame(await untilVisible(node), before, 'every node tells what the single one has told')
  }

  await receiver(t, received, Number(new URL(away).port))
  const pending = ['e4', 'e6', 'e8']
  await until('what was owed is sent', async () => pending.every(id => received.includes(id)))

  const throttled = received.length
  const change = { level: { value: 1000 } }
  t.equal((await send(nodes[2]!, 'PATCH', '/v2/entities/e0/attrs', change, { 'Ctx-ServicePath': '/' })).status, 204)
  const late = { id: 'told', type: 'Lamp', level: { value: 0 } }
  const { status } = await send(nodes[1]!, 'POST', '/v2/entities', late)
  t.ok(status === 201 || status === 422, 'made by the first request or by one that was sent again')
  await until('the next notification', async () => received.includes('told'))
  t.notOk(received.slice(throttled).includes('e0'), 'throttling goes on')

  await until('every node has a copy of everything', async () => {
    const answers = await Promise.all(nodes.map(node => send(node, 'GET', '/cluster')))
    const shards = answers.flatMap(({ json }) => (json as ClusterStatus).shards)
    return shards.every(({ copy }) => copy === 'owned' || copy === 'following')
  })
  const whole = await untilVisible(nodes[1]!)
  nodes[0]!.signal('SIGKILL')
  for (const n of [1, 2]) {
    const left = await untilVisible(nodes[n]!)
    t.strictSame(withoutNumbers(left), withoutNumbers(whole), 'nothing is lost with the node that had all first')
    t.ok(
      numbersSent(left).every((number, at) => number >= numbersSent(whole)[at]!),
      'and no notification that was counted',
    )
  }
})

// Back to one node

/**
 * The rows that move with shards and the register, of all stores of a directory that no broker uses; the progress of
 * subscriptions only in part.
 */
async function rowsIn(path: string): Promise<ReadonlyMap<string, string>> {
  const rows = new Map<string, string>()
  const progress = new Map<string, SubscriptionProgress[]>()
  await withStores(path, async stores => {
    for (const store of stores) {
      for (const kind of kindsThatGo('shard', 'register'))
        for (const { key, value } of await rowsOf(store, under(Buffer.of(kind))))
          rows.set(key.toString('latin1'), value.toString('latin1'))
      for (const { key, value } of await rowsOf(store, allProgress())) {
        const { id } = parseDocumentKey(key)
        progress.set(id, [...(progress.get(id) ?? []), decodeProgress(value).progress])
      }
    }
  })
  for (const [id, parts] of progress) {
    const { timesSent, lastNotificationMs, spentRevision } = mergeProgress(parts)
    rows.set(id, JSON.stringify({ timesSent, lastNotificationMs, spentRevision }))
  }
  return rows
}

async function withStores<T>(path: string, look: (stores: readonly Store[]) => Promise<T>): Promise<T> {
  const cluster = clusterOf(path)
  const directory = openDataDirectory(path, { ...placementDefault, ...(cluster && { cluster }) }, () => 'it is there')
  const open = await openStores(directory, 'os', () => {})
  try {
    return await look(open.stores)
  } finally {
    await open.close()
  }
}

/** Makes dead letters of some pending notifications, as five failed tries would. */
const someDead = (path: string, subscription: string): Promise<number> =>
  withStores(path, async stores => {
    let dead = 0
    for (const store of stores)
      for (const { key, value } of (await rowsOf(store, allOutbox())).slice(0, 2)) {
        const { shard, stamp } = parseOutboxKey(key)
        const letter = letterKey({ shard, tenant: '', subscription, stamp })
        await commit(store, batch => batch.put(letter, encodeLetterRow('{}', value)))
        dead++
      }
    return dead
  })

/**
 * Starts a command on a directory that does not exist yet, and kills it after that number of events in the directory.
 */
async function killedWhile(words: readonly string[], folder: string, events: number): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const child = spawn(process.execPath, [main, 'cluster', ...words], { stdio: 'ignore' })
  const exited = once(child, 'exit')
  let left = events
  const watcher = watch(folder, () => --left === 0 && child.kill('SIGKILL'))
  await exited
  watcher.close()
}

t.test('one worker, several, three nodes, and one again: the same content at every stop', { skip }, async t => {
  const path = tempDir(t)
  openDataDirectory(path, { ...smallPlacement, workers: 1 }, randomUUID)
  const received: string[] = []
  const alive = await receiver(t, received)
  const away = `http://127.0.0.1:${await freePort()}/`
  const city = { 'Ctx-Service': 'city' }
  const watching = (type: string, url: string, more = {}) => ({
    ...{ subject: { entities: [{ idPattern: '.*', type }] }, notification: { http: { url } } },
    ...more,
  })
  let broker = await startBroker(t, { dataDir: path, args: ['-multiservice'] })
  const made = async (method: string, url: string, body: unknown, headers = {}): Promise<void> =>
    void t.match((await send(broker, method, url, body, headers)).status, /^20[14]$/, `${method} ${url}`)
  for (const subscription of [
    watching('Lamp', alive),
    watching('Once', alive, { status: 'oneshot' }),
    watching('Throttled', alive, { throttling: 36_000 }),
    watching('Owed', away),
  ])
    await made('POST', '/v2/subscriptions', subscription)
  const provider = { http: { url: 'http://127.0.0.1:9/' } }
  for (const headers of [{}, city])
    await made('POST', '/v2/registrations', { dataProvided: { entities: [{ id: 'elsewhere' }] }, provider }, headers)
  for (let n = 0; n < 90; n++) {
    const type = n === 1 || n === 2 ? 'Once' : n === 3 || n === 4 ? 'Throttled' : n < 12 ? 'Owed' : 'Lamp'
    const level = { value: n, metadata: { unit: { value: 'lx' }, since: { value: [n, null] } } }
    const expires = n % 7 === 0 && { dateExpires: { type: 'DateTime', value: '2999-01-01T00:00:00.000Z' } }
    const scope = { ...(n % 5 === 0 && city), 'Ctx-ServicePath': paths[n % 3] }
    await made('POST', '/v2/entities', { id: `e${n}`, type, level, ...expires }, scope)
    // Another type of the same id, in the same row.
    if (n % 10 === 9) await made('POST', '/v2/entities', { id: `e${n}`, type: 'Other', other: { value: n } }, scope)
  }
  await until('the notifications of lamps', async () => new Set(received).size >= 60)
  const notified = (type: number[]) => received.filter(id => type.map(n => `e${n}`).includes(id))
  t.equal(notified([1, 2]).length, 1, 'the one-shot has fired')
  t.equal(notified([3, 4]).length, 1, 'and one that is throttled')
  const { json: subscriptions } = await send(broker, 'GET', '/v2/subscriptions')
  await broker.kill('SIGTERM')
  t.ok((await someDead(path, (subscriptions as { id: string }[])[3]!.id)) > 0)
  const before = await rowsIn(path)
  const pending = ['e6', 'e7', 'e8', 'e9', 'e11']
  t.ok([...before.keys()].filter(key => key.startsWith('O')).length >= pending.length, 'notifications are owed')

  for (const workers of isWhole ? [3, 2] : [3]) {
    broker = await startBroker(t, { dataDir: path, args: ['-multiservice', '-workers', String(workers)] })
    await until('a whole answer', async () => (await visible(broker)) !== undefined)
    await broker.kill('SIGTERM')
    t.strictSame(sorted(await rowsIn(path)), sorted(before), `${workers} workers`)
    t.strictSame(await indexesEqualRebuild(path), [])
  }

  const etcd = await startEtcd(t)
  const shardLog = `etcd://${etcd.address().members.join(',')}`
  const listens: string[] = []
  for (let n = 0; n < 3; n++) listens.push(`127.0.0.1:${await freePort()}`)
  const wordsOf = (n: number): string[] => [
    ...['-nodeName', `n${n}`, '-clusterListen', listens[n]!, '-clusterJoin', listens.join(',')],
    ...['-shardLog', shardLog, '-multiservice'],
  ]
  const dirs = [0, 1, 2].map(() => tempDir(t))
  t.match(await command(['init', '--from', path, '-dataDir', dirs[0]!, ...wordsOf(0)]), {
    status: 0,
    out: /^99 entities, 4 subscriptions and 2 registrations/,
  })
  t.strictSame(sorted(await rowsIn(dirs[0]!)), sorted(before), 'a node')
  const { id } = clusterOf(dirs[0]!)!
  t.strictSame(await indexesEqualRebuild(dirs[0]!, id), [])

  const nodes = await Promise.all(
    dirs.map((dataDir, n) => startBroker(t, { dataDir, args: wordsOf(n), readyWaitMs: waitMsMax })),
  )
  const untilCopied = (some: readonly BrokerProcess[]): Promise<void> =>
    until('every node has a copy of everything', async () => {
      const answers = await Promise.all(some.map(node => send(node, 'GET', '/cluster')))
      const shards = answers.flatMap(({ json }) => (json as ClusterStatus).shards)
      return shards.every(({ copy, lag }) => (copy === 'owned' || copy === 'following') && lag === 0)
    })
  await untilCopied(nodes)
  for (const [n, node] of nodes.entries())
    await until(`node ${n} takes writes`, async () => {
      const { status } = await send(node, 'POST', '/v2/entities', {
        id: `of node ${n}`.replaceAll(' ', '_'),
        type: 'Lamp',
      })
      return status === 201 || status === 422
    })
  await untilCopied(nodes)
  await nodes[1]!.kill('SIGTERM')
  await until('a write without node 1', async () => {
    const { status } = await send(nodes[0]!, 'POST', '/v2/entities', { id: 'later', type: 'Lamp' })
    return status === 201 || status === 422
  })
  await untilCopied([nodes[0]!, nodes[2]!])
  const seen = await untilVisible(nodes[0]!)
  await nodes[2]!.kill('SIGTERM')

  const to = tempDir(t)
  const leaving = (n: number, ...more: string[]): string[] => ['leave', '--from', dirs[n]!, '-dataDir', to, ...more]
  t.match(await command(leaving(0, ...wordsOf(0))), { status: 1, err: /is in use by another process/ })
  for (const n of [1, 2])
    t.match(await command(leaving(n, ...wordsOf(n))), { status: 1, err: /n0 still runs: stop all nodes/ })
  await nodes[0]!.kill('SIGTERM')
  t.match(await command(leaving(1, ...wordsOf(1))), { status: 1, err: /the log has changes of shards? .* not in / })
  t.match(await command(['leave', '--from', path, '-dataDir', to, ...wordsOf(0)]), {
    status: 1,
    err: /is that of a single node already/,
  })
  const partial = tempDir(t)
  cpSync(dirs[0]!, partial, { recursive: true })
  await withStores(partial, ([store]) => commit(store!, batch => batch.del(positionKey(7))))
  t.match(await command(['leave', '--from', partial, '-dataDir', to, ...wordsOf(0)]), {
    status: 1,
    err: /has no complete copy of shard 7:/,
  })
  for (const events of isWhole ? [1, 2, 4, 8] : [2]) await killedWhile(leaving(0, ...wordsOf(0)), to, events)
  const left = existsSync(join(to, 'orrery.json'))
  if (!left) {
    const output = await command(leaving(0, ...wordsOf(0)))
    t.match(output, { status: 0, out: /^103 entities, 4 subscriptions and 2 registrations of cluster/ }, output.err)
  }
  t.strictSame(sorted(await rowsIn(to)), sorted(await rowsIn(dirs[0]!)), 'out of the cluster')
  t.strictSame(await indexesEqualRebuild(to), [])
  t.match(await command(leaving(0, ...wordsOf(0))), { status: 1, err: /is a data directory already/ })

  const small = tempDir(t)
  for (const store of await openAll(directoryAt(small))) await store.close()
  t.match(await command(['init', '--from', small, '-dataDir', tempDir(t), ...wordsOf(0)]), {
    status: 1,
    err: /keeps a cluster of 32 shards \(spread 16\), and data directory .* has 16 \(spread 4\):/,
  })
  await etcd.members[0]!.kill()
  const alone = tempDir(t)
  const without = await command(['leave', '--from', dirs[0]!, '-dataDir', alone, ...wordsOf(0)])
  t.match(without, { status: 1, err: /the log engine does not answer: .*-withoutLog goes on without it/ })
  t.match(await command(['leave', '--from', dirs[0]!, '-dataDir', alone, '--withoutLog']), {
    status: 0,
    err: /changes that other nodes have acknowledged .* are missing/,
  })
  t.strictSame(sorted(await rowsIn(alone)), sorted(await rowsIn(to)))

  const single = await startBroker(t, { dataDir: to, args: ['-multiservice'] })
  t.strictSame(await visible(single), seen, 'the single node tells what the cluster has told')
  await receiver(t, received, Number(new URL(away).port))
  await until('what was owed is sent', async () => pending.every(one => received.includes(one)))
  const change = { level: { value: 1000 } }
  for (const [n, type] of [
    [2, 'Once'],
    [4, 'Throttled'],
  ] as const)
    t.equal(
      (
        await send(single, 'PATCH', `/v2/entities/e${n}/attrs?type=${type}`, change, {
          'Ctx-ServicePath': paths[n % 3],
        })
      ).status,
      204,
    )
  t.equal((await send(single, 'POST', '/v2/entities', { id: 'last', type: 'Lamp', ...change })).status, 201)
  await until('the next notification', async () => received.includes('last'))
  t.equal(notified([1, 2]).length, 1, 'a one-shot fires once in all')
  t.equal(notified([3, 4]).length, 1, 'throttling goes on')
})

const sorted = (rows: ReadonlyMap<string, string>) => [...rows].sort(([a], [b]) => (a < b ? -1 : 1))

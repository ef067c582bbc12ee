// Subscriptions over HTTP: created, read, listed, changed and deleted, at one node and at several workers, over starts
// and kills.
//
// Not here: triggers and notifications; and of the mistakes of a body only one of each kind
// (domain/subscription-parser.test has all).
//
// CRASH_CYCLES sets the number of kills, SEED repeats a run.

import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { decodeSubscription } from '../../src/domain/subscriptions/subscription-json.js'
import { allDocuments, decodeDocumentRow, parseDocumentKey } from '../../src/shard/documents/document-layout.js'
import { openDataDirectory } from '../../src/storage/data-directory.js'
import { openStore } from '../../src/storage/open-store.js'
import { rowsOf } from '../storage/store-contract.js'
import { startBroker, tempDir, within } from '../support/broker-process.js'
import { HttpClient } from '../support/http-client.js'
import { type Answer, type LocalNode, startLocalNode } from '../support/local-node.js'
import { startLocalWorkers } from '../support/local-workers.js'
import { Random } from '../support/random.js'

const cycles = Math.ceil(Number(process.env.CRASH_CYCLES ?? 15) / 5)
t.setTimeout(400_000 + cycles * 10_000)

/** Longer than a worker waits for other workers; a request that takes longer has failed. */
const answerMsMax = 8_000

const url = 'http://receiver.example:1028/notify'
const body = (description: string) => ({
  description,
  subject: { entities: [{ id: 'Room1', type: 'Room' }], condition: { attrs: ['temperature'] } },
  notification: { http: { url }, attrs: ['temperature'] },
})
const shown = (id: string, description: string) => ({
  id,
  description,
  status: 'active',
  subject: {
    entities: [{ id: 'Room1', type: 'Room' }],
    condition: { attrs: ['temperature'], notifyOnMetadataChange: true },
  },
  notification: {
    attrs: ['temperature'],
    onlyChangedAttrs: false,
    attrsFormat: 'normalized',
    http: { url },
    covered: false,
  },
})

const path = '/v2/subscriptions'

async function create(node: LocalNode, description: string, headers: readonly string[] = []): Promise<string> {
  const { status, headers: replyHeaders, text } = await node.json(`POST ${path}`, body(description), headers)
  if (status !== 201) throw new Error(`${status} ${text}`)
  return replyHeaders.location!.slice(path.length + 1)
}

const at = (node: LocalNode, id: string, headers: readonly string[] = []): Promise<Answer> =>
  node.json(`GET ${path}/${id}`, undefined, headers)

/** Descriptions of a list, in its order. */
async function listed(node: LocalNode, query = '', headers: readonly string[] = []): Promise<string[]> {
  const { status, json, text } = await node.json(`GET ${path}${query}`, undefined, headers)
  if (status !== 200) throw new Error(`${status} ${text}`)
  return (json as { description: string }[]).map(({ description }) => description)
}

for (const server of ['node', 'uws'] as const) {
  t.test(`a subscription from its creation to its end (${server})`, async t => {
    const node = await startLocalNode(t, { server })
    const created = await node.json(`POST ${path}?options=skipInitialNotification`, body('first'), [
      'Ctx-Correlator: c1',
    ])
    t.match(created, { status: 201, text: '', headers: { 'ctx-correlator': 'c1', 'content-length': '0' } })
    const id = created.headers.location!.slice(path.length + 1)
    t.match(id, /^[0-9a-f]{24}$/)
    t.strictSame((await at(node, id)).json, shown(id, 'first'))
    const patched = await node.json(`PATCH ${path}/${id}`, { description: 'second', throttling: 5 })
    t.match(patched, { status: 204, text: '' })
    t.strictSame((await at(node, id)).json, { ...shown(id, 'second'), throttling: 5 })
    t.match(await node.json(`DELETE ${path}/${id}`), { status: 204, text: '' })
    t.match(await at(node, id), {
      status: 404,
      json: { error: 'NotFound', description: 'The requested subscription has not been found. Check id' },
    })
    t.strictSame(await listed(node), [])
  })
}

t.test('a list is in the order of creation, in pages, and counted', async t => {
  const node = await startLocalNode(t)
  const all = Array.from({ length: 25 }, (_, n) => `number ${n}`)
  for (const description of all) await create(node, description)
  t.strictSame(await listed(node), all.slice(0, 20))
  t.strictSame(await listed(node, '?limit=3&offset=4'), all.slice(4, 7))
  t.strictSame(await listed(node, '?offset=30'), [])
  const counted = await node.json(`GET ${path}?options=count&limit=0`)
  t.match(counted, { status: 200, text: '[]', headers: { 'ctx-total-count': '25' } })
  for (const [query, description] of [
    ['limit=1001', 'Bad pagination limit: /1001/ [max: 1000]'],
    ['limit=x', 'Bad pagination limit: /x/ [must be a positive integer number]'],
    ['offset=x', 'Bad pagination offset: /x/ [must be a decimal number]'],
    ['options=x', 'Invalid value for URI param /options/'],
  ])
    t.match(await node.json(`GET ${path}?${query}`), { status: 400, json: { error: 'BadRequest', description } })
})

t.test('the service path limits the watched entities, selects in lists, and moves with a patch', async t => {
  const node = await startLocalNode(t)
  const watching = (path: string) => [`Ctx-ServicePath: ${path}`]
  for (const path of ['/a', '/a/#', '/#', '/a/b']) await create(node, path, watching(path))
  const id = await create(node, 'none')
  t.strictSame(await listed(node), ['/a', '/a/#', '/#', '/a/b', 'none'])
  t.strictSame(await listed(node, '', watching('/a')), ['/a'])
  t.strictSame(await listed(node, '', watching('/a/#')), ['/a/#'])
  t.strictSame(await listed(node, '', watching('/#')), ['/#', 'none'])
  t.strictSame(await listed(node, '', watching('/a/b,/a')), ['/a/b'], 'of several paths the first one')
  t.equal((await at(node, id, watching('/elsewhere'))).status, 200, 'one is found whatever its path')
  await node.json(`PATCH ${path}/${id}`, { status: 'inactive' }, watching('/a'))
  t.strictSame(await listed(node, '', watching('/a')), ['/a', 'none'])
  t.match(await node.json(`POST ${path}`, body('x'), watching('/a,/b')), {
    status: 400,
    json: { error: 'BadRequest', description: 'max one service-path allowed for subscriptions' },
  })
  const wild = await node.json(`PATCH ${path}/${id}`, { status: 'active' }, watching('/a/#'))
  t.match(wild.json, { description: 'servicepath with wildcard # is not allowed in patch update request' })
})

t.test('tenants have subscriptions of their own', async t => {
  const node = await startLocalNode(t)
  const [mine, yours] = [['Ctx-Service: mine'], ['Ctx-Service: yours']]
  const id = await create(node, 'ours', mine)
  t.equal((await at(node, id, mine)).status, 200)
  for (const headers of [yours, []]) {
    t.equal((await at(node, id, headers)).status, 404)
    t.equal((await node.json(`PATCH ${path}/${id}`, { throttling: 1 }, headers)).status, 404)
    t.equal((await node.json(`DELETE ${path}/${id}`, undefined, headers)).status, 404)
    t.strictSame(await listed(node, '', headers), [])
  }
  t.strictSame(await listed(node, '', mine), ['ours'])
})

t.test('of several mistakes the first in the order of checks is reported', async t => {
  const node = await startLocalNode(t)
  const nobody = `${path}/65f0c2a1b4d3e2f1a0c9b8d7`
  const badTenant = ['Ctx-Service: a-b']
  const json = 'Content-Type: application/json'
  const refusals: readonly [asked: Promise<Answer>, status: number, error: string, description: RegExp][] = [
    [node.ask(`POST ${path}`), 411, 'ContentLengthRequired', /^Zero\/No Content-Length/],
    [node.ask(`PATCH ${nobody}`), 411, 'ContentLengthRequired', /^Zero\/No Content-Length/],
    [node.ask(`POST ${path}`, ['Content-Type: text/plain'], 'x'), 415, 'UnsupportedMediaType', /text\/plain$/],
    [node.ask(`POST ${path}`, [json], '{'), 400, 'ParseError', /^Errors found/],
    [node.json(`POST ${path}`, {}, badTenant), 400, 'BadRequest', /^empty payload$/],
    [node.json(`PATCH ${nobody}`, {}, badTenant), 400, 'BadRequest', /^empty payload$/],
    [node.json(`PATCH ${nobody}`, { status: 'expired' }), 400, 'BadRequest', /^status is not valid/],
    [node.json(`POST ${path}`, body('x'), badTenant), 400, 'BadRequest', /tenant name/],
    [node.json(`PATCH ${nobody}`, { status: 'active' }, badTenant), 400, 'BadRequest', /tenant name/],
    [node.json(`PATCH ${nobody}`, { status: 'active' }), 404, 'NotFound', /^The requested subscription/],
    [node.json(`PATCH ${path}/1`, { status: 'active' }), 404, 'NotFound', /^The requested subscription/],
    [node.json(`DELETE ${path}/1`), 404, 'NotFound', /^The requested subscription/],
    [node.json(`GET ${path}/1`, undefined, badTenant), 400, 'BadRequest', /bad length - 24 chars expected$/],
    [node.json(`GET ${path}/${'x'.repeat(24)}`), 400, 'BadRequest', /invalid char in ID string$/],
    [node.json(`GET ${nobody}`), 404, 'NotFound', /^The requested subscription/],
  ]
  for (const [asked, status, error, description] of refusals)
    t.match(await asked, { status, json: { error, description } })
  t.strictSame(await listed(node), [])
})

t.test('the answer to other methods names the allowed ones', async t => {
  const node = await startLocalNode(t)
  t.match(await node.json(`PUT ${path}`, {}), { status: 405, headers: { allow: 'POST, GET' } })
  t.match(await node.json(`POST ${path}/65f0c2a1b4d3e2f1a0c9b8d7`, {}), {
    status: 405,
    headers: { allow: 'GET, DELETE, PATCH' },
  })
})

for (const workers of [2, 3]) {
  t.test(`all of ${workers} workers show a change of one of them at once`, async t => {
    const nodes = await startLocalWorkers(t, workers)
    const tenants = ['', 'a', 'b', 'c', 'd', 'e']
    for (const [round, tenant] of tenants.entries()) {
      const headers = tenant === '' ? [] : [`Ctx-Service: ${tenant}`]
      const of = (step: number) => nodes[(round + step) % workers]!
      const ids = [await create(of(0), 'first', headers), await create(of(1), 'second', headers)]
      for (const node of nodes) {
        t.strictSame(await listed(node, '', headers), ['first', 'second'])
        t.strictSame((await at(node, ids[0]!, headers)).json, shown(ids[0]!, 'first'))
      }
      t.equal((await of(1).json(`PATCH ${path}/${ids[0]}`, { description: 'new' }, headers)).status, 204)
      for (const node of nodes) t.match((await at(node, ids[0]!, headers)).json, { description: 'new' })
      t.equal((await of(2).json(`DELETE ${path}/${ids[1]}`, undefined, headers)).status, 204)
      for (const node of nodes) {
        t.equal((await at(node, ids[1]!, headers)).status, 404)
        const counted = await node.json(`GET ${path}?options=count&limit=1`, undefined, headers)
        t.match(counted, { headers: { 'ctx-total-count': '1' } })
      }
    }
  })
}

t.test('many at once, at all workers, are all there, in the order of their ids', async t => {
  const nodes = await startLocalWorkers(t, 3)
  const ids = await Promise.all(Array.from({ length: 300 }, (_, n) => create(nodes[n % 3]!, `number ${n}`)))
  for (const node of nodes) {
    const { json } = await node.json(`GET ${path}?limit=1000`)
    t.strictSame(
      (json as { id: string }[]).map(({ id }) => id),
      [...ids].sort(),
    )
  }
})

t.test('subscriptions stay through starts with one, three and two workers', async t => {
  const dataDir = tempDir(t)
  const expected = new Map<string, string>()
  for (const workers of [1, 3, 2, 1]) {
    const broker = await startBroker(t, { dataDir, args: ['-workers', String(workers)] })
    const client = new HttpClient(broker.baseUrl)
    t.strictSame(await descriptions(client), expected, `before ${workers} workers`)
    for (const n of [1, 2, 3]) {
      const { status, headers } = await client.send('POST', path, body(`${workers} ${n}`))
      t.equal(status, 201)
      expected.set(headers.location!.slice(path.length + 1), `${workers} ${n}`)
    }
    const [first, second] = expected.keys() as Iterable<string> & Iterator<string>
    t.equal((await client.send('DELETE', `${path}/${first}`)).status, 204)
    expected.delete(first!)
    t.equal((await client.send('PATCH', `${path}/${second}`, { description: `patched ${workers}` })).status, 204)
    expected.set(second!, `patched ${workers}`)
    client.close()
    process.kill(broker.child.pid as number, 'SIGTERM')
    t.equal((await broker.exited).code, 0)
    for (const rows of await storedIn(dataDir)) t.equal(rows.size, expected.size, 'every store has all of them')
  }
})

t.test('while a worker sleeps nothing is acknowledged, and when it wakes all stores become the same', async t => {
  const dataDir = tempDir(t)
  const broker = await startBroker(t, { dataDir, args: ['-workers', '2'] })
  const children = readFileSync(`/proc/${broker.child.pid}/task/${broker.child.pid}/children`, 'utf8')
  const sleeper = Number(children.trim().split(' ')[1])
  const clients = Array.from({ length: 16 }, () => new HttpClient(broker.baseUrl))
  t.teardown(() => {
    for (const client of clients) client.close()
  })
  const post = (client: HttpClient, tenant: string) => client.send('POST', path, body('x'), { 'Ctx-Service': tenant })
  for (const client of clients) t.equal((await post(client, 't')).status, 201)
  process.kill(sleeper, 'SIGSTOP')
  t.teardown(() => broker.gone || process.kill(sleeper, 'SIGCONT'))
  // Half of the connections are with the stopped worker: it answers them when it continues.
  const asked = clients.map((client, n) => post(client, `t${n % 4}`))
  const answers = await Promise.all(asked.map(answer => within(answerMsMax, answer)))
  const awake = clients.filter((_, n) => answers[n])
  t.ok(awake.length > 0 && awake.length < clients.length, `${awake.length} connections are with the other`)
  for (const answer of answers) if (answer) t.equal(answer.status, 503, answer.text)
  t.match((await post(awake[0]!, 't')).json, { error: 'Unavailable' })
  process.kill(sleeper, 'SIGCONT')
  await Promise.all(asked)
  const late = performance.now() + answerMsMax
  for (const tenant of ['t0', 't1', 't2', 't3'])
    while ((await post(awake[0]!, tenant)).status !== 201)
      if (performance.now() > late) return void t.fail(`nothing is taken any more\n${broker.printed()}`)
  for (const client of clients) client.close()
  process.kill(broker.child.pid as number, 'SIGTERM')
  t.equal((await broker.exited).code, 0)
  const [one, other] = await storedIn(dataDir)
  t.strictSame([...one!].sort(), [...other!].sort())
})

for (const [workers, kills] of [
  [1, cycles],
  [2, cycles],
])
  t.test(
    `in ${kills} kills of ${workers === 1 ? 'one worker' : 'two workers'} no acknowledged subscription is lost anywhere`,
    t => crashes(t, workers!, kills!),
  )

/** The description of each subscription, by id. */
async function descriptions(client: HttpClient): Promise<Map<string, string>> {
  const { json } = await client.get(`${path}?limit=1000`)
  return new Map((json as { id: string; description: string }[]).map(({ id, description }) => [id, description]))
}

/** The subscriptions in each store of a directory, by id, while no broker uses it. */
async function storedIn(dataDir: string): Promise<Map<string, string>[]> {
  const directory = openDataDirectory(dataDir, { shards: 256, spread: 16, workers: 1 }, () => 'none')
  const found: Map<string, string>[] = []
  for (let worker = 0; worker < directory.workers; worker++) {
    const part = { worker, workers: directory.workers }
    const store = await openStore(directory, { durability: 'os', logger: { warn: () => {} }, part })
    found.push(
      new Map(
        (await rowsOf(store, allDocuments('subscription'))).map(({ key, value }) => [
          parseDocumentKey(key).id,
          decodeDocumentRow(value),
        ]),
      ),
    )
    await store.close()
  }
  return found
}

/** The description in a row's text; undefined if there is no subscription. */
const descriptionIn = (text: string | undefined): string | undefined =>
  text ? decodeSubscription(text).description : undefined

/**
 * Several connections create, patch and delete until the broker is killed. Then all stores and all lists are checked.
 */
async function crashes(t: Test, workers: number, kills: number): Promise<void> {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  const dataDir = tempDir(t)
  /**
   * The acknowledged description of each subscription, undefined after its deletion; below, the result of a request in
   * flight.
   */
  const sure = new Map<string, string | undefined>()
  const perhaps = new Map<string, string | undefined>()
  const mayBe = (id: string, is: string | undefined): boolean =>
    sure.get(id) === is || (perhaps.has(id) && perhaps.get(id) === is)
  let acknowledged = 0
  for (let cycle = 0; cycle <= kills; cycle++) {
    const broker = await startBroker(t, { dataDir, args: ['-workers', String(workers)] })
    const asking = new HttpClient(broker.baseUrl)
    const now = await descriptions(asking)
    asking.close()
    const wrong = [...sure.keys()].filter(id => !mayBe(id, now.get(id)))
    if (wrong.length > 0) return void t.strictSame(wrong, [], `after kill ${cycle}, SEED=${random.seed}`)
    // A request without an answer may have happened or not; from now on its outcome is known.
    sure.clear()
    perhaps.clear()
    for (const [id, description] of now) sure.set(id, description)
    if (cycle === kills) break
    const instant = Math.floor(150 * random.fraction() ** 2)
    let killed = false
    let count = 0
    const write = async (own: string[], writer: number): Promise<void> => {
      const client = new HttpClient(broker.baseUrl)
      while (!killed) {
        const draw = random.fraction()
        const description = `${cycle} ${writer} ${count}`
        const id = own[random.between(0, own.length)]
        const isEnd = draw < 0.2
        if (id !== undefined) perhaps.set(id, isEnd ? undefined : description)
        const answer = await (id === undefined
          ? client.send('POST', path, body(description))
          : client.send(isEnd ? 'DELETE' : 'PATCH', `${path}/${id}`, isEnd ? undefined : { description })
        ).catch(() => undefined)
        if (!answer || (killed && answer.status >= 500)) break
        if (answer.status >= 400) {
          t.fail(`${answer.status} ${answer.text}`)
          break
        }
        acknowledged++
        const created = id ?? answer.headers.location!.slice(path.length + 1)
        sure.set(created, isEnd && id !== undefined ? undefined : description)
        perhaps.delete(created)
        if (id === undefined) own.push(created)
        else if (isEnd) own.splice(own.indexOf(id), 1)
        if (++count >= instant && !killed) {
          killed = true
          broker.signal('SIGKILL')
        }
      }
      client.close()
    }
    const known = [...now.keys()]
    const writers = 6
    const all = Array.from({ length: writers }, (_, n) => known.filter((_, at) => at % writers === n))
    await Promise.all(all.map(write))
    await broker.exited
    for (const [worker, rows] of (await storedIn(dataDir)).entries()) {
      const lost = [...sure.keys()].filter(id => !mayBe(id, descriptionIn(rows.get(id))))
      t.strictSame(lost, [], `what store ${worker} has after kill ${cycle + 1}, SEED=${random.seed}`)
    }
  }
  t.ok(acknowledged > 0, `${acknowledged} acknowledged changes survived ${kills} kills`)
}

// A node that starts with a clock 10 s behind takes no shards. When its clock is right it takes some. Then its clock is
// set 10 s ahead: no entity expires early, dateModified shows the time, and the node gives its shards away until its
// clock is right again (docs/operations/cluster.md#clocks).

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import type { ClusterStatus } from '../../src/messages/cluster-status.js'
import { type BrokerProcess, freePort, startBroker, tempDir } from '../support/broker-process.js'
import { noEtcd, startEtcd } from '../support/etcd.js'
import { HttpClient } from '../support/http-client.js'
import { root } from '../support/project.js'
import { foundSmallCluster } from '../support/small-cluster.js'

const skip = noEtcd()
const aheadMs = 10_000
const skewMaxMs = 500
const waitMsMax = 60_000
const lookMs = 50
const entities = 18
/** How long they live: shorter than the clock is ahead, longer than the cluster needs to notice. */
const lifeMs = 8_000
/** The error of a time that is read on a busy machine. */
const slowMs = 1_000

const names = ['a', 'b', 'c'] as const

/** Looks until there is a value. */
async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  const untilMs = performance.now() + waitMsMax
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    if (performance.now() > untilMs) throw new Error(`in vain: ${what}`)
    await pause(lookMs)
  }
}

t.test('a node whose clock is set ahead does no harm', { skip, timeout: 180_000 }, async t => {
  const etcd = await startEtcd(t, { args: ['--unsafe-no-fsync'] })
  await foundSmallCluster(etcd)
  const shift = join(tempDir(t), 'shift')
  writeFileSync(shift, String(-aheadMs))
  const listen: string[] = []
  for (const _ of names) listen.push(`127.0.0.1:${await freePort()}`)
  const preload = join(root, 'dist/test/support/shifted-clock.js')
  const start = (name: string, at: number): Promise<BrokerProcess> =>
    startBroker(t, {
      args: [
        ...['-nodeName', name, '-clusterListen', listen[at]!, '-clusterJoin', listen.join(',')],
        ...['-shardLog', `etcd://${etcd.address().members.join(',')}`],
        ...['-clockSkewMax', String(skewMaxMs), '-expiryInterval', '50', '-logForHumans', '-fg'],
      ],
      ...(name === 'c' && { wrapper: ['env', `NODE_OPTIONS=--import=${preload}`], env: { CLOCK_SHIFT_FILE: shift } }),
      readyWaitMs: waitMsMax,
    })
  const nodes = await Promise.all(names.slice(0, 2).map(start))
  nodes.push(await start('c', 2))
  const clients = nodes.map(({ baseUrl }) => new HttpClient(baseUrl))
  t.teardown(() => {
    for (const client of clients) client.close()
  })
  const [a, , c] = clients as [HttpClient, HttpClient, HttpClient]
  const [, , nodeC] = nodes as [BrokerProcess, BrokerProcess, BrokerProcess]
  const status = async (client: HttpClient): Promise<ClusterStatus> =>
    (await client.get('/cluster')).json as ClusterStatus
  const ownedBy = async (name: string): Promise<number> =>
    (await status(a)).members.find(member => member.name === name)?.owned ?? 0
  await until('the late node to notice its clock', async () => {
    if ((await ownedBy('c')) > 0) t.fail('it takes shards with a wrong clock')
    return (await status(c)).clock.state === 'unsafe' || undefined
  })
  await until('the reason', async () => {
    const { text } = await c.get('/health/ready')
    return /the clock of this node is (9|10)\.\d s behind the clocks of the others/.test(text) || undefined
  })

  writeFileSync(shift, '0')
  await until('every node to own shards', async () => {
    const owned = await Promise.all(names.map(ownedBy))
    return owned.every(count => count > 0) || undefined
  })

  /** Creates an entity; while a shard moves, a request may have to be repeated. */
  const create = (entity: object): Promise<true> =>
    until('an entity to be created', async () => {
      const { status } = await c.send('POST', '/v2/entities?options=upsert', entity)
      return status === 201 || status === 204 ? true : undefined
    })
  await create({ id: 'door', type: 'Door', level: { value: 0 } })
  const expiresMs = Date.now() + lifeMs
  for (let n = 0; n < entities; n++) {
    const dateExpires = { type: 'DateTime', value: new Date(expiresMs).toISOString() }
    await create({ id: `lamp${n}`, type: 'Lamp', dateExpires })
  }
  const count = async (): Promise<number> => {
    const { headers } = await a.get('/v2/entities?type=Lamp&options=count&limit=1')
    return Number(headers['ctx-total-count'])
  }
  const modifiedMs = async (): Promise<number> => {
    const { json } = await a.get('/v2/entities/door?attrs=dateModified&options=keyValues')
    return Date.parse((json as { dateModified: string }).dateModified)
  }
  await until('all entities to be counted', async () => (await count()) === entities || undefined)

  writeFileSync(shift, String(aheadMs))
  const setMs = performance.now()
  let changes = 0
  let before = 0
  await until('the node to be unready', async () => {
    const { status } = await c.send('PUT', '/v2/entities/door/attrs/level', { value: ++changes })
    if (status !== 204 && status !== 503) t.fail(`it answers a change with ${status}`)
    const isEarly = Date.now() < expiresMs - skewMaxMs
    if (isEarly && (await count()) < entities) t.fail('an entity expires early')
    const now = await modifiedMs()
    if (status === 503 || Number.isNaN(now)) return undefined
    if (!(now >= before)) t.fail(`dateModified goes back from ${before} to ${now}`)
    before = now
    if (Math.abs(now - Date.now()) > 2 * skewMaxMs + slowMs) t.fail(`dateModified is ${now - Date.now()} ms ahead`)
    const ready = await c.get('/health/ready')
    if (ready.status !== 503) return undefined
    t.match(ready.text, /the clock of this node is (9|10)\.\d s ahead of the clocks of the others/)
    return true
  })
  t.comment(`unready ${Math.round(performance.now() - setMs)} ms after the clock was set`)
  await until('the node to own nothing', async () => (await ownedBy('c')) === 0 || undefined)
  const { members } = await status(a)
  const seen = members.find(({ name }) => name === 'c')
  t.match(seen, { isJoined: false, owned: 0 })
  t.ok(Math.abs((seen?.clockAheadMs ?? 0) - aheadMs) < slowMs, `a has measured ${seen?.clockAheadMs} ms`)
  const own = await status(c)
  t.match(own, { health: { state: 'clock' }, clock: { state: 'unsafe', skewMaxMs } })
  t.match((await c.get('/metrics')).text, /^orrery_cluster_clock_ahead_seconds (9|10)/m)
  t.match((await a.get('/metrics')).text, /^orrery_cluster_clock_difference_seconds\{node="c"\} (9|10)/m)
  await until('the others to be ready', async () => (await a.get('/health/ready')).status === 200 || undefined)

  const gone = await until('the entities to expire', async () => {
    const left = await count()
    return left < entities ? Date.now() : undefined
  })
  t.ok(gone >= expiresMs - skewMaxMs, `the first expires ${gone - expiresMs} ms after its time`)
  await until('all to be gone', async () => (await count()) === 0 || undefined)

  writeFileSync(shift, '0')
  await until('the node to be ready', async () => (await c.get('/health/ready')).status === 200 || undefined)
  await until('the node to own shards again', async () => (await ownedBy('c')) > 0 || undefined)
  const printed = nodeC.printed()
  t.equal(printed.match(/Raising alarm ClusterClockError/g)?.length, 2)
  t.equal(printed.match(/Releasing alarm ClusterClockError/g)?.length, 2)
  for (const node of nodes.slice(0, 2)) t.notMatch(node.printed(), /ClusterClockError/)
})

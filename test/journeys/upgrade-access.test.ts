// An upgrade from a build before access control, with requests under way whose rules are narrowed: a node of the older
// build owns some shards, one of this build has an access file, and clients use the latter.
//
// The older node does not know grants, so it refuses what has one instead of answering without it. No answer has a value
// that its reader may not see, no write changes what its writer may not change, and the only failure is 503 with
// `Retry-After`. The form of such requests is in test/wire/wire.test.ts, the older build in test/fixtures/README.md.

import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { ClusterStatus } from '../../src/messages/cluster-status.js'
import { AccessScene, everything } from '../support/access-scene.js'
import { type BrokerProcess, freePort, startBroker, tempDir } from '../support/broker-process.js'
import { noEtcd, startEtcd } from '../support/etcd.js'
import { type Answer, HttpClient } from '../support/http-client.js'
import { unpackOlderBuild } from '../support/older-build.js'
import { foundSmallCluster } from '../support/small-cluster.js'

const rules = {
  root: everything,
  reader: [{ actions: ['read'], types: ['Lamp'], attributes: ['*', '!cost'] }],
  writer: [{ actions: ['update', 'delete'], types: ['Lamp'] }],
}
const entities = 24
const connections = 8
const waitMsMax = 60_000
const lookMs = 100

t.setTimeout(300_000)

async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  for (const untilMs = performance.now() + waitMsMax; performance.now() < untilMs; await pause(lookMs)) {
    const found = await look()
    if (found !== undefined) return found
  }
  throw new Error(`waited too long for ${what}`)
}

/** The names of the owners of all shards, as a node knows them; undefined: some have none. */
async function ownersAt(client: HttpClient, headers: Record<string, string>): Promise<ReadonlySet<string> | undefined> {
  const { status, json } = await client.get('/cluster', headers)
  if (status !== 200) return undefined
  const { isJoined, shards } = json as ClusterStatus
  const owners = shards.map(({ owner }) => owner)
  return isJoined && owners.every(owner => owner !== undefined) ? new Set(owners) : undefined
}

/** Two nodes, both with shards of their own. */
async function twoBuilds(t: Test, accessFile: string, root: Record<string, string>) {
  const { main: olderMain } = unpackOlderBuild(t)
  const etcd = await startEtcd(t, { args: ['--unsafe-no-fsync'] })
  await foundSmallCluster(etcd)
  const shardLog = `etcd://${etcd.address().members.join(',')}`
  const listen = { older: `127.0.0.1:${await freePort()}`, current: `127.0.0.1:${await freePort()}` }
  const start = async (name: 'older' | 'current', more: object): Promise<BrokerProcess> => {
    const join = Object.values(listen).join(',')
    const place = ['-nodeName', name, '-clusterListen', listen[name], '-clusterJoin', join, '-shardLog', shardLog]
    const args = name === 'current' ? [...place, '-access', accessFile] : place
    return startBroker(t, { dataDir: tempDir(t), port: await freePort(), args, readyWaitMs: waitMsMax, ...more })
  }
  const nodes = await Promise.all([start('older', { main: olderMain }), start('current', {})])
  const clients = nodes.map(({ baseUrl }) => new HttpClient(baseUrl, waitMsMax, connections))
  t.teardown(() => {
    for (const client of clients) client.close()
  })
  const [older, current] = clients as [HttpClient, HttpClient]
  for (const client of clients)
    await until('both nodes to have shards', async () =>
      (await ownersAt(client, root))?.size === 2 ? true : undefined,
    )
  return { older, current }
}

t.test('an older node refuses what has a grant: no foreign byte, no foreign change', { skip: noEtcd() }, async t => {
  const scene = new AccessScene(t, rules)
  const as = (name: string) => ({ 'X-Api-Key': scene.keyOf(name) })
  const { older, current } = await twoBuilds(t, scene.path, as('root'))
  const idOf = (number: number): string => `E${number}`
  const isLamp = (number: number): boolean => number % 2 === 0
  for (let number = 0; number < entities; number++) {
    const type = isLamp(number) ? 'Lamp' : 'Museum'
    const mark = isLamp(number) ? 'shown' : 'foreign'
    const entity = { id: idOf(number), type, name: { value: `${mark}${number}` }, cost: { value: `foreign${number}` } }
    await until(`${entity.id} to be created`, async () =>
      [201, 422].includes((await older.send('POST', '/v2/entities', entity)).status) ? true : undefined,
    )
  }

  const failures: string[] = []
  let ofOlder = 0
  /** The answer of the current node, unless it is 503 as it may be. */
  const ask = async (who: string, method: string, path: string, body?: unknown): Promise<Answer | undefined> => {
    const answer = await current.send(method, path, body, as(who))
    const { status, headers, text } = answer
    if (text.includes('foreign')) failures.push(`${method} ${path}: ${text}`)
    if (status !== 503) return answer
    if (headers['retry-after'] === undefined) failures.push(`${method} ${path}: no Retry-After`)
    if (text.includes('another release')) ofOlder++
    return undefined
  }
  const numbers = Array.from({ length: entities }, (_, number) => number)
  const reads = numbers.map(async number => {
    const answer = await ask('reader', 'GET', `/v2/entities/${idOf(number)}`)
    if (!answer) return false
    t.equal(answer.status, isLamp(number) ? 200 : 404, idOf(number))
    return true
  })
  const writes = numbers.flatMap(number => [
    ask('writer', 'PATCH', `/v2/entities/${idOf(number)}/attrs`, { name: { value: `shown again${number}` } }),
    ask('writer', 'DELETE', `/v2/entities/${idOf(number)}/attrs/cost`),
  ])
  const entitiesOfBatch = numbers.map(number => ({ id: idOf(number), name: { value: `shown again${number}` } }))
  const wide = [
    ask('reader', 'GET', '/v2/entities?limit=100&options=count'),
    ask('reader', 'GET', '/v2/entities?type=Museum'),
    ask('reader', 'GET', '/v2/types'),
    ask('reader', 'GET', '/v2/types/Museum'),
    ask('reader', 'POST', '/v2/op/query', { entities: [{ idPattern: '.*' }] }),
    ask('writer', 'POST', '/v2/op/update', { actionType: 'update', entities: entitiesOfBatch }),
  ]
  const isRead = await Promise.all(reads)
  for (const answer of await Promise.all(wide)) t.equal(answer, undefined, 'the older node has a part of it')
  const isWritten = await Promise.all(writes)
  t.strictSame(failures, [])
  t.ok(isRead.includes(true) && isRead.includes(false), 'both nodes own entities')
  t.ok(ofOlder > 0, 'the refusals name the other release')
  t.comment(`${ofOlder} requests were refused by the older node`)

  for (const number of numbers) {
    const entity = await until(`a read of ${idOf(number)}`, async () => {
      const { status, json } = await older.get(`/v2/entities/${idOf(number)}?options=keyValues`)
      return status === 200 ? (json as { readonly name: string; readonly cost?: string }) : undefined
    })
    const [patched, deleted] = [isWritten[2 * number], isWritten[2 * number + 1]]
    const name = isLamp(number) ? (isRead[number] ? 'shown again' : 'shown') : 'foreign'
    t.equal(entity.name, `${name}${number}`, `the name of ${idOf(number)}`)
    t.equal(entity.cost === undefined, isLamp(number) && isRead[number], `the cost of ${idOf(number)}`)
    if (isRead[number])
      t.strictSame(
        [patched, deleted].map(one => one?.status),
        isLamp(number) ? [204, 204] : [404, 404],
      )
    else t.strictSame([patched, deleted], [undefined, undefined])
  }
})

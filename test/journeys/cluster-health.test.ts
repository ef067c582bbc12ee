// The log engine of a cluster stops, dies, is full or is empty. Even so every request is answered in time, and every
// node reports that it is not ready, with the reason. When the engine recovers, all nodes recover by themselves
// (docs/operations/cluster-health.md).

import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { AlarmAction, Etcd3 } from 'etcd3'
import t, { type Test } from 'tap'
import { tempDir } from '../support/broker-process.js'
import { noEtcd } from '../support/etcd.js'
import { names, Scene } from '../support/log-scene.js'

const skip = noEtcd()
/**
 * Longest time of a request while the engine does not answer: 8 s at its owner, and more for the wait for an owner and
 * a busy machine.
 */
const answerMsMax = 12_000
/** A node that finds no others takes their shards after 5 s, if it sees nothing of them in the log. */
const lonelyMs = 9_000
const quotaBytes = 8 * 1024 * 1024
const indexes = names.map((_, index) => index)

/** Writes and lists through every node, while the log takes no writes: 503, in time. */
async function isRefused(t: Test, scene: Scene): Promise<void> {
  const asks = indexes.flatMap(index => [
    ...Array.from({ length: 4 }, (_, n) => ['PUT', `/v2/entities/lamp${n}/attrs/level/value`, 7, index] as const),
    ['POST', '/v2/op/update', batch, index] as const,
    ['GET', '/v2/entities?limit=1000', undefined, index] as const,
  ])
  await Promise.all(
    asks.map(async ([method, path, body, index]) => {
      const beganMs = performance.now()
      const { status, text } = await scene.send(index, method, path, body)
      const tookMs = Math.round(performance.now() - beganMs)
      const isList = method === 'GET'
      t.ok(
        status === 503 || (isList && status === 200),
        `${names[index]}: ${method} ${path}: ${status} ${text.slice(0, 200)}`,
      )
      t.ok(tookMs < answerMsMax, `${tookMs} ms`)
    }),
  )
}

const batch = {
  actionType: 'append',
  entities: [0, 1, 2, 3, 4].map(n => ({ id: `lamp${n}`, type: 'Lamp', level: { value: 8, type: 'Number' } })),
}

/** Every node reports that it is not ready, with the reason: in its health, its log, its status and its metrics. */
async function isReported(t: Test, scene: Scene, state: string, reason: RegExp): Promise<void> {
  for (const index of indexes) {
    await scene.untilUnready(index, reason)
    t.match((await scene.status(index)).health, { state, reason })
    t.match((await scene.send(index, 'GET', '/metrics')).text, /^orrery_cluster_unready_shards [1-9]/m)
    await scene.untilRaised(index)
  }
}

/** All nodes are ready again by themselves and have reported it, and no acknowledged write is missing. */
async function isWellAgain(t: Test, scene: Scene): Promise<void> {
  for (const index of indexes) {
    await scene.untilReady(index, true)
    t.match((await scene.status(index)).health, { state: 'ready', shards: [] })
    await scene.until('the line that says so', async () => {
      const [lines] = scene.lines(index, 'WARN').join('\n').split('Raising alarm ClusterLogError').slice(-1)
      return /Releasing alarm ClusterLogError[\s\S]*every shard can answer again/.test(lines!) || undefined
    })
  }
  for (const index of indexes)
    t.equal(await scene.settledStatus(index, '/v2/entities'), 200, 'the first list is answered')
  await scene.writeAll(9)
  for (const index of indexes) t.strictSame(await scene.answersOf(index), scene.acknowledged)
  t.notMatch(scene.nodes.map(node => node.printed()).join('\n'), /lvl=(FATAL|ERROR)/)
}

/**
 * Writes until the quota of an engine is exceeded. The client counts that as a fault, and cannot be used afterwards.
 */
async function fill(address: string): Promise<void> {
  const client = new Etcd3({ hosts: `http://${address}` })
  try {
    for (let n = 0; n < 100; n++) await client.put(`filler/${n}`).value('x'.repeat(quotaBytes / 16))
  } finally {
    client.close()
  }
}

/** The repair of a full etcd by an operator (docs/operations/cluster-health.md). */
async function makeRoom(address: string): Promise<void> {
  const client = new Etcd3({ hosts: `http://${address}` })
  await client.delete().prefix('filler/')
  const { header } = await client.getAll().prefix('filler/').exec()
  await client.kv.compact({ revision: header.revision, physical: true })
  await client.maintenance.defragment()
  const { alarms } = await client.maintenance.alarm({ action: AlarmAction.Get })
  for (const { memberID, alarm } of alarms)
    await client.maintenance.alarm({ action: AlarmAction.Deactivate, alarm, memberID })
  client.close()
}

// One cluster for all of them: each test leaves it as it was.
t.test('three nodes and their log engine', { skip }, async t => {
  t.setTimeout(600_000)
  const folder = tempDir(t)
  const scene = await Scene.start(t, folder, [`--quota-backend-bytes=${quotaBytes}`])

  await t.test('a node is ready when the first request is answered, for every shard', async t => {
    // All nodes restart at the same time, on the data that they have.
    for (const node of scene.nodes) node.signal('SIGKILL')
    await Promise.all(scene.nodes.map(node => node.exited))
    await Promise.all(indexes.map(index => scene.spawn(index)))
    await Promise.all(
      indexes.map(async index => {
        await scene.untilReady(index, true)
        const statuses = new Set<number>()
        // One after the other: hundreds at once would keep a node that has just started from answering the others.
        for (let n = 0; n < 100; n++) statuses.add(await scene.settledStatus(index, `/v2/entities/any${n}`))
        t.strictSame([...statuses], [404], `node ${names[index]} has an owner for every shard`)
      }),
    )
  })

  await t.test('an engine that is paused', async t => {
    const [member] = scene.etcd.members
    member!.stop()
    await isRefused(t, scene)
    await isReported(t, scene, 'away', /the log engine takes no writes: .*no answer in 2000 ms/)
    await isRefused(t, scene)
    member!.goOn()
    await isWellAgain(t, scene)
  })

  await t.test('an engine that has died, and comes back', async t => {
    const [member] = scene.etcd.members
    await member!.kill()
    await isRefused(t, scene)
    await isReported(t, scene, 'away', /the log engine takes no writes: /)
    await member!.restart()
    await isWellAgain(t, scene)
  })

  await t.test('an engine that comes back empty, and then with its data', async t => {
    const [member] = scene.etcd.members
    const data = join(folder, 'etcd-m0')
    await member!.kill()
    renameSync(data, join(folder, 'kept'))
    await member!.restart()
    await isReported(t, scene, 'lost', /the log engine does not keep this cluster any more/)
    const empty = new Etcd3({ hosts: `http://${member!.address}` })
    t.teardown(() => empty.close())
    t.same(await scene.keys(empty), [], 'nodes write nothing to it, not even that they live')
    await member!.kill()
    renameSync(data, join(folder, 'empty'))
    renameSync(join(folder, 'kept'), data)
    await member!.restart()
    await isWellAgain(t, scene)
  })

  await t.test('a node that does not find the others, and sees in the log that they live, takes no shard', async t => {
    const index = 2
    scene.nodes[index]!.signal('SIGTERM')
    await scene.nodes[index]!.exited
    const node = await scene.spawnAlone(index)
    await scene.untilUnready(index, /gets no answer from a, b/)
    const untilMs = performance.now() + lonelyMs
    for (let value = 10; performance.now() < untilMs; value++) {
      t.equal((await scene.send(0, 'PUT', '/v2/entities/lamp1/attrs/level/value', value)).status, 204)
      scene.acknowledged.set('lamp1', value)
    }
    const { members, shards } = await scene.status(index)
    t.match(members, [{ name: 'c', isJoined: false }])
    t.notOk(shards.some(({ owner }) => owner === 'c'))
    t.notMatch(scene.nodes.map(other => other.printed()).join('\n'), /taken over/)
    node.signal('SIGTERM')
    await node.exited
    await scene.begin(index)
    t.strictSame(await scene.answersOf(index), scene.acknowledged)
  })

  await t.test('an engine with an exceeded quota still lets nodes read, and the reason names the remedy', async t => {
    const [member] = scene.etcd.members
    const { address } = member!
    await t.rejects(fill(address), /database space exceeded/)

    await isRefused(t, scene)
    await isReported(t, scene, 'full', /the log engine is full and takes no writes .*NOSPACE/)
    for (const index of indexes)
      t.equal((await scene.send(index, 'GET', '/v2/entities/lamp11')).status, 200, 'what nobody writes is read')

    await makeRoom(address)
    await isWellAgain(t, scene)
  })
})

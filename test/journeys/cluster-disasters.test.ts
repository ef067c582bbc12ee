// Disasters of a cluster, one after the other, as an operator meets them (docs/operations/disasters.md): real nodes, a
// real etcd and the commands. After each, every acknowledged change is there.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, renameSync, rmSync, watch } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { Etcd3 } from 'etcd3'
import t, { type Test } from 'tap'
import { ShardMap } from '../../src/domain/scope.js'
import { openStores } from '../../src/move/directory.js'
import type { Store } from '../../src/ports.js'
import { decodePosition, encodePosition, positionKey } from '../../src/shard/replicate/replicated-layout.js'
import { clusterOf, openedDirectory } from '../../src/storage/data-directory.js'
import { commit } from '../storage/store-contract.js'
import { type Exit, freePort, runToEnd, tempDir } from '../support/broker-process.js'
import { noEtcd } from '../support/etcd.js'
import { indexesEqualRebuild } from '../support/inspection.js'
import { Scene, waitMsMax } from '../support/log-scene.js'
import { main } from '../support/project.js'
import { smallPlacement } from '../support/small-cluster.js'

t.setTimeout(600_000)

const all = [0, 1, 2] as const
/** The shard of one of the entities, of which a directory will have no copy, or another one. */
const lampShard = new ShardMap(smallPlacement).shardOf('', '/', 'lamp0')

/** A receiver that keeps the ids of the entities that it was notified of. */
async function receive(t: Test, port: number): Promise<string[]> {
  const received: string[] = []
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
  return received
}

/** Changes the store of a directory that no broker uses. */
async function inStore(path: string, run: (store: Store) => Promise<void>): Promise<void> {
  const open = await openStores(openedDirectory(path), 'os', () => {})
  try {
    await run(open.stores[0]!)
  } finally {
    await open.close()
  }
}

/** Makes the copy of a shard in a directory one of another past: it ends with another record of the same number. */
const giveAnotherPast = (path: string): Promise<void> =>
  inStore(path, async store => {
    const key = positionKey(lampShard)
    const position = decodePosition(store.get(key)!)
    await commit(store, batch => batch.put(key, encodePosition({ ...position, hash: Buffer.alloc(16, 7) })))
  })

/** Runs a command, and kills it after this number of events in a folder. */
async function killedWhile(words: readonly string[], folder: string, events: number): Promise<void> {
  const child = spawn(process.execPath, [main, ...words], { stdio: 'ignore' })
  const exited = once(child, 'exit')
  let left = events
  const watcher = watch(folder, () => --left === 0 && child.kill('SIGKILL'))
  await exited
  watcher.close()
}

t.test('a cluster', { skip: noEtcd() }, async t => {
  const folder = tempDir(t)
  const kept = tempDir(t)
  const scene = await Scene.start(t, folder, ['--unsafe-no-fsync'])
  const [member] = scene.etcd.members
  const client = new Etcd3({ hosts: `http://${member!.address}` })
  t.teardown(() => client.close())
  const directories = all.map(index => scene.nodes[index]!.dataDir)
  const [ofA, ofB, ofC] = directories as [string, string, string]
  const anyNode = ['-nodeName', 'a', '-clusterListen', scene.listen[0]!, '-shardLog', `etcd://${member!.address}`]
  const recovering = (some: readonly string[]): string[] => ['cluster', 'recover', '--from', ...some, ...anyNode]
  const recover = (some: readonly string[], ...more: string[]): Promise<Exit> =>
    runToEnd(t, [...recovering(some), ...more], waitMsMax)
  const exported = (path: string): Promise<Exit> => runToEnd(t, ['export', '-dataDir', path], waitMsMax)
  const stop = async (...some: number[]): Promise<void> => {
    await Promise.all(some.map(index => scene.nodes[index]!.kill('SIGTERM')))
  }
  const crash = async (...some: number[]): Promise<void> => {
    await Promise.all(some.map(index => scene.nodes[index]!.kill('SIGKILL')))
  }
  const begin = async (...some: number[]): Promise<void> => {
    await Promise.all(some.map(index => scene.begin(index)))
    for (const index of some) await scene.untilReady(index, true)
  }
  /** Puts a copy of a folder in the place of another one. */
  const replace = (from: string, to: string): void => {
    rmSync(to, { recursive: true, force: true })
    cpSync(from, to, { recursive: true })
  }
  /** Writes an entity through one node, until it is acknowledged. */
  const write = async (index: number, id: string, type: string, level: number): Promise<void> => {
    await scene.until(`${id} to be written`, async () => {
      const entity = { id, type, level: { value: level, type: 'Number' } }
      const { status } = await scene.send(index, 'POST', '/v2/entities?options=upsert', entity)
      return status === 201 || status === 204 ? true : undefined
    })
    scene.acknowledged.set(id, level)
  }
  const everythingIsThere = async (t: Test, ...some: number[]): Promise<void> => {
    for (const index of some.length > 0 ? some : all)
      t.strictSame(await scene.answersOf(index), scene.acknowledged, `node ${index}`)
  }
  const subscriptions = async (): Promise<readonly { readonly timesSent: number }[]> => {
    const { text } = await scene.send(0, 'GET', '/v2/subscriptions')
    const found = JSON.parse(text) as { notification: { timesSent: number } }[]
    return found.map(({ notification }) => notification)
  }

  await t.test('has lost all members of etcd: it is recovered, in spite of kills, with what was pending', async t => {
    const awayPort = await freePort()
    const port = await freePort()
    const received = await receive(t, port)
    for (const [type, url, status] of [
      ['Once', `http://127.0.0.1:${port}/`, 'oneshot'],
      ['Pending', `http://127.0.0.1:${awayPort}/`, 'active'],
    ]) {
      const subject = { entities: [{ idPattern: '.*', type }] }
      const wanted = { subject, status, notification: { http: { url } } }
      t.equal((await scene.send(0, 'POST', '/v2/subscriptions', wanted)).status, 201)
    }
    await write(0, 'once1', 'Once', 1)
    await scene.until('the one-shot', async () => (received.includes('once1') ? true : undefined))
    // The directory of c ends here, so it is behind.
    await scene.untilAlike()
    await stop(2)
    for (let number = 0; number < 6; number++) await write(number % 2, `lamp${number}`, 'Lamp', 2)
    await write(0, 'pending1', 'Pending', 1)
    await crash(0, 1)
    for (const index of all) cpSync(directories[index]!, join(kept, `${index}`), { recursive: true })
    const before = clusterOf(ofA)!.id
    await member!.kill()
    rmSync(join(folder, 'etcd-m0'), { recursive: true })
    await member!.restart()
    // Killed while it plans, when the logs have begun, and when some directories fit these. Then they are lost as well.
    await killedWhile(recovering(directories), ofA, 1)
    await killedWhile(recovering(directories), ofB, 5)
    await killedWhile(recovering(directories), ofC, 9)
    await client.delete().prefix('/orrery/').exec()
    const unfinished = await (await scene.spawn(1)).exitWithin(waitMsMax)
    t.match(unfinished, { code: 1, stderr: /is part of a recovery that has not ended/ })
    const done = await recover(directories)
    t.equal(done.code, 0, done.stderr)
    t.comment(done.stdout)
    const after = clusterOf(ofA)!.id
    t.match(done.stdout, `cluster ${before} is cluster ${after} now, and continues with 33 of 33 shards.`)
    t.match(done.stdout, new RegExp(`^${ofC}: \\d+ copies continue, and \\d+ are fetched`, 'm'))
    t.not(after, before)

    const converted = join(kept, 'converted')
    renameSync(ofC, converted)
    cpSync(join(kept, '2'), ofC, { recursive: true })
    t.match(
      await (await scene.spawn(2)).exitWithin(waitMsMax),
      {
        code: 1,
        stderr: /belongs to cluster \S+, which was recovered without it and is cluster \S+ now\. .*disasters\.md/,
      },
      'old records never follow the new log',
    )
    rmSync(ofC, { recursive: true })
    cpSync(converted, ofC, { recursive: true })
    await begin(...all)
    await everythingIsThere(t)
    const late = await receive(t, awayPort)
    await scene.until('the pending notification', async () => (late.includes('pending1') ? true : undefined))
    await write(1, 'once2', 'Once', 1)
    await write(1, 'pending2', 'Pending', 1)
    await scene.until('the next notification', async () => (late.includes('pending2') ? true : undefined))
    t.strictSame(received, ['once1'], 'a one-shot is sent once')
    // The count of the first pending notification may be lost with the node that tried to send it.
    await scene.until('the counters', async () => {
      const [once, pending] = await subscriptions()
      return once?.timesSent === 1 && pending !== undefined && pending.timesSent >= 1 ? true : undefined
    })
  })

  await t.test('has an etcd that is older than the nodes: it is emptied, and the nodes are recovered', async t => {
    const data = join(folder, 'etcd-m0')
    await scene.untilAlike()
    await member!.kill()
    cpSync(data, join(kept, 'etcd'), { recursive: true })
    await member!.restart()
    await scene.writeAll(3)
    await scene.untilAlike()
    await member!.kill()
    replace(join(kept, 'etcd'), data)
    await member!.restart()
    for (const index of all) await scene.untilUnready(index, /the log engine has lost data/)
    await stop(...all)
    t.match(await recover(directories), { code: 1, stderr: /the log engine keeps cluster \S+: recover begins with/ })
    await client.delete().prefix('/orrery/').exec()

    await giveAnotherPast(ofC)
    t.match(await recover([ofA, ofC]), {
      code: 1,
      stderr: `the copies of shard ${lampShard} contradict each other, since the directories have followed different logs`,
    })
    const done = await recover(directories)
    t.equal(done.code, 0, done.stderr)
    t.match(done.stderr, new RegExp(`^${ofC}: the copy of shard ${lampShard} up to record \\d+ is refused`, 'm'))
    cpSync(ofC, join(kept, 'old'), { recursive: true })
    await begin(...all)
    await everythingIsThere(t)
  })

  await t.test(
    'has a node with another past, and then loses two disks: one begins empty, the other one with an old backup',
    async t => {
      await scene.writeAll(4)
      await scene.untilAlike()
      await stop(2)
      await giveAnotherPast(ofC)
      await write(0, 'lamp0', 'Lamp', 5)
      await scene.spawn(2)
      const diverged = `the log has other records than this node has applied: its copies of shard ${lampShard} have stopped`
      await scene.untilUnready(2, new RegExp(diverged))
      t.match((await scene.status(2)).health, { state: 'diverged', reason: diverged, shards: [lampShard] })
      await scene.untilRaised(2)
      await crash(1, 2)
      rmSync(ofB, { recursive: true })
      replace(join(kept, 'old'), ofC)
      await begin(1, 2)
      await scene.untilAlike()
      await everythingIsThere(t)
    },
  )

  await t.test('is exported from the directory of a node, with a line about what it lacks', async t => {
    await stop(...all)
    const { code, stdout, stderr } = await exported(ofB)
    t.match(stderr, /is the directory of a node of a cluster/)
    t.equal(code, 0, stderr)
    t.equal(stdout.match(/"id":"lamp\d+"/g)?.length, 12)
    await inStore(ofC, store => commit(store, batch => batch.del(positionKey(lampShard))))
    t.match(await exported(ofC), { code: 1, stderr: `${ofC} has no complete copy of shard ${lampShard}` })
  })

  await t.test('has lost everything but a directory without some shards: these may begin empty', async t => {
    await client.delete().prefix('/orrery/').exec()
    const refused = await recover([ofC])
    t.match(refused, { code: 1, stderr: new RegExp(`complete copy of shard ${lampShard}: .*-withoutShards`) })
    const done = await recover([ofC], '-withoutShards')
    t.equal(done.code, 0, done.stderr)
    t.match(done.stdout, `shard ${lampShard}: empty from now on, since no directory has a copy`)
    rmSync(ofA, { recursive: true })
    await Promise.all([0, 2].map(index => scene.begin(index, '-replicas', '1')))
    for (const index of [0, 2]) await scene.untilReady(index, true)
    const shards = new ShardMap(smallPlacement)
    for (const id of [...scene.acknowledged.keys()])
      if (shards.shardOf('', '/', id) === lampShard) scene.acknowledged.delete(id)
    await everythingIsThere(t, 0, 2)
    await write(0, 'lamp0', 'Lamp', 5)
    await everythingIsThere(t, 0, 2)
    t.match(
      scene.lines(0, 'WARN').join('\n'),
      /each shard has one copy \(-replicas 1\): when the disk of a node is lost/,
    )
    await stop(0, 2)
    t.strictSame(await indexesEqualRebuild(ofA, clusterOf(ofA)!.id), [])
  })
})

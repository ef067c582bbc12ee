// Three nodes whose shards are divided among two etcds (docs/operations/cluster.md#several-etcds). While one etcd is
// away, the shards of the other one go on. A node that names the etcds otherwise does not start, and a cluster that has
// lost both of them is recovered.

import { Etcd3 } from 'etcd3'
import t from 'tap'
import { logIndexOf } from '../../cluster/logs/divided-log.js'
import { ShardMap } from '../../src/domain/scope.js'
import { table } from '../../src/process/cluster-command.js'
import { runToEnd, tempDir } from '../support/broker-process.js'
import { noEtcd, startEtcd } from '../support/etcd.js'
import { entities, names, Scene, shardLogOf, waitMsMax } from '../support/log-scene.js'
import { smallPlacement } from '../support/small-cluster.js'

const indexes = names.map((_, index) => index)

const map = new ShardMap(smallPlacement)
/** The entities whose shards are in one of the logs. */
const lampsOf = (log: number): readonly string[] =>
  Array.from({ length: entities }, (_, n) => `lamp${n}`).filter(id => logIndexOf(map.shardOf('', '/', id), 2) === log)

t.test('three nodes and two etcds', { skip: noEtcd() }, async t => {
  t.setTimeout(600_000)
  const scene = await Scene.start(t, tempDir(t), ['--unsafe-no-fsync'], 2)
  const addresses = scene.etcds.map(etcd => etcd.address().members.join(','))
  // The register is the shard behind the last one.
  const lead = logIndexOf(map.register, 2)
  const other = 1 - lead
  t.ok(lampsOf(0).length > 0 && lampsOf(1).length > 0, 'both have some')

  const put = async (id: string, value: number, index: number): Promise<number> => {
    const { status } = await scene.send(index, 'PUT', `/v2/entities/${id}/attrs/level/value?type=Lamp`, value)
    if (status === 204) scene.acknowledged.set(id, value)
    return status
  }

  await t.test('the status and the metrics show each etcd', async t => {
    await scene.untilReady(0, true)
    const status = await scene.status(0)
    t.match(status.engines, [
      { engine: addresses[0], state: 'answers', shards: 17, hasRegister: true },
      { engine: addresses[1], state: 'answers', shards: 16, hasRegister: false },
    ])
    t.match(table(status), `log engine 1, ${addresses[0]}: 17 shards, the register among them, answers`)
    // A node appends to the logs of its own shards only, so one node need not have appended to each of them.
    const scrapes = await Promise.all(indexes.map(index => scene.send(index, 'GET', '/metrics')))
    for (const address of addresses) {
      const appended = new RegExp(`orrery_cluster_log_requests_total{kind="append",engine="${address}"} [1-9]`)
      t.ok(
        scrapes.some(({ text }) => appended.test(text)),
        address,
      )
    }
  })

  await t.test('each etcd has the records of its shards, and of no other one', async t => {
    for (const [log, address] of addresses.entries()) {
      const client = new Etcd3({ hosts: `http://${address}` })
      const shards = Object.keys(await client.getAll().prefix('/orrery/orrery/log/').strings()).map(key =>
        Number(key.split('/')[4]),
      )
      client.close()
      t.ok(shards.length > 0)
      t.strictSame([...new Set(shards.map(shard => logIndexOf(shard, 2)))], [log])
    }
  })

  await t.test('while one is away, reads and writes of the other one go on', async t => {
    const [member] = scene.etcds[other]!.members
    await member!.kill()
    const [away] = lampsOf(other)
    t.equal(await put(away!, 5, 0), 503, 'a write to its shards has no answer in time')
    let written = 10
    for (let round = 0; round < 5; round++)
      for (const id of lampsOf(lead))
        for (const index of indexes) {
          written++
          await scene.until(`${id} to be written`, async () => (await put(id, written, index)) === 204 || undefined)
          const { status, text } = await scene.send(index, 'GET', `/v2/entities/${id}/attrs/level/value`)
          t.ok(status === 503 || (status === 200 && Number(text) === written), `${status} ${text}`)
        }
    for (const index of indexes) {
      await scene.untilUnready(index, new RegExp(`the log engine ${addresses[other]} takes no writes`))
      const { engines, health } = await scene.status(index)
      t.equal(health.state, 'away')
      t.ok(
        health.shards.every(shard => logIndexOf(shard, 2) === other),
        `${health.shards}`,
      )
      t.match(engines![other], { state: 'away' })
      t.match(engines![lead], { state: 'answers' })
      const refused = await Promise.all(lampsOf(other).map(id => put(id, 6, index)))
      t.strictSame([...new Set(refused)], [503])
    }
    const subscription = {
      subject: { entities: [{ idPattern: '.*', type: 'Nothing' }] },
      notification: { http: { url: 'http://192.0.2.1/' } },
    }
    await scene.until('a subscription', async () => {
      const { status } = await scene.send(1, 'POST', '/v2/subscriptions', subscription)
      return status === 201 || undefined
    })
    await member!.restart()
    for (const index of indexes) await scene.untilReady(index, true)
    await scene.writeAll(7)
    for (const index of indexes) t.strictSame(await scene.answersOf(index), scene.acknowledged)
    t.notMatch(scene.nodes.map(node => node.printed()).join('\n'), /lvl=(FATAL|ERROR)/)
  })

  await t.test('while that of the register is away, no shard answers, and later all do', async () => {
    const [member] = scene.etcds[lead]!.members
    await member!.kill()
    for (const index of indexes) await scene.untilUnready(index, new RegExp(`${addresses[lead]} takes no writes`))
    await member!.restart()
    for (const index of indexes) await scene.untilReady(index, true)
    await scene.writeAll(8)
  })

  await t.test('a node that names the etcds otherwise does not start', async t => {
    const third = shardLogOf([await startEtcd(t)])
    const [first, second] = scene.etcds.map(etcd => shardLogOf([etcd])) as [string, string]
    for (const [shardLog, pattern] of [
      [
        `${second} ${first}`,
        /as number 1 of 2, and for cluster \S+ it is number 2 of 2: the engines of a cluster keep/,
      ],
      [first, /as the only one, and for cluster \S+ it is number 1 of 2/],
      [`${first} ${second} ${third}`, /as number 1 of 3, and for cluster \S+ it is number 1 of 2/],
      [`${first} ${third}`, /has nothing of cluster \S+, which \S+ keeps with it/],
    ] as const) {
      const place = ['-nodeName', 'd', '-clusterListen', '127.0.0.1:0', '-clusterJoin', scene.listen[0]!]
      const { code, stderr } = await runToEnd(t, ['-dataDir', tempDir(t), ...place, '-shardLog', shardLog], waitMsMax)
      t.equal(code, 1, shardLog)
      t.match(stderr, pattern)
    }
  })

  await t.test('when both have lost everything, the cluster is recovered from the data of its nodes', async t => {
    for (const node of scene.nodes) await node.kill('SIGTERM')
    for (const address of addresses) {
      const client = new Etcd3({ hosts: `http://${address}` })
      await client.delete().all()
      client.close()
    }
    const place = ['-nodeName', 'a', '-clusterListen', scene.listen[0]!, '-shardLog', shardLogOf(scene.etcds)]
    const words = ['cluster', 'recover', '--from', ...scene.nodes.map(({ dataDir }) => dataDir), ...place]
    const { code, stdout, stderr } = await runToEnd(t, words, waitMsMax)
    t.equal(code, 0, stderr)
    t.match(stdout, /cluster/)
    await Promise.all(indexes.map(index => scene.begin(index)))
    for (const index of indexes) await scene.untilReady(index, true)
    for (const index of indexes) t.strictSame(await scene.answersOf(index), scene.acknowledged)
    await scene.writeAll(9)
  })
})

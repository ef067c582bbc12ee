// The log of a cluster is lost while its nodes run: another program deletes the data in etcd, or an older backup
// replaces it. Every node reports it, accepts no writes, deletes nothing, and continues when the log is back
// (docs/operations/log-lost.md).

import { cpSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { Etcd3 } from 'etcd3'
import t from 'tap'
import { table } from '../../src/process/cluster-command.js'
import { tempDir } from '../support/broker-process.js'
import { noEtcd } from '../support/etcd.js'
import { entities, names, Scene, shardCount, waitMsMax } from '../support/log-scene.js'

const skip = noEtcd()
const lostShards = /^orrery_cluster_lost_shards (\d+)$/m

t.test('no subscription deletes the log, and a node that loses it reports that and waits for it', { skip }, async t => {
  t.setTimeout(300_000)
  const scene = await Scene.start(t, tempDir(t))
  const client = new Etcd3({ hosts: `http://${scene.etcd.members[0]!.address}` })
  t.teardown(() => client.close())
  const port = scene.etcd.members[0]!.address.split(':')[1]!
  const before = await scene.keys(client)

  await t.test('a subscription to the engine of the log is refused, or its message is a dead letter', async t => {
    const payload = encodeURIComponent(JSON.stringify({ key: 'AA==', range_end: 'AA==' }))
    const aimedAt = (host: string) => ({
      subject: { entities: [{ idPattern: '.*' }] },
      notification: {
        httpCustom: { url: `http://${host}:${port}/v3/kv/deleterange`, method: 'POST', payload },
      },
    })
    const refused = await scene.send(0, 'POST', '/v2/subscriptions', aimedAt('127.0.0.1'))
    t.equal(refused.status, 400)
    t.match(refused.text, /is not allowed here/)
    const taken = await scene.send(0, 'POST', '/v2/subscriptions', aimedAt('localhost'))
    t.equal(taken.status, 201, 'where its name points to is known later')
    await scene.writeAll(2)
    const [subscription] = await scene.until('the denied message', async () => {
      const { text } = await scene.send(0, 'GET', '/v2/subscriptions')
      const found = JSON.parse(text) as { notification: { lastFailureReason?: string } }[]
      return found[0]?.notification.lastFailureReason === undefined ? undefined : found
    })
    t.equal(subscription?.notification.lastFailureReason, 'The target is denied here')
    t.ok((await scene.keys(client)).length >= before.length, 'the log is there')
  })

  await t.test(
    'no node accepts one to a port where members talk, though it was configured with one of them only',
    async t => {
      for (const index of [0, 1, 2])
        for (const address of scene.listen) {
          const notification = { http: { url: `http://${address}/` } }
          const subject = { entities: [{ idPattern: '.*' }] }
          const refused = await scene.send(index, 'POST', '/v2/subscriptions', { subject, notification })
          t.match(refused, { status: 400, text: /is not allowed here/ }, `node ${names[index]}, ${address}`)
        }
    },
  )

  const deletion = await client.delete().prefix('/orrery/').exec()
  // The revision just before the deletion: nodes append until then.
  const revision = String(BigInt(deletion.header.revision) - 1n)

  // A node that has not noticed the loss yet answers others, for a moment after it last knew that the shard was its
  // own.
  for (const index of [0, 1, 2]) await scene.untilUnready(index, /does not keep this cluster any more/)
  for (const index of [0, 1, 2]) {
    const { log, shards } = await scene.until('the whole loss to be known', async () => {
      const status = await scene.status(index)
      return status.log.shards.length === status.shards.length ? status : undefined
    })
    t.equal(log.state, 'lost')
    t.match(log.reason, /does not keep this cluster any more/)
    t.match(table(await scene.status(index)), /does not keep this cluster any more/)
    const [, lost] = lostShards.exec((await scene.send(index, 'GET', '/metrics')).text) ?? []
    t.equal(Number(lost), shards.length)
    await scene.untilRaised(index, /docs\/operations\/log-lost\.md/)
    const written = await scene.send(index, 'POST', '/v2/entities', { id: `new${index}`, type: 'Lamp' })
    t.equal(written.status, 503)
    t.match(written.text, /the log engine has lost data of this cluster/)
    t.equal((await scene.send(index, 'GET', '/v2/entities/lamp1')).status, 503, 'nobody knows whether it is the latest')
    t.equal((await scene.send(index, 'GET', '/v2/entities')).status, 503)
    t.equal((await scene.send(index, 'GET', '/health/live')).status, 200)
  }
  t.same(await scene.keys(client), [], 'nothing is put in the place of what was lost')

  scene.nodes[2]!.signal('SIGTERM')
  await scene.nodes[2]!.exited
  const exit = await (await scene.spawn(2)).exitWithin(waitMsMax)
  t.equal(exit.code, 1)
  t.match(
    exit.stderr,
    /belongs to cluster \S+, and the log engine \(-shardLog\) has nothing of it: .* Nothing was changed\. .*docs\/operations\/log-lost\.md/,
  )
  t.same(await scene.keys(client), [], 'nor by who starts anew')

  // There is no compaction meanwhile, so the history of etcd still has the deleted rows.
  const found = await scene.keys(client, revision)
  t.equal(found.length, Number(deletion.deleted))
  for (const { key, value } of found) await client.put(key).value(value)
  for (const index of [0, 1]) {
    await scene.untilReady(index, true)
    t.strictSame((await scene.status(index)).log, { state: 'whole', shards: [] })
  }
  await scene.begin(2)
  await scene.untilReady(2, true)
  await scene.writeAll(3)
  for (const index of [0, 1, 2]) t.strictSame(await scene.answersOf(index), scene.acknowledged)
  t.notMatch(scene.nodes.map(node => node.printed()).join('\n'), /lvl=FATAL/)
})

t.test('an older backup in the place of the log is found out, and the right one taken', { skip }, async t => {
  t.setTimeout(300_000)
  const folder = tempDir(t)
  const scene = await Scene.start(t, folder)
  const [member] = scene.etcd.members
  const [data, older, newer] = ['etcd-m0', 'older', 'newer'].map(name => join(folder, name)) as [string, string, string]

  await scene.untilAlike()
  await member!.kill()
  cpSync(data, older, { recursive: true })
  await member!.restart()
  await scene.writeAll(2)
  await scene.untilAlike()
  await member!.kill()
  renameSync(data, newer)
  cpSync(older, data, { recursive: true })
  await member!.restart()

  for (const index of [0, 1, 2]) {
    await scene.untilUnready(
      index,
      new RegExp(`the log engine has lost data: the logs of \\d+ of ${shardCount} shards end before`),
    )
    t.match(await scene.status(index), { log: { state: 'lost', reason: /lost data/ } })
    await scene.untilRaised(index)
  }
  // A node that starts now notices it too, from its own data on disk.
  scene.nodes[1]!.signal('SIGTERM')
  await scene.nodes[1]!.exited
  await scene.begin(1)
  await scene.untilUnready(1, /the log engine has lost data/)
  await scene.untilRaised(1)
  const statuses = await Promise.all(
    Array.from({ length: entities }, async (_, number) => {
      const path = `/v2/entities/lamp${number}/attrs/level/value`
      return (await scene.send(number % 3, 'PUT', path, 3)).status
    }),
  )
  t.ok(
    statuses.every(status => status === 503 || status === 0),
    `nothing is acknowledged: ${statuses.join(' ')}`,
  )

  await member!.kill()
  renameSync(data, join(folder, 'wrong'))
  renameSync(newer, data)
  await member!.restart()
  for (const index of [0, 1, 2]) await scene.untilReady(index, true)
  await scene.writeAll(4)
  for (const index of [0, 1, 2]) t.strictSame(await scene.answersOf(index), scene.acknowledged)
  t.notMatch(scene.nodes.map(node => node.printed()).join('\n'), /lvl=FATAL/)
})

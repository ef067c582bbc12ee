// A backup of a cluster of three nodes, requested from one of them under load: each shard comes from its owner. It
// becomes a single node, or the first content of another cluster.

import { createReadStream, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type BackupHeader, blocksOf } from '../../src/backup/backup-file.js'
import { type BrokerProcess, type Exit, freePort, runToEnd, startBroker, tempDir } from '../support/broker-process.js'
import { noEtcd, startEtcd } from '../support/etcd.js'
import { HttpClient } from '../support/http-client.js'
import { indexesEqualRebuild } from '../support/inspection.js'
import { startThreeNodes } from '../support/three-nodes.js'

t.setTimeout(600_000)
const key = 'a-key-of-some-length'

async function send({ baseUrl }: BrokerProcess, method: string, path: string, body?: unknown): Promise<unknown> {
  const client = new HttpClient(baseUrl)
  try {
    const { status, text, json } = await client.send(method, path, body)
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`)
    return json
  } finally {
    client.close()
  }
}

const countOf = (n: number): object => ({ n: { type: 'Number', value: n, metadata: {} } })

async function fill(nodes: readonly BrokerProcess[]): Promise<void> {
  const [first, second] = nodes as [BrokerProcess, BrokerProcess]
  const subject = { entities: [{ idPattern: '.*', type: 'None' }] }
  const http = { url: 'http://127.0.0.1:9/', headers: { 'X-Token': 'a-secret' } }
  await send(first, 'POST', '/v2/subscriptions', { subject, notification: { httpCustom: http } })
  const entities = Array.from({ length: 200 }, (_, n) => ({ id: `E${n}`, type: `T${n % 3}`, ...countOf(n + 0.1) }))
  await send(second, 'POST', '/v2/op/update', { actionType: 'append', entities })
}

/** The data that does not change during the test. */
async function visible(broker: BrokerProcess): Promise<unknown[]> {
  const paths = [
    '/v2/entities?limit=1000&type=T0,T1,T2&attrs=*,dateCreated,dateModified&options=count',
    '/v2/subscriptions',
  ]
  return Promise.all(paths.map(path => send(broker, 'GET', path)))
}

async function headerOf(file: string): Promise<BackupHeader> {
  for await (const block of blocksOf(createReadStream(file))) if (block.kind === 'header') return block.header
  throw new Error('there is no header')
}

const backUp = (t: Test, broker: BrokerProcess, file: string, keyFile: string): Promise<Exit> =>
  runToEnd(t, ['backup', '--from', broker.baseUrl, '--to', file, '--backupKeyFile', keyFile], 60_000)

t.test('a cluster', { skip: noEtcd() }, async t => {
  const folder = tempDir(t)
  const keyFile = join(folder, 'key')
  writeFileSync(keyFile, key)
  const nodes = await startThreeNodes(t, { folder, args: ['-backupKeyFile', keyFile] })
  const [first, second, third] = nodes as [BrokerProcess, BrokerProcess, BrokerProcess]
  await fill(nodes)
  await send(first, 'POST', '/v2/entities', { id: 'L', type: 'Load', ...countOf(0) })
  const seen = await visible(first)
  const file = join(folder, 'backup')

  t.test('is backed up by any node, from the owner of each shard, at positions of their logs', async t => {
    let answered = 0
    let isOver = false
    const load = (async () => {
      while (!isOver) {
        await send(second, 'PATCH', '/v2/entities/L/attrs', countOf(answered + 1))
        answered++
      }
    })()
    while (answered < 5) await new Promise(resolve => setImmediate(resolve))
    const before = answered
    const { code, stderr } = await backUp(t, third, file, keyFile)
    const after = answered + 1
    isOver = true
    await load
    t.equal(code, 0, stderr)
    const { owners, shards } = await headerOf(file)
    t.equal(owners.length, 3)
    t.ok(owners.every(owner => owner.shards.length > 0))
    t.equal(new Set(owners.flatMap(owner => owner.shards)).size, shards)
    // The register has a position, too.
    t.equal(owners.flatMap(({ positions }) => positions).length, shards + 1)

    const dataDir = join(folder, 'single')
    const restored = await runToEnd(t, ['restore', '--from', file, '-dataDir', dataDir], 60_000)
    t.equal(restored.code, 0, restored.stderr)
    const single = await startBroker(t, { dataDir })
    t.strictSame(await visible(single), seen)
    const { n } = (await send(single, 'GET', '/v2/entities/L')) as { n: { value: number } }
    t.ok(n.value >= before && n.value <= after, `${before} <= ${n.value} <= ${after}`)
    await single.kill('SIGTERM')
    t.strictSame(await indexesEqualRebuild(dataDir), [])
  })

  t.test('begins with a backup', async t => {
    mkdirSync(join(folder, 'another'))
    const etcd = await startEtcd(t, { dataDir: join(folder, 'another'), args: ['--unsafe-no-fsync'] })
    const place = ['-nodeName', 'x', '-clusterListen', `127.0.0.1:${await freePort()}`]
    const args = [...place, '-shardLog', `etcd://${etcd.address().members.join(',')}`]
    const dataDir = join(folder, 'x')
    const init = ['cluster', 'init', '--from', join(folder, 'single'), '-dataDir', dataDir, ...args]
    const { code, stderr } = await runToEnd(t, init, 60_000)
    t.equal(code, 0, stderr)
    const node = await startBroker(t, { dataDir, args, readyWaitMs: 60_000 })
    t.strictSame(await visible(node), seen)
  })
})

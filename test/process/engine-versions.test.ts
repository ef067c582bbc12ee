// A node does not start over a version of etcd that is known to lose data, unless an option accepts that. An etcd that
// only has a version stands for the real one.

import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { loadPackageDefinition, Server, ServerCredentials } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import t, { type Test } from 'tap'
import { freePort, spawnBroker } from '../support/broker-process.js'
import { root } from '../support/project.js'

const waitMsMax = 60_000

/** Serves the version at a port, and returns that address. */
async function serveVersion(t: Test, version: string): Promise<string> {
  const proto = loadSync(join(root, 'node_modules/etcd3/proto/rpc.proto'), { defaults: true })
  const loaded = loadPackageDefinition(proto) as unknown as {
    readonly etcdserverpb: { readonly Maintenance: { readonly service: Parameters<Server['addService']>[0] } }
  }
  const server = new Server()
  server.addService(loaded.etcdserverpb.Maintenance.service, {
    Status: (_: unknown, answer: (error: null, response: unknown) => void) => answer(null, { version }),
  })
  const address = `127.0.0.1:${await freePort()}`
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(address, ServerCredentials.createInsecure(), error => (error ? reject(error) : resolve())),
  )
  t.teardown(() => server.forceShutdown())
  return address
}

async function startOver(t: Test, version: string, ...args: readonly string[]) {
  const engine = await serveVersion(t, version)
  const listen = `127.0.0.1:${await freePort()}`
  const place = ['-nodeName', 'a', '-clusterListen', listen, '-shardLog', `etcd://${engine}`]
  return { engine, broker: await spawnBroker(t, { args: [...place, ...args] }) }
}

t.test('a version that is known to lose data ends the start', async t => {
  const { engine, broker } = await startOver(t, '3.5.4')
  const { code, stdout, stderr } = await broker.exitWithin(waitMsMax)
  t.equal(code, 1)
  const line = `the log engine (-shardLog) at ${engine} is etcd 3.5.4: an etcd of one member may lose acknowledged writes when it crashes. Upgrade it`
  t.ok((stdout + stderr).includes(line), stdout + stderr)
})

t.test('with -shardLogUnsafe the node warns and goes on', async t => {
  const { broker } = await startOver(t, '3.5.0', '-shardLogUnsafe')
  const untilMs = performance.now() + waitMsMax
  while (!/waiting for the log engine/.test(broker.printed()) && performance.now() < untilMs) await pause(50)
  t.match(broker.printed(), /is etcd 3\.5\.0: a member that crashes .* -shardLogUnsafe accepts that/)
  t.match(broker.printed(), /waiting for the log engine/)
  t.notOk(broker.gone)
})

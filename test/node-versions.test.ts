// The versions of Node.js that the program supports beside the one that runs the tests. It works on each, on the
// expected server, and Node prints no warning.
//
// The binaries are packages of npm (test/nodes). Not here: versions that are refused (process/node-version.test).

import { join } from 'node:path'
import t, { type Test } from 'tap'
import { aedesBroker } from './deliver/brokers.js'
import { httpReceiver, until } from './deliver/receivers.js'
import { type BrokerProcess, runToEnd, startBroker, tempDir } from './support/broker-process.js'
import { HttpClient } from './support/http-client.js'
import { lackingPackages } from './support/packages.js'
import { root } from './support/project.js'

const skip =
  `${process.platform}-${process.arch}` === 'linux-x64'
    ? lackingPackages('test/nodes')
    : 'the packages of other versions of Node.js are for Linux on x64'

/** The server of each version: uWebSockets.js where its package has a build, else Node's own. */
const versions = [
  ['node22', /serving with uWebSockets\.js .*uws_linux_x64_127, corrected/],
  ['node24', /Node\.js v24.*there is no build for it\): serving with node:http/],
] as const

t.setTimeout(400_000)
t.jobs = versions.length
for (const [name, server] of versions)
  t.test(`the broker works on ${name}`, { skip }, async t => {
    const node = join(root, 'test/nodes/node_modules', name, 'bin/node')
    const dataDir = tempDir(t)
    const start = (args: readonly string[]): Promise<BrokerProcess> =>
      startBroker(t, { node, dataDir, args: ['-logLevel', 'INFO', ...args], readyWaitMs: 40_000 })

    const broker = await start([])
    await servesAndNotifies(t, broker.baseUrl)
    // The log may print the server after the ready line.
    t.match(await endsWell(t, broker), server)

    const exported = await runToEnd(t, ['export', '-dataDir', dataDir, '-to', '-'], 20_000, node)
    t.match(exported, { code: 0, stdout: /"Room1"/ }, exported.stderr)

    const workers = await start(['-workers', '2'])
    const client = new HttpClient(workers.baseUrl)
    t.strictSame((await client.get('/v2/entities?q=n==2&options=keyValues')).json, [
      { id: 'Room1', type: 'Room', n: 2 },
    ])
    client.close()
    await endsWell(t, workers)
  })

/** A client's round: a query finds its change, and both receivers get its creation and its change. */
async function servesAndNotifies(t: Test, baseUrl: string): Promise<void> {
  const client = new HttpClient(baseUrl)
  const receiver = await httpReceiver(t)
  const { port, published } = await aedesBroker(t)
  const notification = { attrsFormat: 'simplifiedKeyValues' }
  for (const to of [{ http: { url: receiver.url } }, { mqtt: { url: `mqtt://127.0.0.1:${port}`, topic: 'rooms' } }]) {
    const subject = { entities: [{ idPattern: '.*', type: 'Room' }] }
    const subscription = { subject, notification: { ...notification, ...to } }
    t.equal((await client.send('POST', '/v2/subscriptions', subscription)).status, 201)
  }
  const room = { id: 'Room1', type: 'Room', n: 1 }
  t.equal((await client.send('POST', '/v2/entities?options=keyValues', room)).status, 201)
  t.equal((await client.send('PATCH', '/v2/entities/Room1/attrs?options=keyValues', { n: 2 })).status, 204)
  const found = await client.get('/v2/entities?q=n>1&options=keyValues')
  t.strictSame(found.json, [{ ...room, n: 2 }])
  await until(() => receiver.received.length >= 2 && published.length >= 2, 'two notifications to each receiver')
  const bodies = ['{"id":"Room1","type":"Room","n":1}', '{"id":"Room1","type":"Room","n":2}']
  t.strictSame(
    receiver.received.map(one => one.body),
    bodies,
  )
  t.strictSame(
    published.map(one => one.payload),
    bodies,
  )
  client.close()
}

/**
 * SIGTERM must end the broker with 0, and nothing may be printed on standard error: no warning of Node, no deprecation.
 * Returns the log.
 */
async function endsWell(t: Test, broker: BrokerProcess): Promise<string> {
  broker.signal('SIGTERM')
  const exit = await broker.exitWithin(20_000)
  t.match(exit, { code: 0, stderr: '' })
  return exit.stdout
}

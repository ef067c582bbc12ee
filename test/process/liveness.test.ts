// Liveness probes on a port of their own: they are answered whatever the node does, until it has been silent for long.

import { once } from 'node:events'
import { setImmediate as tick } from 'node:timers/promises'
import t from 'tap'
import { readConfig } from '../../src/config/config.js'
import { Pulses, serveLiveness } from '../../src/process/liveness.js'
import { startInThread } from '../../src/process/own-thread.js'
import { Wire } from '../http/wire.js'
import { freePort, spawnBroker, startBroker, tempDir } from '../support/broker-process.js'
import { FakeClock } from '../support/fake-clock.js'
import { HttpClient } from '../support/http-client.js'

const listening = { livePort: 0, host: '127.0.0.1', family: 'ipv4' } as const

t.test('a part is silent from the first ping that it has not answered until it does, or ends', async t => {
  const clock = new FakeClock()
  const pulses = new Pulses(clock)
  let pings = 0
  const first = pulses.begin(() => pings++)
  const second = pulses.begin(() => {})
  clock.advance(5_000)
  t.equal(pulses.silentMs, 0)
  pulses.beat()
  clock.advance(1_000)
  pulses.beat()
  t.equal(pings, 1, 'it is sent no other one before it has answered')
  first.answered()
  t.equal(pulses.silentMs, 1_000)
  pulses.beat()
  clock.advance(500)
  t.same([pings, pulses.silentMs], [2, 1_500])
  second.ended()
  t.equal(pulses.silentMs, 500)
  second.answered()
  first.ended()
  t.equal(pulses.silentMs, 0)
})

t.test('a node is live until a part has been silent for a minute, and again when it answers', async t => {
  const clock = new FakeClock()
  const pulses = new Pulses(clock)
  const port = await serveLiveness(listening, pulses)
  const client = new HttpClient(`http://127.0.0.1:${port}`)
  const pulse = pulses.begin(() => {})
  pulses.beat()
  clock.advance(60_000)
  const live = await client.get('/health/live')
  t.same([live.status, live.json], [200, { status: 'live' }])
  clock.advance(1_000)
  const silent = await client.get('/health/live')
  t.same(
    [silent.status, silent.json],
    [503, { error: 'Unavailable', description: 'the node has not answered for 61 s' }],
  )
  pulse.answered()
  t.equal((await client.get('/health/live')).status, 200)
  for (const path of ['/', '/v2/entities', '/health/ready', '/health/live/'])
    t.equal((await client.get(path)).status, 404, path)
  t.equal((await client.send('POST', '/health/live')).status, 404)
})

t.test('a port in use is reported', async t => {
  const livePort = await serveLiveness(listening, new Pulses(new FakeClock()))
  const message = new RegExp(`^cannot listen for -livePort at 127\\.0\\.0\\.1:${livePort}: `)
  await t.rejects(serveLiveness({ ...listening, livePort }, new Pulses(new FakeClock())), { message })
})

t.test('a node in its thread answers pings', async t => {
  const reading = readConfig(['-port', String(await freePort()), '-dataDir', tempDir(t), '-logDir', tempDir(t)], {})
  if (reading.kind !== 'run') return t.fail(reading.kind)
  const clock = new FakeClock()
  const pulses = new Pulses(clock)
  const node = await startInThread(
    { config: reading.config, checkedAccess: undefined },
    failure => t.fail(failure.message),
    pulses,
  )
  pulses.beat()
  clock.advance(1)
  t.equal(pulses.silentMs, 1)
  while (pulses.silentMs > 0) await tick()
  await node.stop()
})

t.test('probes are answered while the workers are not', async t => {
  const livePort = await freePort()
  const broker = await startBroker(t, { args: ['-workers', '2', '-livePort', String(livePort)] })
  const probe = new HttpClient(`http://127.0.0.1:${livePort}`)
  const [, ...workers] = broker.processes
  t.equal(workers.length, 2)
  for (const worker of workers) process.kill(worker, 'SIGSTOP')
  const wire = await Wire.to(broker.port)
  let isAnswered = false
  const answered = wire.request('GET /health/live', []).then(() => wire.answer(false))
  answered.then(() => {
    isAnswered = true
  })
  for (let n = 0; n < 20; n++) t.equal((await probe.get('/health/live')).status, 200)
  t.equal(isAnswered, false)
  for (const worker of workers) process.kill(worker, 'SIGCONT')
  t.equal((await answered).status, 200)
  wire.leave()
  broker.child.kill('SIGTERM')
  t.equal((await broker.exitWithin(20_000)).code, 0)
})

t.test('one port serves one thing', async t => {
  const taken = await freePort()
  const first = await startBroker(t, { args: ['-livePort', String(taken)] })
  const second = await spawnBroker(t, { args: ['-livePort', String(taken)] })
  const exit = await second.exitWithin(20_000)
  t.equal(exit.code, 1)
  t.match(exit.stderr, /-livePort: address already in use/)
  t.equal((await new HttpClient(`http://127.0.0.1:${taken}`).get('/health/live')).status, 200)
  first.child.kill('SIGTERM')
  await once(first.child, 'exit')
})

// SIGTERM while clients send requests: no connection is reset, and every request gets an answer
// (test/support/stop-load.ts has the rules).

import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { accepts, type BrokerProcess, startBroker } from '../support/broker-process.js'
import { StopLoad, type StopLoadOptions } from '../support/stop-load.js'

t.setTimeout(400_000)

const load = { kept: 64, reconnecting: 8, resting: 8 }

const message = (line: string, body = ''): string =>
  `${line} HTTP/1.1\r\nHost: a\r\n${body && `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`}\r\n${body}`

/** One request waits for a commit, one is answered at once, and one by the owner of the shard. */
const requests: StopLoadOptions['requests'] = client => {
  const id = `E${client}`
  return [
    message('POST /v2/entities?options=upsert', JSON.stringify({ id, type: 'T', n: { type: 'Number', value: 1 } })),
    message('GET /version'),
    message(`GET /v2/entities/${id}/attrs/n/value`),
  ]
}

async function stopUnderLoad(broker: BrokerProcess, options: Partial<StopLoadOptions> = {}) {
  const clients = new StopLoad(broker.port, { ...load, requests, ...options })
  await clients.answeredAtLeast(1_000)
  clients.isStopping = true
  broker.child.kill('SIGTERM')
  const [tally, { code, stderr }] = await Promise.all([clients.over(), broker.exitWithin(20_000)])
  return { ...tally, code, stderr }
}

for (const [what, args] of [
  ['one node', []],
  ['two workers', ['-workers', '2']],
  ['two workers over node:http', ['-httpServer', 'node', '-workers', '2']],
] as const)
  t.test(`${what}: no connection is reset by a stop, and no request is lost`, async t => {
    const broker = await startBroker(t, { args })
    const { resets, unanswered, restEnds, late, answered, code, stderr } = await stopUnderLoad(broker)
    t.comment(`${answered} answers, ${late} of them after the signal, ${restEnds} ends of connections that rested`)
    t.strictSame([resets.length, resets.slice(0, 5)], [0, []])
    t.strictSame([unanswered.length, unanswered.slice(0, 5)], [0, []])
    t.ok(late > 0, 'requests came after the signal')
    t.equal(restEnds, load.resting)
    t.strictSame([code, stderr], [0, ''])
  })

t.test('a second signal ends a stop that waits for a request', async t => {
  const broker = await startBroker(t)
  const socket = connect({ port: broker.port, host: '127.0.0.1' })
  t.teardown(() => socket.destroy())
  socket.on('error', () => {})
  socket.write('POST /v2/entities HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{')
  await new Promise<void>(resolve => socket.write('"', () => resolve()))
  // When these requests are answered, the broker has read the bytes that were sent before them.
  for (let times = 0; times < 2; times++) await (await fetch(`${broker.baseUrl}/version`)).text()
  broker.child.kill('SIGTERM')
  while (!broker.gone && (await accepts(broker.port))) await pause(20)
  // The program counts a signal within 200 ms of the first one as the same.
  for (let times = 0; times < 100 && !broker.gone; times++) {
    broker.child.kill('SIGTERM')
    await pause(50)
  }
  t.match(await broker.exitWithin(20_000), { code: null, signal: 'SIGTERM' })
})

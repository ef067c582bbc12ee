// A receiver answers 503 until its notifications are dead letters, goes away, and comes back. It then gets all of them
// without a request, each once, and in order. The program's clock is fast, so that the 156 seconds of five tries pass
// in one.
//
// Not here: when letters are sent, and when not (test/shard/notify/replays.test.ts).

import { join } from 'node:path'
import t from 'tap'
import { httpReceiver, until } from '../deliver/receivers.js'
import { freePort, startBroker } from '../support/broker-process.js'
import { root } from '../support/project.js'
import { brief, Tenant } from './notified.js'

const entities = ['R1', 'R2', 'R3', 'R4']
const rounds = 10
const count = entities.length * rounds

interface Report {
  readonly deadLettersCount: number
  readonly deadLetters: readonly { readonly cause?: string; readonly nextReplay?: string }[]
}

t.test('a receiver that comes back gets its dead letters by themselves, once and in order', async t => {
  // The clock is 160 times as fast, so a receiver has the usual five seconds.
  const args = ['-httpTimeout', '800000']
  const main = join(root, 'dist/test/support/hasty-main.js')
  const tenant = new Tenant(t, await startBroker(t, { main, args, env: { HASTY_FACTOR: '160' } }))
  const port = await freePort()
  const refusing = await httpReceiver(t, (_request, response) => void response.writeHead(503).end(), undefined, port)
  const id = await tenant.subscribe(brief(`http://127.0.0.1:${port}`))
  const report = async (): Promise<Report> =>
    (await tenant.send(`GET /v2/subscriptions/${id}/deliveries`)).json as Report
  for (let n = 0; n < rounds; n++)
    await tenant.send('POST /v2/op/update', {
      actionType: 'append',
      entities: entities.map(one => ({ id: one, type: 'Room', n: { type: 'Number', value: n } })),
    })
  for (let dead = 0; dead < count; ) dead = (await report()).deadLettersCount
  await refusing.close()
  const [letter] = (await report()).deadLetters
  t.equal(letter?.cause, 'notNow')
  t.ok(letter?.nextReplay, 'it tells when it is sent again')
  const { received } = await httpReceiver(t, undefined, undefined, port)
  await until(() => received.length >= count, 'the last one')
  for (let dead = 1; dead > 0; ) dead = (await report()).deadLettersCount
  const values = new Map<string, number[]>(entities.map(one => [one, []]))
  for (const { body } of received) {
    const { id: one, n } = JSON.parse(body) as { readonly id: string; readonly n: number }
    values.get(one)?.push(n)
  }
  const range = Array.from({ length: rounds }, (_, n) => n)
  for (const one of entities) t.strictSame(values.get(one), range, one)
})

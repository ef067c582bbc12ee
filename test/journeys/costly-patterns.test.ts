// A tenant whose subscriptions have patterns that are made to be slow: they are refused in time, and neither an update
// nor a batch delays other requests.

import t, { type Test } from 'tap'
import { startBroker } from '../support/broker-process.js'
import { HttpClient } from '../support/http-client.js'
import { random, wild } from '../support/hurtful-patterns.js'

const subscriptionWith = (idPattern: string, q?: string) => ({
  subject: { entities: [{ idPattern }], condition: { attrs: [], ...(q && { expression: { q } }) } },
  notification: { http: { url: 'http://127.0.0.1:9/' } },
})

/** Posts subscriptions until one is refused; returns the ids of the accepted ones. */
async function fill(t: Test, client: HttpClient): Promise<readonly string[]> {
  const ids: string[] = []
  for (let n = 0; n < 1_000; n++) {
    const isQuery = n < 10
    const body = isQuery ? subscriptionWith('.*', `name~=${wild(n)}`) : subscriptionWith(wild(n))
    const answer = await client.send('POST', '/v2/subscriptions', body)
    if (answer.status === 201) ids.push(answer.headers.location!.split('/').at(-1)!)
    else if (!isQuery) {
      t.equal(answer.status, 403)
      t.match(answer.json, { error: 'Forbidden', description: /^too many costly patterns: / })
      return ids
    }
  }
  throw new Error('none is refused')
}

for (const workers of [1, 2])
  t.test(`costly patterns with ${workers} workers`, async t => {
    const broker = await startBroker(t, { args: ['-workers', String(workers)] })
    const client = new HttpClient(broker.baseUrl)
    const ids = await fill(t, client)
    t.ok(ids.length > 10 && ids.length < 300, `${ids.length} subscriptions were taken`)

    const [last] = ids.slice(-1)
    const path = `/v2/subscriptions/${last}`
    const more = { subject: subscriptionWith(wild(2_000), `name~=${wild(2_001)}`).subject }
    t.equal((await client.send('PATCH', path, more)).status, 403)
    t.equal((await client.send('PATCH', path, { description: 'the same' })).status, 204)
    t.equal((await client.send('DELETE', path)).status, 204)
    t.equal((await client.send('POST', '/v2/subscriptions', subscriptionWith(wild(2_002)))).status, 201)

    const entities = Array.from({ length: 60 }, () => ({ id: random(60), type: 'T', name: { value: random(1_000) } }))
    const other = new HttpClient(broker.baseUrl)
    let isAnswered = false
    const batch = client.send('POST', '/v2/op/update', { actionType: 'append', entities }).then(answer => {
      isAnswered = true
      return answer
    })
    let probes = 0
    let slowestMs = 0
    while (!isAnswered) {
      const startMs = performance.now()
      if ((await other.get('/version')).status !== 200) t.fail('a probe is refused')
      slowestMs = Math.max(slowestMs, performance.now() - startMs)
      probes++
    }
    t.equal((await batch).status, 204)
    t.comment(`${probes} probes, the slowest took ${Math.round(slowestMs)} ms`)
    t.ok(probes > 5 && slowestMs < 3_000, `${probes} probes, the slowest took ${Math.round(slowestMs)} ms`)
    broker.kill('SIGTERM')
    t.equal((await broker.exitWithin(20_000)).code, 0)
  })

// Hostile requests do not stop the broker, break the rules of answers, or reveal a secret of another tenant: on both
// servers, with one node and with two workers.
//
// HOSTILE_REQUESTS is the number of requests in all. SEED repeats a run: the requests are the same, though they run
// side by side. HOSTILE_ONLY=uws/2 runs one of the four.

import t from 'tap'
import { Random } from '../support/random.js'
import { Campaign } from './campaign.js'

const requests = Number(process.env.HOSTILE_REQUESTS ?? 3_000)
const only = process.env.HOSTILE_ONLY
t.setTimeout(300_000 + requests * 20)

const deployments = (['uws', 'node'] as const)
  .flatMap(server => [1, 2].map(workers => ({ server, workers })))
  .filter(({ server, workers }) => only === undefined || only === `${server}/${workers}`)
const { seed } = Random.fromEnvironment()
/** The statuses of all answers. */
const seen = new Set<number>()

for (const [index, { server, workers }] of deployments.entries())
  t.test(`hostile requests to ${server}, ${workers === 1 ? 'one node' : `${workers} workers`}`, async t => {
    const share = Math.ceil(requests / deployments.length)
    t.comment(`SEED=${seed} HOSTILE_REQUESTS=${requests}`)
    // Each deployment gets other requests.
    const { problems, comments, statuses } = await new Campaign({
      server,
      workers,
      requests: share,
      seed: (seed + (only === undefined ? index * 7919 : 0)) >>> 0,
    }).run(t)
    for (const comment of comments) t.comment(comment)
    for (const problem of problems) t.fail(problem)
    t.ok(statuses.size > 0, 'requests were answered')
    for (const status of statuses.keys()) seen.add(status)
  })

t.test('answers of all kinds were there', { skip: only !== undefined && 'one of the four is run' }, async t => {
  for (const status of [200, 201, 204, 400, 404, 405, 411, 415, 422]) t.ok(seen.has(status), `${status}`)
})

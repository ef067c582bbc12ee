// Every principal gets exactly the bytes that the access file allows: random requests by random principals under random
// files, against the plain reference (docs/interface/access.md). One process, two workers, three nodes.
//
// ACCESS_REQUESTS sets the number of requests for all kinds of brokers together: 20,000 unless it is set, 1,000,000 for
// a soak. SEED repeats a run, ACCESS_BROKER chooses one kind of brokers. ACCESS_WITHOUT names parts that are left out,
// of writes, documents (subscriptions and registrations), providers and streams; empty: none.

import t from 'tap'
import { type BrokerKind, brokerKinds, startJudged } from '../access-reference/access-brokers.js'
import { AccessCampaign } from '../access-reference/access-campaign.js'
import { randomAccessFile } from '../access-reference/random-access-file.js'
import { Random } from '../support/random.js'

const requestsWanted = Number(process.env.ACCESS_REQUESTS ?? 6_000)
/** Nodes answer more slowly, and the rules are the same. */
const shares: Readonly<Record<BrokerKind, number>> = { 'one process': 0.65, 'two workers': 0.25, 'three nodes': 0.1 }
/** The parts that the broker does not decide yet; empty when it decides everything. */
const undecided = ''
const without = (process.env.ACCESS_WITHOUT ?? undecided).split(',')
const isCompared = (part: string) => !without.includes(part)
const parts = {
  writes: isCompared('writes'),
  documents: isCompared('documents'),
  providers: isCompared('providers'),
  streams: isCompared('streams'),
}
const requestsPerFile = 2500
t.setTimeout(300_000 + requestsWanted * 60)

for (const kind of brokerKinds) {
  if (process.env.ACCESS_BROKER !== undefined && process.env.ACCESS_BROKER !== kind) continue
  const wanted = Math.round(requestsWanted * shares[kind])
  t.test(`${wanted} requests to ${kind}: what the access file allows, and not a byte more`, async t => {
    const random = Random.fromEnvironment()
    t.comment(`SEED=${random.seed} ACCESS_REQUESTS=${requestsWanted}`)
    const broker = await startJudged(t, kind, random.seed, true)
    const campaign = new AccessCampaign(t, random, broker, parts)
    const beganMs = performance.now()
    let difference: string | undefined
    for (let files = 1; !difference && campaign.counts.requests < wanted; files++) {
      const probe = `probe-${files}`
      const requests = Math.min(requestsPerFile, wanted - campaign.counts.requests)
      difference = await campaign.run(randomAccessFile(random, probe), probe, requests)
    }
    t.equal(difference, undefined)
    t.comment(`${JSON.stringify(campaign.counts)} in ${Math.round(performance.now() - beganMs)} ms`)
  })
}

// Under rules that allow everything, the reference is that of NGSIv2 itself: a broker without `-access` gives its
// answers. So a later difference is one of access control.
//
// ACCESS_REQUESTS sets the number of requests of each kind of broker, ACCESS_BROKER chooses one kind. SEED repeats a
// run.

import t from 'tap'
import { Random } from '../support/random.js'
import { brokerKinds, startJudged } from './access-brokers.js'
import { AccessCampaign } from './access-campaign.js'
import { openFile } from './random-access-file.js'

const requestsWanted = Number(process.env.ACCESS_REQUESTS ?? 200)
t.setTimeout(120_000 + requestsWanted * 30)

for (const kind of brokerKinds.filter(one => (process.env.ACCESS_BROKER ?? one) === one))
  t.test(`${requestsWanted} requests to ${kind} without access control are answered as the reference says`, async t => {
    const random = Random.fromEnvironment()
    const broker = await startJudged(t, kind, random.seed, false)
    const campaign = new AccessCampaign(t, random, broker)
    const beganMs = performance.now()
    const difference = await campaign.run(openFile(random.seed), '', requestsWanted)
    t.equal(difference, undefined)
    t.comment(`SEED=${random.seed} ${JSON.stringify(campaign.counts)} in ${Math.round(performance.now() - beganMs)} ms`)
  })

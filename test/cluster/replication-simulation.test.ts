// What replication promises (cluster/README.md), with nodes, clocks, network and engine that do their worst, under many seeds.
//
// SEED=<number> REPLICATIONS=1 repeats one run; REPLICATIONS=<number> makes more of them.

import t from 'tap'
import { Random } from '../support/random.js'
import { controls } from './replication-controls.js'
import { run } from './replication-run.js'

const simulations = Number(process.env.REPLICATIONS ?? 120)
/** Seeds that each control gets until one of them tells. */
const controlSeeds = Number(process.env.CONTROL_SEEDS ?? 300)
/** Ten times what a run takes. */
t.setTimeout(300_000 + simulations * 2_500)

t.test('nothing acknowledged is lost, nothing happens twice, and no read goes back, whatever happens', async t => {
  const { seed } = Random.fromEnvironment()
  let done = 0
  for (let number = 0; number < simulations; number++) {
    const told = await run(seed + number)
    done += told.done
    const wrong = [...told.wrong, ...told.ill]
    if (wrong.length > 0) return t.fail(`SEED=${seed + number} REPLICATIONS=1: ${wrong.slice(0, 5).join('; ')}`)
  }
  t.comment(`seed ${seed}, ${simulations} runs, ${done} operations done`)
  t.ok(done > simulations * 50, 'much was done')
})

for (const [rule, rules] of Object.entries(controls))
  t.test(`it would be noticed if this did not hold: ${rule}`, async t => {
    for (let seed = 1; seed <= controlSeeds; seed++) {
      const { wrong, ill } = await run(seed, rules)
      const [first] = [...wrong, ...ill]
      if (first !== undefined) return t.pass(`seed ${seed}: ${first}`)
    }
    t.fail(`none of ${controlSeeds} seeds has noticed`)
  })

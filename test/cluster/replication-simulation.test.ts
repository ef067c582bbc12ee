// The promises of a cluster (cluster/README.md), with real shards whose clocks, disks, network and engine have many
// faults, under many seeds. The seed also decides whether nodes have the real gossip or a detector (replication-run.ts).
//
// SEED=<number> REPLICATIONS=1 repeats one run; REPLICATIONS=<number> makes more of them. A run takes one to two
// seconds of CPU time.

import t from 'tap'
import { Random } from '../support/random.js'
import { controls } from './replication-controls.js'
import { plainForm, type RunForm, run } from './replication-run.js'

const simulations = Number(process.env.REPLICATIONS ?? 5)
/** The most seeds that each control gets until one of them notices it: the rarest one is noticed by one of 75. */
const controlSeeds = Number(process.env.CONTROL_SEEDS ?? 600)
/**
 * The last seed that noticed each control; any other one is as good. A change of the code may move it: then the next
 * seeds are tried. CONTROL_SEED begins elsewhere.
 */
const noticedBy: Readonly<Record<string, number>> = {
  'an append is compared with the latest takeover in one step': 329,
  'reads are answered under a lease': 324,
  'a shard is handed over when nothing of it is under way any more': 305,
  'what is trimmed is on the disks of those that keep it': 323,
  'no more is trimmed than that': 780,
  'a change of the register is told of when no owner decides without it': 377,
}
const otherControlSeed = 301
/** The entities whose order of requests must be found, for each one whose search takes too many steps. */
const decidedMin = 4
/** Seeds that have once found a fault, since mended, with their forms; undefined: the one that the seed decides. */
const findings: readonly (readonly [seed: number, form: RunForm | undefined])[] = [
  // A request for a permit waited while its node lost the register, and was then written into it.
  [3376530590, plainForm],
  // An item of a batch was refused because of a change in flight, which was then lost.
  [2147483076, plainForm],
  // A list counted the entities of shards that another node had taken over: they were not sealed yet.
  [20261776, undefined],
]
t.setTimeout(300_000 + simulations * 10_000)

t.test('nothing acknowledged is lost, nothing happens twice, and no read goes back, under all faults', async t => {
  const { seed } = Random.fromEnvironment()
  let done = 0
  let notified = 0
  let decided = 0
  let undecided = 0
  for (let number = 0; number < simulations; number++) {
    const findings = await run(seed + number)
    done += findings.done
    notified += findings.notified
    decided += findings.linearity.decided
    undecided += findings.linearity.undecided
    const wrong = [...findings.wrong, ...findings.ill]
    if (wrong.length > 0) return t.fail(`SEED=${seed + number} REPLICATIONS=1: ${wrong.slice(0, 5).join('; ')}`)
  }
  t.comment(`seed ${seed}, ${simulations} runs, ${done} operations done, ${notified} notifications received`)
  t.ok(done > simulations * 50 && notified > simulations * 25, 'much was done')
  t.ok(
    decided > decidedMin * undecided,
    `the order of requests was found for ${decided} entities, not for ${undecided}`,
  )
})

for (const [seed, form] of findings)
  t.test(`the fault that seed ${seed} has found does not come back`, async t => {
    const { wrong, ill } = await run(seed, undefined, form)
    t.strictSame([...wrong, ...ill], [])
  })

t.test('a seed repeats a run, to the last message', async t => {
  const { seed } = Random.fromEnvironment()
  for (const views of ['detector', 'gossip'] as const) {
    const first = await run(seed, undefined, { views })
    t.equal((await run(seed, undefined, { views })).trace, first.trace, `seed ${seed}, ${views}`)
    t.not((await run(seed + 1, undefined, { views })).trace, first.trace)
  }
})

for (const [rule, rules] of Object.entries(controls))
  t.test(`it would be noticed if this did not hold: ${rule}`, async t => {
    const from = Number(process.env.CONTROL_SEED ?? noticedBy[rule] ?? otherControlSeed)
    for (let seed = from; seed < from + controlSeeds; seed++) {
      const [first] = (await run(seed, rules, plainForm)).wrong
      if (first !== undefined) return t.pass(`seed ${seed}: ${first}`)
    }
    t.fail(`none of ${controlSeeds} seeds has noticed`)
  })

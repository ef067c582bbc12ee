// A live feed loses nothing silently and invents nothing, through every disturbance of the broker and its readers.
//
// In each random life writers change the entities of two tenants. Readers with random watches stop reading, leave, and
// come back with a cursor, while the broker is killed or restarted. A model that knows the specification alone
// (test/support/reference-watch, test/streams) knows which events each reader must have received.
//
// LIVES sets the number of lives, LIVES_OF their kind (process, workers, nodes). SEED repeats a run: the lives of a
// kind have the seeds from SEED on. A failing life prints what repeats it.

import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type LifePlace, type LifeReport, live } from '../streams/feed-life.js'
import { OneBroker } from '../streams/life-places.js'
import { type NodeDisturbance, NodesPlace, nodeDisturbances } from '../streams/nodes-place.js'
import { noEtcd } from '../support/etcd.js'
import { root } from '../support/project.js'
import { Random } from '../support/random.js'

const livesWanted = Number(process.env.LIVES ?? 9)
/** The kind of all lives; when absent, some are of each kind. */
const onlyKind = process.env.LIVES_OF
const livesOf = (kind: Kind, share: number): number =>
  onlyKind === undefined ? Math.round(livesWanted * share) : onlyKind === kind ? livesWanted : 0
/** A single life may have no reader that has to receive the change, or one that gets a later state instead. */
const livesUntilNoticed = 6
const noticedMsMax = 3_000
t.setTimeout(300_000 + livesWanted * 60_000)

type Kind = 'process' | 'workers' | 'nodes'

const skip = (kind: Kind) => onlyKind !== undefined && onlyKind !== kind && `LIVES_OF=${onlyKind}`

t.test('lives of one process', { skip: skip('process') }, t =>
  lives(t, 'process', livesOf('process', 0.7), async (t, random) => {
    const isHeavy = random.fraction() < 0.15
    const args = random.fraction() < 0.2 ? ['-httpServer', 'node'] : []
    const place = await OneBroker.start(t, { args, isHeavy }, random)
    return { place, isHeavy, disturbances: random.pick([0, 1, 1, 2]) }
  }),
)

t.test('lives of workers', { skip: skip('workers') }, t =>
  lives(t, 'workers', livesOf('workers', 0.15), async (t, random) => {
    const place = await OneBroker.start(t, { workers: [2, 2, 3], isHeavy: false }, random)
    return { place, isHeavy: false, disturbances: 1 }
  }),
)

t.test('lives of three nodes', { skip: skip('nodes') || noEtcd() }, async t => {
  const share = livesOf('nodes', 0.15)
  const count = onlyKind === undefined ? Math.max(share, nodeDisturbances.length) : share
  const place = await NodesPlace.start(t)
  let turn = 0
  await lives(t, 'nodes', count, async (_t, random) => {
    await place.settle()
    // Each of them once, before any of them again.
    const first = onlyKind === undefined ? turn++ : random.between(0, nodeDisturbances.length - 1)
    place.next = nodeDisturbances[first % nodeDisturbances.length] as NodeDisturbance
    return { place, isHeavy: false, disturbances: 1 }
  })
})

t.test('a broker that forgets one change is noticed', { skip: skip('process') }, async t => {
  const { seed: first } = Random.fromEnvironment()
  const program = { main: join(root, 'dist/test/support/forgetful-main.js'), env: { FORGOTTEN_ENTRY: '20' } }
  let problem: string | undefined
  for (let at = 0; at < livesUntilNoticed && problem === undefined; at++) {
    const seed = (first + at) % 2 ** 32
    await t.test(`life with SEED=${seed}`, async t => {
      const place = await OneBroker.start(t, { isHeavy: false, program }, new Random(seed + 1))
      const plan = { seed, tenants: ['one', 'two'], isHeavy: false, disturbances: 0, catchUpMsMax: noticedMsMax }
      ;[problem] = (await live(place, plan)).problems
    })
  }
  t.match(problem, /nothing (of|was received of)/, `SEED=${first}`)
})

interface Beginning {
  readonly place: LifePlace
  readonly isHeavy: boolean
  readonly disturbances: number
}

/** Lives of a kind, one after the other, until one fails. */
async function lives(
  t: Test,
  kind: Kind,
  count: number,
  begin: (t: Test, random: Random) => Promise<Beginning>,
): Promise<void> {
  const { seed: first } = Random.fromEnvironment()
  const sums: Record<string, number> = {}
  for (let at = 0; at < count; at++) {
    const seed = (first + at) % 2 ** 32
    let report: LifeReport | undefined
    const beganMs = performance.now()
    await t.test(`life with SEED=${seed}`, async t => {
      const { place, isHeavy, disturbances } = await begin(t, new Random(seed + 1))
      report = await live(place, { seed, tenants: [`one${at}`, `two${at}`], isHeavy, disturbances })
      t.comment(kind, report.summary, `${((performance.now() - beganMs) / 1000).toFixed(1)} s`)
      if (report.problems.length > 0)
        t.fail(`SEED=${seed} LIVES=1 LIVES_OF=${kind}: ${report.problems.slice(0, 3).join('\n\n')}`)
      else t.pass(report.summary)
    })
    if (!report || report.problems.length > 0) return
    for (const [name, number] of Object.entries(report.counts)) sums[name] = (sums[name] ?? 0) + number
  }
  t.comment(JSON.stringify(sums))
  t.ok((sums.events ?? 0) > 0 && (sums.resumed ?? 0) > 0, 'readers came back, and received events')
}

// Whatever happens to the broker and to its readers, a live feed loses nothing silently and invents nothing.
//
// In each random life writers change the entities of two tenants. Readers with random watches stop reading, leave, and
// come back with a cursor, while the broker is killed or restarted. A model that knows the specification alone
// (test/support/reference-watch, test/streams) knows which events each reader must have received.
//
// LIVES sets the number of lives. SEED repeats a run: life n has the seed SEED + n - 1. A failing life prints its seed.

import t, { type Test } from 'tap'
import { type LifePlace, type LifeReport, live } from '../streams/feed-life.js'
import { OneBroker } from '../streams/life-places.js'
import { Random } from '../support/random.js'

const livesWanted = Number(process.env.LIVES ?? 20)
const livesOfOne = Math.ceil(livesWanted * 0.7)
t.setTimeout(300_000 + livesWanted * 60_000)

t.test(`${livesOfOne} lives of one process`, async t => {
  await lives(t, livesOfOne, async (t, random) => {
    const isHeavy = random.fraction() < 0.15
    const args = random.fraction() < 0.2 ? ['-httpServer', 'node'] : []
    const place = await OneBroker.start(t, { args, isHeavy }, random)
    return { place, isHeavy, disturbances: random.pick([0, 1, 1, 2]) }
  })
})

interface Beginning {
  readonly place: LifePlace
  readonly isHeavy: boolean
  readonly disturbances: number
}

/** Lives of a kind, one after the other, until one fails. */
async function lives(t: Test, count: number, begin: (t: Test, random: Random) => Promise<Beginning>): Promise<void> {
  const { seed: first } = Random.fromEnvironment()
  const sums: Record<string, number> = {}
  for (let at = 0; at < count; at++) {
    const seed = (first + at) % 2 ** 32
    let report: LifeReport | undefined
    const beganMs = performance.now()
    await t.test(`life with SEED=${seed}`, async t => {
      const { place, isHeavy, disturbances } = await begin(t, new Random(seed + 1))
      report = await live(place, { seed, tenants: ['one', 'two'], isHeavy, disturbances })
      t.comment(report.summary, `${((performance.now() - beganMs) / 1000).toFixed(1)} s`)
      if (report.problems.length > 0) t.fail(`SEED=${seed} LIVES=1: ${report.problems.slice(0, 3).join('\n\n')}`)
      else t.pass(report.summary)
    })
    if (!report || report.problems.length > 0) return
    for (const [name, number] of Object.entries(report.counts)) sums[name] = (sums[name] ?? 0) + number
  }
  t.comment(JSON.stringify(sums))
  t.ok((sums.events ?? 0) > 0 && (sums.resumed ?? 0) > 0, 'readers came back, and received events')
}

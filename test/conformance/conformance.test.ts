// No conformance case that has passed once fails again, of a sample that is always the same.
//
// The same comparison as `npm run conformance`, without the cases that sleep longer than a few seconds. All cases that
// can share a broker use one. A case that fails there runs again with a broker of its own before it counts. The sample
// is every second case of those that share, and every fifth of the others. The soak runs all. Without the folder of the
// cases the test is skipped.

import t from 'tap'
import { type Case, casesOf, defaultGroups, lacking, readLists, run, sharesBrokers } from './cases.js'
import { judgedTwice } from './second-tries.js'
import { levels } from './verdict.js'

const sleepSecondsMax = 3
const sharedEvery = 2
const ownEvery = 5
t.setTimeout(900_000)

t.test('every case that has passed before still passes', { skip: lacking() }, async t => {
  const short = casesOf(defaultGroups).filter(isShort)
  const shared = short.filter(sharesBrokers).filter((_, at) => at % sharedEvery === 0)
  const own = short.filter(one => !sharesBrokers(one)).filter((_, at) => at % ownEvery === 0)
  const chosen = [...shared, ...own].map(({ id }) => id)
  const options = ['--only', chosen.join(','), '--jobs', '2']
  const { verdict, outcomes, second } = await judgedTwice(
    some => run(some, 'ignore', some === options ? 'a shared node' : 'a node'),
    options,
    readLists(),
  )
  t.equal(outcomes.length, chosen.length, 'all were run')
  for (const id of second) t.comment(`passed when it was run again, alone: ${id}`)
  for (const level of levels) {
    const passed = outcomes.filter(one => one[level]).length
    t.strictSame(verdict.lost[level], [], `${level}: ${passed} of ${outcomes.length} pass`)
    const gained = verdict.gained[level].length
    if (gained > 0) t.comment(`${level}: ${gained} new, see npm run conformance -- --update`)
  }
})

function isShort({ steps }: Case): boolean {
  return steps.reduce((seconds, step) => seconds + (step.seconds ?? 0), 0) <= sleepSecondsMax
}

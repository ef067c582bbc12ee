// No conformance case that has passed once fails again.
//
// The same comparison as `npm run conformance`, without the cases that sleep longer than a few seconds, and with one
// broker for all that can share it; what is lost then has a broker of its own before it counts. Without the folder of
// the cases the test is skipped.

import t from 'tap'
import { defaultGroups, lacking, readLists, run } from './cases.js'
import { judgedTwice } from './second-tries.js'
import { levels } from './verdict.js'

const sleepSecondsMax = 5
t.setTimeout(900_000)

t.test('every case that has passed before still passes', { skip: lacking() }, async t => {
  const options = ['--group', defaultGroups, '--jobs', '2', '--max-sleep', String(sleepSecondsMax)]
  const { verdict, outcomes, second } = await judgedTwice(
    some => run(some, 'ignore', some === options ? 'a shared node' : 'a node'),
    options,
    readLists(),
  )
  for (const id of second) t.comment(`passed when it was run again, alone: ${id}`)
  for (const level of levels) {
    const passed = outcomes.filter(one => one[level]).length
    t.strictSame(verdict.lost[level], [], `${level}: ${passed} of ${outcomes.length} pass`)
    const gained = verdict.gained[level].length
    if (gained > 0) t.comment(`${level}: ${gained} new, see npm run conformance -- --update`)
  }
})

// No conformance case that has passed once fails again.
//
// The same comparison as `npm run conformance`, without the cases that sleep longer than a few seconds. Without the folder of the
// cases the test is skipped.

import t from 'tap'
import { defaultGroups, lacking, readLists, run } from './cases.js'
import { judge, levels } from './verdict.js'

const sleepSecondsMax = 5
t.setTimeout(900_000)

t.test('every case that has passed before still passes', { skip: lacking() }, async t => {
  const { passing, deviations } = readLists()
  const options = ['--group', defaultGroups, '--jobs', '2', '--max-sleep', String(sleepSecondsMax)]
  const outcomes = await run(options, 'ignore')
  const { lost, gained } = judge(passing, outcomes, deviations)
  for (const level of levels) {
    const passed = outcomes.filter(one => one[level]).length
    t.strictSame(lost[level], [], `${level}: ${passed} of ${outcomes.length} pass`)
    if (gained[level].length > 0)
      t.comment(`${level}: ${gained[level].length} new, see npm run conformance -- --update`)
  }
})

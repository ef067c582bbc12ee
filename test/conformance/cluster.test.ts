// Conformance cases pass on three nodes of a cluster as they do on one node, although each request goes to another
// node.
//
// A sample, always the same as long as the cases do not change; `npm run conformance -- --cluster` runs all, and so
// does the soak. Without the folder of the cases, or without etcd, the test is skipped.

import t from 'tap'
import { noEtcd } from '../support/etcd.js'
import { Random } from '../support/random.js'
import { type Case, casesOf, lacking, readLists, run, sharesBrokers } from './cases.js'
import { judgedTwice } from './second-tries.js'
import { levels } from './verdict.js'

/** Selects the sample. */
const seed = 1
/** The number of cases of each group: about in proportion to its size, but some of each. */
const wanted = { entities: 12, subscriptions: 12, registrations: 4 }
/** One case of each of these groups has nodes of its own: three nodes take as long to start as a hundred cases take. */
const withOwn = ['registrations']
const sleepSecondsMax = 2
t.setTimeout(900_000)

t.test('a sample of the cases passes with three nodes', { skip: lacking() || noEtcd() }, async t => {
  const random = new Random(seed)
  const sample = Object.entries(wanted).flatMap(([group, count]) => {
    const short = casesOf(group).filter(isShort)
    const alone = short.filter(one => !sharesBrokers(one))
    const own = withOwn.includes(group) ? drawn(random, alone, 1) : []
    return [...own, ...drawn(random, short.filter(sharesBrokers), count - own.length)]
  })
  const own = sample.filter(one => !sharesBrokers(one)).length
  t.comment(`${sample.length} cases: ${sample.length - own} share nodes, ${own} have three of their own`)
  const options = ['--only', sample.map(({ id }) => id).join(','), '--jobs', '1']
  const { verdict, outcomes, second } = await judgedTwice(
    options => run(options, 'ignore', 'a cluster'),
    options,
    readLists('a cluster'),
  )
  t.equal(outcomes.length, sample.length, 'all were run')
  for (const id of second) t.comment(`passed when it was run again, alone: ${id}`)
  for (const level of levels) {
    const passed = outcomes.filter(one => one[level]).length
    t.strictSame(verdict.lost[level], [], `${level}: ${passed} of ${outcomes.length} pass`)
  }
})

function isShort({ steps }: Case): boolean {
  return steps.reduce((seconds, step) => seconds + (step.seconds ?? 0), 0) <= sleepSecondsMax
}

function drawn(random: Random, cases: readonly Case[], count: number): Case[] {
  const left = [...cases]
  const taken: Case[] = []
  while (taken.length < count && left.length > 0) taken.push(...left.splice(random.between(0, left.length - 1), 1))
  return taken
}

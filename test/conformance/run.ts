// `npm run conformance`: all cases of the groups we implement, compared with the list of those that passed before.
//
//     npm run conformance -- [--group G,G] [--only GLOB,GLOB] [--skip GLOB] [--jobs N] [--max-sleep S] [--verbose] ...
//     npm run conformance -- --update           adds new passes to passing.json
//     npm run conformance -- --update --force   takes cases that fail now off the list as well
//     npm run conformance -- --cluster          runs entities, subscriptions and registrations on three nodes;
//                                               a case that fails runs again before it counts
//
// Start options of the brokers may be given as environment variables: CTX_WORKERS=2, CTX_HTTP_SERVER=node, or for access
// control CTX_ACCESS=test/conformance/open-access.json (test/soak.sh).
//
// Options besides these go to the runner. Without --group and --only the groups of cases.ts are run. Exit code 0: every
// case on the list that was run still passes.

import { noEtcd } from '../support/etcd.js'
import { casesOf, clusterGroups, defaultGroups, lacking, readLists, run, sharesBrokers, writePassing } from './cases.js'
import { judgedTwice } from './second-tries.js'
import { judge, levels, updated } from './verdict.js'

const args = process.argv.slice(2)
const own = ['--update', '--force', '--cluster']
const options = args.filter(arg => !own.includes(arg))
const selected = options.includes('--group') || options.includes('--only')
const isCluster = args.includes('--cluster')
const missing = lacking() || (isCluster && noEtcd())
if (missing) {
  console.error(missing)
  process.exit(2)
}

if (isCluster && args.includes('--update')) {
  console.error('the list is of what one node passes: --update is without --cluster')
  process.exit(2)
}

const subject = isCluster ? 'a cluster' : 'a node'
const groups = isCluster ? clusterGroups : defaultGroups
const { passing, deviations } = readLists(subject)
const allOptions = ['--jobs', '2', ...(selected ? [] : ['--group', groups]), ...options]
const runCases = (options: readonly string[]) => run(options, 'inherit', subject)
const once = async () => {
  const outcomes = await runCases(allOptions)
  return { outcomes, verdict: judge(passing, outcomes, deviations), second: [] }
}
const { verdict, outcomes, second } = await (isCluster
  ? judgedTwice(runCases, allOptions, { passing, deviations })
  : once())

for (const level of levels) {
  console.log(`\n${level}: ${outcomes.filter(one => one[level]).length} of ${outcomes.length} pass`)
  for (const id of verdict.gained[level]) console.log(`  new   ${id}`)
  for (const id of verdict.lost[level]) console.log(`  LOST  ${id}`)
}
for (const id of second) console.log(`passed when it was run again, alone: ${id}`)
if (isCluster) {
  const wereRun = new Set(outcomes.map(({ id }) => id))
  const cases = casesOf(clusterGroups).filter(({ id }) => wereRun.has(id))
  const own = cases.filter(one => !sharesBrokers(one))
  const more = own.filter(({ brokers }) => brokers.length > 0).length
  console.log(
    `\n${cases.length - own.length} cases shared three nodes, wiped between them; ${own.length} had three of their own,`,
  )
  console.log(`${more} of them with single brokers beside these as context providers or receivers`)
}
const left = deviations.filter(deviation => outcomes.some(one => one.id === deviation.case))
for (const deviation of left) console.log(`deviation, not judged: ${deviation.case}: contradicts "${deviation.line}"`)

const force = args.includes('--force')
if (args.includes('--update')) writePassing(updated(passing, verdict, force))
else if (levels.some(level => verdict.gained[level].length > 0))
  console.log('\n--update adds the new passes to the list')
const lost = levels.flatMap(level => verdict.lost[level])
process.exitCode = lost.length > 0 && !(force && args.includes('--update')) ? 1 : 0

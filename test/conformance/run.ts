// `npm run conformance`: all cases of the groups we implement, compared with the list of those that passed before.
//
//     npm run conformance -- [--group G,G] [--only GLOB,GLOB] [--skip GLOB] [--jobs N] [--max-sleep S] [--verbose] ...
//     npm run conformance -- --update           adds new passes to passing.json
//     npm run conformance -- --update --force   takes cases that fail now off the list as well
//
// Options besides these two go to the runner. Without --group and --only the groups of cases.ts are run. Exit code 0: every case
// on the list that was run still passes.

import { defaultGroups, lacking, readLists, run, writePassing } from './cases.js'
import { judge, levels, updated } from './verdict.js'

const args = process.argv.slice(2)
const own = ['--update', '--force']
const options = args.filter(arg => !own.includes(arg))
const selected = options.includes('--group') || options.includes('--only')
const missing = lacking()
if (missing) {
  console.error(missing)
  process.exit(2)
}

const { passing, deviations } = readLists()
const outcomes = await run(['--jobs', '2', ...(selected ? [] : ['--group', defaultGroups]), ...options], 'inherit')
const verdict = judge(passing, outcomes, deviations)

for (const level of levels) {
  console.log(`\n${level}: ${outcomes.filter(one => one[level]).length} of ${outcomes.length} pass`)
  for (const id of verdict.gained[level]) console.log(`  new   ${id}`)
  for (const id of verdict.lost[level]) console.log(`  LOST  ${id}`)
}
const left = deviations.filter(deviation => outcomes.some(one => one.id === deviation.case))
for (const deviation of left) console.log(`deviation, not judged: ${deviation.case}: contradicts "${deviation.line}"`)

const force = args.includes('--force')
if (args.includes('--update')) writePassing(updated(passing, verdict, force))
else if (levels.some(level => verdict.gained[level].length > 0))
  console.log('\n--update adds the new passes to the list')
const lost = levels.flatMap(level => verdict.lost[level])
process.exitCode = lost.length > 0 && !(force && args.includes('--update')) ? 1 : 0

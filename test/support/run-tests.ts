// `npm test`: runs the compiled tests with tap and ends with a line of its own, `N passed, N failed` (and `, N skipped`).
//
// Arguments are test files or options of tap; without files, all. Exit code 0 means that nothing failed, and, with CI=true, that
// nothing was skipped either: where everything can be installed, a skip is a hole.
//
// Why not one of tap's reporters: they redraw the screen, which is unreadable in the log of a build, and none of them closes with
// a line a program could read.

import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import { root } from './project.js'
import { closingLine, count } from './tap-totals.js'

const args = process.argv.slice(2)
const files = args.some(arg => !arg.startsWith('-')) ? [] : ['dist/test/**/*.test.js']
const tap = join(dirname(createRequire(import.meta.url).resolve('tap/package.json')), 'dist/esm/run.mjs')
const jobs = Math.min(2, availableParallelism())
const options = ['--disable-coverage', '--reporter=tap', `--jobs=${jobs}`, '--timeout=300']
const child = spawn(process.execPath, [tap, 'run', ...options, ...args, ...files], {
  cwd: root,
  stdio: ['ignore', 'pipe', 'inherit'],
})
const ended = new Promise<number>(resolve => child.once('close', code => resolve(code ?? 1)))
const totals = await count(child.stdout, text => console.log(text))
const code = await ended

const skipIsFailure = process.env.CI === 'true' && totals.skipped > 0
if (skipIsFailure) console.log('a skipped test is a failure here, because CI=true')
if (totals.passed + totals.failed === 0) {
  console.log('no test ran')
  totals.failed = 1
}
if (code !== 0 && totals.failed === 0) {
  console.log(`tap ended with ${code}, although no test failed`)
  totals.failed = 1
}
console.log(closingLine(totals))
process.exitCode = totals.failed > 0 || skipIsFailure ? 1 : 0

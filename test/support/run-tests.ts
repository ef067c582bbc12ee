// `npm test`: runs the compiled tests with tap and ends with a line of its own, `N passed, N failed` (and
// `, N skipped`).
//
// Arguments are test files or options of tap; without files, all. Exit code 0 means that nothing failed, and, with
// CI=true, that nothing was skipped either: where everything can be installed, a skip is a hole.
//
// Some files wait for real timeouts far more than they compute. They run in a lane of their own beside the others, one
// at a time. So the cores have work while such a file waits.
//
// Why not one of tap's reporters: they redraw the screen, which is unreadable in the log of a build, and none of them
// closes with a line a program could read.

import { spawn } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import { root } from './project.js'
import { closingLine, count, type Totals } from './tap-totals.js'

/** Files that take at most a quarter of a core, and measure no time. */
const waiting = ['cluster/stopped-process', 'http/connections'].map(name => `dist/test/${name}.test.js`)

const args = process.argv.slice(2)
const tap = join(dirname(createRequire(import.meta.url).resolve('tap/package.json')), 'dist/esm/run.mjs')
const jobs = Math.min(2, availableParallelism())

const slowestMax = 10
const slowest: { readonly file: string; readonly ms: number }[] = []
const beganMs = performance.now()

const lanes = args.some(arg => !arg.startsWith('-')) ? [run(jobs, args)] : allTests()
const totals = (await Promise.all(lanes)).reduce((one, other) => ({
  passed: one.passed + other.passed,
  failed: one.failed + other.failed,
  skipped: one.skipped + other.skipped,
}))

console.log(`the tests took ${Math.round((performance.now() - beganMs) / 1000)} s; the slowest files:`)
for (const line of slowest.sort((a, b) => b.ms - a.ms).slice(0, slowestMax)) console.log(`${line.ms} ms ${line.file}`)

const skipIsFailure = process.env.CI === 'true' && totals.skipped > 0
if (skipIsFailure) console.log('a skipped test is a failure here, because CI=true')
console.log(closingLine(totals))
process.exitCode = totals.failed > 0 || skipIsFailure ? 1 : 0

function allTests(): Promise<Totals>[] {
  const missing = waiting.find(file => !existsSync(join(root, file)))
  if (missing) throw new Error(`${missing} is in the list of files that wait, and does not exist`)
  const files = readdirSync(join(root, 'dist/test'), { recursive: true, encoding: 'utf8' })
    .filter(path => path.endsWith('.test.js'))
    .map(path => `dist/test/${path.replaceAll('\\', '/')}`)
    .filter(file => !waiting.includes(file))
    .sort()
  return [run(jobs, [...args, ...files]), run(1, [...args, ...waiting])]
}

/**
 * Runs files, or what else the arguments say. A run without tests, or one that ends with a code of its own, counts as a
 * failure.
 */
async function run(jobs: number, args: readonly string[]): Promise<Totals> {
  const options = ['--disable-coverage', '--reporter=tap', `--jobs=${jobs}`, '--timeout=300']
  const child = spawn(process.execPath, [tap, 'run', ...options, ...args], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise<number>(resolve => child.once('close', code => resolve(code ?? 1)))
  const totals = await count(child.stdout, text => {
    console.log(text)
    const [, file, ms] = /^(?:ok {4}|not ok) (\S+) \((\d+) ms\)$/.exec(text) ?? []
    if (file) slowest.push({ file, ms: Number(ms) })
  })
  const code = await ended
  if (totals.passed + totals.failed === 0) {
    console.log('no test ran')
    totals.failed = 1
  }
  if (code !== 0 && totals.failed === 0) {
    console.log(`tap ended with ${code}, although no test failed`)
    totals.failed = 1
  }
  return totals
}

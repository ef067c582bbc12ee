// `npm test`: runs the compiled tests, each file in a process of its own, and ends with a line of its own,
// `N passed, N failed` (and `, N skipped`).
//
// The line of a file has the time that it took and the processor time that it and its children used. A file that took
// much longer than it used waited, or had to share the cores.
//
// Arguments are test files; without any, all. Exit code 0 means that nothing failed, and, with CI=true, that nothing
// was skipped either: where everything can be installed, a skip is a hole.
//
// As many files run at a time as there are cores, two at most: with more, tests that bound times fail now and then.
//
// Some files start many processes. One of these runs at a time, beside small ones, so that its nodes answer in time.
//
// The `tap` command does not do: when one file exceeds its time, it runs none of those that have not begun.

import { execFileSync, spawn } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { root } from './project.js'
import { closingLine, count, type FileTotals, type Totals } from './tap-totals.js'

/**
 * Files that start three nodes and an etcd, or several brokers or workers, or measure how long processes are silent.
 */
const crowded = new RegExp(
  [
    '/cluster/(?:cluster-node|stopped-process|logs/)',
    '/conformance/c',
    '/deploy/three-nodes',
    '/journeys/(?:cluster|deposed|differential|federation|log-lost|operators|upgrade|workers|wrong-clock)',
    'two-workers',
  ].join('|'),
)
/** Folders of files that take long. They begin early, so that the last file to begin is a short one. */
const long = /\/(?:clients|hostile|http|journeys|process)\//

/** The time of a file that does not set its own. */
const fileSecondsMax = 900
/** After this time the runner kills a file, even if the file has set a longer one. */
const killAfterMs = 1_800_000

/** What the compiler writes last. */
const compilations = ['dist/src/domain.tsbuildinfo', 'dist/src.tsbuildinfo', 'dist/cluster.tsbuildinfo']

/** The program that runs one file and reports its processor time. */
const runFile = join(root, 'dist/test/support/run-file.js')

const jobs = Math.min(2, availableParallelism())
const slowestMax = 10

const totals: Totals = { passed: 0, failed: 0, skipped: 0 }
const slowest: { readonly file: string; readonly ms: number; readonly cpu: number }[] = []
const beganMs = performance.now()

const named = process.argv.slice(2)
buildProgram()
await runAll(named.length > 0 ? named : allFiles())

const cpuTotal = slowest.reduce((sum, { cpu }) => sum + cpu, 0)
console.log(`the tests took ${spent(performance.now() - beganMs, cpuTotal)}; the slowest files:`)
for (const { file, ms, cpu } of slowest.sort((a, b) => b.ms - a.ms).slice(0, slowestMax))
  console.log(`${spent(ms, cpu)} ${file}`)

const skipIsFailure = process.env.CI === 'true' && totals.skipped > 0
if (skipIsFailure) console.log('a skipped test is a failure here, because CI=true')
console.log(closingLine(totals))
process.exitCode = totals.failed > 0 || skipIsFailure ? 1 : 0

function spent(ms: number, cpuSeconds: number): string {
  return `${(ms / 1000).toFixed(1)} s, processor ${cpuSeconds.toFixed(1)} s`
}

/** Builds the program that tests start, if its modules are newer: a developer may have called the compiler alone. */
function buildProgram(): void {
  const timeOf = (path: string): number => statSync(join(root, path), { throwIfNoEntry: false })?.mtimeMs ?? 0
  const compiledMs = Math.max(...compilations.map(timeOf))
  if (timeOf('dist/program') < compiledMs) execFileSync(process.execPath, [join(root, 'deploy/build-program.mjs')])
}

function allFiles(): string[] {
  const files = readdirSync(join(root, 'dist/test'), { recursive: true, encoding: 'utf8' })
    .filter(path => path.endsWith('.test.js'))
    .map(path => `dist/test/${path.replaceAll('\\', '/')}`)
    .sort()
  return [...files.filter(file => long.test(file)), ...files.filter(file => !long.test(file))]
}

/** Runs files, `jobs` at a time. The crowded ones come first, and never two of them at once. */
async function runAll(files: readonly string[]): Promise<void> {
  const large = files.filter(file => crowded.test(file))
  const small = files.filter(file => !crowded.test(file))
  let isCrowded = false
  const worker = async (): Promise<void> => {
    while (large.length + small.length > 0) {
      const takesLarge = !isCrowded && large.length > 0
      const file = takesLarge ? large.shift() : small.shift()
      // Only crowded files are left: the worker that runs one continues with them.
      if (file === undefined) return
      if (takesLarge) isCrowded = true
      await run(file)
      if (takesLarge) isCrowded = false
    }
  }
  await Promise.all(Array.from({ length: jobs }, worker))
}

/** A file without tests, or one that ends with an exit code of its own, counts as a failure. */
async function run(file: string): Promise<void> {
  const startedMs = performance.now()
  const child = spawn(process.execPath, ['--enable-source-maps', runFile, file], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit', 'pipe'],
    env: { ...process.env, TAP: '1', TAP_TIMEOUT: String(fileSecondsMax) },
  })
  const kill = setTimeout(() => child.kill('SIGKILL'), killAfterMs)
  const ended = new Promise<string>(resolve =>
    child.once('close', (code, signal) => resolve(signal ?? String(code ?? 1))),
  )
  const cpuText = text(child.stdio[3] as Readable)
  const own = await count(child.stdout as Readable, file, line => console.log(line))
  const end = await ended
  const cpu = Number(await cpuText)
  clearTimeout(kill)
  const fault = faultOf(own, end)
  if (fault) console.log(`FAILED: ${file}: ${fault}`)
  const failed = own.failed + (fault ? 1 : 0)
  const ms = performance.now() - startedMs
  console.log(`${failed > 0 ? 'not ok' : 'ok    '} ${file} (${spent(ms, cpu)})`)
  slowest.push({ file, ms, cpu })
  totals.passed += own.passed
  totals.failed += failed
  totals.skipped += own.skipped
}

/** The reason why a file failed although no test has failed. */
function faultOf({ failed, tests }: FileTotals, end: string): string | undefined {
  if (failed > 0) return undefined
  if (end !== '0') return `it ended with ${end}, although no test failed`
  return tests === 0 ? 'it ran no test' : undefined
}

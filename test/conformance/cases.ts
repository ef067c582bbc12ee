// Runs the conformance cases against the built program, and reads and writes the kept lists.
//
// The runner and its cases are not part of this project: they are a folder beside it (`../shared/conformance`, or what
// CONFORMANCE_DIR says). Every case starts a broker of its own on a fresh directory, so the runner is given the command.

import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { plainly } from '../support/broker-process.js'
import { main, root } from '../support/project.js'
import { type Deviation, faultsOf, type Outcome, type Passing } from './verdict.js'

/** The cases that are run when nothing else is said: the groups this project claims to implement. */
export const defaultGroups = 'entities,subscriptions,registrations,operations'

const folder = resolve(root, process.env.CONFORMANCE_DIR ?? '../shared/conformance')
const passingFile = join(root, 'test/conformance/passing.json')
const deviationsFile = join(root, 'test/conformance/deviations.json')

/** Why the cases cannot be run, or false. */
export function lacking(): string | false {
  if (!existsSync(join(folder, 'run.mjs')))
    return `no conformance runner in ${folder}; CONFORMANCE_DIR says where it is`
  return existsSync(main) ? false : `the program is not built: ${main}`
}

/** Runs the cases that `options` of the runner select; its output goes to `out`. */
export async function run(options: readonly string[], out: 'inherit' | 'ignore'): Promise<Outcome[]> {
  const temporary = mkdtempSync(join(tmpdir(), 'orrery-conformance-'))
  const report = join(temporary, 'report.json')
  const command = `'${process.execPath}' '${main}' -port {port} -dataDir {data} {args}`
  const fixed = ['--cmd', command, '--vectors', join(folder, 'vectors'), '--report', report]
  // The brokers that the runner starts inherit its environment.
  const child = spawn(...plainly([process.execPath, join(folder, 'run.mjs'), ...fixed, ...options]), {
    stdio: ['ignore', out, 'inherit'],
  })
  const stop = () => child.kill('SIGTERM')
  process.once('exit', stop)
  try {
    const code = await new Promise<number | null>(done => child.once('close', done))
    // The runner's code says whether all passed; what matters here is whether it came to an end.
    if (!existsSync(report)) throw new Error(`the conformance runner ended with ${code} and wrote no report`)
    return (JSON.parse(readFileSync(report, 'utf8')) as { cases: Outcome[] }).cases
  } finally {
    process.removeListener('exit', stop)
    rmSync(temporary, { recursive: true, force: true })
  }
}

/** The kept lists; throws when the deviations are not what they may be. */
export function readLists(): { passing: Passing; deviations: readonly Deviation[] } {
  const passing = JSON.parse(readFileSync(passingFile, 'utf8')) as Passing
  const deviations = JSON.parse(readFileSync(deviationsFile, 'utf8')) as Deviation[]
  const faults = faultsOf(deviations, passing)
  if (faults.length > 0) throw new Error(faults.join('\n'))
  return { passing, deviations }
}

export function writePassing(passing: Passing): void {
  writeFileSync(passingFile, `${JSON.stringify(passing, null, 2)}\n`)
}

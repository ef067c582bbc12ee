// Runs the conformance cases against the built program, and reads and writes the kept lists.
//
// The runner and its cases are not part of this project: they are in a folder beside it (`../shared/conformance`, or
// CONFORMANCE_DIR). Every case starts a broker of its own on a fresh directory, so the runner receives the command.
//
// Or the runner sends each request to the next one of three nodes of a cluster (spread-main.ts). Those take longer to
// start. So cases without start options and without other brokers share them, and everything is wiped between two
// cases; each of the other cases has a cluster of its own. One node can be shared in the same way, which takes a third
// of the time.

import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { plainly } from '../support/broker-process.js'
import { main, root } from '../support/project.js'
import { wipeRequest } from './spread.js'
import { clusterFaultsOf, type Deviation, faultsOf, type Outcome, type Passing } from './verdict.js'

/** The groups of cases that run by default: those that this project claims to implement. */
export const defaultGroups = 'entities,subscriptions,registrations,operations'

/** The groups in which three nodes answer as one; the others are about the process that receives the request. */
export const clusterGroups = 'entities,subscriptions,registrations'

/** The brokers that a run tests. */
export type Subject = 'a node' | 'a shared node' | 'a cluster'

/**
 * The first port of a run. Two runs may go side by side, and the runner does not check whether the ports of the brokers
 * that cases share are free: it would use those of the other run. So each run has 2000 ports here, and as many above
 * them for the processes behind a shared port (spread-main.ts).
 */
const portBase: Record<Subject, number> = { 'a node': 21_000, 'a shared node': 21_000, 'a cluster': 25_000 }

/** Three nodes on a busy machine start slowly. */
const clusterStartMsMax = 120_000

const folder = resolve(root, process.env.CONFORMANCE_DIR ?? '../shared/conformance')
const passingFile = join(root, 'test/conformance/passing.json')
const deviationsFile = join(root, 'test/conformance/deviations.json')
const clusterDeviationsFile = join(root, 'test/conformance/cluster-deviations.json')

/** The reason why the cases cannot run, or false. */
export function lacking(): string | false {
  if (!existsSync(join(folder, 'run.mjs')))
    return `no conformance runner in ${folder}; CONFORMANCE_DIR says where it is`
  return existsSync(main) ? false : `the program is not built: ${main}`
}

/** The fields of a case that decide how it runs. */
export interface Case {
  readonly id: string
  readonly group: string
  readonly startArgs: readonly string[]
  /** Brokers beside the one that is tested. */
  readonly brokers: readonly unknown[]
  readonly steps: readonly { readonly do: string; readonly seconds?: number }[]
}

/** All cases of some groups, by id. */
export function casesOf(groups: string): readonly Case[] {
  const wanted = groups.split(',')
  const files = readdirSync(join(folder, 'vectors'), { recursive: true, withFileTypes: true })
  return files
    .filter(file => file.name.endsWith('.json'))
    .map(file => JSON.parse(readFileSync(join(file.parentPath, file.name), 'utf8')) as Partial<Case>)
    .filter((one): one is Case => one.id !== undefined && one.steps !== undefined && wanted.includes(one.group ?? ''))
    .sort((a, b) => (a.id < b.id ? -1 : 1))
}

/** Whether a case may use brokers that other cases have used, by the rule of the runner. */
export const sharesBrokers = ({ startArgs, brokers, steps }: Case): boolean =>
  startArgs.length === 0 &&
  brokers.length === 0 &&
  steps.every(step => step.do !== 'brokerStop' && step.do !== 'brokerStart')

/** Runs the cases that `options` of the runner select; its output goes to `out`. */
export async function run(
  options: readonly string[],
  out: 'inherit' | 'ignore',
  subject: Subject = 'a node',
): Promise<Outcome[]> {
  const temporary = mkdtempSync(join(tmpdir(), 'orrery-conformance-'))
  const report = join(temporary, 'report.json')
  const program = subject === 'a node' ? main : join(root, 'dist/test/conformance/spread-main.js')
  const command = `'${process.execPath}' '${program}' -port {port} -dataDir {data} {args}`
  const shared = ['--reset', wipeRequest, '--env-case', '--start-timeout', String(clusterStartMsMax)]
  const more = subject === 'a node' ? [] : shared
  const ports = ['--port-base', String(portBase[subject])]
  const fixed = ['--cmd', command, '--vectors', join(folder, 'vectors'), '--report', report, ...ports, ...more]
  // The brokers that the runner starts inherit its environment.
  const child = spawn(...plainly([process.execPath, join(folder, 'run.mjs'), ...fixed, ...options]), {
    stdio: ['ignore', out, 'inherit'],
    env: { ...process.env, ...(subject === 'a shared node' && { CONFORMANCE_NODES: '1' }) },
  })
  const stop = () => child.kill('SIGTERM')
  process.once('exit', stop)
  try {
    const code = await new Promise<number | null>(done => child.once('close', done))
    // The exit code of the runner is 0 only if all cases pass. Here it only matters whether the runner finished.
    if (!existsSync(report)) throw new Error(`the conformance runner ended with ${code} and wrote no report`)
    return (JSON.parse(readFileSync(report, 'utf8')) as { cases: Outcome[] }).cases
  } finally {
    process.removeListener('exit', stop)
    rmSync(temporary, { recursive: true, force: true })
  }
}

/** The kept lists for a subject. Throws when a deviation is not allowed. */
export function readLists(subject: Subject = 'a node'): { passing: Passing; deviations: readonly Deviation[] } {
  const passing = JSON.parse(readFileSync(passingFile, 'utf8')) as Passing
  const deviations = JSON.parse(readFileSync(deviationsFile, 'utf8')) as Deviation[]
  const ofClusters = JSON.parse(readFileSync(clusterDeviationsFile, 'utf8')) as Deviation[]
  const faults = [...faultsOf(deviations, passing), ...clusterFaultsOf(ofClusters, passing)]
  if (faults.length > 0) throw new Error(faults.join('\n'))
  return { passing, deviations: subject === 'a cluster' ? [...deviations, ...ofClusters] : deviations }
}

export function writePassing(passing: Passing): void {
  writeFileSync(passingFile, `${JSON.stringify(passing, null, 2)}\n`)
}

// `npm run bench`: the bare server and Orrery in turn, with the same generator, on this machine; medians and ratios.
//
// A round starts one server on a fresh directory, runs every workload on it and stops it, then the other one. Two
// servers never run at once, because the compaction of one would slow the other. A workload is warmed up before it is
// measured. The promise is a share of the bare server's rate, because absolute rates depend more on the machine than on
// Orrery.
//
// Not here: the single measurements (generator, queries, workers, notifications, forwarding, live, access, console, gossip,
// cluster, million, move, pause), the machine's facts (machine) and how numbers are printed (report). README.md explains how to read the
// output and how to compare two commits.

import { mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { noBrowser } from '../test/support/browser.js'
import { access } from './access.js'
import { cluster, clusterParts } from './cluster.js'
import { browserConsole } from './console.js'
import { forwarding } from './forwarding.js'
import { drive, generatorName } from './generator.js'
import { gossip } from './gossip.js'
import { live } from './live.js'
import { loadStock } from './loader.js'
import { cpuSeconds, generatorFacts, hasProgram, machineFacts, othersCpuSeconds, pinSelf } from './machine.js'
import { million, type Start } from './million.js'
import { moving, type Step } from './move.js'
import { notifications } from './notifications.js'
import { type Pauses, pauses } from './pause.js'
import { queries } from './queries.js'
import {
  atMost,
  type Finding,
  information,
  median,
  printFindings,
  printTable,
  progress,
  rate,
  say,
  thousands,
} from './report.js'
import { bare, broker, type Subject, start } from './servers.js'
import { workers } from './workers.js'
import {
  batches,
  creates,
  entitiesOf,
  lists,
  mixed,
  reads,
  stockSize,
  updates,
  upserts,
  type Workload,
} from './workloads.js'

interface Measurement {
  readonly name: string
  readonly workload: Workload
  /** The workload whose rate is the reference. */
  readonly yardstick: string
  /** The required share of it. */
  readonly needed: number
}

const measurements: readonly Measurement[] = [
  { name: 'upsert', workload: upserts, yardstick: 'upsert', needed: 0.5 },
  { name: 'update', workload: updates, yardstick: 'upsert', needed: 0.5 },
  { name: 'get', workload: reads, yardstick: 'get', needed: 0.65 },
  { name: 'list', workload: lists, yardstick: 'get', needed: 0.1 },
  { name: 'batch', workload: batches, yardstick: 'batch', needed: 0.5 },
  // Last, because it makes the store grow.
  { name: 'create', workload: creates, yardstick: 'create', needed: 0.5 },
]
/** The bare server has none of its own. */
const isOfBrokers: ReadonlySet<string> = new Set(['update', 'list'])
const needed = { moveSeconds: 180, moveMb: 400, residentMb: 700, startMs: 1000, pauseMs: 20 }
const connections = 64
const targetTenant = 'bench'
// Cores that other programs may use while a rate is measured.
const othersCoresMax = 0.15

const { values: options } = parseArgs({
  options: {
    target: { type: 'string' },
    only: { type: 'string' },
    seconds: { type: 'string' },
    rounds: { type: 'string' },
    quick: { type: 'boolean', default: false },
    broker: { type: 'string' },
    against: { type: 'string' },
    dir: { type: 'string' },
  },
})

const names = [
  ...measurements.map(({ name }) => name),
  'pause',
  'queries',
  'workers',
  'notifications',
  'forwarding',
  'live',
  'access',
  'console',
  'gossip',
  'cluster',
  'million',
  'move',
]
/** The name of a part of `cluster`, alone. */
const aloneOf = (part: string): string => `cluster:${part}`
const allNames = [...names, ...clusterParts.map(aloneOf)]
const only = options.only?.split(',') ?? names
for (const name of only)
  if (!allNames.includes(name)) throw new Error(`--only knows ${allNames.join(', ')}; not ${name}`)
const chosenParts = clusterParts.filter(part => only.includes('cluster') || only.includes(aloneOf(part)))
const chosen = measurements.filter(({ name }) => only.includes(name))
const number = (text: string | undefined, otherwise: number): number => {
  const value = text === undefined ? otherwise : Number(text)
  if (!Number.isInteger(value) || value < 1) throw new Error(`${text} is not a whole number of at least 1`)
  return value
}
const seconds = number(options.seconds, options.quick ? 1 : 5)
const rounds = number(options.rounds, options.quick ? 1 : 3)
const pauseSeconds = options.quick ? 3 : Math.max(20, seconds)
const warmUpSeconds = options.quick ? 1 : 2
const rateOptions = { seconds, rounds, warmUpSeconds, connections }

/**
 * Rates of one workload on one subject, a number per round: of entities, which are as many as requests except in
 * batches.
 */
interface Rates {
  readonly perSecond: number[]
  readonly perCpuSecond: number[]
}

let short = false
let disturbed = 0

if (options.target === undefined) {
  const folder = scratchFolder()
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  for (const line of machineFacts(folder)) say(line)
  pinSelf('generator')
  await inTurn(folder)
} else await drivenFrom(options.target.split(','))
if (short && !options.quick) process.exitCode = 1
process.exit()

/** On disk: where the system's folder for temporary files is in memory, in /var/tmp. */
function scratchFolder(): string {
  const tmpfs = 0x01021994
  const parent = options.dir ?? (statfsSync(tmpdir()).type === tmpfs ? '/var/tmp' : tmpdir())
  return mkdtempSync(join(parent, 'orrery-bench-'))
}

async function inTurn(folder: string): Promise<void> {
  const yardstick = options.against === undefined ? bare : broker('before', options.against)!
  const orrery = broker(options.against === undefined ? 'orrery' : 'after', options.broker)
  const subjects = orrery ? [yardstick, orrery] : [yardstick]
  say(`${generatorName}, ${connections} connections, ${rounds} rounds of ${seconds} s, medians\n`)
  if (!orrery) say('dist/program/main.js is not built: the bare server alone is measured\n')

  if (chosen.length > 0) {
    const rates = new Map(subjects.map(subject => [subject, new Map<string, Rates>()]))
    for (let round = 1; round <= rounds; round++) {
      for (const subject of subjects)
        await runWorkloads(subject, join(folder, subject.name), rates.get(subject)!, round)
    }
    printRates(subjects, rates)
    if (disturbed > 0)
      say(`other programs were busy during ${disturbed} measurements: trust the ratios per CPU second more\n`)
  }
  if (only.includes('pause')) {
    const found = new Map<Subject, Pauses>()
    for (const subject of subjects) found.set(subject, await runPauses(subject, join(folder, subject.name)))
    printPauses(found, orrery)
  }
  if (only.includes('queries') && orrery) await runQueries(orrery, folder)
  if (only.includes('workers') && orrery) await runWorkers(orrery, folder)
  if (only.includes('notifications') && orrery) await runNotifications(orrery, folder)
  if (only.includes('forwarding') && orrery) await runForwarding(orrery, folder)
  if (only.includes('live') && orrery) await runLive(orrery, folder)
  if (only.includes('access') && orrery) await runAccess(orrery, folder)
  if (only.includes('console') && orrery) {
    pinSelf('anywhere')
    await runConsole(orrery, folder)
    pinSelf('generator')
  }
  if (only.includes('gossip')) await runGossip()
  if (chosenParts.length > 0 && orrery) {
    pinSelf('anywhere')
    await runCluster(orrery, folder)
  }
  if (only.includes('million') && (orrery || options.only !== undefined)) {
    pinSelf('anywhere')
    await runMillion(orrery ?? yardstick, folder)
  }
  if (only.includes('move') && orrery) {
    pinSelf('anywhere')
    await runMove(orrery, folder)
  }
}

async function runWorkloads(
  subject: Subject,
  dataDir: string,
  rates: Map<string, Rates>,
  round: number,
): Promise<void> {
  const wanted = new Set(chosen.flatMap(({ name, yardstick }) => [name, yardstick]))
  const server = await start(subject, dataDir, 'server')
  await loadStock([server.url], upserts[0]!.template, '', stockSize)
  for (const { name, workload } of measurements) {
    if (!wanted.has(name) || (isOfBrokers.has(name) && !subject.isBroker)) continue
    const load = { urls: [server.url], workload, connections, tenant: '', place: 'generator' as const }
    await drive({ ...load, seconds: warmUpSeconds })
    const othersBefore = othersCpuSeconds(server.pid)
    const cpuBefore = cpuSeconds(server.pid)
    const outcome = await drive({ ...load, seconds })
    const cpu = cpuSeconds(server.pid) - cpuBefore
    const others = (othersCpuSeconds(server.pid) - othersBefore) / outcome.seconds
    if (others > othersCoresMax) disturbed += 1
    const found = rates.get(name) ?? { perSecond: [], perCpuSecond: [] }
    const entities = outcome.requests * entitiesPerRequest(workload)
    found.perSecond.push(entities / outcome.seconds)
    found.perCpuSecond.push(entities / cpu)
    rates.set(name, found)
    progress(
      `round ${round} ${subject.name} ${name}: ${thousands(found.perSecond.at(-1)!)}/s, ` +
        `${thousands(found.perCpuSecond.at(-1)!)} per CPU second, ` +
        `p50 ${outcome.latencyMs.p50.toFixed(2)} ms, p99 ${outcome.latencyMs.p99.toFixed(2)} ms, others ${others.toFixed(2)} cores`,
    )
  }
  await server.stop()
  rmSync(dataDir, { recursive: true })
}

/** All steps of a measured workload are about equally many entities. */
function entitiesPerRequest(workload: Workload): number {
  return entitiesOf(workload[0]!.template)
}

function labelOf(name: string, workload: Workload): string {
  return entitiesPerRequest(workload) > 1 ? `${name}, entities` : name
}

function printRates(subjects: readonly Subject[], rates: ReadonlyMap<Subject, ReadonlyMap<string, Rates>>): void {
  const [yardstick, orrery] = subjects
  const rows: string[][] = []
  for (const { name, workload, yardstick: bareName, needed } of chosen) {
    // Two brokers are compared like with like; the bare server has no update of its own.
    const other = rates.get(yardstick!)!.get(yardstick!.isBroker ? name : bareName)!
    const mine = orrery && rates.get(orrery)!.get(name)!
    const ratio = mine ? median(mine.perSecond) / median(other.perSecond) : Number.NaN
    const cpuRatio = mine ? median(mine.perCpuSecond) / median(other.perCpuSecond) : Number.NaN
    const judged = mine !== undefined && yardstick === bare
    if (judged && ratio < needed) short = true
    rows.push([
      yardstick!.isBroker || name === bareName ? labelOf(name, workload) : `${name} / ${yardstick!.name} ${bareName}`,
      rate(other.perSecond),
      mine ? rate(mine.perSecond) : '-',
      mine ? ratio.toFixed(2) : '-',
      thousands(median(other.perCpuSecond)),
      mine ? thousands(median(mine.perCpuSecond)) : '-',
      mine ? cpuRatio.toFixed(2) : '-',
      judged ? needed.toFixed(2) : '-',
      judged ? (ratio < needed ? 'SHORT' : 'ok') : '-',
    ])
  }
  const first = yardstick!.name
  const second = orrery?.name ?? 'orrery'
  printTable(
    ['workload', `${first}/s`, `${second}/s`, 'ratio', `${first}/CPU s`, `${second}/CPU s`, 'ratio', 'needed', ''],
    rows,
  )
}

async function runPauses(subject: Subject, dataDir: string): Promise<Pauses> {
  const server = await start(subject, dataDir, 'server')
  await loadStock([server.url], upserts[0]!.template, '', stockSize)
  const workload = mixed(subject.isBroker ? 'patch' : 'upsert')
  const load = { urls: [server.url], workload, connections, tenant: '', place: 'generator' as const }
  await drive({ ...load, seconds: warmUpSeconds })
  progress(`pauses of ${subject.name} during ${pauseSeconds} s of mixed load`)
  const found = await pauses({ ...load, seconds: pauseSeconds })
  await server.stop()
  rmSync(dataDir, { recursive: true })
  return found
}

function printPauses(found: ReadonlyMap<Subject, Pauses>, judged: Subject | undefined): void {
  // autocannon runs in this process, so the sampler waits for it as well.
  const judges = generatorName === 'wrk'
  if (!judges) say('without wrk the generator shares its event loop with the sampler: these numbers are upper bounds')
  say('Waiting for the event loop under mixed load (60 % reads, 30 % updates, 10 % creates), ms')
  const rows = [...found].map(([subject, pause]) => {
    const ok = pause.p999 <= needed.pauseMs
    if (judges && subject === judged && !ok) short = true
    return [
      subject.name,
      thousands(pause.rate),
      ...[pause.p50, pause.p99, pause.p999, pause.max].map(ms => ms.toFixed(2)),
      String(pause.samples),
      judges && subject === judged ? `p99.9 <= ${needed.pauseMs}` : '-',
      judges && subject === judged ? (ok ? 'ok' : 'SHORT') : '-',
    ]
  })
  printTable(['server', 'load/s', 'p50', 'p99', 'p99.9', 'max', 'samples', 'needed', ''], rows)
}

async function runQueries(subject: Subject, folder: string): Promise<void> {
  const count = options.quick ? 20_000 : 1_000_000
  judge(
    `Queries over ${thousands(count)} entities on ${subject.name}, medians`,
    await queries({ subject, folder, count, ...rateOptions }),
  )
}

async function runWorkers(subject: Subject, folder: string): Promise<void> {
  judge(`Workers of ${subject.name}, medians`, await workers({ subject, folder, ...rateOptions }))
}

async function runNotifications(subject: Subject, folder: string): Promise<void> {
  if (generatorName !== 'wrk') return say('without wrk nobody can tell which updates were answered: no notifications\n')
  const others = options.quick ? 2000 : 100_000
  const deadSeconds = options.quick ? 3 : Math.max(15, seconds)
  judge(
    `Notifications of ${subject.name}, medians`,
    await notifications({ subject, folder, ...rateOptions, others, deadSeconds }),
  )
}

async function runForwarding(subject: Subject, folder: string): Promise<void> {
  judge(`Forwarding of ${subject.name}, medians`, await forwarding({ subject, folder, ...rateOptions }))
}

async function runLive(subject: Subject, folder: string): Promise<void> {
  if (generatorName !== 'wrk') return say('without wrk the generator is too slow for the live feed\n')
  const counts = options.quick
    ? { idle: 500, streams: 100, others: 2000 }
    : { idle: 10_000, streams: 1000, others: 100_000 }
  judge(`Live feed of ${subject.name}, medians`, await live({ subject, folder, ...rateOptions, ...counts }))
}

async function runAccess(subject: Subject, folder: string): Promise<void> {
  const counts = options.quick ? { keys: 100, roles: 10, starts: 1 } : { keys: 10_000, roles: 1000, starts: 7 }
  judge(`Access control of ${subject.name}, medians`, await access({ subject, folder, ...rateOptions, ...counts }))
}

async function runConsole(subject: Subject, folder: string): Promise<void> {
  const reason = noBrowser()
  if (reason !== false) return say(`no console: ${reason}\n`)
  const count = options.quick ? 5_000 : 100_000
  judge(
    `Console of ${subject.name} in a browser, medians`,
    await browserConsole({ subject, folder, ...rateOptions, count }),
  )
}

async function runGossip(): Promise<void> {
  for (const size of [3, 30, 300])
    judge(`Gossip of ${size} simulated members, beside the formulas of cluster/gossip/gossip-options.ts`, [
      ...(await gossip(size, options.quick, progress)),
    ])
}

async function runCluster(subject: Subject, folder: string): Promise<void> {
  if (!hasProgram('etcd')) return say('etcd is not here (Debian: etcd-server): no cluster\n')
  const size = options.quick
    ? { kills: 2, writesPerSecond: 160, entities: 5_000 }
    : { kills: 20, writesPerSecond: 640, entities: 200_000 }
  judge(
    `Three nodes of ${subject.name} on this machine`,
    await cluster({ subject, folder, ...rateOptions, ...size }, chosenParts),
  )
}

async function runMillion(subject: Subject, folder: string): Promise<void> {
  const count = options.quick ? 50_000 : 1_000_000
  const result = await million({ subject, folder, count, starts: options.quick ? 1 : 3, say: progress })
  const mb = (bytes: number): number => bytes / 1e6
  const memory = (name: string, { now, peak }: { now: number; peak: number }): Finding => {
    const found = `${mb(now).toFixed(0)} MB${Number.isNaN(peak) ? '' : `, peak ${mb(peak).toFixed(0)}`}`
    return atMost(name, found, mb(now), needed.residentMb, 'MB')
  }
  const starting = (name: string, starts: readonly Start[]): Finding => {
    const answered = starts.map(({ answeredMs }) => answeredMs)
    const ready = starts.map(({ readyMs }) => readyMs)
    const found = `ready line ${median(ready).toFixed(0)} ms, first answer ${median(answered).toFixed(0)} ms, worst ${Math.max(...answered).toFixed(0)}`
    return atMost(name, found, median(answered), needed.startMs, 'ms')
  }
  judge(`${count} entities of 300 bytes on ${subject.name}, medians of ${result.clean.length} starts`, [
    information('load', `${thousands(count / result.loadSeconds)}/s, ${result.loadSeconds.toFixed(0)} s`),
    memory('resident after the load', result.afterLoad),
    memory('resident after reads', result.afterReads),
    memory('resident after a start', result.afterRestart),
    starting('start after SIGTERM', result.clean),
    starting('start after kill -9', result.killed),
  ])
}

async function runMove(subject: Subject, folder: string): Promise<void> {
  const count = options.quick ? 20_000 : 1_000_000
  const result = await moving({ subject, folder, count, say: progress })
  const step = (name: string, { seconds, peakBytes }: Step): Finding[] => {
    const megabytes = peakBytes / 1024 / 1024
    return [
      atMost(name, `${seconds.toFixed(1)} s`, seconds, needed.moveSeconds, 's'),
      atMost(`  memory`, `${megabytes.toFixed(0)} MB`, megabytes, needed.moveMb, 'MB'),
    ]
  }
  judge(`${thousands(count)} entities moved`, [
    ...step('import of a file', result.imported),
    ...step('export', result.exported),
    ...step('import of it, 2 workers', result.importedAgain),
    { name: 'the second export is the first', found: String(result.isSame), needed: 'true', isShort: !result.isSame },
  ])
}

function judge(title: string, findings: readonly Finding[]): void {
  say(title)
  printFindings(findings)
  if (findings.some(({ isShort }) => isShort)) short = true
}

/** Absolute numbers of brokers that already run. They are not this process's children: no CPU time, no memory. */
async function drivenFrom(urls: readonly string[]): Promise<void> {
  for (const line of generatorFacts()) say(line)
  say(
    `${urls.join(', ')}: ${generatorName}, ${connections} connections in all, ${rounds} rounds of ${seconds} s, medians`,
  )
  say(`entities are left behind in the tenant \`${targetTenant}\`\n`)
  // The whole stock to each, because the named brokers need not be one cluster.
  for (const url of urls) await loadStock([url], upserts[0]!.template, targetTenant, stockSize)
  const rows: string[][] = []
  for (const { name, workload } of chosen) {
    const load = { urls, workload, connections, tenant: targetTenant, place: 'anywhere' as const }
    await drive({ ...load, seconds: warmUpSeconds })
    const perSecond: number[] = []
    const p50: number[] = []
    const p99: number[] = []
    for (let round = 1; round <= rounds; round++) {
      const outcome = await drive({ ...load, seconds })
      perSecond.push((outcome.requests * entitiesPerRequest(workload)) / outcome.seconds)
      p50.push(outcome.latencyMs.p50)
      p99.push(outcome.latencyMs.p99)
      progress(`round ${round} ${name}: ${thousands(perSecond.at(-1)!)}/s`)
    }
    rows.push([labelOf(name, workload), rate(perSecond), median(p50).toFixed(2), median(p99).toFixed(2)])
  }
  if (rows.length > 0) printTable(['workload', 'per second', 'p50 ms', 'p99 ms'], rows)
  if (only.includes('pause')) {
    const found = new Map<Subject, Pauses>()
    for (const url of urls) {
      progress(`pauses of ${url} during ${pauseSeconds} s of mixed load`)
      // The sampled one first: all take their share of the load.
      const ordered = [url, ...urls.filter(other => other !== url)]
      const load = { urls: ordered, workload: mixed('patch'), connections, tenant: targetTenant, seconds: pauseSeconds }
      found.set({ name: url, script: '', isBroker: true }, await pauses({ ...load, place: 'anywhere' }))
    }
    printPauses(found, undefined)
  }
}

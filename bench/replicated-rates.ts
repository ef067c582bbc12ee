// The rates of three nodes on one machine when every write goes to the log first, the size of one append, and the cost
// of the log; and the same of one node beside them, which has no log. Only one of the two has work at a time.
//
// One node is compared by rate, and by the processor time of all processes: nodes, supervisors and etcd.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { drive, type Outcome } from './generator.js'
import { load } from './loader.js'
import { cpuSecondsOfAll } from './machine.js'
import { type Nodes, startNodes } from './nodes.js'
import type { RateOptions } from './rate-options.js'
import { atLeast, type Finding, information, median, progress, rate, thousands } from './report.js'
import { type Server, start } from './servers.js'
import { batches, entitiesOf, fill, reads, stockId, stockSize, updates, type Workload, wire } from './workloads.js'

/** Entities per second, of all nodes together. */
const needed = { batched: 10_000 }

/**
 * Four batches in flight at each node are more than one append takes. Batches of further connections would only wait,
 * until asks had waited too long.
 */
const batchConnections = 12

interface Work {
  readonly name: string
  readonly workload: Workload
  /** By default the number of the run. */
  readonly connections?: number
  readonly needed?: number
  /** Of one node. */
  readonly neededShares: { readonly rate?: number; readonly perCpuSecond: number }
}

const works: readonly Work[] = [
  {
    ...{ name: 'batch, entities', workload: batches, connections: batchConnections, needed: needed.batched },
    neededShares: { perCpuSecond: 0.5 },
  },
  { name: 'update', workload: updates, neededShares: { rate: 0.45, perCpuSecond: 0.5 } },
  { name: 'get', workload: reads, neededShares: { perCpuSecond: 0.85 } },
]

export async function replicatedRates(options: RateOptions): Promise<Finding[]> {
  const { subject, folder, rounds } = options
  const dataDir = join(folder, 'rates')
  const nodes = await startNodes(subject, dataDir, 3)
  const single = await start(subject, join(dataDir, 'single'), 'anywhere', { args: ['-durability', 'sync'] })
  await storeStock(nodes.urls)
  await storeStock([single.url])
  const findings: Finding[] = []
  for (const { name, workload, connections = options.connections, needed, neededShares } of works) {
    const found: Measured[] = []
    const alone: Rates[] = []
    for (let round = 1; round <= rounds; round++) {
      const one = await measured({ ...options, connections }, nodes, workload)
      found.push(one)
      const beside = await ratesOf({ ...options, connections }, single, workload)
      alone.push(beside)
      progress(
        `round ${round} ${name}: ${thousands(one.perSecond)}/s, ${appendsOf(one)}, ${cpuOf(one)}; one node ${thousands(beside.perSecond)}/s`,
      )
    }
    const perSecond = found.map(one => one.perSecond)
    const middle = middleOf(found)
    findings.push(
      needed === undefined
        ? information(`${name}, 3 nodes, per second`, rate(perSecond))
        : atLeast(`${name}, 3 nodes, per second`, rate(perSecond), median(perSecond), needed),
      information('  latency', `p50 ${middle.p50.toFixed(1)}, p99 ${middle.p99.toFixed(1)} ms`),
      information('  appends to the log', appendsOf(middle)),
      information('  processors', cpuOf(middle)),
      shareOf('  of the rate of one node', found, alone, 'perSecond', neededShares.rate),
      shareOf('  of one node, per processor second', found, alone, 'perCpuSecond', neededShares.perCpuSecond),
    )
  }
  await nodes.stop()
  await single.stop()
  rmSync(dataDir, { recursive: true })
  return findings
}

/** Nodes that have just begun are slow. */
const againMs = 20_000

/** Sends one batch at a time through each node. Nothing is measured yet. */
export function storeStock(urls: readonly string[]): Promise<void> {
  const { template } = batches[0]!
  const text = wire(template, '')
  let next = 0
  const request = (): string => fill(text, () => stockId(next++))
  return load({ urls, count: stockSize / entitiesOf(template), connections: urls.length, againMs, request })
}

/** Entities, or requests. */
interface Rates {
  readonly perSecond: number
  /** Of all processes. */
  readonly perCpuSecond: number
}

/** The median of what the rounds found, round by round. */
function shareOf(
  name: string,
  found: readonly Rates[],
  alone: readonly Rates[],
  of: keyof Rates,
  needed: number | undefined,
): Finding {
  const share = median(found.map((one, round) => one[of] / alone[round]![of]))
  const text = share.toFixed(2)
  return needed === undefined ? information(name, text) : atLeast(name, text, share, needed)
}

interface Measured extends Rates {
  readonly p50: number
  readonly p99: number
  readonly appendsPerSecond: number
  /** Of one append: entities, records and bytes. */
  readonly entities: number
  readonly records: number
  readonly bytes: number
  readonly appendMs: number
  /** Cores in use. */
  readonly nodesCores: number
  readonly etcdCores: number
}

async function measured(
  { seconds, warmUpSeconds, connections }: RateOptions,
  nodes: Nodes,
  workload: Workload,
): Promise<Measured> {
  const load = { urls: nodes.urls, workload, connections, tenant: '', place: 'anywhere' as const }
  await drive({ ...load, seconds: warmUpSeconds })
  const cpuBefore = nodes.cpuSeconds()
  const before = await logNumbers(nodes)
  const outcome = await drive({ ...load, seconds })
  const cpu = nodes.cpuSeconds()
  const after = await logNumbers(nodes)
  const more = (name: keyof LogNumbers): number => after[name] - before[name]
  const appends = more('requests')
  const entities = entitiesIn(outcome, workload)
  const cpuSeconds = cpu.nodes - cpuBefore.nodes + (cpu.etcd - cpuBefore.etcd)
  return {
    perSecond: entities / outcome.seconds,
    perCpuSecond: entities / cpuSeconds,
    p50: outcome.latencyMs.p50,
    p99: outcome.latencyMs.p99,
    appendsPerSecond: appends / outcome.seconds,
    entities: entities / appends,
    records: more('records') / appends,
    bytes: more('bytes') / appends,
    appendMs: (more('seconds') / appends) * 1000,
    nodesCores: (cpu.nodes - cpuBefore.nodes) / outcome.seconds,
    etcdCores: (cpu.etcd - cpuBefore.etcd) / outcome.seconds,
  }
}

/** The rates of one node. */
async function ratesOf(
  { seconds, warmUpSeconds, connections }: RateOptions,
  { url, pid }: Server,
  workload: Workload,
): Promise<Rates> {
  const load = { urls: [url], workload, connections, tenant: '', place: 'anywhere' as const }
  await drive({ ...load, seconds: warmUpSeconds })
  const before = cpuSecondsOfAll(pid)
  const outcome = await drive({ ...load, seconds })
  const entities = entitiesIn(outcome, workload)
  return { perSecond: entities / outcome.seconds, perCpuSecond: entities / (cpuSecondsOfAll(pid) - before) }
}

const entitiesIn = ({ requests }: Outcome, workload: Workload): number => requests * entitiesOf(workload[0]!.template)

type LogNumbers = Readonly<Record<'requests' | 'records' | 'bytes' | 'seconds', number>>

/** Numbers of appends, by all nodes since they were started. */
export async function logNumbers(nodes: Nodes): Promise<LogNumbers> {
  const of = (name: string): Promise<number> => nodes.logCounter(name, 'append')
  return {
    requests: await of('requests'),
    records: await of('records'),
    bytes: await of('bytes'),
    seconds: await of('seconds'),
  }
}

/** The round that is in the middle by its rate. */
function middleOf(found: readonly Measured[]): Measured {
  return [...found].sort((a, b) => a.perSecond - b.perSecond)[found.length >> 1]!
}

function appendsOf({ appendsPerSecond, entities, records, bytes, appendMs }: Measured): string {
  if (appendsPerSecond === 0) return 'none'
  const size = `${entities.toFixed(0)} entities, ${records.toFixed(1)} records, ${(bytes / 1024).toFixed(0)} KB`
  return `${thousands(appendsPerSecond)}/s of ${size}, ${appendMs.toFixed(1)} ms`
}

function cpuOf({ nodesCores, etcdCores }: Measured): string {
  const share = (100 * etcdCores) / (nodesCores + etcdCores)
  return `nodes ${nodesCores.toFixed(2)} cores, etcd ${etcdCores.toFixed(2)}, which is ${share.toFixed(0)} %`
}

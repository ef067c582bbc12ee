// The rate of writes of three nodes on one machine when every write goes to the log first, the size of one append, and
// the cost of the log.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { drive } from './generator.js'
import { load } from './loader.js'
import { type Nodes, startNodes } from './nodes.js'
import type { RateOptions } from './rate-options.js'
import { atLeast, type Finding, information, median, progress, rate, thousands } from './report.js'
import { batches, entitiesOf, fill, stockId, stockSize, updates, type Workload, wire } from './workloads.js'

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
}

const works: readonly Work[] = [
  { name: 'batch, entities', workload: batches, connections: batchConnections, needed: needed.batched },
  { name: 'update', workload: updates },
]

export async function replicatedRates(options: RateOptions): Promise<Finding[]> {
  const { subject, folder, rounds } = options
  const dataDir = join(folder, 'rates')
  const nodes = await startNodes(subject, dataDir, 1)
  await storeStock(nodes.urls)
  const findings: Finding[] = []
  for (const { name, workload, connections = options.connections, needed } of works) {
    const found: Measured[] = []
    for (let round = 1; round <= rounds; round++) {
      const one = await measured({ ...options, connections }, nodes, workload)
      found.push(one)
      progress(`round ${round} ${name}: ${thousands(one.perSecond)}/s, ${appendsOf(one)}, ${cpuOf(one)}`)
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
    )
  }
  await nodes.stop()
  rmSync(dataDir, { recursive: true })
  return findings
}

/** Nodes that have just begun are slow. */
const againMs = 20_000

/** Sends one batch at a time through each node. Nothing is measured yet. */
function storeStock(urls: readonly string[]): Promise<void> {
  const { template } = batches[0]!
  const text = wire(template, '')
  let next = 0
  const request = (): string => fill(text, () => stockId(next++))
  return load({ urls, count: stockSize / entitiesOf(template), connections: urls.length, againMs, request })
}

interface Measured {
  /** Entities. */
  readonly perSecond: number
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
  const entities = outcome.requests * entitiesOf(workload[0]!.template)
  return {
    perSecond: entities / outcome.seconds,
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

type LogNumbers = Readonly<Record<'requests' | 'records' | 'bytes' | 'seconds', number>>

/** Numbers of appends, by all nodes since they were started. */
async function logNumbers(nodes: Nodes): Promise<LogNumbers> {
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
  const size = `${entities.toFixed(0)} entities, ${records.toFixed(1)} records, ${(bytes / 1024).toFixed(0)} KB`
  return `${thousands(appendsPerSecond)}/s of ${size}, ${appendMs.toFixed(1)} ms`
}

function cpuOf({ nodesCores, etcdCores }: Measured): string {
  const share = (100 * etcdCores) / (nodesCores + etcdCores)
  return `nodes ${nodesCores.toFixed(2)} cores, etcd ${etcdCores.toFixed(2)}, which is ${share.toFixed(0)} %`
}

// Several workers: the cost of asking another worker, and the gain of two workers over one.
//
// A routed request is one that arrives at a worker that does not own the entity. Both workers have ports of their own
// here, and one of them owns a whole service path, so all requests of a run are of one kind. The bench compares the
// processor time of both. For two workers against one it runs the program as it is, on one port. Beside them it runs
// two brokers that share the connections and nothing else: shared caches, a disk with two logs and twice as many
// threads cost something even without routing.

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ShardMap, workerOf } from '../src/domain/scope.js'
import { openDataDirectory } from '../src/storage/data-directory.js'
import { settleStore } from '../src/storage/open-store.js'
import { drive, type Outcome } from './generator.js'
import { loadStock } from './loader.js'
import { cpuSeconds, cpuSecondsOfAll } from './machine.js'
import type { RateOptions } from './rate-options.js'
import { atLeast, atMost, type Finding, information, median, progress, thousands } from './report.js'
import { type Server, start } from './servers.js'
import { reads, stockSize, type Template, updates, upserts, type Workload } from './workloads.js'

/** A warm-up is longer by this factor than elsewhere, because every process compiles everything for itself. */
const warmUpTimes = 4

const needed = { routed: 0.6, perCpuSecond: 0.75, listTimes: 2 }

const works: readonly { readonly name: string; readonly workload: Workload }[] = [
  { name: 'update', workload: updates },
  { name: 'get', workload: reads },
]

const list: Template = { method: 'GET', path: '/v2/entities?type=Sensor&limit=20', body: '' }
const lists: Workload = [{ template: list, ids: 'stock', weight: 1 }]

export async function workers(options: RateOptions): Promise<Finding[]> {
  return [...(await routed(options)), ...(await twoAgainstOne(options))]
}

/** The share of the local rate that is left when all requests are routed. */
async function routed(options: RateOptions): Promise<Finding[]> {
  const { folder, rounds } = options
  const dataDir = join(folder, 'routed')
  const sockets = join(folder, 's')
  mkdirSync(sockets)
  // One shard has a whole service path.
  const placement = { shards: 256, spread: 1 }
  await settleStore(
    openDataDirectory(dataDir, { ...placement, workers: 2 }, () => 'bench'),
    {},
  )
  const [local, remote] = [0, 1].map(worker => pathOf(worker, new ShardMap(placement))) as [string, string]
  const script = fileURLToPath(new URL('./worker-main.js', import.meta.url))
  const subject = { name: 'worker', script, isBroker: true }
  const servers = (await Promise.all(
    ['0', '1'].map(index => start(subject, dataDir, 'server', { probe: '/version', args: [index, '2', sockets] })),
  )) as [Server, Server]
  for (const path of [local, remote])
    await loadStock([servers[0].url], under(upserts, path)[0]!.template, '', stockSize)
  const cpu = (): number => servers.reduce((sum, { pid }) => sum + cpuSeconds(pid), 0)
  const findings: Finding[] = []
  for (const { name, workload } of works) {
    const rates: [number[], number[]] = [[], []]
    for (let round = 0; round < rounds; round++)
      for (const [at, path] of [local, remote].entries()) {
        const { perCpuSecond } = await measured(options, [servers[0].url], under(workload, path), cpu)
        rates[at]!.push(perCpuSecond)
      }
    const [own, other] = [median(rates[0]), median(rates[1])]
    const found = `${(other / own).toFixed(2)}: ${thousands(other)} of ${thousands(own)} per CPU second`
    findings.push(atLeast(`routed ${name} against a local one`, found, other / own, needed.routed))
  }
  await Promise.all(servers.map(server => server.stop()))
  return findings
}

/**
 * One broker; two brokers of one worker each, which do not know each other and show the capacity of the machine; and
 * two workers.
 */
const setups = { one: [1], apart: [1, 1], two: [2] } as const

type Setup = keyof typeof setups

async function twoAgainstOne(options: RateOptions): Promise<Finding[]> {
  const { subject, folder, rounds } = options
  const found: Record<Setup, Map<string, Measured[]>> = { one: new Map(), apart: new Map(), two: new Map() }
  for (let round = 0; round < rounds; round++)
    for (const setup of Object.keys(setups) as Setup[]) {
      const servers: Server[] = []
      for (const [at, count] of setups[setup].entries()) {
        const dataDir = join(folder, `${setup}-${round}-${at}`)
        const server = await start(subject, dataDir, 'server', { args: ['-workers', String(count)] })
        await loadStock([server.url], upserts[0]!.template, '', stockSize)
        servers.push(server)
      }
      const urls = servers.map(({ url }) => url)
      const cpu = (): number => servers.reduce((sum, { pid }) => sum + cpuSecondsOfAll(pid), 0)
      for (const { name, workload } of [...works, { name: 'list', workload: lists }]) {
        const one = await measured(options, urls, workload, cpu)
        found[setup].set(name, [...(found[setup].get(name) ?? []), one])
        progress(`${setup}, ${name}: ${thousands(one.perSecond)}/s, ${thousands(one.perCpuSecond)} per CPU second`)
      }
      for (const server of servers) await server.stop()
    }
  const of = (setup: Setup, name: string, figure: keyof Measured): number =>
    median(found[setup].get(name)!.map(one => one[figure]))
  const ratio = (name: string, figure: keyof Measured, setup: Setup = 'two'): number =>
    of(setup, name, figure) / of('one', name, figure)
  return [
    ...works.flatMap(({ name }) => [
      information(
        `2 workers against 1, ${name}`,
        `${ratio(name, 'perSecond').toFixed(2)}: ${thousands(of('two', name, 'perSecond'))}/s`,
      ),
      atLeast(
        `2 workers against 1, ${name}, per CPU second`,
        `${ratio(name, 'perCpuSecond').toFixed(2)}: ${thousands(of('two', name, 'perCpuSecond'))}`,
        ratio(name, 'perCpuSecond'),
        needed.perCpuSecond,
      ),
      information(
        `  2 brokers apart against 1, ${name}, per CPU second`,
        `${ratio(name, 'perCpuSecond', 'apart').toFixed(2)}: ${thousands(of('apart', name, 'perCpuSecond'))}`,
      ),
    ]),
    atMost(
      'p50 of a list over 2 workers',
      `${ratio('list', 'p50').toFixed(2)} times that of one: ${of('two', 'list', 'p50').toFixed(2)} ms`,
      ratio('list', 'p50'),
      needed.listTimes,
      'times',
    ),
  ]
}

interface Measured {
  readonly perSecond: number
  readonly perCpuSecond: number
  readonly p50: number
}

async function measured(
  { seconds, warmUpSeconds, connections }: RateOptions,
  urls: readonly string[],
  workload: Workload,
  cpu: () => number,
): Promise<Measured> {
  const load = { urls, workload, connections, tenant: '', place: 'generator' as const }
  await drive({ ...load, seconds: warmUpSeconds * warmUpTimes })
  const before = cpu()
  const outcome: Outcome = await drive({ ...load, seconds })
  return {
    perSecond: outcome.requests / outcome.seconds,
    perCpuSecond: outcome.requests / (cpu() - before),
    p50: outcome.latencyMs.p50,
  }
}

/** A workload in a service path. */
const under = (workload: Workload, servicePath: string): Workload =>
  workload.map(step => ({ ...step, template: { ...step.template, servicePath } }))

/** A service path that a worker of two owns. */
function pathOf(worker: number, shardMap: ShardMap): string {
  for (let n = 0; ; n++) if (workerOf(shardMap.shardOf('', `/p${n}`, 'E'), 2) === worker) return `/p${n}`
}

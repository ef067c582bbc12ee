// The same writers over one etcd with a slow disk, and over two of them among which the shards are divided: how much
// more the two take.
//
// The disk is so slow that it limits the rate, and not the processors that nodes, etcd and generator share. The two
// clusters take turns, each with three nodes of its own; the other one is idle.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { drive } from './generator.js'
import { startNodes } from './nodes.js'
import type { RateOptions } from './rate-options.js'
import { storeStock } from './replicated-rates.js'
import { atLeast, type Finding, information, median, progress, rate, thousands } from './report.js'
import { updates } from './workloads.js'

const needed = { gain: 1.8 }
/** Some 200 updates a second fill such a disk. */
const diskBytesPerSecond = 150_000
/** With more in flight, the heartbeats and leases of nodes would wait for long, too. */
const connections = 32

export async function dividedLogs({
  subject,
  folder,
  seconds,
  warmUpSeconds,
  rounds,
}: RateOptions): Promise<Finding[]> {
  const dataDir = join(folder, 'divided')
  const rates: number[][] = []
  for (const engines of [1, 2]) {
    const own = join(dataDir, String(engines))
    const nodes = await startNodes(subject, own, 1, engines)
    await storeStock(nodes.urls)
    nodes.slowDisksDown(diskBytesPerSecond)
    const found: number[] = []
    for (let round = 1; round <= rounds; round++) {
      const work = { urls: nodes.urls, workload: updates, connections, tenant: '', place: 'anywhere' as const }
      await drive({ ...work, seconds: warmUpSeconds })
      const cpu = nodes.cpuSeconds()
      const outcome = await drive({ ...work, seconds })
      const { nodes: used, etcd } = nodes.cpuSeconds()
      found.push(outcome.requests / outcome.seconds)
      const cores = (used - cpu.nodes + etcd - cpu.etcd) / outcome.seconds
      progress(`round ${round}, ${engines} etcds: ${thousands(found.at(-1)!)} updates/s, ${cores.toFixed(2)} cores`)
    }
    rates.push(found)
    await nodes.stop()
    rmSync(own, { recursive: true })
  }
  const [one = [], two = []] = rates
  const gain = median(two) / median(one)
  return [
    information('updates over one etcd with a slow disk, per second', rate(one)),
    information('  divided among two of them', rate(two)),
    atLeast('  of the rate of one etcd', gain.toFixed(2), gain, needed.gain),
  ]
}

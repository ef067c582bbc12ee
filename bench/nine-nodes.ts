// Nine nodes against three, each on a machine of its own: the rates of single updates by a simulation
// (cluster-model.ts), because two cores cannot show them. Its costs are measured just before (update-costs.ts), or are
// constants here, with their sources.
//
// Clients are as many times more as nodes. Nine nodes have one etcd, as three have, and then three that divide the
// shards among them.

import { type Costs, type Machines, type Modelled, simulate } from './cluster-model.js'
import type { RateOptions } from './rate-options.js'
import { atLeast, type Finding, information, thousands } from './report.js'
import { measuredCosts } from './update-costs.js'

const needed = { gain: 2.7 }
const etcdCounts = [1, 3] as const
const clientsPerNode = 64
/** Simulated times. The gaps of busy nodes take some seconds to become steady. */
const warmUpMs = 5_000
const runMs = 1_000

const machines: Machines = {
  // The page of etcd about hardware (etcd.io/docs/v3.5/op-guide/hardware) names two to four for usual clusters.
  etcdCores: 4,
  // The same page names 100 MB/s for large ones.
  etcdDiskBytesPerSecond: 100e6,
  // Half of a usual round trip within a data centre, 0.5 ms.
  networkMs: 0.25,
}

export async function nineNodes(options: RateOptions): Promise<Finding[]> {
  const costs = await measuredCosts(options)
  const run = (nodes: number, etcds: number): Modelled =>
    simulate({ nodes, etcds, clientsPerNode, costs, machines, warmUpMs, runMs })
  const three = run(3, 1)
  return [
    information('an update at nodes, us of a processor', nodeCostsOf(costs)),
    information('its append in etcd, us of a processor', etcdCostsOf(costs)),
    information('simulated updates, 3 nodes, per second', shown(three)),
    ...etcdCounts.flatMap(etcds => {
      const nine = run(9, etcds)
      const gain = nine.perSecond / three.perSecond
      return [
        information(`  9 nodes, ${etcds === 1 ? '1 etcd' : `${etcds} etcds`}`, shown(nine)),
        atLeast('  of the rate of 3 nodes', gain.toFixed(2), gain, needed.gain),
      ]
    }),
  ]
}

const us = (ms: number): string => (ms * 1000).toFixed(0)

function nodeCostsOf({ request, ask, turn, append, received, apply }: Costs): string {
  return (
    `request ${us(request)}, ask ${us(ask)}, turn ${us(turn)}, append ${us(append)}, ` +
    `record received ${us(received)}, applied ${us(apply)}`
  )
}

function etcdCostsOf({ etcdAppend, etcdRecord, etcdReport, etcdLatency, bytesPerUpdate }: Costs): string {
  return (
    `append ${us(etcdAppend)}, record ${us(etcdRecord)}, report to a node ${us(etcdReport)}; ` +
    `${etcdLatency.toFixed(1)} ms, ${bytesPerUpdate.toFixed(0)} bytes`
  )
}

function shown({ perSecond, appendsPerSecond, updates, records, meanMs, nodeBusy, etcdBusy }: Modelled): string {
  const [ofNode, ofEtcd] = [nodeBusy, etcdBusy].map(share => `${(share * 100).toFixed(0)} %`)
  return (
    `${thousands(perSecond)}, mean ${meanMs.toFixed(1)} ms, ${thousands(appendsPerSecond)} appends of ` +
    `${updates.toFixed(1)} updates in ${records.toFixed(1)} records; busiest node ${ofNode}, etcd ${ofEtcd}`
  )
}

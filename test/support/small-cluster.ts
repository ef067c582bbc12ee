// A cluster of few shards, for tests that are not about their number.
//
// The first node of a cluster writes the number of shards to the log, and all nodes follow what is there. So the entry
// is made before any node starts. With 256 shards the start of three nodes costs 13 s of processor time, with 32 it
// costs 5 s, and failover and restart are as much cheaper. cluster.test.ts and the tests of deploy/ have all 256.

import { randomUUID } from 'node:crypto'
import { openEtcdLog } from '../../cluster/index.js'
import { systemClock } from '../../src/clock.js'
import { type Placement, placementDefault } from '../../src/domain/scope.js'
import { agreed } from '../../src/process/cluster-marks.js'
import type { Etcd } from './etcd.js'

export const smallPlacement: Placement = { ...placementDefault, shards: 32 }

/** Decides that the cluster of these etcds, which has no node yet, has few shards. */
export async function foundSmallCluster(...etcds: readonly Etcd[]): Promise<void> {
  const logs = etcds.map(etcd => openEtcdLog(etcd.address(), 'orrery', systemClock))
  await agreed(logs, { ...smallPlacement, id: randomUUID() }, console)
  for (const log of logs) await log.close()
}

// The program with one rule of a cluster switched off: a node answers for shards that it believes to own, also after
// its lease. It proves that the campaign over real nodes would notice (journeys/cluster-oracle.test.ts).

import { Replicator } from '../../cluster/replication/replicator.js'
import { runProgram } from '../../src/process/program.js'

Replicator.prototype.serves = function (this: Replicator, shard: number): boolean {
  return this.ownerOf(shard) === process.env.LEASELESS_NODE
}

// With a wrapper for shards the node runs in this thread, where the rule is switched off.
await runProgram({ wrapShards: shards => shards })

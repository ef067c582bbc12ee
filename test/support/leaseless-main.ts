// The program with one rule of a cluster switched off: a node answers for what it believes to own, whether its lease is
// over or not. It shows that the campaign over real nodes would notice (journeys/cluster-oracle.test.ts).

import { Replicator } from '../../cluster/replication/replicator.js'
import { runProgram } from '../../src/process/program.js'

Replicator.prototype.serves = function (this: Replicator, shard: number): boolean {
  return this.ownerOf(shard) === process.env.LEASELESS_NODE
}

// What stands between makes the node run in this thread, where the rule is switched off.
await runProgram({ wrapShards: shards => shards })

// The program with a ring of changes that forgets one entry: the `FORGOTTEN_ENTRY`th that any filter has found. It
// proves that the oracle of the live feed would notice (journeys/live-oracle.test.ts).

import { runProgram } from '../../src/process/program.js'
import { ChangeRing, type RingChange } from '../../src/shard/streams/change-ring.js'

const forgotten = Number(process.env.FORGOTTEN_ENTRY)
const { append } = ChangeRing.prototype
let found = 0

ChangeRing.prototype.append = function (this: ChangeRing, change: RingChange): void {
  if (change.found.length > 0) found++
  if (change.found.length === 0 || found !== forgotten) append.call(this, change)
}

// With a wrapper for shards the node runs in this thread, where the ring is that one.
await runProgram({ wrapShards: shards => shards })

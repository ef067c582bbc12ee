// One node of a simulated cluster, from life to life: its disk and its clock's error stay, its process does not.
//
// Not here: one life of it (simulated-node.ts), the cluster that starts and ends its lives (simulated-cluster.ts).

import { SimulatedDisk } from './simulated-disk.js'
import type { SimulatedLog } from './simulated-log.js'
import type { SimulatedNode } from './simulated-node.js'
import type { Process } from './simulated-world.js'

export class Place {
  readonly name: string
  /** Where other nodes reach it; another one in some of its lives. */
  address: string
  readonly skewMs: number
  readonly disk = new SimulatedDisk()
  process: Process | undefined
  /** One for each log. */
  connections: readonly SimulatedLog[] = []
  /** undefined: it does not run, or still reads its store. */
  now: SimulatedNode | undefined
  /** The members that it was last informed of. */
  view = ''
  /** It should give its shards away, and take none. */
  isDraining = false

  constructor(name: string, skewMs: number) {
    this.name = name
    this.address = name
    this.skewMs = skewMs
  }
}

// What the routes of /cluster have a node of a cluster do. A process without a cluster has no desk.

import type { ClusterNumbers, ClusterStatus } from '../messages/cluster-status.js'

/** What operators may have a node of a cluster do. */
export interface ClusterDesk {
  status(): ClusterStatus
  numbers(): ClusterNumbers
  /** Gives all shards away, and takes none; false: some have found nobody in time. */
  drain(): Promise<boolean>
  /** Takes shards again. */
  resume(): void
}

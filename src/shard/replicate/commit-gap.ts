// The gap between the beginnings of two commits of a busy node of a cluster.
//
// An append costs processor time on every node and on every member of the engine, and hardly more for thirty changes
// than for one. A node that has time to spare begins a commit at once, and has several in flight. On a busy node, each
// append slows down everything else. So it begins fewer commits, and each takes more changes. That makes the node less
// busy, and the gap smaller.

/**
 * The longest gap between two commits. Three nodes and three members of etcd on two cores, 64 clients: an update took
 * 1.8 ms of processor time without gaps, 1.4 ms with 20 ms, 1.0 ms with 40 ms, at 1,100, 1,400 and 1,600 updates/s.
 * Batches of 100 entities became slower with 60 ms.
 */
export const commitGapMsMax = 40

/**
 * Up to this utilization there is no gap; from `busyTo` on it is the longest one. Measured as above, updates/s: 1,050
 * without gaps, 1,140 with 0.7 to 1, 1,420 with 0.6 to 0.9, 1,450 to 1,830 with 0.5 to 0.8, and no more with 0.3 to 0.6.
 * Where each node has a machine of its own, gaps save processor time that nobody else needs. There, in the simulation
 * (bench/cluster-model.ts), 0.5 to 0.8 saves up to a third of it, and nodes that are not full make up to a fifth fewer
 * updates.
 */
const busyFrom = 0.5
const busyTo = 0.8

/**
 * Milliseconds from the beginning of a commit to that of the next one. `utilization`: of the event loop, 0 to 1
 * (docs/operations/shards.md, Appends).
 */
export function commitGapMs(utilization: number): number {
  const excess = (utilization - busyFrom) / (busyTo - busyFrom)
  return commitGapMsMax * Math.min(Math.max(excess, 0), 1)
}

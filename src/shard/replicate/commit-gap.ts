// How far apart the commits of a busy node of a cluster begin.
//
// An append costs processor time on every node and on every member of the engine, and hardly more for thirty changes
// than for one. While processors have time to spare, a commit begins at once, and several are in flight. When they have
// not, every append makes all others slower, so a node begins fewer, and each takes more changes along. Then the node is
// less busy, and the gap becomes smaller again.

/** The share of the last second or so in which the event loop was not idle: 0 to 1. */
export type BusyShare = () => number

/**
 * The longest gap between two commits. Three nodes and three members of etcd on two cores, 64 clients: an update took
 * 1.8 ms of processor time without gaps, 1.4 ms with 20 ms, 1.0 ms with 40 ms, at 1,100, 1,400 and 1,600 updates/s.
 * Batches of 100 entities became slower with 60 ms.
 */
export const commitGapMsMax = 40

/**
 * Up to this share commits have no gap; from `busyTo` on they have the longest one. Measured as above, updates/s were
 * 1,050 without gaps, 1,140 from 0.7 to 1, 1,420 from 0.6 to 0.9, and 1,450 to 1,830 from 0.5 to 0.8; they rose no more
 * from 0.3 to 0.6. Where each node has a machine of its own, gaps save processor time that nobody else needs: in the
 * simulation (bench/cluster-model.ts), 0.5 to 0.8 saves up to a third of it, and nodes that are not full make up to a
 * fifth fewer updates.
 */
const busyFrom = 0.5
const busyTo = 0.8

/** Milliseconds from the beginning of a commit to that of the next one. */
export function commitGapMs(busyShare: number): number {
  const excess = (busyShare - busyFrom) / (busyTo - busyFrom)
  return commitGapMsMax * Math.min(Math.max(excess, 0), 1)
}

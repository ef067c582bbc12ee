// The garbage collector: the settings that a running process can still change.
//
// The event loop waits while young objects are collected. V8 uses helper threads for that, which shortens the wait if a
// core is free. If none is free, the event loop waits for helpers that wait for a core, and their search for work is
// wasted.
//
// The limits of the young generation are fixed when an isolate is made. A larger one needs another isolate: a thread
// (own-thread.ts), or a process with these flags. With up to 64 MB instead of 16, op/update takes a fifth less processor
// time: fewer entities that are being written to the disk survive a collection (bench `batch`, 61,500 to 76,800
// entities/s on a busy machine).
//
// In a node of a cluster it begins with 8 MB, and grows while many objects survive: the first collections of a node that
// starts copy all that it keeps, each in one pause. With 64 MB from the start these took up to 138 ms, so 52 ms. On a
// machine with ten runnable threads for each core 138 ms are 1.4 s, and other nodes wait.

import { availableParallelism } from 'node:os'
import { setFlagsFromString } from 'node:v8'

/**
 * With fewer cores for each process, its event loop collects young objects alone: longer pauses, less processor time.
 */
const coresMin = 3

/** V8 flags for this number of cores and processes. */
export const collectorFlags = (cores: number, processes: number): readonly string[] =>
  cores / processes < coresMin ? ['--no-parallel-scavenge'] : []

/** Sets the V8 flags for one of this number of processes on the machine. They take effect at the next collection. */
export function tuneCollector(processes: number): void {
  for (const flag of collectorFlags(availableParallelism(), processes)) setFlagsFromString(flag)
}

/** MB of each of the two halves of the young generation: every process, or its thread, takes at most twice this. */
const semiSpaceMb = 64
/** The same when a node of a cluster starts. */
const firstSemiSpaceMb = 8

/** Flags for a process whose event loop is to have a large young generation. */
export const youngFlags = (isInCluster: boolean): readonly string[] => [
  `--min-semi-space-size=${isInCluster ? firstSemiSpaceMb : semiSpaceMb}`,
  `--max-semi-space-size=${semiSpaceMb}`,
]

/** Threads that start from now on get a large young generation. */
export function enlargeYoung(): void {
  for (const flag of youngFlags(false)) setFlagsFromString(flag)
}

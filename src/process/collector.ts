// The collector of garbage, as far as a running process can still tell it what to do.
//
// Everything waits while young objects are collected. V8 has helper threads take part, which shortens the wait where a
// core is free. Where none is, the event loop waits for helpers that wait for a core, and their search for work is
// lost.
//
// The size of the young generation is fixed when an isolate is made. More needs another one: a thread (own-thread.ts),
// or a process with these flags. With 64 MB instead of 16, op/update takes a fifth less processor time: fewer entities
// on their way to the disk outlive a look (bench `batch`, 61,500 to 76,800 entities/s on a busy machine).

import { availableParallelism } from 'node:os'
import { setFlagsFromString } from 'node:v8'

/**
 * With fewer cores for each process, its event loop collects young objects alone: longer pauses, less processor time.
 */
const coresMin = 3

/** What V8 is told when so many processes share so many cores. */
export const collectorFlags = (cores: number, processes: number): readonly string[] =>
  cores / processes < coresMin ? ['--no-parallel-scavenge'] : []

/** Tells V8 that this is one of so many processes that share the machine; it heeds that from its next collection on. */
export function tuneCollector(processes: number): void {
  for (const flag of collectorFlags(availableParallelism(), processes)) setFlagsFromString(flag)
}

/** MB of each of the two halves in which young objects are: what every process, or its thread, takes at most twice. */
const semiSpaceMb = 64

/** Flags for a process whose event loop is to have a large young generation. */
export const youngFlags: readonly string[] = [
  `--min-semi-space-size=${semiSpaceMb}`,
  `--max-semi-space-size=${semiSpaceMb}`,
]

/** Has threads that are started from now on get a large young generation. */
export function enlargeYoung(): void {
  for (const flag of youngFlags) setFlagsFromString(flag)
}

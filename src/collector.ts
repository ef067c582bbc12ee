// The collector of garbage, as far as a running process can still tell it what to do.
//
// Everything waits while young objects are collected. V8 has helper threads take part in that, which shortens the wait where a core is free
// for them. Where none is, the event loop waits for helpers that wait for a core, and what they spend on looking for work is lost.
//
// Not here: the size of the young generation. It matters as much, and only a flag of the command line sets it.

import { availableParallelism } from 'node:os'
import { setFlagsFromString } from 'node:v8'

/** With fewer cores than this for each process, its event loop collects young objects alone. Raising it trades longer pauses for processor time. */
const coresMin = 3

/** What V8 is told when so many processes share so many cores. */
export const collectorFlags = (cores: number, processes: number): readonly string[] =>
  cores / processes < coresMin ? ['--no-parallel-scavenge'] : []

/** Tells V8 that this is one of so many processes that share the machine; it heeds that from its next collection on. */
export function tuneCollector(processes: number): void {
  for (const flag of collectorFlags(availableParallelism(), processes)) setFlagsFromString(flag)
}

// The processor time of this process and of those that it started, in seconds.
//
// On Linux a process inherits the time of its children when they have ended and it has noticed that. When a broker is
// killed together with its workers, no process notices the end of the workers. So their time is counted when they are
// killed. Other systems do not report the time of children: there this process counts alone.

import { readFileSync } from 'node:fs'

/** Linux reports processor time in ticks of this length. */
const secondsPerTick = 0.01

let killedSeconds = 0

/** Counts processes that are about to be killed, and whose parent ends with them. */
export function countKilled(pids: readonly number[]): void {
  for (const pid of pids) killedSeconds += secondsOf(pid)
}

/** The seconds until now. */
export function processorSeconds(): number {
  if (process.platform === 'linux') return secondsOf(process.pid) + killedSeconds
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

/** The seconds of a process and of its children that have ended; 0 when it is gone. */
function secondsOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // User and system time of the process, then of its children. The name before them, in brackets, may hold spaces.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * secondsPerTick, 0)
  } catch {
    return 0
  }
}

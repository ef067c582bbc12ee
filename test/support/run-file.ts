// Runs one test file in this process, as `node FILE` does, and reports the processor time when the process ends.
//
// The number of seconds goes to file descriptor 3, which the runner of `npm test` reads. On Linux it includes the
// processes that the file started and that have ended. Other systems report no such number, so they count this process
// alone. A process that is killed reports nothing.

import { readFileSync, writeSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

/** Linux reports processor time in ticks of this length. */
const secondsPerTick = 0.01

process.once('exit', () => writeSync(3, String(cpuSeconds())))
process.argv.splice(1, 1)
await import(pathToFileURL(process.argv[1]!).href)

function cpuSeconds(): number {
  if (process.platform !== 'linux') {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  }
  const stat = readFileSync('/proc/self/stat', 'latin1')
  // User and system time of this process, then of its children. The name before them, in brackets, may hold spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * secondsPerTick, 0)
}

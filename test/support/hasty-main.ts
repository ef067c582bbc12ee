// The program with a clock that is as many times as fast as `HASTY_FACTOR` says: what takes minutes takes seconds.
// Time-outs of sockets are as ever.

import { systemClock } from '../../src/clock.js'
import type { Clock } from '../../src/ports.js'
import { runProgram } from '../../src/process/program.js'

const factor = Number(process.env.HASTY_FACTOR)
const beganMs = Date.now()
const { after } = systemClock
const wallMs = (): number => Math.floor(beganMs + performance.now() * factor)
const hasty: Partial<Clock> = {
  wallMs,
  fineWallMs: wallMs,
  monoMs: () => performance.now() * factor,
  after: (delayMs, run) => after(delayMs / factor, run),
}
Object.assign(systemClock, hasty)

// What stands between makes the node run in this thread, which has that clock.
await runProgram({ wrapShards: shards => shards })

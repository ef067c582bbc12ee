// The program with a clock that runs `HASTY_FACTOR` times as fast: minutes become seconds. Time-outs of sockets do not
// change.

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

// With a wrapper for shards the node runs in this thread, which has that clock.
await runProgram({ wrapShards: shards => shards })

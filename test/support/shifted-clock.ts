// Loaded before a program (`node --import`): its wall clock is ahead by the milliseconds in the file CLOCK_SHIFT_FILE,
// which a test may change while the program runs.

import { readFileSync } from 'node:fs'

/** How long a shift that was read is used. */
const readMs = 50

const machineMs = Date.now.bind(Date)
let aheadMs = 0
let staleMs = Number.NEGATIVE_INFINITY

Date.now = () => {
  const nowMs = performance.now()
  if (nowMs >= staleMs) {
    staleMs = nowMs + readMs
    aheadMs = Number(readFileSync(process.env.CLOCK_SHIFT_FILE ?? '', 'utf8'))
  }
  return machineMs() + aheadMs
}

// Measures how long the event loop of a broker is held, from inside: loaded into its processes and threads by
// `--import`.
//
// A timer of 1 ms rings in every round of the loop that is due. So the time between two rings is at least the longest
// callback between them, with all promises that follow it, and at most one round. Of that only the processor time of
// this thread counts, not that of other processes. Long rounds are appended to a file of this thread: the end of the
// round and its length, in milliseconds.
//
// Not here: the start of a broker with it, and the reader of the files (turns.ts).

import { appendFileSync, openSync, readSync } from 'node:fs'
import { basename, join } from 'node:path'
import { threadId } from 'node:worker_threads'

/** Shorter rounds are not reported. */
const reportedMsMin = 4

const folder = process.env.ORRERY_TURNS
if (folder !== undefined)
  watch(join(folder, `${basename(process.argv[1] ?? 'main', '.js')}-${process.pid}-${threadId}`))

function watch(file: string): void {
  const processorMs = threadProcessorMs()
  let atMs = performance.now()
  let usedMs = processorMs()
  setInterval(() => {
    const nowMs = performance.now()
    const nowUsedMs = processorMs()
    const heldMs = Math.min(nowMs - atMs, nowUsedMs - usedMs)
    atMs = nowMs
    usedMs = nowUsedMs
    if (heldMs >= reportedMsMin) appendFileSync(file, `${Date.now()} ${heldMs.toFixed(1)}\n`)
  }, 1).unref()
}

/**
 * The processor time that this thread has used, from the scheduler, as of its last tick; without such a file, that of
 * the process.
 */
function threadProcessorMs(): () => number {
  const buffer = Buffer.alloc(64)
  try {
    const file = openSync('/proc/thread-self/schedstat', 'r')
    return () => Number.parseInt(buffer.toString('latin1', 0, readSync(file, buffer, 0, buffer.length, 0)), 10) / 1e6
  } catch {
    return () => {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1000
    }
  }
}

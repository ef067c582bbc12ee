// The file of `-pidpath`: the number of this process, for scripts that send signals to it (docs/operations/options.md,
// docs/operations/starting.md).
//
// A file of a process that has ended is overwritten; one of a running process stops the start.

import { readFileSync, rmSync, writeFileSync } from 'node:fs'

/** Writes the file, and removes it at the exit of the process. Throws an error with a sentence for the operator. */
export function writePidFile(path: string): void {
  assertPidFree(path)
  try {
    writeFileSync(path, `${process.pid}\n`)
  } catch (cause) {
    throw new Error(`cannot write the pid file ${path}: ${(cause as Error).message}`, { cause })
  }
  process.once('exit', () => {
    if (readPid(path) === process.pid) rmSync(path, { force: true })
  })
}

/** Throws an error with a sentence for the operator when the file belongs to a running process. */
export function assertPidFree(path: string): void {
  const before = readPid(path)
  if (before !== undefined && before !== process.pid && isRunning(before))
    throw new Error(`the process of the pid file ${path} is running: ${before}`)
}

function readPid(path: string): number | undefined {
  try {
    const pid = Number(readFileSync(path, 'utf8').trim())
    return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined
  } catch {
    return undefined
  }
}

/** A process that we may not signal is running, too. */
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

// A disk of some megabytes for one test: a tmpfs, which needs root on Linux; and files that fill it.

import { execFileSync } from 'node:child_process'
import { closeSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { type Teardown, tempDir } from './broker-process.js'

/** False when this command works here; otherwise the reason why not. */
export function lacks(command: string, ...args: string[]): string | false {
  try {
    execFileSync(command, args, { stdio: 'pipe' })
    return false
  } catch (error) {
    return `${command} does not work here: ${String((error as Error).message).trim()}`
  }
}

/** The reason why no disk can be mounted here, or false when one can. */
export const noMount = process.platform === 'linux' ? tryMount() : 'tmpfs is of Linux'

function tryMount(): string | false {
  const probe = { run: () => {} }
  const dir = tempDir({ teardown: run => Object.assign(probe, { run }) })
  const lacking = lacks('mount', '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', dir)
  if (!lacking) execFileSync('umount', [dir])
  probe.run()
  return lacking
}

const chunk = Buffer.alloc(1024 * 1024)
export const bytesPerMb = chunk.length

export class SmallDisk {
  readonly path: string

  constructor(t: Teardown, megabytes: number) {
    const path = tempDir(t)
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', path])
    t.teardown(() => execFileSync('umount', ['-l', path]))
    this.path = path
  }

  get freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.path)
    return bavail * bsize
  }

  /** Makes a file that leaves this many bytes free, by default none. */
  fill(name: string, leavesBytes = 0): void {
    const file = openSync(join(this.path, name), 'w')
    try {
      for (let spare = this.freeBytes - leavesBytes; spare > 0; spare -= chunk.length)
        writeSync(file, chunk, 0, Math.min(spare, chunk.length))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    } finally {
      closeSync(file)
    }
  }

  remove(name: string): void {
    rmSync(join(this.path, name))
  }

  resize(megabytes: number): void {
    execFileSync('mount', ['-o', `remount,size=${megabytes}m`, this.path])
  }
}

// Finds the process that has the store of a data directory open. It does not open the store, since that would write to
// it.
//
// Both stores lock a file LOCK, and Linux lists such locks with their inodes in /proc/locks. On other systems, or if
// the list cannot be read, the holder is not known.

import { readdirSync, readFileSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { storeFolder } from './store-folders.js'

/** The id of a process that uses one of the stores; 0: its id is hidden from us. undefined: none is known. */
export function lockHolder(path: string, workers: number): number | undefined {
  for (let worker = 0; worker < workers; worker++) {
    const holder = holderOf(join(storeFolder(path, workers, worker), 'LOCK'))
    if (holder !== undefined) return holder
  }
  return undefined
}

function holderOf(file: string): number | undefined {
  try {
    const { ino, dev } = statSync(file)
    const real = realpathSync(file)
    for (const line of readFileSync('/proc/locks', 'utf8').split('\n')) {
      const [, holder, device, inode] = /^\d+: \S+ +\S+ +WRITE (-?\d+) ([0-9a-f]+:[0-9a-f]+):(\d+) /.exec(line) ?? []
      if (Number(inode) !== ino) continue
      // On some file systems `stat` and the list have different device numbers: then the process's open files decide.
      if (device === deviceOf(dev) || hasOpen(Number(holder), real)) return Math.max(Number(holder), 0)
    }
  } catch {
    // Not Linux, or no such file: the holder is not known.
  }
  return undefined
}

/** The two parts of a device's number, as the list of locks has them. */
function deviceOf(dev: number): string {
  const big = BigInt(dev)
  const major = ((big >> 8n) & 0xfffn) | ((big >> 32n) & ~0xfffn)
  const minor = (big & 0xffn) | ((big >> 12n) & ~0xffn & 0xffffffn)
  return `${hex(major)}:${hex(minor)}`
}

const hex = (part: bigint): string => part.toString(16).padStart(2, '0')

function hasOpen(pid: number, file: string): boolean {
  const folder = `/proc/${pid}/fd`
  try {
    return readdirSync(folder).some(fd => linkOf(join(folder, fd)) === file)
  } catch {
    return false
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

// The reserve: a file in the data directory that takes up room, and is given up when the disk is full.
//
// It is written byte by byte: a file that is only declared long takes no room. The bytes are random, so that a file system which compresses
// cannot make them fewer. It is not flushed: what counts is that the file system has set the room aside, which it does at the write.
//
// Not here: when it is made and given up (disk-watch).

import { randomBytes } from 'node:crypto'
import { rmSync, statfsSync, statSync } from 'node:fs'
import { open, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { DiskSight } from './room-steps.js'

const fileName = 'reserve'
const chunkBytes = 1_048_576

export class ReserveFile {
  private readonly directory: string
  private readonly path: string

  constructor(directory: string) {
    this.directory = directory
    this.path = join(directory, fileName)
  }

  async look(): Promise<DiskSight> {
    const [{ bavail, bsize }, file] = await Promise.all([statfs(this.directory), stat(this.path).catch(unlessMissing)])
    return { freeBytes: bavail * bsize, heldBytes: file?.size ?? 0 }
  }

  /** As `look`, while the process does nothing else yet. */
  lookNow(): DiskSight {
    const { bavail, bsize } = statfsSync(this.directory)
    return { freeBytes: bavail * bsize, heldBytes: statSync(this.path, { throwIfNoEntry: false })?.size ?? 0 }
  }

  giveUpNow(): void {
    rmSync(this.path, { force: true })
  }

  giveUp(): Promise<void> {
    return rm(this.path, { force: true })
  }

  /** Makes it so large. What there is not enough room for is removed again. */
  async hold(bytes: number, signal: AbortSignal): Promise<void> {
    try {
      await this.grow(bytes, signal)
    } catch (error) {
      await this.giveUp()
      throw error
    }
  }

  private async grow(bytes: number, signal: AbortSignal): Promise<void> {
    const file = await open(this.path, 'a', 0o600)
    try {
      const chunk = randomBytes(Math.min(chunkBytes, bytes))
      let { size } = await file.stat()
      while (size < bytes && !signal.aborted) {
        const { bytesWritten } = await file.write(chunk, 0, Math.min(chunk.length, bytes - size))
        size += bytesWritten
      }
    } finally {
      await file.close()
    }
  }
}

function unlessMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

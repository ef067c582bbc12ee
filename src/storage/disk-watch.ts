// The room on the disk of a data directory: checks it from time to time, keeps the reserve, and reports the state
// (docs/operations/full-disk.md).
//
//   room = free bytes + bytes of the reserve file - the reserve
//
// So the number does not change when the reserve is given up or made anew, and the state cannot flap because of it. All
// bounds are parts of the reserve R:
//
//   state       begins when     ends when       effect
//   short       room < R        room > 2 R      requests that need room are refused
//   scarce      room < R/4      room >= R/2     the reserve is given up, copies of other nodes' shards wait
//   exhausted   free < R/16     free >= R/8     deletions are refused as well, commits wait
//
// The reserve file exists exactly while the room is not scarce. A store without a free byte cannot even open, so a
// start whose room is short gives the file up as well. Between two looks another process may take all the room there
// is. Then a commit fails, the process ends, and the next start finds the reserve. Several processes on one directory
// each check for themselves, and any gives the reserve up; only the `keeper` makes it.
//
// Not here: which requests are refused (shard/turn/room.ts).

import { randomBytes } from 'node:crypto'
import { rmSync, statfsSync, statSync } from 'node:fs'
import { open, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock, DiskRoom } from '../ports.js'

/** From much room to none; each state has the effects of those before it, too. */
export const roomStates = ['ample', 'short', 'scarce', 'exhausted'] as const
export type RoomState = (typeof roomStates)[number]

export interface DiskSight {
  /** Free for this process. */
  readonly freeBytes: number
  /** Bytes of the reserve file. */
  readonly heldBytes: number
}

/** Free bytes above the reserve; negative when part of the reserve is in use. */
const roomOf = ({ freeBytes, heldBytes }: DiskSight, reserveBytes: number): number =>
  freeBytes + heldBytes - reserveBytes

export function nextState(before: RoomState, sight: DiskSight, reserveBytes: number): RoomState {
  const room = roomOf(sight, reserveBytes)
  const was = roomStates.indexOf(before)
  // The present state ends at its second bound, another one begins at its first.
  const isLess = (state: RoomState, bytes: number, begins: number, ends: number): boolean =>
    was >= roomStates.indexOf(state) ? bytes < ends : bytes < begins
  if (isLess('exhausted', sight.freeBytes, reserveBytes / 16, reserveBytes / 8)) return 'exhausted'
  if (isLess('scarce', room, reserveBytes / 4, reserveBytes / 2)) return 'scarce'
  // `short` ends only above twice the reserve, so its bound is one byte more.
  return isLess('short', room, reserveBytes, reserveBytes * 2 + 1) ? 'short' : 'ample'
}

/** The action on the reserve file in a state. */
export function reserveStep(state: RoomState, sight: DiskSight, reserveBytes: number): 'keep' | 'give up' | 'make' {
  if (state === 'scarce' || state === 'exhausted') return sight.heldBytes > 0 ? 'give up' : 'keep'
  const hasRoom = roomOf(sight, reserveBytes) >= reserveBytes / 2
  return sight.heldBytes < reserveBytes && hasRoom ? 'make' : 'keep'
}

/** Bounds of the pause between two looks at the disk. */
export const lookMsMin = 50
export const lookMsMax = 1_000
/** The fastest filling by others that this process notices in time: 1 GB/s, as fast as disks of servers. */
const fillBytesPerMsMax = 1_048_576

/** The pause until the next look: it ends before the room can have become short. */
export function lookAfterMs(sight: DiskSight, reserveBytes: number): number {
  const spareBytes = roomOf(sight, reserveBytes) - reserveBytes
  return Math.min(lookMsMax, Math.max(lookMsMin, Math.floor(spareBytes / fillBytesPerMsMax)))
}

export interface DiskWatchParts {
  readonly disk: Pick<ReserveFile, 'look' | 'lookNow' | 'giveUp' | 'giveUpNow' | 'hold'>
  readonly reserveBytes: number
  readonly keeper: boolean
  readonly clock: Pick<Clock, 'after'>
  /** Called with each new state. */
  readonly onState: (state: RoomState, before: RoomState, room: DiskRoom) => void
  /** The disk could not be checked, or the reserve could not be made. Called once, until it succeeds again. */
  readonly onFailure: (what: string, error: Error) => void
}

export class DiskWatch implements DiskRoom {
  isShort = false
  isScarce = false
  isExhausted = false
  readonly reserveBytes: number
  private is: RoomState = 'ample'
  private seen: DiskSight | undefined
  private waiting: (() => void)[] = []
  private cancel = (): void => {}
  private looking: Promise<void> = Promise.resolve()
  private readonly stopped = new AbortController()
  private hasFailed = false

  constructor(private readonly parts: DiskWatchParts) {
    this.reserveBytes = parts.reserveBytes
  }

  get freeBytes(): number {
    return this.seen ? roomOf(this.seen, this.reserveBytes) : Number.POSITIVE_INFINITY
  }

  /**
   * The first look, before the store is opened. If room is short, it gives the reserve up, because opening a store
   * takes room. It also gives up a reserve that is too large, as after a start with another option.
   */
  begin(): void {
    const { disk, reserveBytes } = this.parts
    try {
      const sight = disk.lookNow()
      this.see(sight)
      if (sight.heldBytes === 0 || (!this.isShort && sight.heldBytes <= reserveBytes)) return
      disk.giveUpNow()
      this.see(disk.lookNow())
    } catch (error) {
      this.fail('the disk of the data directory cannot be looked at', error)
    }
  }

  start(): void {
    this.looking = this.look().then(() => this.startLater())
  }

  private startLater(): void {
    if (this.stopped.signal.aborted) return
    const delayMs = this.seen ? lookAfterMs(this.seen, this.reserveBytes) : lookMsMax
    this.cancel = this.parts.clock.after(delayMs, () => this.start())
  }

  private async look(): Promise<void> {
    const { disk, keeper } = this.parts
    try {
      let sight = await disk.look()
      const state = nextState(this.is, sight, this.reserveBytes)
      if (reserveStep(state, sight, this.reserveBytes) === 'give up') {
        await disk.giveUp()
        sight = await disk.look()
      }
      this.see(sight)
      if (keeper && reserveStep(this.is, sight, this.reserveBytes) === 'make')
        await disk.hold(this.reserveBytes, this.stopped.signal)
      this.hasFailed = false
    } catch (error) {
      this.fail('the disk of the data directory cannot be looked at, or the reserve in it cannot be made', error)
    }
  }

  private see(sight: DiskSight): void {
    if (this.stopped.signal.aborted) return
    this.seen = sight
    const before = this.is
    const state = nextState(before, sight, this.reserveBytes)
    this.enter(state)
    if (state !== before) this.parts.onState(state, before, this)
  }

  private enter(state: RoomState): void {
    this.is = state
    this.isExhausted = state === 'exhausted'
    this.isScarce = this.isExhausted || state === 'scarce'
    this.isShort = this.isScarce || state === 'short'
    if (this.isScarce) return
    const { waiting } = this
    this.waiting = []
    for (const run of waiting) run()
  }

  private fail(what: string, error: unknown): void {
    if (!this.hasFailed) this.parts.onFailure(what, error as Error)
    this.hasFailed = true
  }

  afterScarce(run: () => void): void {
    if (this.isScarce) this.waiting.push(run)
    else run()
  }

  /** Stops looking. Everything that waits for room runs now: a node that ends tries to write its pending data. */
  async stop(): Promise<void> {
    this.stopped.abort()
    this.cancel()
    this.enter('ample')
    await this.looking
  }
}

const fileName = 'reserve'
const chunkBytes = 1_048_576

/**
 * A file that takes up room. It is written byte by byte, because a file that only has its length set takes no room. Its
 * bytes are random, so that no file system can compress them. It is not flushed: the file system reserves the room at
 * the write.
 */
export class ReserveFile {
  private readonly path: string

  constructor(private readonly directory: string) {
    this.path = join(directory, fileName)
  }

  async look(): Promise<DiskSight> {
    const [{ bavail, bsize }, file] = await Promise.all([statfs(this.directory), stat(this.path).catch(unlessMissing)])
    return { freeBytes: bavail * bsize, heldBytes: file?.size ?? 0 }
  }

  /** Like `look`, while the process does nothing else yet. */
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

  /** Extends the file to this size. If there is not enough room, the file is removed again. */
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

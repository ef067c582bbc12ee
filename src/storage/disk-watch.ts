// Watches the room on the disk of a data directory: looks at it from time to time, keeps the reserve, and tells the state.
//
// It looks more often the less room there is (room-steps), off the event loop; whoever writes reads one boolean. Between two looks somebody
// may take all the room there is; then a commit fails, the process ends, and the next start finds the reserve.
//
// Of several processes on one directory each looks for itself, and any gives the reserve up; the one that is `keeper` makes it.
//
// Not here: the bounds (room-steps), what is refused (shard/turn/room.ts).

import type { Clock, DiskRoom } from '../ports.js'
import type { ReserveFile } from './reserve-file.js'
import { type DiskSight, lookAfterMs, lookMsMax, nextState, type RoomState, reserveStep, roomOf } from './room-steps.js'

export interface DiskWatchParts {
  readonly disk: Pick<ReserveFile, 'look' | 'lookNow' | 'giveUp' | 'giveUpNow' | 'hold'>
  /** Above 0. */
  readonly reserveBytes: number
  readonly keeper: boolean
  readonly clock: Pick<Clock, 'after'>
  /** Told of each other state. */
  readonly onState: (state: RoomState, before: RoomState, room: DiskRoom) => void
  /** The disk could not be looked at, or the reserve not be made. Told once until it goes well again. */
  readonly onFailure: (what: string, error: Error) => void
}

export class DiskWatch implements DiskRoom {
  isShort = false
  isScarce = false
  isExhausted = false
  readonly reserveBytes: number
  private readonly parts: DiskWatchParts
  private is: RoomState = 'ample'
  private seen: DiskSight | undefined
  private waiting: (() => void)[] = []
  private cancel = (): void => {}
  private looking: Promise<void> = Promise.resolve()
  private readonly stopped = new AbortController()
  private hasFailed = false

  constructor(parts: DiskWatchParts) {
    this.parts = parts
    this.reserveBytes = parts.reserveBytes
  }

  get state(): RoomState {
    return this.is
  }

  get freeBytes(): number {
    return this.seen ? roomOf(this.seen, this.reserveBytes) : Number.POSITIVE_INFINITY
  }

  /** What was last seen; undefined: nothing yet. */
  get sight(): DiskSight | undefined {
    return this.seen
  }

  /**
   * The first look, before the store is opened: where room is short the reserve is given up, because opening a store takes room. So is one
   * that is too large, as after a start with another option.
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

  /** Looks from now on. */
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

  /** Looks no more. What waits for room is let go: a node that ends tries to write what it has. */
  async stop(): Promise<void> {
    this.stopped.abort()
    this.cancel()
    this.enter('ample')
    await this.looking
  }
}

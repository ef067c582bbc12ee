// An answer of the uWebSockets.js front into which events are written as they come.

import type { HttpResponse } from 'uWebSockets.js'
import type { SlowAnswer, StallWatch } from './connections.js'
import type { EventAnswer } from './front.js'

/** What it needs of its exchange. */
export interface EventsOwner {
  readonly onRoom: () => void
  /** Whether the binary is calling for this connection, and collects what is written. */
  readonly isCorked: () => boolean
  /** Restarts the binary's timer of a connection that does not take more. */
  readonly goesOn: () => void
  readonly end: () => void
  readonly close: () => void
}

export class UwsEvents implements EventAnswer, SlowAnswer {
  private isOpen = true
  /** Characters that the system has taken, and those that were written since it took all of them. */
  private takenBefore = 0
  private waiting = 0

  constructor(
    private readonly response: HttpResponse,
    private readonly stalls: StallWatch,
    private readonly owner: EventsOwner,
  ) {
    response.onWritable(() => {
      if (this.waiting === 0) return true
      this.tookAll()
      stalls.remove(this)
      owner.onRoom()
      return true
    })
  }

  write(text: string): boolean {
    if (!this.isOpen) return false
    this.waiting += text.length
    let isAll = true
    const write = (): void => {
      isAll = this.response.write(text)
    }
    if (this.owner.isCorked()) write()
    else this.response.cork(write)
    if (isAll) this.tookAll()
    else this.stalls.add(this)
    return isAll
  }

  end(): void {
    this.owner.end()
  }

  close(): void {
    this.owner.close()
  }

  /** The connection has ended. */
  gone(): void {
    this.isOpen = false
    this.stalls.remove(this)
  }

  taken(): number {
    return this.takenBefore
  }

  retry(): void {
    this.owner.goesOn()
  }

  giveUp(): void {
    this.owner.close()
  }

  private tookAll(): void {
    this.takenBefore += this.waiting
    this.waiting = 0
  }
}

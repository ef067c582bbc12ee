// Writes the events of one connection as fast as its reader takes them (docs/interface/live.md#slow-readers). It sends
// all that one tick brings at once, at the end of the tick, or sooner when that is much.
//
// Not here: what waits (broker/streams/reader-queue.ts), how a transport sends it (event-stream.ts, stream-socket.ts).

import type { EndOfTick, TickTask } from '../broker/streams/end-of-tick.js'
import { type QueueParts, ReaderQueue } from '../broker/streams/reader-queue.js'
import type { StreamEvent } from '../broker/streams/stream-event.js'
import type { EventForm } from '../domain/streams/watch.js'

/** More characters do not wait for the end of the tick: a reader is slow only when the system takes no more. */
const flushedFrom = 64 * 1024

export interface WriterParts extends QueueParts {
  readonly endOfTick: EndOfTick
  /** Sends texts. False: the system takes no more at the moment; the texts are sent later. */
  readonly send: (texts: readonly string[]) => boolean
}

export class EventWriter implements TickTask {
  private readonly queue: ReaderQueue
  private isFull = false
  private isClosed = false
  /** Called when there is room again. */
  private wanting: (() => void)[] = []

  constructor(private readonly parts: WriterParts) {
    this.queue = new ReaderQueue(parts)
  }

  /** Whether the system takes more at the moment. */
  get hasRoom(): boolean {
    return !this.isFull
  }

  /** Sends an event of a watch, now or later. False: the reader is too slow. */
  event(event: StreamEvent, watch: string, form: EventForm): boolean {
    this.queue.push(event, watch, form)
    return this.sendSoon()
  }

  /** Sends a text that is not an event, behind the events that wait. False: the reader is too slow. */
  text(text: string): boolean {
    this.queue.pushText(text)
    return this.sendSoon()
  }

  /** False: the reader is too slow. It is not if the system takes even a large text. */
  private sendSoon(): boolean {
    if (this.queue.length > flushedFrom) this.flush()
    else if (!this.isFull) this.parts.endOfTick.add(this)
    return this.queue.hasRoom
  }

  /** The system takes more. */
  onRoom(): void {
    this.isFull = false
    this.flush()
    while (!this.isFull) {
      const next = this.wanting.shift()
      if (!next) return
      next()
    }
  }

  /** Calls `next` when the system takes more, perhaps at once. */
  whenRoom(next: () => void): void {
    this.flush()
    if (this.isFull) this.wanting.push(next)
    else next()
  }

  /** Sends nothing any more. */
  close(): void {
    this.isClosed = true
    this.queue.clear()
    this.wanting = []
  }

  atEndOfTick(): void {
    this.flush()
  }

  /** Sends what waits, as far as there is room. */
  flush(): void {
    while (!this.isFull && !this.isClosed) {
      const texts = this.queue.take()
      if (!texts) return
      this.isFull = !this.parts.send(texts)
    }
  }
}

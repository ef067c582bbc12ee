// Writes the events of one connection as fast as its reader takes them (docs/interface/live.md#slow-readers).
//
// Not here: what waits (broker/streams/reader-queue.ts), how a transport sends it (event-stream.ts, stream-socket.ts).

import { type QueueParts, ReaderQueue } from '../broker/streams/reader-queue.js'
import type { StreamEvent } from '../broker/streams/stream-event.js'
import type { EventForm } from '../domain/streams/watch.js'

export interface WriterParts extends QueueParts {
  /** Sends texts. False: the system takes no more at the moment; the texts are sent later. */
  readonly send: (texts: readonly string[]) => boolean
}

export class EventWriter {
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

  /** Characters that wait for the reader. */
  get waiting(): number {
    return this.queue.length
  }

  /** Sends an event of a watch, now or later. False: the reader is too slow. */
  event(event: StreamEvent, watch: string, form: EventForm): boolean {
    const hasRoom = this.queue.push(event, watch, form)
    if (hasRoom) this.flush()
    return hasRoom
  }

  /** Sends a text that is not an event, behind the events that wait. False: the reader is too slow. */
  text(text: string): boolean {
    const hasRoom = this.queue.pushText(text)
    if (hasRoom) this.flush()
    return hasRoom
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
    if (this.isFull) this.wanting.push(next)
    else next()
  }

  /** Sends nothing any more. */
  close(): void {
    this.isClosed = true
    this.wanting = []
  }

  private flush(): void {
    while (!this.isFull && !this.isClosed) {
      const texts = this.queue.take()
      if (!texts) return
      this.isFull = !this.parts.send(texts)
    }
  }
}

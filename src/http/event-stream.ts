// A stream of Server-Sent Events: one connection that reads one watch (docs/interface/live.md#events).
//
// Everything that is wrong with the watch is answered with a status before the stream begins. Later the stream ends
// with an event `end`, and with its connection.

import type { Reading, StreamReader } from '../broker/streams/reading.js'
import type { StreamEvent } from '../broker/streams/stream-event.js'
import { accepted, type Refusal, refusals } from '../domain/refusal.js'
import type { Watch } from '../domain/streams/watch.js'
import type { Asker } from './access-guard.js'
import { EventWriter } from './event-writer.js'
import type { EventAnswer } from './front.js'
import {
  beginMsMax,
  type ClosedBy,
  type EndReason,
  endEvent,
  filterUnknown,
  type OpenStream,
  type StreamParts,
  silence,
  silenceMsMax,
} from './open-stream.js'
import type { Reply } from './reply.js'
import { StreamRights } from './stream-rights.js'

export class EventStream implements StreamReader, OpenStream {
  private readonly writer: EventWriter
  private reading: Reading | undefined
  private answer: EventAnswer | undefined
  /** Whether nothing was written since `listen` looked. */
  private isSilent = false
  private isOver = false
  /** undefined: there is no access control. */
  private readonly rights: StreamRights | undefined
  private stopWaiting: (() => void) | undefined

  constructor(
    private readonly reply: Reply,
    private readonly watch: Watch,
    private readonly parts: StreamParts,
    private readonly onOver: () => void,
    asker: Asker | undefined,
  ) {
    const { hub, tallies, clock } = parts
    this.rights = asker && new StreamRights(asker, clock, () => this.end('token over', 'refused'))
    this.writer = new EventWriter({
      frame,
      texts: hub.texts,
      budget: hub.waiting,
      endOfTick: hub.endOfTick,
      onFolded: count => tallies.fold(count),
      send: texts => this.write(texts.length === 1 ? texts[0]! : texts.join('')),
    })
  }

  begin(): void {
    this.stopWaiting = this.parts.clock.after(beginMsMax, () => this.onRefused(refusals.unanswered(filterUnknown)))
    const watch = this.rights ? this.rights.add(this.watch) : accepted(this.watch)
    if (!watch.ok) {
      this.parts.access?.onForbidden()
      return this.onRefused(watch.refusal)
    }
    this.reading = this.parts.hub.open(watch.value, this)
    // The client may have gone in that call.
    if (this.isOver) this.reading.end()
  }

  onBegun(): void {
    this.stopWaiting?.()
    this.answer = this.reply.events(
      () => this.writer.onRoom(),
      () => this.over('client'),
    )
    if (!this.answer) return this.over('client')
    this.parts.tallies.begin('sse')
    // Browsers wait 3 s before they come back, unless a stream sets another time.
    this.writer.text('retry: 1000\n\n')
    this.listen()
  }

  onEvent(event: StreamEvent): void {
    if (this.isOver) return
    this.parts.tallies.event(event.kind)
    if (!this.writer.event(event, '', this.watch.form)) this.end('too slow', 'slow')
  }

  onRefused(refusal: Refusal): void {
    if (this.answer) return this.end('limit', 'refused')
    this.reply.refuse(refusal)
    this.over('refused')
  }

  whenRoom(next: () => void): void {
    this.writer.whenRoom(next)
  }

  /** Ends the stream with an event that gives the reason. */
  end(reason: EndReason, by: ClosedBy): void {
    const { answer, writer } = this
    if (this.isOver) return
    writer.flush()
    this.over(by)
    if (!answer) return this.reply.refuse(reason === 'token over' ? refusals.proofExpired : refusals.stopping)
    if (!writer.hasRoom) return answer.close()
    answer.write(frame(endEvent(reason)))
    answer.end()
  }

  lookAtRights(): void {
    this.rights?.look()
  }

  private over(by: ClosedBy): void {
    if (this.isOver) return
    this.isOver = true
    this.rights?.stop()
    if (this.answer) this.parts.tallies.end('sse', by)
    this.writer.close()
    this.stopWaiting?.()
    this.reading?.end()
    this.onOver()
  }

  private write(text: string): boolean {
    this.isSilent = false
    return this.answer?.write(text) ?? false
  }

  /** Writes a comment when nothing else was written for a while. */
  private listen(): void {
    this.isSilent = true
    this.stopWaiting = this.parts.clock.after(silenceMsMax, () => {
      if (this.isSilent && this.writer.hasRoom) this.writer.text(silence)
      this.listen()
    })
  }
}

function frame({ kind, cursor, data }: StreamEvent): string {
  const id = cursor === undefined ? '' : `id: ${cursor}\n`
  return `${id}event: ${kind}\ndata: ${data}\n\n`
}

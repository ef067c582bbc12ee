// `GET /v2/stream`: changes as they happen, as Server-Sent Events (docs/interface/live.md).
//
// One connection reads one watch, which the parameters describe. Everything that is wrong with it is answered before
// the stream begins, with a status. Later the stream ends with an event `end`, and with its connection.
//
// Not here: what a reader receives (broker/streams/), what waits for it (reader-queue.ts).

import { ReaderQueue } from '../broker/streams/reader-queue.js'
import type { Reading, StreamReader } from '../broker/streams/reading.js'
import type { StreamEvent } from '../broker/streams/stream-event.js'
import type { StreamHub } from '../broker/streams/stream-hub.js'
import { accepted, type Refusal, type Result, refusals, refused } from '../domain/refusal.js'
import { parseServicePaths, parseTenant } from '../domain/scope.js'
import type { Watch } from '../domain/streams/watch.js'
import { type WatchScope, watchOfParameters } from '../domain/streams/watch-parser.js'
import { watchedPath } from '../domain/subscriptions/subscription.js'
import type { Clock } from '../ports.js'
import type { EventAnswer } from './front.js'
import type { Reply } from './reply.js'
import type { Request } from './request.js'
import { tenantOf } from './request.js'

/** A proxy may close a connection on which nothing is sent: while there are no events, an empty comment is. */
export const silenceMsMax = 10_000
export const silence = ':\n\n'
/** How long the owners of shards may take to learn a filter. */
const beginMsMax = 10_000

/** Why a stream has ended. */
export type ClosedBy = 'client' | 'slow' | 'stopping' | 'refused'

/** Counts streams. */
export interface StreamCounts {
  begin(transport: 'sse'): void
  end(transport: 'sse', by: ClosedBy): void
  event(kind: string): void
  fold(count: number): void
}

export interface StreamParts {
  readonly hub: StreamHub
  /** Open streams of this node (`-maxStreams`); 0: streams are off. */
  readonly streamsMax: number
  readonly clock: Pick<Clock, 'after'>
  readonly tallies: StreamCounts
  /** Whether the node is about to end. */
  readonly isEnding: () => boolean
}

export class StreamHandlers {
  private readonly open = new Set<EventStream>()

  constructor(private readonly parts: StreamParts) {}

  stream(request: Request, reply: Reply): void {
    const { streamsMax, isEnding } = this.parts
    if (streamsMax === 0) return reply.refuse(refusals.streamsOff)
    if (!request.acceptsEvents) return reply.refuse(refusals.acceptEvents)
    const watch = watchOf(request)
    if (!watch.ok) return reply.refuse(watch.refusal)
    if (isEnding()) return reply.refuse(refusals.stopping)
    if (this.open.size >= streamsMax) return reply.refuse(refusals.streamsTooMany(streamsMax))
    const stream = new EventStream(reply, watch.value, this.parts, () => this.open.delete(stream))
    this.open.add(stream)
    stream.begin()
  }

  /** Ends all streams: the node stops. */
  endAll(): void {
    for (const stream of [...this.open]) stream.end('stopping', 'stopping')
  }
}

/** One reader and its connection. */
class EventStream implements StreamReader {
  private readonly queue: ReaderQueue
  private reading: Reading | undefined
  private answer: EventAnswer | undefined
  private isFull = false
  private isSilent = false
  private isOver = false
  private stopSilence: (() => void) | undefined
  private room: (() => void) | undefined

  constructor(
    private readonly reply: Reply,
    private readonly watch: Watch,
    private readonly parts: StreamParts,
    private readonly onOver: () => void,
  ) {
    const { hub, tallies } = parts
    this.queue = new ReaderQueue({ frame, texts: hub.texts, onFolded: count => tallies.fold(count) })
  }

  begin(): void {
    const stop = this.parts.clock.after(beginMsMax, () => {
      if (!this.answer) this.onRefused(refusals.unanswered('not all owners of shards know the filter'))
    })
    this.stopSilence = stop
    this.reading = this.parts.hub.open(this.watch, this)
    // The client may have gone in that call.
    if (this.isOver) this.reading.end()
  }

  onBegun(): void {
    this.answer = this.reply.events(
      () => this.onRoom(),
      () => this.over('client'),
    )
    if (!this.answer) return this.over('client')
    this.stopSilence?.()
    this.parts.tallies.begin('sse')
    // Browsers wait 3 s before they come back, unless they are told otherwise.
    this.write('retry: 1000\n\n')
    this.listen()
  }

  onEvent(event: StreamEvent): void {
    if (this.isOver) return
    this.parts.tallies.event(event.kind)
    if (!this.queue.push(event, '', this.watch.form)) return this.end('too slow', 'slow')
    this.flush()
  }

  onRefused(refusal: Refusal): void {
    if (!this.answer) {
      this.reply.refuse(refusal)
      this.over('refused')
    } else this.end('limit', 'refused')
  }

  whenRoom(next: () => void): void {
    if (!this.isFull) return next()
    this.room = next
  }

  /** Ends the stream with an event that gives the reason. */
  end(reason: string, by: ClosedBy): void {
    const { answer, isFull } = this
    if (this.isOver) return
    this.over(by)
    if (!answer) return this.reply.refuse(refusals.stopping)
    if (isFull) return answer.close()
    answer.write(frame({ kind: 'end', cursor: undefined, data: JSON.stringify({ reason }) }))
    answer.end()
  }

  private over(by: ClosedBy): void {
    if (this.isOver) return
    this.isOver = true
    if (this.answer) this.parts.tallies.end('sse', by)
    this.stopSilence?.()
    this.reading?.end()
    this.onOver()
  }

  private onRoom(): void {
    this.isFull = false
    this.flush()
    const { room } = this
    if (this.isFull || !room) return
    this.room = undefined
    room()
  }

  private flush(): void {
    if (!this.answer) return
    while (!this.isFull && !this.isOver) {
      const text = this.queue.take()
      if (text === undefined) return
      this.write(text)
    }
  }

  private write(text: string): void {
    this.isSilent = false
    this.isFull = !this.answer!.write(text)
  }

  /** Writes a comment when nothing else was written for a while. */
  private listen(): void {
    this.isSilent = true
    this.stopSilence = this.parts.clock.after(silenceMsMax, () => {
      if (this.isSilent && !this.isFull) this.write(silence)
      this.listen()
    })
  }
}

function frame({ kind, cursor, data }: StreamEvent): string {
  const id = cursor === undefined ? '' : `id: ${cursor}\n`
  return `${id}event: ${kind}\ndata: ${data}\n\n`
}

function watchOf(request: Request): Result<Watch> {
  const scope = scopeOf(request)
  if (!scope.ok) return scope
  const { values, options } = request.parameters
  // A browser that comes back sends the cursor of the last event, and its URL may still name an older one.
  const { lastEventId } = request
  const given = lastEventId === '' ? values : new Map([...values, ['from', lastEventId]])
  return watchOfParameters(scope.value, given, options)
}

/** The tenant and the path, of headers or of parameters: a browser cannot set headers. */
function scopeOf(request: Request): Result<WatchScope> {
  const tenant = tenantOfParameter(request)
  if (!tenant.ok) return tenant
  const path = pathOfParameter(request)
  return path.ok ? accepted({ tenant: tenant.value, servicePath: path.value }) : path
}

function tenantOfParameter(request: Request): Result<string> {
  const named = request.parameters.values.get('tenant')
  if (named === undefined) return tenantOf(request)
  const tenant = parseTenant(named)
  if (!tenant.ok) return tenant
  if (request.tenantHeader !== '' && request.tenantHeader.toLowerCase() !== tenant.value)
    return refused(refusals.streamScope('tenant', 'Ctx-Service'))
  return request.tenants ? tenant : accepted('')
}

function pathOfParameter(request: Request): Result<string> {
  const named = request.parameters.values.get('path')
  if (named === undefined) return watchedPath(request.paths)
  const paths = parseServicePaths(named)
  if (!paths.ok) return paths
  if (request.paths.length > 0 && request.paths.join() !== paths.value.join())
    return refused(refusals.streamScope('path', 'Ctx-ServicePath'))
  return watchedPath(paths.value)
}

// The paths of ngsi-proxy: pages in browsers receive notifications through an event source
// (docs/interface/live.md#ngsi-proxy).
//
// The answers, the events `init` and `notification`, and their members are those that `NGSI.ProxyConnection` of ngsijs
// reads. An event source that does not exist is answered 204, which ends a browser's tries.
//
// Not here: which event sources and callbacks there are (broker/streams/proxy-channels.ts), the head of a request
// (proxy-head.ts).

import type { ChannelReader, ProxiedNotification, ProxyChannels } from '../broker/streams/proxy-channels.js'
import { waitingMax } from '../broker/streams/reader-queue.js'
import { isObject } from '../domain/json.js'
import { accepted, type Result, refusals, refused } from '../domain/refusal.js'
import type { Clock } from '../ports.js'
import type { AccessGuard } from './access-guard.js'
import type { EventAnswer } from './front.js'
import { type ClosedBy, silence, silenceMsMax } from './open-stream.js'
import type { Reply } from './reply.js'
import { jsonPayload, type Request, tenantOf } from './request.js'
import { type StreamReaderRights, StreamRights } from './stream-rights.js'

/** Characters that are written at once to a reader that had no room. */
const writtenMax = 64 * 1024

/** Counts the readers of event sources, and what they receive. */
export interface ProxyCounts {
  begin(transport: 'proxy'): void
  end(transport: 'proxy', by: ClosedBy): void
  event(kind: 'notification'): void
  /** A notification came for an event source without a reader. */
  lose(): void
}

export interface ProxyParts {
  readonly channels: ProxyChannels
  readonly clock: Pick<Clock, 'after' | 'wallMs'>
  readonly tallies: ProxyCounts
  /** undefined: there is no access control. */
  readonly access?: Pick<AccessGuard, 'onChange'> | undefined
  /** Whether the node is about to end. */
  readonly isEnding: () => boolean
}

export class ProxyHandlers {
  private readonly readers = new Set<SourceReader>()

  constructor(private readonly parts: ProxyParts) {
    parts.access?.onChange(() => {
      for (const reader of [...this.readers]) reader.rights?.look()
    })
  }

  /** `POST /eventsource`. */
  open(request: Request, reply: Reply): void {
    const origin = originOf(request)
    if (!origin.ok) return reply.refuse(origin.refusal)
    if (this.parts.isEnding()) return reply.refuse(refusals.stopping)
    const id = this.parts.channels.open()
    if (!id.ok) return reply.refuse(id.refusal)
    const url = sourceUrl(origin.value, id.value)
    reply.createdWith(url, JSON.stringify({ connection_id: id.value, url }))
  }

  /** `GET /eventsource/{id}`. */
  read(request: Request, reply: Reply): void {
    const origin = originOf(request)
    if (!origin.ok) return reply.refuse(origin.refusal)
    if (this.parts.isEnding()) return reply.refuse(refusals.stopping)
    const id = idOf(request)
    const reader = new SourceReader(id, reply, this.parts, () => this.readers.delete(reader), rightsOf(request))
    if (!this.parts.channels.attach(id, reader)) {
      reader.rights?.stop()
      return reply.done()
    }
    this.readers.add(reader)
    reader.begin(JSON.stringify({ id, url: sourceUrl(origin.value, id) }))
  }

  /** `DELETE /eventsource/{id}`. */
  close(request: Request, reply: Reply): void {
    reply.conclude(this.parts.channels.removeSource(idOf(request)))
  }

  /** `POST /callbacks`, with the id of an event source. */
  register(request: Request, reply: Reply, body: Uint8Array): void {
    const origin = originOf(request)
    if (!origin.ok) return reply.refuse(origin.refusal)
    const source = connectionOf(request, body)
    if (!source.ok) return reply.refuse(source.refusal)
    const id = this.parts.channels.register(source.value)
    if (!id.ok) return reply.refuse(id.refusal)
    const url = `${origin.value}/callbacks/${id.value}`
    reply.createdWith(url, JSON.stringify({ callback_id: id.value, url }))
  }

  /** `POST /callbacks/{id}`: a notification. */
  notify(request: Request, reply: Reply, body: Uint8Array): void {
    const payload = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString()
    const passed = this.parts.channels.pass(idOf(request), { payload, headers: request.proxied?.headers ?? {} })
    if (passed.ok && passed.value === 'lost') this.parts.tallies.lose()
    reply.conclude(passed)
  }

  /** `DELETE /callbacks/{id}`. */
  unregister(request: Request, reply: Reply): void {
    reply.conclude(this.parts.channels.removeCallback(idOf(request)))
  }

  /** Ends all readers: the node stops. */
  endAll(): void {
    for (const reader of [...this.readers]) reader.end('stopping')
  }
}

/** The connection that reads one event source. */
class SourceReader implements ChannelReader {
  private answer: EventAnswer | undefined
  /** Events that have no room yet, up to `waitingMax` characters behind the first. */
  private waiting: string[] = []
  private next = 0
  private characters = 0
  private isFull = false
  private isSilent = false
  private isOver = false
  private stopSilence: (() => void) | undefined
  /** undefined: there is no access control. */
  readonly rights: StreamRights | undefined

  constructor(
    private readonly id: string,
    private readonly reply: Reply,
    private readonly parts: ProxyParts,
    private readonly onOver: () => void,
    right: StreamReaderRights | undefined,
  ) {
    this.rights = right && new StreamRights(right.asker, parts.clock, () => this.end('refused'))
    if (right) this.rights?.addWhole(right.scope)
  }

  begin(init: string): void {
    this.answer = this.reply.events(
      () => this.onRoom(),
      () => this.over('client'),
    )
    if (!this.answer) return this.over('client')
    this.parts.tallies.begin('proxy')
    // Browsers wait 3 s before they come back, unless the server names another time.
    this.write(`retry: 1000\nevent: init\ndata: ${init}\n\n`)
    this.commentLater()
  }

  onNotification(callback: string, { payload, headers }: ProxiedNotification): void {
    if (this.isOver) return
    this.parts.tallies.event('notification')
    const text = `event: notification\ndata: ${JSON.stringify({ callback_id: callback, payload, headers })}\n\n`
    // A single event may be longer than all that may wait.
    if (!this.isFull) return this.write(text)
    this.waiting.push(text)
    this.characters += text.length
    if (this.characters > waitingMax) this.end('slow')
  }

  onEnd(): void {
    this.end('client')
  }

  end(by: ClosedBy): void {
    const { answer, isFull } = this
    if (this.isOver) return
    this.over(by)
    if (isFull) answer?.close()
    else answer?.end()
  }

  private over(by: ClosedBy): void {
    if (this.isOver) return
    this.isOver = true
    this.rights?.stop()
    if (this.answer) this.parts.tallies.end('proxy', by)
    this.stopSilence?.()
    this.waiting = []
    this.parts.channels.detach(this.id, this)
    this.onOver()
  }

  private onRoom(): void {
    this.isFull = false
    while (!this.isFull && !this.isOver && this.next < this.waiting.length) {
      let text = ''
      while (this.next < this.waiting.length && text.length < writtenMax) text += this.waiting[this.next++]
      this.characters -= text.length
      this.write(text)
    }
    if (this.next < this.waiting.length) return this.dropWritten()
    this.waiting = []
    this.next = 0
  }

  /** Frees the events that were written, once they are the larger part. */
  private dropWritten(): void {
    if (this.next * 2 < this.waiting.length) return
    this.waiting = this.waiting.slice(this.next)
    this.next = 0
  }

  private write(text: string): void {
    this.isSilent = false
    this.isFull = !this.answer!.write(text)
  }

  /** Writes a comment when nothing else was written for a while. */
  private commentLater(): void {
    this.isSilent = true
    this.stopSilence = this.parts.clock.after(silenceMsMax, () => {
      if (this.isSilent && !this.isFull) this.write(silence)
      this.commentLater()
    })
  }
}

/** What passes through an event source may be about any path. */
function rightsOf(request: Request): StreamReaderRights | undefined {
  const tenant = tenantOf(request)
  return request.permit && tenant.ok
    ? { asker: request.permit.asker, scope: { tenant: tenant.value, servicePath: '/#' } }
    : undefined
}

const sourceUrl = (origin: string, id: string): string => `${origin}/eventsource/${id}`

const idOf = ({ components }: Request): string => components[1] ?? ''

function originOf({ proxied }: Request): Result<string> {
  return proxied?.origin === undefined ? refused(refusals.hostUnusable) : accepted(proxied.origin)
}

function connectionOf(request: Request, body: Uint8Array): Result<string> {
  const payload = jsonPayload(request, body)
  if (!payload.ok) return payload
  const { value } = payload.value
  const id = isObject(value) && Object.hasOwn(value, 'connection_id') ? value.connection_id : undefined
  return typeof id === 'string' ? accepted(id) : refused(refusals.connectionId)
}

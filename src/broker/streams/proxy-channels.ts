// The event sources and callbacks of ngsi-proxy in this process (docs/interface/live.md#ngsi-proxy).
//
// A client opens an event source, and registers callbacks at it. A notification for a callback goes to the reader of
// its event source at once. If there is no reader it is lost, as in ngsi-proxy. Ids are the only protection of what
// passes here: they are random, and a caller that does not know one learns nothing.
//
// An event source without a reader ends after a while, with its callbacks. At the limit it ends earlier: first those
// that no client has read yet, the oldest of them first.
//
// Not here: HTTP, the form of an event, and what waits for a slow reader (http/ngsi-proxy.ts).

import { accepted, type Refusal, type Result, refusals, refused } from '../../domain/refusal.js'
import type { Chance, Clock } from '../../ports.js'

/** Event sources at a time. Each costs some 500 bytes. */
export const eventSourcesMax = 10_000
/** Callbacks of one event source, and of all. Each costs some 300 bytes. */
export const callbacksOfSourceMax = 1_000
export const callbacksMax = 100_000
/** How long an event source may wait for its first reader. */
export const unreadMsMax = 60_000
/** How long it waits for a reader that has gone: as long as in ngsi-proxy. */
export const awayMsMax = 1_440_000
/** How often event sources without a reader are looked at. */
const lookMs = 5_000

/** A notification as it came: its body, and the headers that are passed on, by their lower-case names. */
export interface ProxiedNotification {
  readonly payload: string
  readonly headers: Readonly<Record<string, string>>
}

/** The connection that reads an event source. */
export interface ChannelReader {
  onNotification(callback: string, notification: ProxiedNotification): void
  /** Another reader has come, or the event source was removed. The channels know the reader no more. */
  onEnd(): void
}

interface EventSource {
  readonly id: string
  readonly callbacks: Set<string>
  reader: ChannelReader | undefined
  /** While it has no reader: when it ends. */
  untilMs: number
}

export interface ChannelParts {
  readonly clock: Pick<Clock, 'monoMs' | 'after'>
  readonly chance: Pick<Chance, 'uuid'>
}

export class ProxyChannels {
  private readonly sources = new Map<string, EventSource>()
  private readonly callbacks = new Map<string, EventSource>()
  /** Without a reader: never read yet, and read before. Both in the order in which they end. */
  private readonly unread = new Set<EventSource>()
  private readonly away = new Set<EventSource>()
  private isLooking = false

  constructor(private readonly parts: ChannelParts) {}

  /** The number of event sources. */
  get size(): number {
    return this.sources.size
  }

  /** The number of callbacks of all event sources. */
  get callbackCount(): number {
    return this.callbacks.size
  }

  /** Opens an event source, and returns its id. */
  open(): Result<string> {
    if (this.sources.size >= eventSourcesMax && !this.makeRoom())
      return refused(refusals.eventSourcesTooMany(eventSourcesMax))
    const source: EventSource = { id: this.parts.chance.uuid(), callbacks: new Set(), reader: undefined, untilMs: 0 }
    this.sources.set(source.id, source)
    this.waitIn(this.unread, source, unreadMsMax)
    return accepted(source.id)
  }

  /** Registers a callback at an event source, and returns its id. */
  register(id: string): Result<string> {
    const source = this.sources.get(id)
    if (!source) return refused(refusals.eventSourceNotFound)
    const full = this.fullFor(source)
    if (full) return refused(full)
    const callback = this.parts.chance.uuid()
    source.callbacks.add(callback)
    this.callbacks.set(callback, source)
    return accepted(callback)
  }

  /** Gives an event source a reader, in place of an earlier one. False: there is no such event source. */
  attach(id: string, reader: ChannelReader): boolean {
    const source = this.sources.get(id)
    if (!source) return false
    const earlier = source.reader
    source.reader = reader
    this.unread.delete(source)
    this.away.delete(source)
    earlier?.onEnd()
    return true
  }

  /** The reader has gone. It may come back. */
  detach(id: string, reader: ChannelReader): void {
    const source = this.sources.get(id)
    if (source?.reader !== reader) return
    source.reader = undefined
    this.waitIn(this.away, source, awayMsMax)
  }

  /** Passes a notification to the reader of a callback. `lost`: there is no reader at the moment. */
  pass(callback: string, notification: ProxiedNotification): Result<'passed' | 'lost'> {
    const source = this.callbacks.get(callback)
    if (!source) return refused(refusals.callbackNotFound)
    if (!source.reader) return accepted('lost')
    source.reader.onNotification(callback, notification)
    return accepted('passed')
  }

  removeCallback(callback: string): Result<unknown> {
    const source = this.callbacks.get(callback)
    if (!source) return refused(refusals.callbackNotFound)
    source.callbacks.delete(callback)
    this.callbacks.delete(callback)
    return accepted(undefined)
  }

  /** Removes an event source with its callbacks, and ends its reader. */
  removeSource(id: string): Result<unknown> {
    const source = this.sources.get(id)
    if (!source) return refused(refusals.eventSourceNotFound)
    this.remove(source)
    return accepted(undefined)
  }

  private fullFor({ callbacks }: EventSource): Refusal | undefined {
    if (callbacks.size >= callbacksOfSourceMax) return refusals.callbacksTooMany(callbacksOfSourceMax)
    return this.callbacks.size >= callbacksMax ? refusals.callbacksTooMany(callbacksMax) : undefined
  }

  /** Ends an event source without a reader. False: each has one. */
  private makeRoom(): boolean {
    for (const waiting of [this.unread, this.away])
      for (const source of waiting) {
        this.remove(source)
        return true
      }
    return false
  }

  private remove(source: EventSource): void {
    const { id, callbacks, reader } = source
    this.sources.delete(id)
    for (const callback of callbacks) this.callbacks.delete(callback)
    this.unread.delete(source)
    this.away.delete(source)
    source.reader = undefined
    reader?.onEnd()
  }

  private waitIn(waiting: Set<EventSource>, source: EventSource, waitMs: number): void {
    source.untilMs = this.parts.clock.monoMs() + waitMs
    waiting.add(source)
    this.lookLater()
  }

  private lookLater(): void {
    if (this.isLooking) return
    this.isLooking = true
    this.parts.clock.after(lookMs, () => {
      this.isLooking = false
      for (const waiting of [this.unread, this.away]) this.endDue(waiting)
      if (this.unread.size + this.away.size > 0) this.lookLater()
    })
  }

  /** All of a set wait equally long, so the first one is the first that is due. */
  private endDue(waiting: Set<EventSource>): void {
    const nowMs = this.parts.clock.monoMs()
    for (const source of waiting) {
      if (source.untilMs > nowMs) return
      this.remove(source)
    }
  }
}

// A reader of live feeds, with one connection: one watch over Server-Sent Events, or some over WebSocket. It stops
// reading for a while, leaves, comes back with its last cursor, an earlier one or none, and begins a watch again.
//
// Not here: what it must receive (feed-checker).

import { setTimeout as pause } from 'node:timers/promises'
import type { Random } from '../support/random.js'
import { chance } from '../support/random-entity.js'
import { fitsUrl, watchMembers, watchParameters } from '../support/random-feed.js'
import type { Bookmark, FeedChecker } from './feed-checker.js'
import { type FeedConnection, type FeedEvent, type FeedListener, FeedSocket, openEventStream } from './feed-client.js'

/** The broker, as a reader sees it. */
export interface ReadFrom {
  url(random: Random): string
}

export interface ReaderPlan {
  readonly random: Random
  readonly broker: ReadFrom
  /** One, unless it is a WebSocket. */
  readonly feeds: readonly FeedChecker[]
  readonly isSocket: boolean
  /** The longest time without reading. */
  readonly stallMsMax: number
}

const patienceMs = 60_000
const lookMs = 10
const againMs = 50

export class FeedReader {
  /** A fault that no event shows. */
  fault: string | undefined
  private readonly plan: ReaderPlan
  private connection: FeedConnection | undefined
  private readonly begun = new Set<FeedChecker>()
  private readonly earlier = new Map<FeedChecker, Bookmark>()
  /** Whether the first watch is requested by the URL of a WebSocket. */
  private readonly isFirstByUrl: boolean

  constructor(plan: ReaderPlan) {
    this.plan = plan
    const [first] = plan.feeds as readonly [FeedChecker]
    this.isFirstByUrl = !plan.isSocket || (fitsUrl(first.watch) && chance(plan.random, 0.3))
  }

  get feeds(): readonly FeedChecker[] {
    return this.plan.feeds
  }

  get problem(): string | undefined {
    return this.fault ?? this.plan.feeds.find(({ problem }) => problem !== undefined)?.problem
  }

  /** Reads, with all that may happen to a reader, until `stop`. */
  async read(isOver: () => boolean): Promise<void> {
    const { random } = this.plan
    while (!isOver() && !this.problem) {
      await this.connected(() => this.nextPlaces(), isOver)
      await pause(random.between(20, 500))
      if (!isOver()) await this.act(isOver)
    }
  }

  /** Reads on until nothing is missing; returns the fault if something is missing for long. */
  async catchUp(waitMs: number): Promise<string | undefined> {
    const untilMs = performance.now() + waitMs
    this.connection?.resume()
    for (;;) {
      await this.connected(
        () => this.nextPlaces(false),
        () => this.problem !== undefined,
      )
      if (this.problem) return this.problem
      const missing = this.plan.feeds.map(feed => feed.missing()).find(text => text !== undefined)
      if (missing === undefined && this.begun.size === this.plan.feeds.length) break
      if (performance.now() > untilMs) return missing ?? 'a watch does not begin'
      await pause(lookMs)
    }
    return this.plan.feeds.map(feed => feed.difference()).find(text => text !== undefined)
  }

  close(): void {
    this.connection?.close()
    this.connection = undefined
  }

  private async act(isOver: () => boolean): Promise<void> {
    const { random, feeds, stallMsMax, isSocket } = this.plan
    const draw = random.fraction()
    for (const feed of feeds) if (feed.place && chance(random, 0.3)) this.earlier.set(feed, feed.place)
    if (draw < 0.25) {
      this.connection?.pause()
      for (
        const untilMs = performance.now() + random.between(50, stallMsMax);
        performance.now() < untilMs && !isOver();
      )
        await pause(lookMs)
      this.connection?.resume()
    } else if (draw < 0.6) {
      this.leave('left')
      await pause(random.between(0, 400))
    } else if (draw < 0.75 && isSocket) await this.rewatch(feeds[random.between(0, feeds.length - 1)] as FeedChecker)
  }

  private leave(why: string): void {
    this.connection?.close()
    this.connection = undefined
    this.begun.clear()
    for (const feed of this.plan.feeds) feed.closed(why)
  }

  /** Ends a watch, and begins it again behind its last event. */
  private async rewatch(feed: FeedChecker): Promise<void> {
    const { connection } = this
    if (!(connection instanceof FeedSocket) || !this.begun.has(feed)) return
    connection.send({ op: 'unwatch', id: this.idOf(feed) })
    await this.until(() => !this.begun.has(feed) || this.connection !== connection)
    if (this.connection === connection) this.watch(connection, feed, feed.place)
  }

  /** With which bookmarks the next connection begins. */
  private nextPlaces(isRandom = true): ReadonlyMap<FeedChecker, Bookmark | undefined> {
    const { random, feeds } = this.plan
    return new Map(
      feeds.map(feed => {
        const draw = isRandom ? random.fraction() : 1
        return [feed, draw < 0.08 ? undefined : draw < 0.25 ? (this.earlier.get(feed) ?? feed.place) : feed.place]
      }),
    )
  }

  /** Connects, if there is no connection, until it works. */
  private async connected(
    places: () => ReadonlyMap<FeedChecker, Bookmark | undefined>,
    isOver: () => boolean,
  ): Promise<void> {
    const untilMs = performance.now() + patienceMs
    while (!this.connection && !this.problem) {
      this.connect(places())
      const { connection } = this
      await this.until(() => this.begun.size === this.plan.feeds.length || this.connection !== connection)
      if (this.connection || isOver()) return
      if (performance.now() > untilMs) this.fault = 'the broker does not answer streams'
      await pause(againMs)
    }
  }

  private connect(places: ReadonlyMap<FeedChecker, Bookmark | undefined>): void {
    const { broker, random, feeds, isSocket } = this.plan
    const url = broker.url(random)
    const [first] = feeds as readonly [FeedChecker]
    const { target, headers } = this.request(first, this.isFirstByUrl ? places.get(first) : undefined)
    if (!isSocket) {
      first.opening(places.get(first))
      const listener = this.listener(() => this.connection === opened)
      const opened = openEventStream(url + target, headers, listener)
      this.connection = opened
      return
    }
    const listener = this.listener(() => this.connection === socket)
    if (this.isFirstByUrl) first.opening(places.get(first))
    const socket: FeedSocket = new FeedSocket(url + target, headers, listener, () => {
      for (const feed of feeds) if (feed !== first || !this.isFirstByUrl) this.watch(socket, feed, places.get(feed))
    })
    this.connection = socket
  }

  /** The first request, with the tenant and perhaps the path in headers or parameters. */
  private request({ model, watch }: FeedChecker, from: Bookmark | undefined) {
    const { random, isSocket } = this.plan
    const parameters = new URLSearchParams(this.isFirstByUrl ? watchParameters(watch) : {})
    const headers: Record<string, string> = {}
    if (chance(random, 0.5)) headers['Ctx-Service'] = model.tenant
    else parameters.set('tenant', model.tenant)
    if (this.isFirstByUrl && (watch.path !== '/#' || chance(random, 0.5))) {
      if (chance(random, 0.5)) headers['Ctx-ServicePath'] = watch.path
      else parameters.set('path', watch.path)
    }
    if (from && (isSocket || chance(random, 0.5))) parameters.set('from', from.cursor)
    else if (from) headers['Last-Event-ID'] = from.cursor
    return { target: `/v2/stream?${parameters}`, headers }
  }

  private watch(socket: FeedSocket, feed: FeedChecker, from: Bookmark | undefined): void {
    feed.opening(from)
    socket.send({
      op: 'watch',
      id: this.idOf(feed),
      ...watchMembers(feed.watch, this.plan.random),
      path: feed.watch.path,
      ...(from && { from: from.cursor }),
    })
  }

  private idOf(feed: FeedChecker): string {
    const at = this.plan.feeds.indexOf(feed)
    return at === 0 && this.isFirstByUrl ? '' : `w${at}`
  }

  private listener(isCurrent: () => boolean): FeedListener {
    const feedOf = (id: string) => this.plan.feeds.find(feed => this.idOf(feed) === id)
    return {
      onBegun: (id, cursor) => {
        const feed = feedOf(id)
        if (!isCurrent() || !feed) return
        this.begun.add(feed)
        feed.begun(cursor)
      },
      onEvent: (id, event) => isCurrent() && this.take(feedOf(id), event),
      onUnwatched: id => {
        const feed = feedOf(id)
        if (!isCurrent() || !feed) return
        this.begun.delete(feed)
        feed.closed('unwatched')
      },
      onClosed: (status, text) => {
        if (!isCurrent()) return
        if (status !== undefined && status !== 503) this.fault = `a stream was refused: ${status} ${text}`
        this.leave(text)
      },
    }
  }

  private take(feed: FeedChecker | undefined, event: FeedEvent): void {
    // The end of a connection is that of all its watches.
    if (event.kind === 'end') for (const one of this.plan.feeds) one.take(event)
    else if (!feed) this.fault ??= `an event of no watch: ${JSON.stringify(event)}`
    else if (!this.begun.has(feed)) feed.noteFault(`${event.kind} before or after the watch: ${JSON.stringify(event)}`)
    else feed.take(event)
  }

  private trails(): string {
    return this.plan.feeds.map(feed => `\n${feed.received} (${this.begun.has(feed) ? 'begun' : 'not begun'})`).join('')
  }

  private async until(isSo: () => boolean): Promise<void> {
    const untilMs = performance.now() + patienceMs
    while (!isSo() && !this.problem) {
      if (performance.now() > untilMs) this.fault ??= `a watch does not begin or end${this.trails()}`
      await pause(lookMs)
    }
  }
}

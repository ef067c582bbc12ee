// Reads a stream of Server-Sent Events, as a browser does: it parses events, and keeps the last cursor.

import { get, type IncomingMessage } from 'node:http'
import type { Test } from 'tap'
import { ownText } from '../../src/domain/recent.js'

/** An entity of an event: its attributes in either representation. */
export interface EventEntity {
  readonly id: string
  readonly type: string
  readonly [attribute: string]: unknown
}

/** The number that an attribute has, in either representation. */
export function numberIn(entity: EventEntity | undefined, attribute: string): number {
  const shown = entity?.[attribute]
  return (typeof shown === 'number' ? shown : (shown as { value: number }).value) as number
}

/**
 * The data of an event: each kind has some of these members (docs/interface/live.md#events). `payload` and `headers` are
 * those of a notification that ngsi-proxy's routes pass on.
 */
export interface EventData {
  readonly data: readonly EventEntity[]
  readonly alterationType: string
  readonly changed: readonly string[]
  readonly servicePath: string
  readonly time: string
  readonly correlator: string
  readonly id: string
  readonly type: string
  readonly end: boolean
  readonly count: number
  readonly reason: string
  readonly since: string
  readonly payload: string
  readonly headers: Readonly<Record<string, string>>
}

export interface ReadEvent {
  readonly kind: string
  readonly cursor: string | undefined
  readonly data: EventData
}

export class EventReader {
  readonly events: ReadEvent[] = []
  /** The status of a stream that was refused, with its answer. */
  refused: { readonly status: number; readonly text: string } | undefined
  /** The cursor of the last event that had one. */
  cursor: string | undefined
  isClosed = false
  /** What is kept of the data of an event. */
  keep: (data: EventData) => EventData = data => data
  private response: IncomingMessage | undefined
  private waiting: (() => void)[] = []
  private rest = ''

  /** Opens a stream, and resolves when it has begun or was refused. */
  static async open(t: Test, url: string, headers: Readonly<Record<string, string>> = {}): Promise<EventReader> {
    const reader = new EventReader()
    t.teardown(() => reader.close())
    await new Promise<void>((resolve, reject) => {
      const request = get(url, { agent: false, headers: { Accept: 'text/event-stream', ...headers } }, response => {
        reader.take(response, resolve)
      })
      request.on('error', error => (reader.response ? reader.end() : reject(error)))
    })
    return reader
  }

  private take(response: IncomingMessage, onBegun: () => void): void {
    this.response = response
    response.setEncoding('utf8')
    response.on('error', () => {})
    response.on('close', () => this.end())
    if (response.statusCode === 200) {
      response.on('data', (text: string) => this.read(text))
      return onBegun()
    }
    let text = ''
    response.on('data', (part: string) => {
      text += part
    })
    response.on('end', () => {
      this.refused = { status: response.statusCode as number, text }
      onBegun()
    })
  }

  private read(text: string): void {
    const blocks = (this.rest + text).split('\n\n')
    this.rest = blocks.pop() as string
    for (const block of blocks) {
      const fields = new Map(
        block.split('\n').map(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
      )
      const kind = fields.get('event')
      if (kind === undefined) continue
      const id = fields.get('id')
      // A part of a text keeps all of it in memory.
      const cursor = id && ownText(id)
      this.cursor = cursor ?? this.cursor
      this.events.push({ kind: ownText(kind), cursor, data: this.keep(JSON.parse(fields.get('data') as string)) })
    }
    this.wake()
  }

  private end(): void {
    this.isClosed = true
    this.wake()
  }

  private wake(): void {
    const { waiting } = this
    this.waiting = []
    for (const one of waiting) one()
  }

  /** Waits until the events, or the end of the stream, are as wanted. */
  async until(what: string, isSo: (reader: this) => boolean, waitMsMax = 60_000): Promise<void> {
    const untilMs = performance.now() + waitMsMax
    while (!isSo(this)) {
      const leftMs = untilMs - performance.now()
      if (leftMs <= 0) throw new Error(`waited too long for ${what}: ${JSON.stringify(this.events.slice(-5))}`)
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, leftMs)
        this.waiting.push(() => {
          clearTimeout(timer)
          resolve()
        })
      })
    }
  }

  /** Waits for an event of a kind, and returns the first one. */
  async first(kind: string): Promise<ReadEvent> {
    await this.until(`an event ${kind}`, ({ events }) => events.some(event => event.kind === kind))
    return this.events.find(event => event.kind === kind) as ReadEvent
  }

  /** The kinds of the events, without bookmarks. */
  kinds(): string[] {
    return this.events.map(({ kind }) => kind).filter(kind => kind !== 'bookmark')
  }

  /** Stops reading, so that the server cannot write more, or goes on. */
  pause(): void {
    this.response?.pause()
  }

  resume(): void {
    this.response?.resume()
  }

  close(): void {
    this.response?.destroy()
  }
}

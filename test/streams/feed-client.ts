// A client of live feeds over either transport: it opens a connection, and calls back with each event.
//
// One meaning for both: an event has a kind, mostly a cursor, and data as docs/interface/live.md#events has them. Over
// WebSocket each event belongs to one of several watches.
//
// Not here: what an event should be (feed-checker), when to connect and to leave (feed-reader).

import { get, type IncomingMessage } from 'node:http'
import { WebSocket } from 'ws'
import type { JsonObject } from '../support/reference-entities.js'

export interface FeedEvent {
  readonly kind: string
  readonly cursor: string | undefined
  readonly data: JsonObject
}

/** Called by a connection. `watch`: the name of the watch; over Server-Sent Events the empty text. */
export interface FeedListener {
  /** The watch has begun. `cursor`: where it begins, if the server says so. */
  onBegun(watch: string, cursor: string | undefined): void
  onEvent(watch: string, event: FeedEvent): void
  /** The watch has ended at the client's own request. */
  onUnwatched(watch: string): void
  /** Nothing follows. `status`: that of a refusal; undefined: the connection has ended. */
  onClosed(status: number | undefined, text: string): void
}

export interface FeedConnection {
  /** Stops reading, so that the server cannot write more, or continues. */
  pause(): void
  resume(): void
  close(): void
}

/** Opens a stream of Server-Sent Events. */
export function openEventStream(
  url: string,
  headers: Readonly<Record<string, string>>,
  listener: FeedListener,
): FeedConnection {
  let response: IncomingMessage | undefined
  let isOver = false
  const end = (status: number | undefined, text: string) => {
    if (!isOver) listener.onClosed(status, text)
    isOver = true
  }
  const request = get(url, { agent: false, headers: { Accept: 'text/event-stream', ...headers } }, begun => {
    response = begun
    begun.setEncoding('utf8')
    begun.on('error', () => {})
    if (begun.statusCode !== 200) {
      let text = ''
      begun.on('data', (part: string) => {
        text += part
      })
      begun.on('close', () => end(begun.statusCode, text))
      return
    }
    listener.onBegun('', undefined)
    const blocks = new Blocks()
    begun.on('data', (text: string) => {
      for (const block of blocks.take(text)) {
        const event = eventOf(block)
        if (event && !isOver) listener.onEvent('', event)
      }
    })
    begun.on('close', () => end(undefined, 'the stream has ended'))
  })
  request.on('error', ({ message }) => end(undefined, message))
  return {
    pause: () => response?.pause(),
    resume: () => response?.resume(),
    close: () => {
      isOver = true
      request.destroy()
    },
  }
}

/** Divides a text that comes in parts at its empty lines. */
class Blocks {
  private parts: string[] = []

  take(text: string): string[] {
    if (!text.includes('\n')) {
      this.parts.push(text)
      return []
    }
    const blocks = (this.parts.join('') + text).split('\n\n')
    this.parts = [blocks.pop() as string]
    return blocks
  }
}

function eventOf(block: string): FeedEvent | undefined {
  const fields = new Map<string, string>()
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':')
    fields.set(line.slice(0, colon), line.slice(colon + 1).trimStart())
  }
  const kind = fields.get('event')
  if (kind === undefined) return undefined
  return { kind, cursor: fields.get('id'), data: JSON.parse(fields.get('data') ?? '{}') as JsonObject }
}

/** A WebSocket, which has watches of its own. */
export class FeedSocket implements FeedConnection {
  private readonly socket: WebSocket
  private isOver = false

  constructor(url: string, headers: Readonly<Record<string, string>>, listener: FeedListener, onOpen: () => void) {
    this.socket = new WebSocket(url.replace(/^http/, 'ws'), ['ngsi-v2.stream'], { headers })
    const end = (status: number | undefined, text: string) => {
      if (!this.isOver) listener.onClosed(status, text)
      this.isOver = true
    }
    this.socket.on('open', () => !this.isOver && onOpen())
    this.socket.on('unexpected-response', (_request, { statusCode }) => {
      end(statusCode, 'refused')
      this.socket.terminate()
    })
    this.socket.on('error', ({ message }) => end(undefined, message))
    this.socket.on('close', code => end(undefined, `closed with ${code}`))
    this.socket.on('message', (text: Buffer) => {
      if (!this.isOver) dispatch(JSON.parse(String(text)) as JsonObject, listener)
    })
  }

  send(message: JsonObject): void {
    this.socket.send(JSON.stringify(message))
  }

  pause(): void {
    this.socket.pause()
  }

  resume(): void {
    this.socket.resume()
  }

  close(): void {
    this.isOver = true
    this.socket.terminate()
  }
}

function dispatch(message: JsonObject, listener: FeedListener): void {
  const { op, id, event, cursor, entity, ...rest } = message
  const name = String(id ?? '')
  const place = cursor === undefined ? undefined : String(cursor)
  if (op === 'event')
    listener.onEvent(name, {
      kind: String(event),
      cursor: place,
      data: entity === undefined ? rest : (entity as JsonObject),
    })
  else if (op === 'watching') listener.onBegun(name, place)
  else if (op === 'unwatched') listener.onUnwatched(name)
  else listener.onClosed(message.error === 'Unavailable' ? 503 : 400, JSON.stringify(message))
}

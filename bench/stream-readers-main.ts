// Readers of streams as a program of its own: many connections that read the live feed, and what they have received.
//
// Commands come over the channel of `fork` (stream-readers.ts). Every update has its own value (`ownValueHole`), so it
// is known when a stream received it, by the clock that all processes of a machine share.

import { connect, type Socket } from 'node:net'
import { WebSocket } from 'ws'
import { steadyMs } from './machine.js'
import type { Arrivals, ReadersCommand, ReadersReply, Transport } from './stream-readers.js'

/** How many connections are opened at a time. */
const openedAtOnce = 50

interface Reader {
  stop(): void
  goOn(): void
  close(): void
}

const readers: Reader[] = []
let events = 0
let gaps = 0
/** Of each value: when the last stream received it, and how many streams did. */
const arrivals = new Map<number, { lastMs: number; streams: number }>()
let notesValues = false

process.on('message', (command: ReadersCommand) => {
  run(command).then(
    reply => process.send!(reply),
    (error: Error) => process.send!({ error: error.message } satisfies ReadersReply),
  )
})
process.once('disconnect', () => process.exit(0))

async function run(command: ReadersCommand): Promise<ReadersReply> {
  switch (command.what) {
    case 'open':
      return open(command)
    case 'count':
      return { events, gaps }
    case 'arrivals':
      return { arrivals: [...arrivals].map(([value, { lastMs, streams }]): Arrivals => [value, lastMs, streams]) }
    case 'forget':
      arrivals.clear()
      notesValues = command.notesValues
      return {}
    case 'stall':
      for (const reader of readers.slice(0, command.count)) reader.stop()
      return {}
    case 'close':
      for (const reader of readers) reader.close()
      readers.length = 0
      return {}
  }
}

async function open({
  url,
  transport,
  count,
  query,
  watches,
}: ReadersCommand & { what: 'open' }): Promise<ReadersReply> {
  for (let opened = 0; opened < count; opened += openedAtOnce) {
    const some = Array.from({ length: Math.min(openedAtOnce, count - opened) }, (_, k) =>
      openOne(
        transport,
        url,
        query,
        watches?.slice(
          (opened + k) * perConnection(watches, count),
          (opened + k + 1) * perConnection(watches, count),
        ) ?? [],
      ),
    )
    readers.push(...(await Promise.all(some)))
  }
  return {}
}

const perConnection = (watches: readonly string[] | undefined, count: number): number =>
  Math.ceil((watches?.length ?? 0) / count)

const openOne = (transport: Transport, url: string, query: string, watches: readonly string[]): Promise<Reader> =>
  transport === 'sse' ? openEvents(url, query) : openSocket(url, query, watches)

/** `text`: one event, or several. */
function note(text: string): void {
  if (!notesValues) return
  const nowMs = steadyMs()
  for (const [, value] of text.matchAll(/"value":(\d{12})/g)) {
    const known = arrivals.get(Number(value))
    if (known) {
      known.lastMs = nowMs
      known.streams++
    } else arrivals.set(Number(value), { lastMs: nowMs, streams: 1 })
  }
}

/** Resolves when the stream has begun. */
function openEvents(url: string, query: string): Promise<Reader> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket: Socket = connect(Number(port), hostname)
    let rest = ''
    socket.setEncoding('latin1')
    socket.once('error', reject)
    socket.write(`GET /v2/stream${query} HTTP/1.1\r\nHost: ${hostname}\r\nAccept: text/event-stream\r\n\r\n`)
    socket.on('data', (chunk: string) => {
      const text = rest + chunk
      const end = text.lastIndexOf('\n\n')
      rest = end < 0 ? text : text.slice(end + 1)
      if (end < 0) return
      const whole = text.slice(0, end + 1)
      if (whole.includes('retry:'))
        resolve({ stop: () => socket.pause(), goOn: () => socket.resume(), close: () => socket.destroy() })
      if (whole.includes('event: gap')) gaps++
      for (let at = whole.indexOf('event: entity'); at >= 0; at = whole.indexOf('event: entity', at + 1)) events++
      note(whole)
    })
  })
}

/** Resolves when all its watches have begun. */
function openSocket(url: string, query: string, watches: readonly string[]): Promise<Reader> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v2/stream${query}`, { perMessageDeflate: false })
  let missing = watches.length + (query === '' ? 0 : 1)
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    const reader = { stop: () => socket.pause(), goOn: () => socket.resume(), close: () => socket.terminate() }
    socket.once('open', () => {
      for (const watch of watches) socket.send(watch)
      if (missing === 0) resolve(reader)
    })
    socket.on('message', (message: Buffer) => {
      const text = message.toString('latin1')
      if (text.startsWith('{"op":"event"')) {
        if (text.includes('"event":"entity')) events++
        else if (text.includes('"event":"gap"')) gaps++
        note(text)
      } else if (text.startsWith('{"op":"watching"')) {
        if (--missing === 0) resolve(reader)
      } else reject(new Error(text))
    })
  })
}

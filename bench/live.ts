// The live feed: the cost of streams, how soon they receive a change, how many events leave a node, and what they cost
// others (docs/interface/live.md).
//
// The readers are a program of their own, which shares a core with the generator. With two cores it saturates before
// the server does, so rates of events are lower bounds.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { drive } from './generator.js'
import { loadStock } from './loader.js'
import { cpuSeconds, residentBytes, steadyMs } from './machine.js'
import { startOpenLoop } from './open-loop.js'
import type { RateOptions } from './rate-options.js'
import { startReceiver } from './receiver.js'
import { atLeast, atMost, type Finding, information, median, percentile, progress, rate, thousands } from './report.js'
import { type Server, start } from './servers.js'
import { type Readers, startReaders, type Transport } from './stream-readers.js'
import {
  fill,
  ownUpdateOf,
  ownUpdates,
  ownValues,
  singleBatches,
  stockId,
  stockSize,
  updates,
  upserts,
  wire,
} from './workloads.js'

export interface LiveOptions extends RateOptions {
  /** Open streams that receive nothing. */
  readonly idle: number
  /** Streams that receive every change. */
  readonly streams: number
  /** Watches that find nothing. */
  readonly others: number
}

const needed = {
  idleBytes: 20 * 1024,
  lateMs: 50,
  ofNotifications: 5,
  withOthers: 0.95,
  withStalled: 1.2,
  updateOfHttp: 1.5,
}

/** Everything of the stock. */
const all = '?type=Sensor&attrs=temperature&options=keyValues'
const allWithValues = '?type=Sensor&attrs=temperature'
const watchesPerConnection = 100
const changesPerSecond = 10
const unanswered = 64
/** Until most garbage of earlier work has been collected. */
const quietMs = 6_000

export async function live(options: LiveOptions): Promise<Finding[]> {
  const { folder, subject } = options
  const dataDir = join(folder, 'live')
  const args = ['-maxConnections', '30000', '-maxStreams', '30000']
  const server = await start(subject, dataDir, 'server', { args })
  await loadStock([server.url], upserts[0]!.template, '', stockSize)
  const findings = [
    ...(await idle(server, options, 'sse')),
    ...(await idle(server, options, 'websocket')),
    ...(await lateness(server, options)),
    ...(await eventRates(server, options)),
    ...(await withOtherStreams(server, options)),
    ...(await updatesOf(server, options)),
  ]
  await server.stop()
  rmSync(dataDir, { recursive: true })
  return findings
}

async function withReaders<T>(use: (readers: Readers) => Promise<T>): Promise<T> {
  const readers = startReaders()
  try {
    return await use(readers)
  } finally {
    readers.stop()
    // The server notices that they have gone.
    await delay(500)
  }
}

// Memory

const idle = (server: Server, { idle: count }: LiveOptions, transport: Transport): Promise<Finding[]> =>
  withReaders(async readers => {
    await delay(quietMs)
    const before = residentBytes(server.pid).now
    const from = performance.now()
    await readers.ask({ what: 'open', url: server.url, transport, count, query: '?type=Nothing' })
    const seconds = (performance.now() - from) / 1000
    await delay(quietMs)
    const bytes = (residentBytes(server.pid).now - before) / count
    progress(
      `${thousands(count)} streams over ${transport}: ${thousands(bytes)} bytes each, opened in ${seconds.toFixed(1)} s`,
    )
    return [
      atMost(
        `memory of one of ${thousands(count)} idle streams, ${transport}`,
        `${thousands(bytes)} bytes`,
        bytes,
        needed.idleBytes,
        'bytes',
      ),
    ]
  })

// How soon

/** From the answer of a change to its arrival at the last stream, in milliseconds. */
async function waysOf(server: Server, readers: Readers, streams: number, seconds: number): Promise<readonly number[]> {
  await readers.ask({ what: 'forget', notesValues: true })
  const answered = new Map<number, number>()
  const first = ownValues(changesPerSecond * seconds)
  const loop = await startOpenLoop({
    urls: [server.url],
    perSecond: changesPerSecond,
    connections: 2,
    count: changesPerSecond * seconds,
    request: n => wire(ownUpdateOf(stockId((n * 7919) % stockSize), first + n), ''),
    onAnswer: (n, { isSuccess, head }, _due, atMs) => {
      if (!isSuccess) throw new Error(head)
      answered.set(first + n, atMs)
    },
  })
  await loop.ended
  await delay(1_000)
  const { arrivals = [] } = await readers.ask({ what: 'arrivals' })
  const ways = arrivals.flatMap(([value, lastMs, count]) => (count >= streams ? [lastMs - answered.get(value)!] : []))
  if (ways.length < answered.size) throw new Error(`${answered.size - ways.length} changes did not reach every stream`)
  return ways
}

async function lateness(server: Server, { streams, seconds }: LiveOptions): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const transport of ['sse', 'websocket'] as const)
    await withReaders(async readers => {
      await readers.ask({ what: 'open', url: server.url, transport, count: streams, query: allWithValues })
      await waysOf(server, readers, streams, 3)
      const ways = await waysOf(server, readers, streams, 2 * seconds)
      const [p50, p99] = [percentile(ways, 0.5), percentile(ways, 0.99)]
      progress(`one change to ${streams} streams over ${transport}: p50 ${p50.toFixed(1)}, p99 ${p99.toFixed(1)} ms`)
      await readers.ask({ what: 'stall', count: 1 })
      // More than the system's buffers take.
      const beside = await waysOf(server, readers, streams - 1, 2 * seconds)
      const besideP99 = percentile(beside, 0.99)
      findings.push(
        atMost(
          `one change to ${thousands(streams)} streams, ${transport}, from its answer to the last one`,
          `p50 ${p50.toFixed(1)}, p99 ${p99.toFixed(1)} ms`,
          p99,
          needed.lateMs,
          'ms',
        ),
        atMost(
          '  the same beside one that reads nothing, p99',
          `${(besideP99 / p99).toFixed(2)} times: ${besideP99.toFixed(1)} ms`,
          besideP99 / p99,
          needed.withStalled,
          'times',
        ),
      )
    })
  return findings
}

// How many

async function notificationRate(server: Server, options: LiveOptions): Promise<number> {
  const { folder, connections, seconds, warmUpSeconds } = options
  const receiver = await startReceiver(folder)
  const body = JSON.stringify({
    subject: { entities: [{ idPattern: '.*', type: 'Sensor' }], condition: { attrs: ['temperature'] } },
    notification: { http: { url: receiver.url }, attrs: ['temperature'] },
  })
  const created = await fetch(`${server.url}/v2/subscriptions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body,
  })
  const driven = { urls: [server.url], workload: ownUpdates, connections, tenant: '', place: 'generator' } as const
  await drive({ ...driven, seconds: warmUpSeconds })
  const before = await receiver.counts()
  const from = performance.now()
  await drive({ ...driven, seconds })
  const after = await receiver.counts()
  const perSecond = ((after.received - before.received) / (performance.now() - from)) * 1000
  await fetch(server.url + created.headers.get('location')!, { method: 'DELETE' })
  await receiver.stop()
  return perSecond
}

async function eventRates(server: Server, options: LiveOptions): Promise<Finding[]> {
  const { streams, seconds, rounds } = options
  const found: Record<Transport | 'http', number[]> = { sse: [], websocket: [], http: [] }
  for (let round = 1; round <= rounds; round++) {
    found.http.push(await notificationRate(server, options))
    for (const transport of ['sse', 'websocket'] as const)
      await withReaders(async readers => {
        await readers.ask({ what: 'open', url: server.url, transport, count: streams, query: all })
        const load = { urls: [server.url], workload: updates, connections: 1, tenant: '', place: 'generator' } as const
        await drive({ ...load, seconds: 2 })
        const before = await readers.ask({ what: 'count' })
        const from = performance.now()
        await drive({ ...load, seconds })
        const after = await readers.ask({ what: 'count' })
        found[transport].push(((after.events! - before.events!) / (performance.now() - from)) * 1000)
      })
    progress(
      `round ${round}: notifications ${thousands(found.http.at(-1)!)}/s, events over sse ${thousands(found.sse.at(-1)!)}/s, ` +
        `over websocket ${thousands(found.websocket.at(-1)!)}/s`,
    )
  }
  const ofHttp = (transport: Transport): Finding => {
    const times = median(found[transport]) / median(found.http)
    return atLeast(
      `events to ${thousands(streams)} streams, ${transport}, against notifications over HTTP`,
      `${times.toFixed(1)} times: ${rate(found[transport])}/s`,
      times,
      needed.ofNotifications,
    )
  }
  return [information('notifications over HTTP', `${rate(found.http)}/s`), ofHttp('sse'), ofHttp('websocket')]
}

// What they cost others

/** The n-th of the mix of many-subscriptions.ts, as a watch: the stock's updates do not match it. */
function otherWatch(n: number): string {
  const number = stockSize + n
  const kinds: readonly object[] = [
    { entities: [{ id: `urn:sensor:${stockId(number)}` }] },
    { type: 'Sensor', q: `temperature>${number}` },
    { entities: [{ idPattern: `^urn:sensor:${stockId(number)}`, type: 'Sensor' }] },
    { entities: [{ idPattern: '.*' }], conditionAttrs: `other${n}` },
  ]
  return JSON.stringify({ op: 'watch', id: String(n), ...kinds[n % kinds.length] })
}

async function withOtherStreams(server: Server, options: LiveOptions): Promise<Finding[]> {
  const { others, rounds, connections, seconds, warmUpSeconds } = options
  const load = { urls: [server.url], workload: updates, connections, tenant: '', place: 'generator' } as const
  const found: Record<'none' | 'many', number[]> = { none: [], many: [] }
  const measure = async (): Promise<number> => {
    await drive({ ...load, seconds: warmUpSeconds })
    const outcome = await drive({ ...load, seconds })
    return outcome.requests / outcome.seconds
  }
  for (let round = 1; round <= rounds; round++) {
    found.none.push(await measure())
    await withReaders(async readers => {
      const watches = Array.from({ length: others }, (_, n) => otherWatch(n))
      const count = Math.ceil(others / watchesPerConnection)
      await readers.ask({ what: 'open', url: server.url, transport: 'websocket', count, query: '', watches })
      found.many.push(await measure())
    })
    progress(
      `round ${round}: PATCH beside no watch ${thousands(found.none.at(-1)!)}/s, ` +
        `beside ${thousands(others)} ${thousands(found.many.at(-1)!)}/s`,
    )
  }
  const share = median(found.many) / median(found.none)
  return [
    atLeast(
      `update beside ${thousands(others)} watches that find nothing`,
      `${share.toFixed(2)}: ${rate(found.many)}/s of ${rate(found.none)}/s`,
      share,
      needed.withOthers,
    ),
  ]
}

// Updates over a WebSocket

async function updatesOf(server: Server, options: LiveOptions): Promise<Finding[]> {
  const { rounds, seconds, warmUpSeconds } = options
  const load = { urls: [server.url], workload: singleBatches, connections: unanswered, tenant: '' } as const
  const found: Record<'http' | 'websocket', number[]> = { http: [], websocket: [] }
  for (let round = 1; round <= rounds; round++) {
    await drive({ ...load, place: 'generator', seconds: warmUpSeconds })
    const before = cpuSeconds(server.pid)
    const outcome = await drive({ ...load, place: 'generator', seconds })
    found.http.push(outcome.requests / (cpuSeconds(server.pid) - before))
    await overSocket(server, warmUpSeconds)
    const cpuBefore = cpuSeconds(server.pid)
    const done = await overSocket(server, seconds)
    found.websocket.push(done / (cpuSeconds(server.pid) - cpuBefore))
    progress(
      `round ${round}: updates per CPU second over HTTP ${thousands(found.http.at(-1)!)}, ` +
        `over one WebSocket ${thousands(found.websocket.at(-1)!)} (${thousands(done / seconds)}/s)`,
    )
  }
  const times = median(found.websocket) / median(found.http)
  return [
    atLeast(
      `updates over one WebSocket, ${unanswered} unanswered, against HTTP, per CPU second`,
      `${times.toFixed(2)} times: ${rate(found.websocket)} of ${rate(found.http)}`,
      times,
      needed.updateOfHttp,
    ),
  ]
}

/** The number of updates that were answered. */
function overSocket(server: Server, seconds: number): Promise<number> {
  const socket = new WebSocket(`${server.url.replace('http', 'ws')}/v2/stream`, { perMessageDeflate: false })
  const { template } = singleBatches[0]!
  const untilMs = steadyMs() + seconds * 1000
  let [sent, done] = [0, 0]
  const send = (): void => {
    const body = fill(template.body, () => stockId((sent * 7919) % stockSize))
    socket.send(`{"op":"update","ref":${sent++},"body":${body}}`)
  }
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.once('open', () => {
      for (let n = 0; n < unanswered; n++) send()
    })
    socket.on('message', (message: Buffer) => {
      if (!message.includes('"status":204')) return reject(new Error(message.toString()))
      done++
      if (steadyMs() < untilMs) send()
      else if (done === sent) {
        socket.terminate()
        resolve(done)
      }
    })
  })
}

// Many subscriptions that an update does not match: their cost for the update, their memory, and the time that a start
// takes with them.
//
// Of a hundred, 40 name an id. 25 name the updated type, and a `q` that does not hold. 25 have a pattern that begins
// like the updated ids, and goes on otherwise. 10 are about any entity, but about an attribute that no client updates;
// these have a hundred patterns, none of which begins with fixed text. The bench serves two directories in turn, with
// few and with many of them, each round in the other order.
//
// Memory is the worse of two numbers: the difference in resident memory between the two after their starts, and the
// growth while the many were created, garbage included.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { drive } from './generator.js'
import { load, loadStock } from './loader.js'
import { cpuSeconds, residentBytes } from './machine.js'
import type { RateOptions } from './rate-options.js'
import { atLeast, atMost, type Finding, information, median, progress, rate, thousands } from './report.js'
import { type Server, start } from './servers.js'
import { stockId, stockSize, updates, upserts, wire } from './workloads.js'

export interface ManyOptions extends RateOptions {
  /** Number of subscriptions in the larger directory. */
  readonly others: number
}

const needed = { ofFew: 0.8, bytes: 5000, startMs: 2000 }
const few = 10
/**
 * Pause after a start or a load: the server takes in all subscriptions, and most garbage of earlier work is collected.
 */
const quietMs = 6000
const creatingConnections = 64

type Size = 'few' | 'many'

export async function manySubscriptions(options: ManyOptions): Promise<Finding[]> {
  const { folder, subject, others, rounds } = options
  const directory = (size: Size): string => join(folder, `subscriptions-${size}`)
  const created = {
    few: await create(await start(subject, directory('few'), 'server'), few),
    many: await create(await start(subject, directory('many'), 'server'), others),
  }
  const found = { few: none(), many: none() }
  for (let round = 1; round <= rounds; round++)
    for (const size of round % 2 === 1 ? (['few', 'many'] as const) : (['many', 'few'] as const)) {
      const server = await start(subject, directory(size), 'server')
      const { startMs, startCpu, bytes, perSecond, perCpuSecond } = found[size]
      startMs.push(server.readyMs)
      startCpu.push(cpuSeconds(server.pid))
      await delay(quietMs)
      bytes.push(residentBytes(server.pid).now)
      const one = await updateRate(server, options)
      perSecond.push(one.perSecond)
      perCpuSecond.push(one.perCpuSecond)
      await server.stop()
      progress(
        `round ${round} with ${size} subscriptions: start ${server.readyMs.toFixed(0)} ms, CPU ${(startCpu.at(-1)! * 1000).toFixed(0)} ms, ` +
          `${(bytes.at(-1)! / 1e6).toFixed(0)} MB, ${thousands(one.perSecond)}/s, ${thousands(one.perCpuSecond)} per CPU second`,
      )
    }
  for (const size of ['few', 'many'] as const) rmSync(directory(size), { recursive: true })

  const share = (figure: 'perSecond' | 'perCpuSecond'): number => median(found.many[figure]) / median(found.few[figure])
  const afterStart = (median(found.many.bytes) - median(found.few.bytes)) / others
  const afterCreation = created.many.bytes / others
  const count = thousands(others)
  const inMs = (size: Size): string =>
    `${median(found[size].startMs).toFixed(0)} ms (CPU ${(median(found[size].startCpu) * 1000).toFixed(0)})`
  return [
    atLeast(
      `update beside ${count} others, against ${few}`,
      `${share('perSecond').toFixed(2)}: ${rate(found.many.perSecond)}/s of ${rate(found.few.perSecond)}/s, ` +
        `per CPU second ${share('perCpuSecond').toFixed(2)}`,
      share('perSecond'),
      needed.ofFew,
    ),
    information(
      `creation of ${count} subscriptions`,
      `${thousands(others / created.many.seconds)}/s, ${created.many.seconds.toFixed(0)} s`,
    ),
    atMost(
      'memory of each',
      `${thousands(afterStart)} bytes after a start, ${thousands(afterCreation)} after creation`,
      Math.max(afterStart, afterCreation),
      needed.bytes,
      'bytes',
    ),
    atMost(
      `start with ${count}, ready line`,
      `${inMs('many')}, with ${few} ${inMs('few')}`,
      median(found.many.startMs),
      needed.startMs,
      'ms',
    ),
  ]
}

interface Found {
  readonly startMs: number[]
  /** CPU seconds. */
  readonly startCpu: number[]
  readonly bytes: number[]
  readonly perSecond: number[]
  readonly perCpuSecond: number[]
}
const none = (): Found => ({ startMs: [], startCpu: [], bytes: [], perSecond: [], perCpuSecond: [] })

/** Stores the stock and this number of subscriptions, and ends the server. */
async function create(server: Server, count: number): Promise<{ readonly seconds: number; readonly bytes: number }> {
  await loadStock([server.url], upserts[0]!.template, '', stockSize)
  await delay(quietMs)
  const before = residentBytes(server.pid).now
  const from = performance.now()
  await load({
    urls: [server.url],
    connections: creatingConnections,
    count,
    request: n => wire({ method: 'POST', path: '/v2/subscriptions', body: otherSubscription(n) }, ''),
    onAcknowledged: n => {
      if (n % 20_000 === 19_999) progress(`${thousands(n + 1)} subscriptions`)
    },
  })
  const seconds = (performance.now() - from) / 1000
  await delay(quietMs)
  const bytes = residentBytes(server.pid).now - before
  await server.stop()
  return { seconds, bytes }
}

// The kinds in their order: eight by id, five by type and `q`, five by pattern, two by attribute.
const kinds = 'iqipiqipaiqipiqpqiap'
const anyIdPatterns = 100
const anyIdPattern = (n: number): string => (n % anyIdPatterns === 0 ? '.*' : `.*-${n % anyIdPatterns}$`)

/** The n-th of the mix; the stock's updates do not match it. */
function otherSubscription(n: number): string {
  const number = stockSize + n
  const conditions: Readonly<Record<string, object>> = {
    i: { entities: [{ id: `urn:sensor:${stockId(number)}` }], condition: { attrs: ['temperature'] } },
    // The stock's temperatures have four digits.
    q: {
      entities: [{ idPattern: '.*', type: 'Sensor' }],
      condition: { attrs: ['temperature'], expression: { q: `temperature>${number}` } },
    },
    p: {
      entities: [{ idPattern: `^urn:sensor:${stockId(number)}`, type: 'Sensor' }],
      condition: { attrs: ['temperature'] },
    },
    a: {
      entities: [{ idPattern: anyIdPattern(Math.floor(n / kinds.length)) }],
      condition: { attrs: [`other${n}`] },
    },
  }
  return JSON.stringify({
    description: `subscription ${n} of the bench`,
    subject: conditions[kinds[n % kinds.length]!],
    notification: { http: { url: 'http://127.0.0.1:9/notify' }, attrs: ['temperature'] },
  })
}

async function updateRate(
  server: Server,
  { connections, seconds, warmUpSeconds }: ManyOptions,
): Promise<{ readonly perSecond: number; readonly perCpuSecond: number }> {
  const load = { urls: [server.url], workload: updates, connections, tenant: '', place: 'generator' as const }
  await drive({ ...load, seconds: warmUpSeconds })
  const before = cpuSeconds(server.pid)
  const outcome = await drive({ ...load, seconds })
  return {
    perSecond: outcome.requests / outcome.seconds,
    perCpuSecond: outcome.requests / (cpuSeconds(server.pid) - before),
  }
}

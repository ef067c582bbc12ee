// Lists over a million entities on one node: first pages, filters, places and orders, cold and warm, and the cost of
// views for writes.
//
// All stored entities are known (city), so every answer is checked: a wrong one fails the run. A cold answer is the
// first of its kind after the start, for which views may have to be built. Meanwhile a sampler reads and updates single
// entities, which must not have to wait. Then processes with and without views take turns on the same directory under
// updates and creates. The views that were kept up to date count the hot entities at the end, and so does the next
// process, which starts without views.
//
// The order of age of batches is known only if they do not race. So the batches that a first page shows are sent alone.

import { ok as assert } from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import {
  cityCreates,
  cityUpdates,
  counterOfNear,
  entityOf,
  hotSensors,
  hottest,
  idOf,
  type Kind,
  numberOf,
  placeOf,
  referenceOf,
} from './city.js'
import { Connection } from './connection.js'
import { drive } from './generator.js'
import { load } from './loader.js'
import { residentBytes } from './machine.js'
import type { RateOptions } from './rate-options.js'
import { atLeast, atMost, type Finding, information, median, percentile, progress, rate, thousands } from './report.js'
import { startSampler } from './sampler.js'
import { type Server, start } from './servers.js'
import { batchBody, batchPath, entitiesPerBatch, requestsOf, stockId, type Workload, wire } from './workloads.js'

export interface QueriesOptions extends RateOptions {
  /** Number of sensors; a multiple of 1000. */
  readonly count: number
}

const needed = {
  firstPagesPerSecond: 10_000,
  firstPageTimes: 3,
  coldMs: 5000,
  othersMs: 20,
  filterMs: 20,
  nearMs: 10,
  orderMs: 50,
  viewMb: 256,
  withViews: 0.85,
}
const few = 1000
const pageLength = 20
/** A page that takes longer alone is not requested by all connections at once: it would time out. */
const pageMsMax = 50
const nearMetres = 1000
const loadConnections = 16
const warmRequests = 200
/** Warm requests end earlier when they take this long: the result is then clear already. */
const warmSecondsMax = 20
const quietMs = 2000

/** For processes that must read every entity, however long it takes. */
const withoutViews = ['-viewMemory', '0', '-scanDeadline', '3600000']

/** The broker under test, and the sizes of its views that it has logged since the first start. */
interface Bench extends QueriesOptions {
  readonly views: readonly { readonly mb: number }[]
  start(args?: readonly string[]): Promise<Server>
}

export async function queries(options: QueriesOptions): Promise<Finding[]> {
  const bench = benchOf(options)
  assert(bench.count % 1000 === 0)
  const oldest = (bench.count / 10) * 9
  const server = await bench.start()
  const findings = [await storeAll(server, bench.count, oldest), ...(await firstPages(bench, server, 0))]
  const residentMb = residentBytes(server.pid).now / 1e6
  findings.push(...(await questionsAnswered(bench, server)), ...(await memory(bench, server, residentMb)))
  await server.stop()
  findings.push(...(await writing(bench)), ...(await afterDeletion(bench, oldest)))
  return findings
}

function benchOf(options: QueriesOptions): Bench {
  const dataDir = join(options.folder, `queries-${options.subject.name}`)
  rmSync(dataDir, { recursive: true, force: true })
  const views: { mb: number }[] = []
  const onLine = (line: string): void => {
    const view = /view of \d+ entities built in \d+ ms: \d+ columns?; all views take ([\d.]+) MB/.exec(line)
    if (!view) return
    views.push({ mb: Number(view[1]) })
    progress(view[0])
  }
  return {
    ...options,
    views,
    start: (args = []) => start(options.subject, dataDir, 'server', { args: ['-logLevel', 'INFO', ...args], onLine }),
  }
}

// Storing and removing.

async function storeAll({ url }: Server, count: number, oldest: number): Promise<Finding> {
  const from = performance.now()
  await store(url, 'Few', 0, few)
  await store(url, 'Sensor', 0, oldest)
  await store(url, 'Sensor', oldest, count)
  const loadSeconds = (performance.now() - from) / 1000
  const perSecond = thousands((few + count) / loadSeconds)
  return information(
    `${thousands(count)} entities by batches of ${entitiesPerBatch}`,
    `${perSecond}/s, ${loadSeconds.toFixed(0)} s`,
  )
}

/** Stores a range; all of it is newer than all earlier entities, and its first batch is the oldest. */
async function store(url: string, kind: Kind, from: number, until: number): Promise<void> {
  await sendBatches(url, 'append', kind, from, from + entitiesPerBatch)
  await sendBatches(url, 'append', kind, from + entitiesPerBatch, until)
}

async function sendBatches(
  url: string,
  action: 'append' | 'delete',
  kind: Kind,
  from: number,
  until: number,
): Promise<void> {
  const each = action === 'append' ? entityOf : referenceOf
  await load({
    urls: [url],
    connections: loadConnections,
    count: (until - from) / entitiesPerBatch,
    request: batch => {
      const first = from + batch * entitiesPerBatch
      const entities = Array.from({ length: entitiesPerBatch }, (_, k) => each(kind, first + k))
      return wire({ method: 'POST', path: batchPath, body: batchBody(action, entities) }, '')
    },
    onAcknowledged: batch => {
      const done = (batch + 1) * entitiesPerBatch
      if (done % 100_000 === 0) progress(`${action} of ${from + done} entities`)
    },
  })
}

// First pages.

const firstPagePath = (kind: Kind): string => `/v2/entities?type=${kind}&limit=${pageLength}`

/** The rates of both first pages, in turn; `oldest` is the oldest sensor. */
async function firstPages(bench: Bench, server: Server, oldest: number): Promise<Finding[]> {
  const found: Record<Kind, number[]> = { Few: [], Sensor: [] }
  for (let round = 1; round <= bench.rounds; round++) {
    found.Few.push(await firstPagesPerSecond(bench, server, 'Few', 0))
    found.Sensor.push(await firstPagesPerSecond(bench, server, 'Sensor', oldest))
  }
  const times = median(found.Few) / median(found.Sensor)
  const then = oldest === 0 ? '' : ' then'
  const fewFound = `${rate(found.Few)}/s, ${times.toFixed(2)} times that`
  return [
    atLeast(
      `first page of ${thousands(bench.count - oldest)}${then}`,
      `${rate(found.Sensor)}/s`,
      median(found.Sensor),
      needed.firstPagesPerSecond,
      '/s',
    ),
    atMost(`first page of ${thousands(few)}${then}`, fewFound, times, needed.firstPageTimes, 'times'),
  ]
}

async function firstPagesPerSecond(bench: Bench, server: Server, kind: Kind, oldest: number): Promise<number> {
  await checkFirstPage(server, kind, oldest)
  const aloneMs = await checkFirstPage(server, kind, oldest)
  if (aloneMs > pageMsMax) return 1000 / aloneMs
  const template = { method: 'GET', path: firstPagePath(kind), body: '' } as const
  return perSecond(bench, server, [{ template, ids: 'stock', weight: 1 }])
}

/** Milliseconds of one first page, whose ids must be those from `oldest` on. */
async function checkFirstPage({ url }: Server, kind: Kind, oldest: number): Promise<number> {
  const [{ ms, ids }] = await asked(url, [firstPagePath(kind)])
  const right = Array.from({ length: pageLength }, (_, k) => idOf(kind, oldest + k))
  assert(ids.join() === right.join(), `the first page of ${kind} is ${ids.join()}`)
  return ms
}

async function perSecond(bench: Bench, server: Server, workload: Workload): Promise<number> {
  const { connections, warmUpSeconds, seconds } = bench
  const driven = { urls: [server.url], workload, connections, tenant: '', place: 'generator' as const }
  await drive({ ...driven, seconds: warmUpSeconds })
  const { requests, seconds: took } = await drive({ ...driven, seconds })
  progress(`${workload[0]!.template.method} ${workload[0]!.template.path}: ${thousands(requests / took)}/s`)
  return requests / took
}

// Filters, places, orders.

interface Listed {
  readonly ms: number
  /** NaN when it was not requested. */
  readonly total: number
  readonly ids: readonly string[]
}

interface Question {
  readonly name: string
  /** The n-th of its kind. */
  path(n: number): string
  /** Throws when the answer to the n-th is wrong. */
  check(listed: Listed, n: number): void
  readonly warmMsMax: number
  readonly coldMsMax?: number
}

const filterPath = `/v2/entities?q=temperature%3E30&options=count&limit=${pageLength}&type=Sensor`
const orderPath = `/v2/entities?orderBy=!temperature&limit=${pageLength}`
/** Places of the same sequence that no sensor has. */
const nearPath = (count: number, n: number): string => {
  const [longitude, latitude] = placeOf('Sensor', count + n)
  return `/v2/entities?georel=near;maxDistance:${nearMetres}&geometry=point&coords=${latitude},${longitude}&options=count&limit=${pageLength}`
}

function questionsAbout(count: number): Question[] {
  const hot = new Set(hotSensors(0, count).map(n => idOf('Sensor', n)))
  const top = hottest(count, pageLength).join()
  const countNear = counterOfNear(count)
  return [
    {
      name: 'q=temperature>30',
      path: () => filterPath,
      check({ total, ids }) {
        assert(total === hot.size, `${total} are hot, not ${hot.size}`)
        assert(isPage(ids, total) && ids.every(id => hot.has(id)), `not all are hot: ${ids.join()}`)
      },
      warmMsMax: needed.filterMs,
      coldMsMax: needed.coldMs,
    },
    {
      name: `near within ${nearMetres} m`,
      path: n => nearPath(count, n),
      check({ total, ids }, n) {
        const near = countNear(placeOf('Sensor', count + n), nearMetres)
        assert(total === near, `${total} are near, not ${near}`)
        assert(isPage(ids, total), `not a page of ${total}: ${ids.join()}`)
      },
      warmMsMax: needed.nearMs,
    },
    {
      name: 'orderBy=!temperature',
      path: () => orderPath,
      check({ ids }) {
        assert(ids.join() === top, `the hottest are not ${ids.join()}`)
      },
      warmMsMax: needed.orderMs,
    },
  ]
}

const isPage = (ids: readonly string[], total: number): boolean =>
  ids.length === Math.min(total, pageLength) && new Set(ids.map(numberOf)).size === ids.length

async function questionsAnswered(bench: Bench, server: Server): Promise<Finding[]> {
  const others = await startSampler(server.url, otherRequests(bench.count))
  await delay(quietMs)
  const alone = percentile(await others.end(), 0.99)
  const findings = [information('reads and updates alone', `p99 ${inMs(alone)}`)]
  for (const question of questionsAbout(bench.count)) {
    findings.push(...(await cold(bench, server, question)), await warm(server, question))
  }
  return findings
}

/** Reads and updates of single entities, in turn. */
function otherRequests(count: number): (n: number) => string {
  const path = `/v2/entities/${idOf('Sensor', 0).replace(stockId(0), '{ID}')}`
  const far = (n: number): string => stockId((n * 7919) % count)
  const read = requestsOf({ method: 'GET', path, body: '' }, '', far)
  const body = '{"humidity":{"type":"Number","value":{N}}}'
  const update = requestsOf({ method: 'PATCH', path: `${path}/attrs`, body }, '', far)
  return n => (n % 2 === 0 ? read(n) : update(n))
}

async function cold({ count }: Bench, { url }: Server, question: Question): Promise<Finding[]> {
  const { name, coldMsMax } = question
  const sampler = await startSampler(url, otherRequests(count))
  const [first] = await asked(url, [question.path(0)])
  const samples = await sampler.end()
  question.check(first, 0)
  const p99 = percentile(samples, 0.99)
  const found = `p99 ${inMs(p99)}, worst ${inMs(percentile(samples, 1))}, ${samples.length} samples`
  progress(`${name}, cold: ${inMs(first.ms)}; others meanwhile ${found}`)
  if (coldMsMax === undefined)
    return [information(`${name}, cold`, inMs(first.ms)), information('others meanwhile', found)]
  return [
    atMost(`${name}, cold`, inMs(first.ms), first.ms, coldMsMax, 'ms'),
    atMost('others meanwhile', found, p99, needed.othersMs, 'ms'),
  ]
}

async function warm({ url }: Server, question: Question): Promise<Finding> {
  const { name, warmMsMax } = question
  const paths = Array.from({ length: warmRequests }, (_, n) => question.path(n + 1))
  const answers = await asked(url, paths, warmSecondsMax)
  for (const [n, listed] of answers.entries()) question.check(listed, n + 1)
  const took = answers.map(listed => listed.ms)
  const found = `${inMs(median(took))}, p99 ${inMs(percentile(took, 0.99))}, ${took.length} requests`
  progress(`${name}, warm: ${found}`)
  return atMost(`${name}, warm`, found, median(took), warmMsMax, 'ms')
}

const inMs = (value: number): string => `${value.toFixed(value < 100 ? 2 : 0)} ms`

/** Requests these lists one after another on its own connection, but no further ones after `secondsMax`. */
async function asked(
  url: string,
  paths: readonly string[],
  secondsMax = Number.POSITIVE_INFINITY,
): Promise<[Listed, ...Listed[]]> {
  const connection = await Connection.open(url)
  const answers: Listed[] = []
  const until = performance.now() + secondsMax * 1000
  for (const path of paths) {
    const from = performance.now()
    if (from > until) break
    const { isSuccess, head, body } = await connection.ask(wire({ method: 'GET', path, body: '' }, ''))
    const took = performance.now() - from
    if (!isSuccess) throw new Error(`${path} was answered ${head}\n${body}`)
    const ids = (JSON.parse(body) as { id: string }[]).map(({ id }) => id)
    answers.push({ ms: took, total: Number(/\r\n[\w-]+-total-count: *(\d+)/i.exec(head)?.[1] ?? Number.NaN), ids })
  }
  connection.close()
  return answers as [Listed, ...Listed[]]
}

/** A view is logged again with every further column, so the last line is about all columns. */
async function memory({ views }: Bench, { pid }: Server, beforeMb: number): Promise<Finding[]> {
  const resident = residentBytes(pid).now / 1e6
  const found = views.map(({ mb }) => mb.toFixed(1)).join(', then ')
  const last = views.at(-1)
  return [
    last ? atMost('views', `${found} MB`, last.mb, needed.viewMb, 'MB') : information('views', '-'),
    information('resident', `${resident.toFixed(0)} MB, before the queries ${beforeMb.toFixed(0)}`),
  ]
}

// Writing with views and without.

const writes = { update: cityUpdates, create: cityCreates }
type Write = keyof typeof writes
type Rates = Readonly<Record<Write, number[]>>

async function writing(bench: Bench): Promise<Finding[]> {
  const withRates: Rates = { update: [], create: [] }
  const withoutRates: Rates = { update: [], create: [] }
  let hot: number | undefined
  let builtAgain = 0
  for (let round = 1; round <= bench.rounds; round++) {
    // The second process has more entities, so each is second in turn.
    for (const hasViews of round % 2 === 1 ? [true, false] : [false, true]) {
      progress(`round ${round} of writing ${hasViews ? 'with' : 'without'} views`)
      const server = await bench.start(hasViews ? [] : withoutViews)
      if (hasViews) await asked(server.url, [nearPath(bench.count, 0), orderPath])
      if (hasViews || hot !== undefined) await checkHot(server, hot)
      const built = bench.views.length
      for (const write of ['update', 'create'] as const) {
        const rates = hasViews ? withRates : withoutRates
        rates[write].push(await perSecond(bench, server, writes[write]))
      }
      hot = hasViews ? await checkHot(server) : undefined
      builtAgain += bench.views.length - built
      await server.stop()
    }
  }
  if (builtAgain > 0)
    progress(`${builtAgain} views were built again while entities were written: they were not always live`)
  return (['update', 'create'] as const).map(write => {
    const share = median(withRates[write]) / median(withoutRates[write])
    const found = `${share.toFixed(2)}: ${rate(withRates[write])}/s of ${rate(withoutRates[write])}/s`
    return atLeast(`${write} with views`, found, share, needed.withViews)
  })
}

/** The number of hot entities, which must be `right` if that is known. */
async function checkHot({ url }: Server, right?: number): Promise<number> {
  const [{ total }] = await asked(url, [filterPath])
  assert(right === undefined || total === right, `${total} are hot; the views of the process before had ${right}`)
  return total
}

// After a deletion.

async function afterDeletion(bench: Bench, oldest: number): Promise<Finding[]> {
  const server = await bench.start()
  const hotBefore = await checkHot(server)
  const from = performance.now()
  await sendBatches(server.url, 'delete', 'Sensor', 0, oldest)
  const deletionSeconds = (performance.now() - from) / 1000
  const alone = await checkFirstPage(server, 'Sensor', oldest)
  const hot = await checkHot(server)
  // Updates may have cooled some, but no remaining sensor has become hot.
  const hotMax = Math.min(hotBefore, hotSensors(oldest, bench.count).length)
  assert(hot <= hotMax, `${hot} are hot after the deletion; it left ${hotMax} at most`)
  const pages = await firstPages(bench, server, oldest)
  await server.stop()
  return [
    information(`oldest ${thousands(oldest)} deleted`, `${thousands(oldest / deletionSeconds)}/s`),
    information('very first page then', inMs(alone)),
    ...pages,
  ]
}

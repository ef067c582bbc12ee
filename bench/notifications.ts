// Notifications: their cost for updates, their delay, and the effect of a receiver that does not answer on the others.
//
// Every update has its own value, and the receiver keeps all values, so no missing one goes unnoticed. An update counts
// when its notification has come: if it is answered quickly and sent late, the sending counts. The delay is the time
// from the answer at the client to the arrival at the receiver, so it may be negative; all processes of a machine share
// the clock.
//
// Not here: subscriptions that do not match (many-subscriptions.ts).

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { drive, type Outcome } from './generator.js'
import { load, loadStock } from './loader.js'
import { cpuSeconds, othersCpuSeconds } from './machine.js'
import { manySubscriptions } from './many-subscriptions.js'
import { sendPaced } from './open-loop.js'
import type { RateOptions } from './rate-options.js'
import { type Counts, type Receiver, startReceiver } from './receiver.js'
import { atLeast, atMost, type Finding, information, median, percentile, progress, rate, thousands } from './report.js'
import { bare, type Server, type Subject, start } from './servers.js'
import {
  fill,
  ownUpdates,
  ownValueHole,
  ownValues,
  stockId,
  stockSize,
  type Template,
  upserts,
  wire,
} from './workloads.js'

export interface NotificationsOptions extends RateOptions {
  /** Subscriptions that do not match. */
  readonly others: number
  /** How long updates continue with a receiver that does not answer: longer than its first timeouts take. */
  readonly deadSeconds: number
}

const needed = { ofPlain: 0.45, ofBare: 0.6, lateMs: 20, withDeadTimes: 1.5 }

export async function notifications(options: NotificationsOptions): Promise<Finding[]> {
  const { findings, perSecond } = await rates(options)
  const half = perSecond / 2
  return [
    ...findings,
    ...(await lateness(options, half)),
    ...(await withDeadReceivers(options, half)),
    ...(await manySubscriptions(options)),
  ]
}

/** A subscription that the stock's updates trigger. */
const subscribe = (url: string, ids = '.*'): Template => ({
  method: 'POST',
  path: '/v2/subscriptions',
  body: JSON.stringify({
    subject: { entities: [{ idPattern: ids, type: 'Sensor' }], condition: { attrs: ['temperature'] } },
    notification: { http: { url }, attrs: ['temperature'] },
  }),
})

/** Sends these requests in turn. */
const post = (server: Server, templates: readonly Template[]): Promise<void> =>
  load({ urls: [server.url], count: templates.length, request: n => wire(templates[n]!, '') })

/**
 * Findings: answered updates without a notification, the number of which must be 0, and notifications that came more
 * than once.
 */
function accounts(missing: number, again: number): Finding[] {
  return [
    atMost('notifications missing', thousands(missing), missing, 0, ''),
    information('that came again', thousands(again)),
  ]
}

// The cost of notifications.

type Case = 'plain' | 'notified' | 'bare'
const cases: readonly Case[] = ['plain', 'bare', 'notified']

interface Rates {
  /** Updates received by the receiver; `plain`: answered. */
  readonly perSecond: number[]
  readonly answeredPerSecond: number[]
  readonly perCpuSecond: number[]
}

async function rates(options: NotificationsOptions): Promise<{ findings: Finding[]; perSecond: number }> {
  const receiver = await startReceiver(options.folder)
  const none = (): Rates => ({ perSecond: [], answeredPerSecond: [], perCpuSecond: [] })
  const found: Record<Case, Rates> = { plain: none(), bare: none(), notified: none() }
  let [missing, again] = [0, 0]
  for (let round = 1; round <= options.rounds; round++)
    for (const kind of cases) {
      const one = await rateOf(options, kind, receiver)
      found[kind].perSecond.push(one.perSecond)
      found[kind].answeredPerSecond.push(one.answeredPerSecond)
      found[kind].perCpuSecond.push(one.perCpuSecond)
      missing += one.missing
      if (kind === 'notified') again += one.again
      progress(
        `round ${round} ${kind}: ${thousands(one.perSecond)}/s, answered ${thousands(one.answeredPerSecond)}/s, ` +
          `${thousands(one.perCpuSecond)} per CPU second, others ${one.othersCores.toFixed(2)} cores`,
      )
    }
  await receiver.stop()

  const { plain, notified } = found
  const line = (name: string, { perSecond, answeredPerSecond, perCpuSecond }: Rates): Finding =>
    information(
      name,
      `${rate(perSecond)}/s, answered ${thousands(median(answeredPerSecond))}/s, ${rate(perCpuSecond)} per CPU second`,
    )
  const share = (other: Rates, figure: 'perSecond' | 'perCpuSecond'): number =>
    median(notified[figure]) / median(other[figure])
  const both = (other: Rates): string =>
    `${share(other, 'perSecond').toFixed(2)}, per CPU second ${share(other, 'perCpuSecond').toFixed(2)}`
  // One of the two is enough.
  const ofPlain = atLeast('against the plain one', both(plain), share(plain, 'perSecond'), needed.ofPlain)
  const ofBare = atLeast('against the bare server', both(found.bare), share(found.bare, 'perSecond'), needed.ofBare)
  const isShort = ofPlain.isShort && ofBare.isShort
  return {
    findings: [
      line('update, plain', plain),
      line('update and notification, bare server', found.bare),
      line('update and notification', notified),
      { ...ofPlain, isShort },
      { ...ofBare, needed: `or ${ofBare.needed}`, isShort },
      ...accounts(missing, again),
    ],
    perSecond: median(notified.perSecond),
  }
}

interface Measured {
  readonly perSecond: number
  readonly answeredPerSecond: number
  readonly perCpuSecond: number
  readonly missing: number
  readonly again: number
  readonly othersCores: number
}

/** A warm-up is longer by this factor than elsewhere: twice the code is run, half as often. */
const warmUpTimes = 4

/** Measures the rate of one case, on an empty directory. */
async function rateOf(options: NotificationsOptions, kind: Case, receiver: Receiver): Promise<Measured> {
  const { folder, connections, seconds, warmUpSeconds } = options
  const dataDir = join(folder, `notifications-${kind}`)
  const server = await startNotifying(kind === 'bare' ? bare : options.subject, dataDir, receiver)
  if (kind === 'notified') await post(server, [subscribe(receiver.url)])
  const workload = ownUpdates
  const driven = { urls: [server.url], workload, connections, tenant: '', place: 'generator', settles: true } as const
  const isNotified = kind !== 'plain'
  const sendAll = async (sendSeconds: number): Promise<{ outcome: Outcome; counts: Counts; missing: number }> => {
    await receiver.forget()
    const outcome = await drive({ ...driven, seconds: sendSeconds })
    const counts = await receiver.countsAfter(isNotified ? outcome.requests : 0)
    const missing = isNotified ? outcome.requests - Math.min(counts.updates, counts.notifications) : 0
    return { outcome, counts, missing }
  }

  const warmUp = await sendAll(warmUpSeconds * warmUpTimes)
  const [cpuBefore, othersBefore, from] = [cpuSeconds(server.pid), othersCpu(server, receiver), performance.now()]
  const { outcome, counts, missing } = await sendAll(seconds)
  const cpu = cpuSeconds(server.pid) - cpuBefore
  const othersCores = ((othersCpu(server, receiver) - othersBefore) / (performance.now() - from)) * 1000
  await server.stop()
  rmSync(dataDir, { recursive: true })
  const untilReceivedS = isNotified ? (counts.lastMs - outcome.fromMs) / 1000 : 0
  return {
    perSecond: outcome.requests / Math.max(outcome.seconds, untilReceivedS),
    answeredPerSecond: outcome.requests / outcome.seconds,
    perCpuSecond: outcome.requests / cpu,
    missing: warmUp.missing + missing,
    again: counts.received - counts.updates,
    othersCores,
  }
}

/** A server that holds the stock; the bare one posts every update to the receiver. */
async function startNotifying(subject: Subject, dataDir: string, receiver: Receiver): Promise<Server> {
  const server = await start(subject, dataDir, 'server', { args: subject === bare ? ['-notify', receiver.url] : [] })
  await loadStock([server.url], upserts[0]!.template, '', stockSize)
  return server
}

const othersCpu = (server: Server, receiver: Receiver): number =>
  othersCpuSeconds(server.pid) - cpuSeconds(receiver.pid)

// The delay of notifications.

async function lateness(options: NotificationsOptions, perSecond: number): Promise<Finding[]> {
  const machine = await latenessOf(bare, options, perSecond)
  const { p50, p99, worst, missing, again } = await latenessOf(options.subject, options, perSecond)
  const found = (way: { p50: number; p99: number; worst: number }): string =>
    `p50 ${way.p50.toFixed(2)}, p99 ${way.p99.toFixed(2)}, worst ${way.worst.toFixed(0)} ms`
  return [
    information(`from answer to receiver at ${thousands(perSecond)}/s, bare server`, found(machine)),
    atMost('from answer to receiver', found({ p50, p99, worst }), p99, needed.lateMs, 'ms'),
    ...accounts(missing + machine.missing, again),
  ]
}

async function latenessOf(
  subject: Subject,
  options: NotificationsOptions,
  perSecond: number,
): Promise<{ p50: number; p99: number; worst: number; missing: number; again: number }> {
  const { folder, rounds, seconds, warmUpSeconds } = options
  const receiver = await startReceiver(folder)
  const dataDir = join(folder, 'lateness')
  const server = await startNotifying(subject, dataDir, receiver)
  if (subject !== bare) await post(server, [subscribe(receiver.url)])
  const path = (n: number): string => entityPath(stockId((n * 7919) % stockSize))
  const paced = { ...options, server, receiver, perSecond, path }
  const warmUp = await waysOf({ ...paced, seconds: warmUpSeconds })
  const ways: Ways[] = []
  for (let round = 1; round <= rounds; round++) {
    const way = await waysOf({ ...paced, seconds })
    ways.push(way)
    const [p50, p99] = [percentile(way.ms, 0.5), percentile(way.ms, 0.99)]
    progress(`round ${round} of the way from ${subject.name}: p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`)
  }
  await server.stop()
  await receiver.stop()
  rmSync(dataDir, { recursive: true })
  const sum = (figure: 'missing' | 'again'): number => [warmUp, ...ways].reduce((total, way) => total + way[figure], 0)
  return {
    p50: median(ways.map(({ ms }) => percentile(ms, 0.5))),
    p99: median(ways.map(({ ms }) => percentile(ms, 0.99))),
    worst: Math.max(...ways.map(({ ms }) => percentile(ms, 1))),
    missing: sum('missing'),
    again: sum('again'),
  }
}

const entityPath = (id: string): string => `/v2/entities/urn:sensor:${id}/attrs`

interface Ways {
  /** From the answer to the arrival. */
  readonly ms: readonly number[]
  readonly missing: number
  readonly again: number
}

/**
 * Sends updates at a pace, the n-th to `path(n)`. Reports the delays of expected notifications, the missing and the
 * repeated ones.
 */
async function waysOf(way: {
  readonly server: Server
  readonly receiver: Receiver
  readonly perSecond: number
  readonly seconds: number
  readonly connections: number
  readonly path: (n: number) => string
  /** By default all. */
  readonly isExpected?: (n: number) => boolean
}): Promise<Ways> {
  const { server, receiver, perSecond, seconds, connections, path, isExpected = () => true } = way
  const { body } = ownUpdates[0]!.template
  const first = ownValues(Math.ceil(perSecond * seconds) + 1)
  const request = (n: number): string =>
    wire({ method: 'PATCH', path: path(n), body: body.replace(ownValueHole, String(first + n)) }, '')
  await receiver.forget()
  const answered = await sendPaced({ url: server.url, perSecond, seconds, connections, request })
  const expected = answered.filter((_, n) => isExpected(n)).length
  const { received, updates: known } = await receiver.countsAfter(expected)
  const arrivals = (await receiver.arrivals()).filter(([value]) => value >= first)
  const ms = arrivals.map(([value, atMs]) => atMs - answered[value - first]!)
  return { ms, missing: expected - ms.length, again: received - known }
}

// Other receivers beside one that does not answer.

const lanes = 101
const entitiesPerLane = 10

async function withDeadReceivers(options: NotificationsOptions, perSecond: number): Promise<Finding[]> {
  const p99: { live: number[]; dead: number[] } = { live: [], dead: [] }
  let [missing, again] = [0, 0]
  for (let round = 1; round <= options.rounds; round++)
    for (const last of round % 2 === 1 ? (['live', 'dead'] as const) : (['dead', 'live'] as const)) {
      const way = await amongLanes(options, perSecond, last === 'dead')
      p99[last].push(percentile(way.ms, 0.99))
      missing += way.missing
      again += way.again
      progress(
        `round ${round}, the last of ${lanes} receivers is ${last}: ` +
          `p50 ${percentile(way.ms, 0.5).toFixed(2)} ms, p99 ${p99[last].at(-1)!.toFixed(2)} ms`,
      )
    }
  const [alone, withDead] = [median(p99.live), median(p99.dead)]
  const found = `${(withDead / alone).toFixed(2)}: p99 ${withDead.toFixed(2)} ms, with all live ${alone.toFixed(2)} ms`
  return [
    atMost(`${lanes - 1} receivers and a dead one`, found, withDead / alone, needed.withDeadTimes, 'times'),
    ...accounts(missing, again),
  ]
}

/** Sends updates of equally many entities for each receiver, in turn. */
async function amongLanes(options: NotificationsOptions, perSecond: number, hasDead: boolean): Promise<Ways> {
  const { folder, subject, deadSeconds, warmUpSeconds } = options
  const receiver = await startReceiver(folder, lanes)
  const { live, dead } = await receiver.lanes()
  const dataDir = join(folder, 'lanes')
  const server = await start(subject, dataDir, 'server')
  const idOf = (n: number): string => {
    const [lane, entity] = [n % lanes, Math.floor(n / lanes) % entitiesPerLane]
    return `${String(lane).padStart(4, '0')}-${String(entity).padStart(11, '0')}`
  }
  const { template } = upserts[0]!
  await load({
    urls: [server.url],
    count: lanes * entitiesPerLane,
    request: n => fill(wire(template, ''), () => idOf(n)),
  })
  const subscriptions = live.map((port, lane) => {
    const url = `http://127.0.0.1:${hasDead && lane === lanes - 1 ? dead : port}/lane`
    return subscribe(url, `^urn:sensor:${idOf(lane).slice(0, 5)}`)
  })
  await post(server, subscriptions)
  const paced = {
    ...options,
    server,
    receiver,
    perSecond,
    path: (n: number) => entityPath(idOf(n)),
    isExpected: (n: number) => !hasDead || n % lanes !== lanes - 1,
  }
  const warmUp = await waysOf({ ...paced, seconds: warmUpSeconds })
  const way = await waysOf({ ...paced, seconds: deadSeconds })
  await server.stop()
  await receiver.stop()
  rmSync(dataDir, { recursive: true })
  return { ms: way.ms, missing: way.missing + warmUp.missing, again: way.again + warmUp.again }
}

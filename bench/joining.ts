// The view of clients when a fourth node joins three that store many entities: how soon it has its share of the shards,
// and what requests wait meanwhile.
//
// Updates and reads come due at a pace, alternately, at the three nodes. The entities are in so many service paths that
// all shards have some. The time runs from the start of the fourth process until every node reports that all shards are
// at home and that shares are equal (nodes.ts). A request counts for the join if it waited at some moment of that time.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { load } from './loader.js'
import { steadyMs } from './machine.js'
import { type Nodes, startNodes } from './nodes.js'
import { type OpenLoop, startOpenLoop } from './open-loop.js'
import { atMost, type Finding, information, percentile, progress, thousands } from './report.js'
import type { Subject } from './servers.js'
import { batches, entitiesOf, fill, reads, stockId, type Template, updates, wire } from './workloads.js'

const needed = { balancedSeconds: 15, p99Ratio: 2 }
/**
 * Requests, of which every other one is an update: a rate that three nodes on two cores carry beside their generator.
 * Where requests queue before the join, the numbers show that queue.
 */
const perSecond = 200
const connections = 192
/** More than this number of batches in flight would only wait. */
const batchConnections = 12
/** Nodes that have just begun are slow, so refused batches are repeated for this time. */
const againMs = 20_000
/** Requests that do not count, and those that show the wait without a join. */
const warmUpMs = 5_000
const beforeMs = 10_000
/** Requests after the join, of which none may fail either. */
const afterMs = 2_000
/** Each is spread over some shards only. All of them together are in all shards. */
const paths = 256
/** Coprime to the number of entities: consecutive requests meet entities of different batches. */
const stride = 7919

export interface JoiningOptions {
  readonly subject: Subject
  readonly folder: string
  /** The number of entities, in whole batches. */
  readonly entities: number
}

interface Request {
  readonly dueMs: number
  readonly answeredMs: number
}

interface Span {
  readonly fromMs: number
  readonly toMs: number
}

export async function joining({ subject, folder, entities }: JoiningOptions): Promise<Finding[]> {
  const dataDir = join(folder, 'joining')
  const nodes = await startNodes(subject, dataDir, 3)
  await storeEntities(nodes.urls, entities)
  const requests: Request[] = []
  const refusals = new Map<string, number>()
  const loop = await startOpenLoop({
    urls: nodes.urls,
    perSecond,
    connections,
    request: n => requestOf(n, entities),
    onAnswer: (_, { isSuccess, head, body }, dueMs, answeredMs) => {
      requests.push({ dueMs, answeredMs })
      const what = `${head.split('\r\n')[0]} ${body}`
      if (!isSuccess) refusals.set(what, (refusals.get(what) ?? 0) + 1)
    },
  })
  const { before, during } = await joined(nodes, loop)
  const stored = await countAt(nodes.urls.at(-1)!)
  await nodes.stop()
  rmSync(dataDir, { recursive: true })
  for (const [what, count] of refusals) progress(`${count} times: ${what}`)
  const failed = [...refusals.values()].reduce((sum, count) => sum + count, 0)
  const waits = [before, during].map(span => waitsIn(requests, span))
  const [p99Before, p99During] = waits.map(all => percentile(all, 0.99))
  const seconds = (during.toMs - during.fromMs) / 1000
  const ratio = p99During! / p99Before!
  return [
    atMost(
      `fourth node joins ${thousands(entities)} entities: from its start until balanced`,
      `${seconds.toFixed(1)} s`,
      seconds,
      needed.balancedSeconds,
      's',
    ),
    information(`  requests at ${thousands(perSecond)}/s, before`, inMs(waits[0]!)),
    information('  the same during the join', inMs(waits[1]!)),
    atMost('  p99, of that before', ratio.toFixed(2), ratio, needed.p99Ratio, ''),
    atMost('  failed requests', `${thousands(failed)} of ${thousands(requests.length)}`, failed, 0, ''),
    atMost('  entities missing afterwards', thousands(entities - stored), Math.abs(entities - stored), 0, ''),
  ]
}

/** Starts the fourth node under the load; returns the times before and during the join. */
async function joined(nodes: Nodes, loop: OpenLoop): Promise<{ readonly before: Span; readonly during: Span }> {
  const run = async (): Promise<readonly number[]> => {
    await delay(warmUpMs)
    const beganMs = steadyMs()
    await delay(beforeMs)
    const startedMs = steadyMs()
    const index = await nodes.add()
    progress(`node ${nodes.nameOf(index)} answers after ${(steadyMs() - startedMs).toFixed(0)} ms`)
    await nodes.untilPlaced()
    const balancedMs = steadyMs()
    await delay(afterMs)
    return [beganMs, startedMs, balancedMs]
  }
  // The loop resolves when it is told to end, so before that it only rejects.
  const times = await Promise.race([run(), loop.ended.then(() => [])])
  await loop.end()
  const [beganMs, startedMs, balancedMs] = times
  return { before: { fromMs: beganMs!, toMs: startedMs! }, during: { fromMs: startedMs!, toMs: balancedMs! } }
}

function storeEntities(urls: readonly string[], entities: number): Promise<void> {
  const request = (n: number): string => {
    let next = n * entitiesPerBatch
    return fill(textOf(batchTexts, n), () => stockId(next++))
  }
  return load({ urls, count: entities / entitiesPerBatch, connections: batchConnections, againMs, request })
}

const { template: batch } = batches[0]!
const entitiesPerBatch = entitiesOf(batch)

/** A request for each service path. */
const textsOf = (template: Template): readonly string[] =>
  Array.from({ length: paths }, (_, path) => wire({ ...template, servicePath: `/p${path}` }, ''))

const batchTexts = textsOf(batch)
const updateTexts = textsOf(updates[0]!.template)
const readTexts = textsOf(reads[0]!.template)

/** The text for the path of a batch, by the number of the batch. */
const textOf = (texts: readonly string[], batchNumber: number): string => texts[batchNumber % paths]!

function requestOf(n: number, entities: number): string {
  const entity = (n * stride) % entities
  const text = textOf(n % 2 === 0 ? updateTexts : readTexts, Math.floor(entity / entitiesPerBatch))
  return fill(text, () => stockId(entity))
}

/** The number of entities in all paths, as a node counts them. */
async function countAt(url: string): Promise<number> {
  const headers = { 'Fiware-ServicePath': '/#' }
  const response = await fetch(`${url}/v2/entities?limit=1&options=count`, { headers })
  return Number(response.headers.get('Fiware-Total-Count'))
}

const waitsIn = (requests: readonly Request[], { fromMs, toMs }: Span): readonly number[] =>
  requests
    .filter(({ dueMs, answeredMs }) => dueMs <= toMs && answeredMs >= fromMs)
    .map(({ dueMs, answeredMs }) => answeredMs - dueMs)

function inMs(values: readonly number[]): string {
  const [p50, p99, worst] = [0.5, 0.99, 1].map(share => percentile(values, share).toFixed(1))
  return `p50 ${p50}, p99 ${p99}, worst ${worst} ms`
}

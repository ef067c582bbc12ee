// The view of clients when shards move in good order: a node gives all of its shards away and takes them again, while
// writes come due at a pace.
//
// The pause of a shard that has moved is the longest time that a write to it took, from its due time to its answer,
// among the writes that waited during the move. Its precision is the distance of two writes to one shard: the pause may
// be too short by that at most.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { countersOf, createCounters } from './counters.js'
import { steadyMs } from './machine.js'
import { type Nodes, type Owners, startNodes } from './nodes.js'
import { startOpenLoop } from './open-loop.js'
import { atMost, type Finding, information, median, percentile, progress, thousands } from './report.js'
import type { Subject } from './servers.js'

const needed = { pauseMs: 250 }
const countersPerShard = 10
/** More than the number of waiting writes when several shards pause for the longest accepted time. */
const connections = 192
/**
 * Number of shards that are written to, each as often as the pace allows: three nodes on two cores could not serve all.
 */
const shardsWritten = 32
/** Rounds that do not count: a node that has just begun compiles what a move runs. */
const warmUpRounds = 2
/** Before the first move, and after each: writes at rest. */
const restMs = 2000

interface Write {
  readonly shard: number
  readonly dueMs: number
  readonly tookMs: number
}

/** From the order to the moment when the order has been carried out. */
interface Move {
  readonly fromMs: number
  readonly toMs: number
  /** Shards that have moved, of those that are written to. */
  readonly moved: readonly number[]
}

export interface PlannedMovesOptions {
  readonly subject: Subject
  readonly folder: string
  /** In each round every node in turn gives its shards away and takes them again. */
  readonly rounds: number
  /** Writes to all shards together: 640 are one every 50 ms to each of 32. */
  readonly writesPerSecond: number
}

export async function plannedMoves(options: PlannedMovesOptions): Promise<Finding[]> {
  const { subject, folder, rounds, writesPerSecond: perSecond } = options
  const dataDir = join(folder, 'moves')
  const nodes = await startNodes(subject, dataDir, 1)
  const counters = countersOf(countersPerShard, nodes.shards).filter(({ shard }) => isWritten(shard, nodes.shards))
  await createCounters(nodes.urls, counters)
  const writes: Write[] = []
  const refusals = new Map<string, number>()
  const counterOf = (n: number) => counters[n % counters.length]!
  const loop = await startOpenLoop({
    urls: nodes.urls,
    perSecond,
    connections,
    request: n => counterOf(n).increment,
    onAnswer: (n, { isSuccess, head, body }, dueMs, answeredMs) => {
      writes.push({ shard: counterOf(n).shard, dueMs, tookMs: answeredMs - dueMs })
      const what = `${head.split('\r\n')[0]} ${body}`
      if (!isSuccess) refusals.set(what, (refusals.get(what) ?? 0) + 1)
    },
  })
  const moves: Move[] = []
  const moving = async (): Promise<void> => {
    await delay(restMs)
    for (let round = 1 - warmUpRounds; round <= rounds; round++)
      for (const index of nodes.indexes) {
        const both = await awayAndBack(nodes, index)
        if (round > 0) moves.push(...both)
        const pauses = both.flatMap(move => pausesOf(move, writes))
        progress(
          `${round > 0 ? `round ${round}` : 'warm-up'}, node ${nodes.nameOf(index)}: ${pauses.length} moves, ${inMs(pauses)}, ${durations(both)}`,
        )
      }
  }
  // The first failure is reported.
  await Promise.race([moving(), loop.ended])
  await loop.end()
  await nodes.stop()
  rmSync(dataDir, { recursive: true })
  for (const [what, count] of refusals) progress(`${count} times: ${what}`)
  const pauses = moves.flatMap(move => pausesOf(move, writes))
  const isDuring = (write: Write): boolean => moves.some(move => isWaitedFor(write, move))
  const [during, rest] = [true, false].map(wanted => writes.filter(write => isDuring(write) === wanted))
  const failed = [...refusals.values()].reduce((sum, count) => sum + count, 0)
  return [
    information(`writes at ${thousands(perSecond)}/s, at rest`, inMs(rest!.map(({ tookMs }) => tookMs))),
    information('the same while shards move', inMs(during!.map(({ tookMs }) => tookMs))),
    information(`move of a node's shards`, durations(moves)),
    atMost(
      `pause of a shard that moves, of ${thousands(pauses.length)}`,
      inMs(pauses),
      percentile(pauses, 0.99),
      needed.pauseMs,
      'ms',
    ),
    atMost('failed requests', `${thousands(failed)} of ${thousands(writes.length)}`, failed, 0, ''),
  ]
}

async function awayAndBack(nodes: Nodes, index: number): Promise<Move[]> {
  const moves: Move[] = []
  for (const run of [() => nodes.drain(index), () => nodes.resume(index).then(() => nodes.untilPlaced())]) {
    const before = await nodes.owners(index)
    const fromMs = steadyMs()
    await run()
    moves.push({ fromMs, toMs: steadyMs(), moved: changed(before, await nodes.owners(index)) })
    await delay(restMs)
  }
  return moves
}

const isWritten = (shard: number, shards: number): boolean => shard % (shards / shardsWritten) === 0

function changed(before: Owners, after: Owners): number[] {
  return before.flatMap((owner, shard) => (owner === after[shard] || !isWritten(shard, before.length) ? [] : [shard]))
}

const isWaitedFor = ({ dueMs, tookMs }: Write, { fromMs, toMs }: Move): boolean =>
  dueMs <= toMs && dueMs + tookMs >= fromMs

/** The longest wait for each shard that has moved. */
function pausesOf(move: Move, writes: readonly Write[]): number[] {
  const waits = new Map(move.moved.map(shard => [shard, 0]))
  for (const write of writes) {
    const longest = waits.get(write.shard)
    if (longest !== undefined && isWaitedFor(write, move)) waits.set(write.shard, Math.max(longest, write.tookMs))
  }
  return [...waits.values()]
}

function inMs(values: readonly number[]): string {
  const [p50, p99, worst] = [0.5, 0.99, 1].map(share => percentile(values, share).toFixed(0))
  return `p50 ${p50}, p99 ${p99}, worst ${worst} ms`
}

function durations(moves: readonly Move[]): string {
  const took = moves.map(({ fromMs, toMs }) => toMs - fromMs)
  return `median ${median(took).toFixed(0)}, worst ${Math.max(...took).toFixed(0)} ms`
}

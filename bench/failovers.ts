// The view of clients when a node dies: how soon other nodes answer for its shards, and whether every acknowledged
// write is still there, once.
//
// Each round kills one node, in turn, like a machine that dies: all its processes at once, in the midst of writes. The
// others are written to until each of its shards has acknowledged a write that was sent after the kill. Then the node
// is started again, and writes continue until it has its shards back.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Counter, countersOf, createCounters } from './counters.js'
import { type Accounts, CountingWriters, sumOf } from './counting-writers.js'
import { startNodes } from './nodes.js'
import { atMost, type Finding, information, median, percentile, progress, thousands } from './report.js'
import type { Subject } from './servers.js'

const needed = { failoverMs: 5_000, othersMs: 300 }
const countersPerShard = 2
/** Writes before a node is killed. */
const restMs = 3_000
/** The bench gives up after this time. */
const failoverMsMax = 60_000
/** Between two looks. */
const lookMs = 10

export async function failovers(subject: Subject, folder: string, rounds: number): Promise<Finding[]> {
  const dataDir = join(folder, 'failovers')
  // A failure of etcd is not measured here, so it has its usual three members.
  const nodes = await startNodes(subject, dataDir, 3)
  const counters: readonly Counter[] = countersOf(countersPerShard, nodes.shards)
  await createCounters(nodes.urls, counters)
  let dead: number | undefined
  let killedMs = Number.POSITIVE_INFINITY
  /** Shards for which no node has answered since the kill. */
  const silent = new Set<number>()
  const living = (): readonly string[] => nodes.urls.filter((_, index) => index !== dead)
  /** Those that the dead node owned. */
  const orphaned = new Set<number>()
  /** What writes to other shards have taken while some were silent. */
  const othersMs: number[] = []
  const writers = new CountingWriters(counters, living, (shard, sentMs, wantedMs) => {
    if (sentMs < killedMs) return
    if (silent.size > 0 && !orphaned.has(shard)) othersMs.push(performance.now() - wantedMs)
    silent.delete(shard)
  })
  const tookMs: number[] = []
  const accounts: Accounts[] = []
  for (let round = 0; round < rounds; round++) {
    const index = round % nodes.indexes.length
    writers.start()
    await delay(restMs)
    const owners = await nodes.owners(index)
    for (const [shard, owner] of owners.entries()) if (owner === nodes.nameOf(index)) silent.add(shard)
    const shards = silent.size
    orphaned.clear()
    for (const shard of silent) orphaned.add(shard)
    dead = index
    killedMs = performance.now()
    await nodes.kill(index)
    while (silent.size > 0) {
      if (performance.now() - killedMs > failoverMsMax)
        throw new Error(`nobody answers for the shards ${[...silent].join(', ')} after ${failoverMsMax} ms`)
      await delay(lookMs)
    }
    tookMs.push(performance.now() - killedMs)
    await nodes.start(index)
    dead = undefined
    killedMs = Number.POSITIVE_INFINITY
    await nodes.untilPlaced()
    await writers.stop()
    const found = await writers.check(nodes.urls[index]!)
    accounts.push(found)
    progress(
      `round ${round + 1}, node ${nodes.nameOf(index)} with ${shards} shards: ${tookMs.at(-1)!.toFixed(0)} ms, ` +
        `${found.acknowledged} acknowledged, ${found.refused} refused, ${found.unknown} unknown, ` +
        `${found.lost} lost, ${found.twice} twice`,
    )
  }
  writers.close()
  await nodes.stop()
  rmSync(dataDir, { recursive: true })
  const all = sumOf(accounts)
  const worst = Math.max(...tookMs)
  return [
    atMost(
      `node killed, its shards are written to again, ${rounds} rounds`,
      `median ${median(tookMs).toFixed(0)}, worst ${worst.toFixed(0)} ms`,
      worst,
      needed.failoverMs,
      'ms',
    ),
    atMost(
      'writes to shards of other nodes meanwhile',
      `p50 ${percentile(othersMs, 0.5).toFixed(0)}, p99 ${percentile(othersMs, 0.99).toFixed(0)} ms of ${thousands(othersMs.length)}`,
      percentile(othersMs, 0.99),
      needed.othersMs,
      'ms',
    ),
    information(
      'writes meanwhile',
      `${thousands(all.acknowledged)} acknowledged, ${thousands(all.refused)} refused, ${thousands(all.unknown)} unknown`,
    ),
    atMost('acknowledged writes lost', thousands(all.lost), all.lost, 0, ''),
    atMost('writes made twice', thousands(all.twice), all.twice, 0, ''),
  ]
}

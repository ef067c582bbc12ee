// How a worker connects with the others. Workers are a cluster on one machine: each shard has a fixed owner, the owner
// keeps the log of its shards in its own store, and worker 0 keeps the register.

import { randomUUID } from 'node:crypto'
import { type AskHost, type Asks, askOptionsDefault, startAsks } from '../../cluster/index.js'
import { ClusteredShards, type Nodes } from '../broker/clustered-shards.js'
import { systemClock } from '../clock.js'
import { keeper, workerOf } from '../domain/scope.js'
import type { Logger } from '../ports.js'
import type { Joined, OwnPart } from './surroundings.js'
import type { WorkerSettings } from './worker-protocol.js'

/** How long a worker waits for the others when it starts, and later for the owner of a shard. */
const meetMsMax = 3_000
const ownerWaitMs = 5_000

/** Connects a worker with the others; `listMs` is the time that one of them may take for a list. */
export async function joinWorkers(
  { index, workers, addresses }: WorkerSettings,
  { local, shardMap, pathsOf }: OwnPart,
  listMs: number,
  logger: Pick<Logger, 'warn'>,
): Promise<Joined> {
  const names = addresses.map((_, worker) => `worker ${worker}`)
  const peers = addresses.map((address, worker) => ({ name: names[worker]!, address }))
  const self = names[index]!
  const others = peers.filter(({ name }) => name !== self)
  const ownerOf = (shard: number): string => names[shard === shardMap.register ? keeper : workerOf(shard, workers)]!
  const listeners: (() => void)[] = []
  const host: AskHost = {
    onAsk: (shard, request, onReply, view, from) => shards.onAsk(shard, request, onReply, view, from),
  }
  const asks = await startAsks(peers[index]!, randomUUID(), [], host, systemClock)
  const nodes: Nodes = {
    self,
    ownerOf,
    serves: shard => ownerOf(shard) === self,
    isLost: false,
    viewOf: () => onlyView,
    ownView: onlyView,
    ask: (name, shard, request, onOutcome, waitMs, view) => asks.ask(name, shard, request, onOutcome, waitMs, view),
    noteUndecodable: (name, what) => asks.noteUndecodable(name, what),
    onChange: listener => void listeners.push(listener),
  }
  // The worker that runs a list ends it in time; a little more is for the way.
  const listWaitMs = listMs + askOptionsDefault.askDeadlineMs
  const shards = new ClusteredShards({ local, nodes, shardMap, clock: systemClock, pathsOf, ownerWaitMs, listWaitMs })
  asks.onTrouble(trouble => logger.warn(`workers: ${trouble}`))
  asks.onChange((_, isUp) => {
    if (isUp) for (const listener of listeners) listener()
  })
  // The others can ask only from here on.
  for (const other of others) asks.meet(other)
  await met(asks, others)
  return {
    shards,
    isWhole: () => others.every(({ name }) => asks.reachable(name)),
    onReach: listener => void listeners.push(listener),
    rest: () => {},
    stillMs: () => Number.POSITIVE_INFINITY,
    close: () => asks.close(),
  }
}

/** The shards of a worker never change. */
const onlyView = 1

/**
 * Resolves when all others can be asked, so that the first request need not be refused. After `meetMsMax` it resolves
 * without those that cannot.
 */
function met(asks: Asks, others: readonly { readonly name: string }[]): Promise<void> {
  return new Promise(resolve => {
    const cancel = systemClock.after(meetMsMax, resolve)
    const check = (): void => {
      if (!others.every(({ name }) => asks.reachable(name))) return
      cancel()
      resolve()
    }
    asks.onChange(check)
    check()
  })
}

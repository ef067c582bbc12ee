// How a worker comes together with the others: every shard has its worker, and whoever is not that worker asks it.

import { randomUUID } from 'node:crypto'
import { type AskHost, type Asks, askOptionsDefault, startAsks } from '../../cluster/index.js'
import { RemoteShards } from '../broker/remote-shards.js'
import { systemClock } from '../clock.js'
import { workerOf } from '../domain/scope.js'
import type { Shards } from '../messages/messages.js'
import type { Logger } from '../ports.js'
import type { Joined } from './node.js'
import type { Part } from './worker-protocol.js'

/** How long the others are waited for. */
const meetMsMax = 3_000

/** Connects a worker with the others; `listMs` is how long one of them may take for a list. */
export async function joinWorkers(
  { index, workers, addresses }: Part,
  local: Shards,
  shardCount: number,
  listMs: number,
  logger: Pick<Logger, 'warn'>,
): Promise<Joined> {
  const placement = Array.from({ length: shardCount }, (_, shard) => workerOf(shard, workers))
  const nameOf = (worker: number): string => `worker ${worker}`
  const peers = addresses.map((address, worker) => ({ name: nameOf(worker), address }))
  const others = peers.filter((_, worker) => worker !== index)
  // Who runs a list ends it in time; a little more is for the way.
  const listWaitMs = listMs + askOptionsDefault.askDeadlineMs
  let asks: Asks | undefined
  const shards = new RemoteShards(local, { self: index, owners: placement }, listWaitMs, {
    ask: (owner, shard, request, onOutcome, waitMs) => asks!.ask(peers[owner]!.name, shard, request, onOutcome, waitMs),
    noteUndecodable: (owner, what) => asks!.noteUndecodable(peers[owner]!.name, what),
  })
  const host: AskHost = {
    onAsk: (shard, request, onReply, _view, worker) =>
      shards.onAsk(shard, request, onReply, what => asks!.noteUndecodable(worker, what)),
  }
  asks = await startAsks(peers[index]!, randomUUID(), others, host, systemClock)
  asks.onTrouble(trouble => logger.warn(`workers: ${trouble}`))
  asks.onChange((_, isUp) => {
    if (isUp) shards.learn()
  })
  shards.learn()
  await met(asks, others)
  return {
    shards,
    isWhole: () => others.every(({ name }) => asks.reachable(name)),
    onReach: listener =>
      asks.onChange((_, isUp) => {
        if (isUp) listener()
      }),
    close: () => asks.close(),
  }
}

/** Resolves when all others can be asked, so that the first request need not be refused; one that is ill is not waited for. */
function met(asks: Asks, others: readonly { readonly name: string }[]): Promise<void> {
  return new Promise(resolve => {
    const cancel = systemClock.after(meetMsMax, resolve)
    const look = (): void => {
      if (!others.every(({ name }) => asks.reachable(name))) return
      cancel()
      resolve()
    }
    asks.onChange(look)
    look()
  })
}

// A worker: one of the processes of `-workers N`. It is a whole node with a part of the shards, and asks the others for the rest.
//
// It does what its supervisor says and lives no longer than that: when the channel between them ends, so does the worker, at once. What
// it has acknowledged is on disk. Signals are for the supervisor, which hears them too.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { Server as NetServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { type Asks, askOptionsDefault, startAsks } from '../cluster/index.js'
import { answerFor, RemoteShards } from './broker/remote-shards.js'
import { systemChance, systemClock } from './clock.js'
import { type Config, readConfig } from './config.js'
import { workerOf } from './domain/scope.js'
import type { Shards } from './messages.js'
import { type Joined, type RunningNode, startNode } from './node.js'
import { DirectoryInUse } from './storage/open-store.js'
import { openLogger } from './telemetry/logger.js'
import type { FromWorker, Part, ToWorker } from './worker-protocol.js'

process.on('disconnect', () => process.exit(1))
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})

const reading = readConfig(process.argv.slice(2), process.env)
assert(reading.kind === 'run', 'the supervisor has read the same')
const { config } = reading
const logger = openLogger({ level: config.logLevel })
/** A store is waited for for 3 s. */
const storeAttemptsMax = 60
const storeRetryMs = 50
/** How long the others are waited for. */
const meetMsMax = 3_000

let node: RunningNode | undefined

process.on('message', (order: ToWorker, socket: NetServer | undefined) => {
  obey(order, socket).catch((error: Error) => fail(error.message))
})

async function obey(order: ToWorker, socket: NetServer | undefined): Promise<void> {
  switch (order.kind) {
    case 'start':
      node = await started(order.part, socket)
      return tell({ kind: 'ready', store: node.store })
    case 'drain':
      await node?.drain()
      return tell({ kind: 'drained' })
    case 'close':
      await node?.close()
      process.exit(0)
  }
}

/** Waits for the store as long as a predecessor may take to end. */
async function started(part: Part, socket: NetServer | undefined): Promise<RunningNode> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(part, socket)
    } catch (error) {
      if (!(error instanceof DirectoryInUse) || attempt >= storeAttemptsMax) throw error
      await pause(storeRetryMs)
    }
  }
}

function start(part: Part, socket: NetServer | undefined): Promise<RunningNode> {
  const { index, workers } = part
  return startNode(ofOne(config), {
    clock: systemClock,
    chance: systemChance,
    logger,
    onFailure: error => fail(`the store has failed, nothing more is taken: ${error.message}`),
    place: { index, workers, listening: socket ?? 'reusePort', join: (local, shards) => join(part, local, shards) },
  })
}

/** Connects with the other workers. */
async function join({ index, workers, addresses }: Part, local: Shards, shards: number): Promise<Joined> {
  const placement = Array.from({ length: shards }, (_, shard) => workerOf(shard, workers))
  const nameOf = (worker: number): string => `worker ${worker}`
  const peers = addresses.map((address, worker) => ({ name: nameOf(worker), address }))
  const others = peers.filter((_, worker) => worker !== index)
  // Who runs a list ends it in time; a little more is for the way.
  const listWaitMs = config.queries.scanDeadlineMs + askOptionsDefault.askDeadlineMs
  const asks = await startAsks(peers[index]!, randomUUID(), others, { onAsk: answerFor(local) }, systemClock)
  await met(asks, others)
  return {
    shards: new RemoteShards(local, index, placement, listWaitMs, {
      ask: (owner, shard, request, onOutcome, waitMs) => asks.ask(nameOf(owner), shard, request, onOutcome, waitMs),
    }),
    isWhole: () => others.every(({ name }) => asks.reachable(name)),
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

/** What each worker may take of what the machine has: its part. */
function ofOne({ queries, workers, ...rest }: Config): Config {
  return { ...rest, workers, queries: { ...queries, viewBytesMax: Math.floor(queries.viewBytesMax / workers) } }
}

function tell(message: FromWorker, onSent: () => void = () => {}): void {
  if (process.connected) process.send!(message, undefined, undefined, onSent)
  else onSent()
}

function fail(reason: string): void {
  logger.fatal(`Fatal Error (${reason})`)
  tell({ kind: 'failed', reason }, () => process.exit(1))
}

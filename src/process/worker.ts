// A worker: one of the processes of `-workers N`. It is a whole node with a part of the shards, and asks the others for
// the rest.
//
// It executes the orders of its supervisor and lives no longer than that: when the channel between them ends, the
// worker ends at once. Acknowledged changes are on disk. Signals are for the supervisor, which receives them too, and
// passes SIGHUP on.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import type { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { systemChance, systemClock } from '../clock.js'
import { type ClusterConfig, type Config, readConfig } from '../config/config.js'
import { openLog } from '../observe/logger.js'
import { logNodeLines } from '../observe/standard-lines.js'
import { DirectoryFull, DirectoryInUse } from '../storage/open-store.js'
import { BoundedClock } from './bounded-clock.js'
import { tuneCollector } from './collector.js'
import { HandedConnections } from './handed-connections.js'
import { openCluster } from './join-cluster.js'
import { joinWorkers } from './join-workers.js'
import { startNode } from './node.js'
import type { RunningNode } from './surroundings.js'
import { type FromWorker, socketFolder, type ToWorker, type WorkerSettings } from './worker-protocol.js'

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})

const reading = readConfig(process.argv.slice(2), process.env)
assert(reading.kind === 'run', 'a worker reads other options than its supervisor')
const { config } = reading
logNodeLines(config.logging)
const log = { ...config.log }
const logger = openLog(config.logging, log, false)

/** A worker waits 3 s for its store. */
const storeAttemptsMax = 60
const storeRetryMs = 50

let node: RunningNode | undefined
let isFailing = false
/** Removes the socket files of a supervisor that was killed. */
let tidy = (): void => {}

// node:cluster ends a process whose supervisor has ended.
process.on('exit', () => {
  if (!process.connected) tidy()
})

const connections = new HandedConnections(at => send({ kind: 'listen', at }))

process.on('message', (order: ToWorker, socket?: Socket) => {
  execute(order, socket).catch((error: Error) => fail(error.message))
})
send({ kind: 'receiving' })

async function execute(order: ToWorker, socket: Socket | undefined): Promise<void> {
  switch (order.kind) {
    case 'start':
      tidy = () => removeSockets(order.part)
      node = await started(order.part)
      // Up to here stored data was read, with the help of every core that was free.
      tuneCollector(order.part.workers)
      return send({ kind: 'ready', store: node.store })
    case 'listens':
      return connections.listens(order.port, order.reason)
    case 'connection':
      return connections.came(order.port, socket)
    case 'unlisten':
      await node?.unlisten()
      return send({ kind: 'unlistened' })
    case 'drain':
      await node?.drain()
      return send({ kind: 'drained' })
    case 'close':
      await node?.close()
      process.exit(0)
      break
    case 'reopen':
      logger.reopen()
      return node?.lookAtFiles()
    case 'ping':
      return send({ kind: 'pong' })
  }
}

/**
 * Waits for the store as long as a predecessor may take to end, or the others to release the room that opening theirs
 * takes.
 */
async function started(part: WorkerSettings): Promise<RunningNode> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(part)
    } catch (error) {
      const passes = error instanceof DirectoryInUse || error instanceof DirectoryFull
      if (!passes || attempt >= storeAttemptsMax) throw error
      await pause(storeRetryMs)
    }
  }
}

function start(part: WorkerSettings): Promise<RunningNode> {
  const { index, workers } = part
  if (config.cluster) return startInCluster(config.cluster)
  return startNode(ofOne(config, workers), {
    clock: systemClock,
    chance: systemChance,
    logger,
    log,
    onFailure: error => fail(`the store has failed, no more requests are taken: ${error.message}`),
    place: {
      kind: 'worker',
      worker: index,
      workers,
      connections,
      join: own => joinWorkers(part, own, config.queries.scanDeadlineMs, logger),
    },
  })
}

/** A node of a cluster is one worker, so that another process takes its place when it has to end. */
function startInCluster(place: ClusterConfig): Promise<RunningNode> {
  const onFailure = (error: Error): void => fail(`no more requests are taken: ${error.message}`)
  const clock = new BoundedClock(systemClock, place.clockSkewMaxMs)
  return startNode(config, {
    clock,
    chance: systemChance,
    logger,
    log,
    onFailure,
    place: openCluster(place, { clock, chance: systemChance, logger, onFailure }),
  })
}

/** A failure is ignored: no process is left to report it to. */
function removeSockets({ addresses }: WorkerSettings): void {
  try {
    rmSync(socketFolder(addresses), { recursive: true, force: true })
  } catch {}
}

/**
 * Each worker's share of the machine's memory limits. The supervisor has counted the workers, by the cores if need be.
 */
function ofOne({ queries, answers, streams, ...rest }: Config, workers: number): Config {
  const { answerBytesMax, answersInFlightMax } = answers
  return {
    ...rest,
    workers,
    queries: { ...queries, viewBytesMax: Math.floor(queries.viewBytesMax / workers) },
    answers: { answerBytesMax, answersInFlightMax: Math.floor(answersInFlightMax / workers) },
    streams: {
      ...streams,
      streamsMax: Math.ceil(streams.streamsMax / workers),
      bufferBytesMax: Math.floor(streams.bufferBytesMax / workers),
    },
  }
}

function send(message: FromWorker, onSent: () => void = () => {}): void {
  if (process.connected) process.send!(message, undefined, undefined, onSent)
  else onSent()
}

/**
 * Ends the worker, once the waiting clients have their answers. Later failures follow from the first one, and are not
 * reported.
 */
function fail(reason: string): void {
  if (isFailing) return
  isFailing = true
  logger.fatal(`Fatal Error (${reason})`)
  const exit = (): void => send({ kind: 'failed', reason }, () => process.exit(1))
  if (node) node.dismiss().then(exit, exit)
  else exit()
}

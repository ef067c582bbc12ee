// One worker of several as a program of its own, with a port of its own: with `-workers N` all share one port, and a
// client cannot choose the worker. Its arguments are the options of the broker, and then its number, the number of
// workers, and the directory of their sockets.

import { ok as assert } from 'node:assert/strict'
import { systemChance, systemClock } from '../src/clock.js'
import { readConfig } from '../src/config/config.js'
import { openLogger } from '../src/observe/logger.js'
import { joinWorkers } from '../src/process/join-workers.js'
import { startNode } from '../src/process/node.js'
import { socketAddresses } from '../src/process/worker-protocol.js'

const [own, count, sockets] = process.argv.slice(-3) as [string, string, string]
const [index, workers] = [Number(own), Number(count)]
const reading = readConfig([...process.argv.slice(2, -3), '-workers', count], process.env)
assert(reading.kind === 'run')
const { config } = reading
const addresses = socketAddresses(sockets, workers)
const logger = openLogger({ settings: { ...config.log } })
const node = await startNode(config, {
  clock: systemClock,
  chance: systemChance,
  logger,
  onFailure: error => {
    throw error
  },
  place: {
    kind: 'worker',
    worker: index,
    workers,
    join: own => joinWorkers({ index, workers, addresses }, own, config.queries.scanDeadlineMs, logger),
  },
})
process.once('SIGTERM', async () => {
  await node.drain()
  await node.close()
  process.exit(0)
})
console.log('ready')

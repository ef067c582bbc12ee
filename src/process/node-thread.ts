// The thread in which the only node of a process runs (own-thread.ts starts it). It opens the log, starts the node, and
// executes the orders of the main thread: answer a ping, open the log and the files again, drain, close.

import assert from 'node:assert/strict'
import { parentPort, workerData } from 'node:worker_threads'
import { systemChance, systemClock } from '../clock.js'
import { openLog } from '../observe/logger.js'
import { logNodeWarnings } from '../observe/standard-lines.js'
import { takeAccess } from './access-check.js'
import { startNode } from './node.js'
import type { FromThread, ThreadInput, ToThread } from './worker-protocol.js'

const port = parentPort
assert(port, 'this module runs in a worker thread only')
const { config, checkedAccess } = workerData as ThreadInput
logNodeWarnings(config.logging)
const send = (message: FromThread): void => port.postMessage(message)

try {
  const log = { ...config.log }
  const logger = openLog(config.logging, log, false)
  const node = await startNode(config, {
    clock: systemClock,
    chance: systemChance,
    log,
    logger,
    readAccess: checkedAccess && takeAccess(checkedAccess),
    onFailure: error =>
      send({ kind: 'failed', reason: `the store has failed, no more requests are taken: ${error.message}` }),
  })
  port.on('message', (order: ToThread) => {
    if (order.kind === 'ping') return send({ kind: 'pong' })
    if (order.kind === 'reopen') {
      logger.reopen()
      return node.lookAtFiles()
    }
    const ended = order.kind === 'drain' ? node.drain() : node.close()
    ended.then(
      () => {
        send({ kind: 'ended', reason: '' })
        // No more orders follow: the thread may end.
        if (order.kind === 'close') port.unref()
      },
      (error: Error) => send({ kind: 'ended', reason: error.message }),
    )
  })
  send({ kind: 'ready', store: node.store })
} catch (error) {
  send({ kind: 'failed', reason: (error as Error).message })
}

// Runs the only node of a process in a thread of its own, which has the young generation that an event loop wants (collector.ts): the thread in which
// a process begins has what the command line says, and nobody should have to say anything there.
//
// This thread keeps signals and the exit status, and answers probes for life (liveness.ts); it has nothing else to do.

import { Worker } from 'node:worker_threads'
import type { Config } from '../config/config.js'
import { setHeadLimit } from '../http/front.js'
import { enlargeYoung } from './collector.js'
import type { Pulse, Pulses } from './liveness.js'
import type { FromThread, ToThread } from './worker-protocol.js'

const entry = new URL('./node-thread.js', import.meta.url)

export interface ThreadedNode {
  /** What it runs on. */
  readonly store: string
  /** Answers what is in flight, makes everything durable, and ends. */
  stop(): Promise<void>
}

/**
 * Starts a node. Fails with a sentence for the operator; `onFailure` is told one when it can promise nothing any more. `pulses`: who watches
 * over it; undefined: nobody.
 */
export function startInThread(
  config: Config,
  onFailure: (failure: Error) => void,
  pulses: Pulses | undefined,
): Promise<ThreadedNode> {
  enlargeYoung()
  setHeadLimit()
  const thread = new Worker(entry, { workerData: config })
  const tell = (order: ToThread): void => thread.postMessage(order)
  let pulse: Pulse | undefined
  let onEnded: (reason: string) => void = () => {}
  const ordered = (order: ToThread): Promise<void> =>
    new Promise((resolve, reject) => {
      onEnded = reason => (reason === '' ? resolve() : reject(new Error(reason)))
      tell(order)
    })
  return new Promise((resolve, reject) => {
    let fail: (failure: Error) => void = reject
    thread.on('message', (message: FromThread) => {
      switch (message.kind) {
        case 'ready':
          fail = onFailure
          pulse = pulses?.begin(() => tell({ kind: 'ping' }))
          return resolve({
            store: message.store,
            async stop() {
              pulse?.ended()
              await ordered({ kind: 'drain' })
              await ordered({ kind: 'close' })
            },
          })
        case 'pong':
          return pulse?.answered()
        case 'ended':
          return onEnded(message.reason)
        case 'failed':
          return fail(new Error(message.reason))
      }
    })
    // A bug: nothing is left that could be stopped.
    thread.on('error', error => {
      process.stderr.write(`${error.stack ?? error.message}\n`)
      process.exit(1)
    })
  })
}

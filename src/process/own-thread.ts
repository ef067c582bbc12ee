// Runs the only node of a process in a thread of its own, with the young generation that an event loop needs
// (collector.ts). The main thread of a process gets its size from the command line, and operators should not have to
// set it there.
//
// This thread keeps signals and the exit status, and answers probes for life (liveness.ts); it has nothing else to do.

import { Worker } from 'node:worker_threads'
import { setHeadLimit } from '../http/front.js'
import { logBug } from '../observe/standard-lines.js'
import { enlargeYoung } from './collector.js'
import type { Pulse, Pulses } from './liveness.js'
import type { FromThread, ThreadInput, ToThread } from './worker-protocol.js'

const entry = new URL('./node-thread.js', import.meta.url)

export interface ThreadedNode {
  /** The name of its store. */
  readonly store: string
  /** Answers the requests in flight, makes everything durable, and ends. */
  stop(): Promise<void>
  /** Makes the node reopen its log file, and look at the files of certificates and of access. */
  reopen(): void
}

/**
 * Starts a node. Rejects with a sentence for the operator. `onFailure` is called with a sentence when the node can
 * guarantee nothing any more. `pulses`: watches over it; undefined: it is not watched.
 */
export function startInThread(
  input: ThreadInput,
  onFailure: (failure: Error) => void,
  pulses: Pulses | undefined,
): Promise<ThreadedNode> {
  enlargeYoung()
  setHeadLimit()
  const { checkedAccess } = input
  const thread = new Worker(entry, { workerData: input, transferList: checkedAccess ? [checkedAccess] : [] })
  // A bug: no part is left that could be stopped.
  thread.on('error', error => {
    logBug(input.config.logging, error)
    process.exit(1)
  })
  return new Promise((resolve, reject) =>
    thread.once('message', (first: FromThread) => {
      if (first.kind === 'ready') resolve(new StartedThread(thread, first.store, onFailure, pulses))
      else if (first.kind === 'failed') reject(new Error(first.reason))
    }),
  )
}

/** A thread whose node is ready. */
class StartedThread implements ThreadedNode {
  readonly store: string
  private readonly thread: Worker
  private readonly pulse: Pulse | undefined

  constructor(thread: Worker, store: string, onFailure: (failure: Error) => void, pulses: Pulses | undefined) {
    this.thread = thread
    this.store = store
    this.pulse = pulses?.begin(() => this.send({ kind: 'ping' }))
    thread.on('message', (message: FromThread) => {
      if (message.kind === 'pong') this.pulse?.answered()
      else if (message.kind === 'failed') onFailure(new Error(message.reason))
    })
  }

  async stop(): Promise<void> {
    this.pulse?.ended()
    await this.ended({ kind: 'drain' })
    await this.ended({ kind: 'close' })
  }

  reopen(): void {
    this.send({ kind: 'reopen' })
  }

  /** Sends an order; resolves when it is executed. */
  private ended(order: ToThread): Promise<void> {
    return new Promise((resolve, reject) => {
      const onMessage = (message: FromThread): void => {
        if (message.kind !== 'ended') return
        this.thread.off('message', onMessage)
        if (message.reason === '') resolve()
        else reject(new Error(message.reason))
      }
      this.thread.on('message', onMessage)
      this.send(order)
    })
  }

  private send(order: ToThread): void {
    this.thread.postMessage(order)
  }
}

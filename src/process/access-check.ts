// Checks the access file before a start, in a thread of its own. To read a file of 10,000 keys leaves 25 MB of freed
// memory in its thread, and the system gets that back when the thread ends. The thread sends the file that it has read
// to a port. The thread of the node takes it from there, so that it is read only once.
//
// Not here: what is read (access/access-text.ts), the thread itself (access-check-thread.ts).

import { once } from 'node:events'
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import type { ReadAccess } from '../access/access-text.js'

export interface AccessCheckInput {
  readonly file: string
  /** Takes the `ReadAccess`, if the broker can use it. */
  readonly found: MessagePort
}

/** `fault`: a sentence; undefined: the broker can use the file. */
export interface AccessCheckResult {
  readonly fault: string | undefined
}

const entry = new URL('./access-check-thread.js', import.meta.url)

/** Resolves to the port where the `ReadAccess` waits. Rejects with a sentence when the broker cannot use the file. */
export async function checkAccess(file: string): Promise<MessagePort> {
  const { port1, port2 } = new MessageChannel()
  const workerData: AccessCheckInput = { file, found: port1 }
  // The thread must not get the flags of the process: `--input-type`, for one, would keep it from starting.
  const thread = new Worker(entry, { workerData, transferList: [port1], execArgv: [] })
  const ended = once(thread, 'exit')
  const [{ fault }] = (await once(thread, 'message')) as [AccessCheckResult]
  await ended
  if (fault !== undefined) throw new Error(fault)
  return port2
}

/** What waits in a port of `checkAccess`; undefined: it was taken before. */
export function takeAccess(port: MessagePort): ReadAccess | undefined {
  const waiting = receiveMessageOnPort(port) as { readonly message: ReadAccess } | undefined
  port.close()
  return waiting?.message
}

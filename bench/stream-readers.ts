// Readers of streams (stream-readers-main.ts) as the bench uses them.

import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export type Transport = 'sse' | 'websocket'

export type ReadersCommand =
  | {
      readonly what: 'open'
      readonly url: string
      readonly transport: Transport
      readonly count: number
      /** Of the URL, with `?`. */
      readonly query: string
      /** Messages that the connections send, divided among them. */
      readonly watches?: readonly string[]
    }
  | { readonly what: 'count' | 'arrivals' | 'close' }
  | { readonly what: 'forget'; readonly notesValues: boolean }
  /** The first of them read no more. */
  | { readonly what: 'stall'; readonly count: number }

/** The value of an update, when the last stream received it, in `steadyMs`, and how many streams did. */
export type Arrivals = readonly [value: number, lastMs: number, streams: number]

export interface ReadersReply {
  readonly error?: string
  readonly events?: number
  readonly gaps?: number
  readonly arrivals?: readonly Arrivals[]
}

export interface Readers {
  readonly pid: number
  ask(command: ReadersCommand): Promise<ReadersReply>
  stop(): void
}

/** Starts the program; it has no stream yet. */
export function startReaders(): Readers {
  const child = fork(fileURLToPath(new URL('./stream-readers-main.js', import.meta.url)))
  const end = (): boolean => child.kill()
  process.once('exit', end)
  return {
    pid: child.pid!,
    ask: command =>
      new Promise((resolve, reject) => {
        child.once('message', (reply: ReadersReply) =>
          reply.error === undefined ? resolve(reply) : reject(new Error(reply.error)),
        )
        child.send(command)
      }),
    stop: () => {
      process.off('exit', end)
      child.disconnect()
    },
  }
}

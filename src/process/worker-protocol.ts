// The messages between the supervisor and its workers, and between a process and the thread of its only node.

import { dirname, join } from 'node:path'
import type { MessagePort } from 'node:worker_threads'
import type { Config } from '../config/config.js'
import type { ListenAddress } from '../http/front.js'

export interface WorkerSettings {
  readonly index: number
  readonly workers: number
  /** The address at which each worker listens for the others. */
  readonly addresses: readonly string[]
}

/** Bare sockets: between processes of one machine gRPC costs more than the messages it carries. */
const scheme = 'socket:'

/** The addresses at which workers listen for each other, in a folder of their own. */
export const socketAddresses = (folder: string, workers: number): readonly string[] =>
  Array.from({ length: workers }, (_, index) => `${scheme}${join(folder, `${index}.sock`)}`)

/** The folder of these addresses. */
export const socketFolder = ([first = '']: readonly string[]): string => dirname(first.slice(scheme.length))

export type ToWorker =
  | { readonly kind: 'start'; readonly part: WorkerSettings }
  /** The supervisor listens at a port for you, or cannot; `reason` is a sentence for the operator. */
  | { readonly kind: 'listens'; readonly port: number; readonly reason?: string }
  /** Comes with a connection that was accepted at that port. */
  | { readonly kind: 'connection'; readonly port: number }
  /** Take no more connections. */
  | { readonly kind: 'unlisten' }
  /** Answer the requests that still come, and end all connections. */
  | { readonly kind: 'drain' }
  /** No more asks will come: make everything durable and end. */
  | { readonly kind: 'close' }
  /** Reopen log files, and look at the files of certificates. */
  | { readonly kind: 'reopen' }
  /** Answer when you can (liveness.ts). */
  | { readonly kind: 'ping' }

export type FromWorker =
  /** Receives orders. */
  | { readonly kind: 'receiving' }
  /** Serves; `store` is the name of its store. */
  | { readonly kind: 'ready'; readonly store: string }
  /** Listen at an address for me, and pass me connections (handed-connections.ts). */
  | { readonly kind: 'listen'; readonly at: ListenAddress }
  | { readonly kind: 'unlistened' }
  | { readonly kind: 'drained' }
  | { readonly kind: 'pong' }
  /** Cannot start, or cannot go on: a sentence for the operator. It ends by itself. */
  | { readonly kind: 'failed'; readonly reason: string }

/** What a thread is started with. */
export interface ThreadInput {
  readonly config: Config
  /** Where the access file waits that was checked before (access-check.ts). */
  readonly checkedAccess: MessagePort | undefined
}

export type ToThread =
  /** Take no more connections, answer the requests that still come, and end all connections. */
  | { readonly kind: 'drain' }
  /** Make everything durable. */
  | { readonly kind: 'close' }
  /** Reopen log files, and look at the files of certificates. */
  | { readonly kind: 'reopen' }
  /** Answer when you can (liveness.ts). */
  | { readonly kind: 'ping' }

export type FromThread =
  | { readonly kind: 'ready'; readonly store: string }
  /** The order was executed; with a reason, it has failed. */
  | { readonly kind: 'ended'; readonly reason: string }
  | { readonly kind: 'pong' }
  /** Cannot start, or cannot go on: a sentence for the operator. */
  | { readonly kind: 'failed'; readonly reason: string }

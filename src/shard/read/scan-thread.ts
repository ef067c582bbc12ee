// Scans on a thread of their own, seen from the event loop: started with the first scan, ended with the node.
//
// The thread reads the same open store. It must have left before the store is closed, and it is never killed: that could happen inside
// a call of the store. When it dies by itself, what it was doing fails, and the next scan starts another.
//
// Not here: what a scan does (scans), the thread's own side (reader.ts).

import assert from 'node:assert/strict'
import { Worker } from 'node:worker_threads'
import type { Placement } from '../../domain/scope.js'
import type { ShardReply } from '../../messages/messages.js'
import type { SharedStore } from '../../ports.js'
import { decodeReply, encodeRequest } from '../../wire/wire.js'
import type { Owned } from '../replicate/ownership.js'
import type { KeyHashes, KeyScan } from '../turn/presence.js'
import type { HeadScan, Place } from './places.js'
import { asBuffer, columnsOf, type ReaderInput, type ScanAnswer, type ScanCall } from './scan-protocol.js'
import type { BuildScan, ListScan, Scanner } from './scans.js'
import type { TableParts } from './views/table.js'

interface Waiting {
  onAnswer(answer: Exclude<ScanAnswer, { kind: 'failure' }>): void
  onFailure(failure: Error): void
}

export class ThreadScanner implements Scanner {
  private readonly entry: URL
  private readonly input: ReaderInput
  private worker: Worker | undefined
  /** The ends of all threads that have not left yet: one that has died takes a moment for it. */
  private readonly leaving = new Set<Promise<void>>()
  private readonly waiting = new Map<number, Waiting>()
  private number = 0
  private closed = false

  /** `entry` is the file that the thread runs. */
  constructor(entry: URL, store: SharedStore, placement: Placement, owned?: Owned) {
    this.entry = entry
    this.input = { store, placement, owned }
  }

  async list({ request, ranges, ...scan }: ListScan): Promise<ShardReply> {
    const parts = { scan, ranges: columnsOf(ranges), request: encodeRequest(request) }
    const answer = await this.call({ kind: 'list', number: ++this.number, ...parts })
    assert(answer.kind === 'reply')
    return decodeReply(asBuffer(answer.reply))
  }

  async build(scan: BuildScan): Promise<readonly TableParts[]> {
    const answer = await this.call({ kind: 'build', number: ++this.number, scan })
    assert(answer.kind === 'tables')
    return answer.tables
  }

  async head(scan: HeadScan): Promise<readonly Place[]> {
    const answer = await this.call({ kind: 'head', number: ++this.number, scan })
    assert(answer.kind === 'places')
    return answer.places
  }

  async keys(scan: KeyScan): Promise<KeyHashes> {
    const answer = await this.call({ kind: 'keys', number: ++this.number, scan })
    assert(answer.kind === 'keys')
    return answer.keys
  }

  async close(): Promise<void> {
    this.closed = true
    this.worker?.postMessage({ kind: 'end' } satisfies ScanCall)
    await Promise.all(this.leaving)
  }

  private call(call: Exclude<ScanCall, { kind: 'end' }>): Promise<Exclude<ScanAnswer, { kind: 'failure' }>> {
    return new Promise((resolve, reject) => {
      if (this.closed) return reject(new Error('the node is stopping'))
      this.waiting.set(call.number, { onAnswer: resolve, onFailure: reject })
      this.worker ??= this.start()
      this.worker.postMessage(call)
    })
  }

  private start(): Worker {
    // Flags of the process are not for the thread: `--input-type`, for one, would keep it from starting.
    const worker = new Worker(this.entry, { workerData: this.input, execArgv: [] })
    worker.on('message', (answer: ScanAnswer) => this.onAnswer(answer))
    worker.on('error', error => this.onGone(worker, error))
    const left = new Promise<void>(resolve =>
      worker.on('exit', code => {
        this.onGone(worker, new Error(`the reader thread ended with code ${code}`))
        this.leaving.delete(left)
        resolve()
      }),
    )
    this.leaving.add(left)
    return worker
  }

  private onAnswer(answer: ScanAnswer): void {
    const waiting = this.waiting.get(answer.number)
    this.waiting.delete(answer.number)
    if (answer.kind === 'failure') waiting?.onFailure(new Error(answer.reason))
    else waiting?.onAnswer(answer)
  }

  private onGone(worker: Worker, failure: Error): void {
    if (this.worker !== worker) return
    this.worker = undefined
    const waiting = [...this.waiting.values()]
    this.waiting.clear()
    for (const one of waiting) one.onFailure(failure)
  }
}

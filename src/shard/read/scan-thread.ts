// Scans on a thread of their own, seen from the event loop, and the messages between the two.
//
// The thread starts with the first scan and ends with the node. It reads the same open store. It must exit before the
// store is closed, and it is never killed, because that could happen inside a call of the store. When it dies, its
// scans fail, and the next scan starts another thread.
//
// Not here: the work of a scan (scans.ts), the thread's own side (process/reader.ts).

import assert from 'node:assert/strict'
import { Worker } from 'node:worker_threads'
import type { Placement } from '../../domain/scope.js'
import type { ShardReply } from '../../messages/messages.js'
import type { SharedStore } from '../../ports.js'
import { decodeReply, encodeRequest } from '../../wire/wire.js'
import type { Owned } from '../replicate/ownership.js'
import type { KeyHashes, KeyScan } from '../turn/key-filter.js'
import type { CountedRange, EntityPlace } from './entity-place.js'
import type { FirstPageScan } from './places.js'
import type { BuildScan, ListScan, Scanner } from './scans.js'
import type { TableParts } from './views/table.js'

export interface ReaderInput {
  readonly store: SharedStore
  readonly placement: Placement
  /** The shards whose rows count, in shared memory. */
  readonly owned: Owned
}

/** A scan with a number of its caller. The request of a list is passed as bytes. `end`: finish and exit. */
export type ScanCall =
  | {
      readonly kind: 'list'
      readonly number: number
      readonly scan: Omit<ListScan, 'request' | 'ranges'>
      readonly ranges: RangeColumns
      readonly request: Uint8Array
    }
  | { readonly kind: 'build'; readonly number: number; readonly scan: BuildScan }
  | { readonly kind: 'head'; readonly number: number; readonly scan: FirstPageScan }
  | { readonly kind: 'keys'; readonly number: number; readonly scan: KeyScan }
  | { readonly kind: 'end' }

export type ScanAnswer =
  | { readonly kind: 'reply'; readonly number: number; readonly reply: Uint8Array }
  | { readonly kind: 'tables'; readonly number: number; readonly tables: readonly TableParts[] }
  | { readonly kind: 'places'; readonly number: number; readonly places: readonly EntityPlace[] }
  | { readonly kind: 'keys'; readonly number: number; readonly keys: KeyHashes }
  | { readonly kind: 'failure'; readonly number: number; readonly reason: string }

type Outcome = Exclude<ScanAnswer, { kind: 'failure' }>

interface Waiting {
  onAnswer(answer: Outcome): void
  onFailure(failure: Error): void
}

export class ThreadScanner implements Scanner {
  private readonly input: ReaderInput
  private worker: Worker | undefined
  /** The ends of all threads that have not exited yet: a thread that died takes a moment for it. */
  private readonly leaving = new Set<Promise<void>>()
  private readonly waiting = new Map<number, Waiting>()
  private number = 0
  private closed = false

  constructor(
    private readonly entry: URL,
    store: SharedStore,
    placement: Placement,
    owned?: Owned,
  ) {
    this.input = { store, placement, owned }
  }

  async list({ request, ranges, ...scan }: ListScan): Promise<ShardReply> {
    const parts = { scan, ranges: columnsOf(ranges), request: encodeRequest(request) }
    const { reply } = await this.call({ kind: 'list', number: ++this.number, ...parts }, 'reply')
    return decodeReply(asBuffer(reply))
  }

  async build(scan: BuildScan): Promise<readonly TableParts[]> {
    return (await this.call({ kind: 'build', number: ++this.number, scan }, 'tables')).tables
  }

  async head(scan: FirstPageScan): Promise<readonly EntityPlace[]> {
    return (await this.call({ kind: 'head', number: ++this.number, scan }, 'places')).places
  }

  async keys(scan: KeyScan): Promise<KeyHashes> {
    return (await this.call({ kind: 'keys', number: ++this.number, scan }, 'keys')).keys
  }

  async close(): Promise<void> {
    this.closed = true
    this.worker?.postMessage({ kind: 'end' } satisfies ScanCall)
    await Promise.all(this.leaving)
  }

  /** Runs a scan, whose outcome is an answer of this kind. */
  private async call<K extends Outcome['kind']>(
    call: Exclude<ScanCall, { kind: 'end' }>,
    kind: K,
  ): Promise<Extract<Outcome, { kind: K }>> {
    const answer = await new Promise<Outcome>((resolve, reject) => {
      if (this.closed) return reject(new Error('the node is stopping'))
      this.waiting.set(call.number, { onAnswer: resolve, onFailure: reject })
      this.worker ??= this.start()
      this.worker.postMessage(call)
    })
    assert(answer.kind === kind)
    return answer as Extract<Outcome, { kind: K }>
  }

  private start(): Worker {
    // The thread must not get the flags of the process: `--input-type`, for one, would keep it from starting.
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

/** Ranges as columns: to clone an object for each of 40,000 takes 50 ms, and paths and types repeat. */
interface RangeColumns {
  readonly paths: readonly string[]
  readonly types: readonly string[]
  /** For each range, the indexes of its path and its type. */
  readonly pathOf: Uint32Array
  readonly typeOf: Uint32Array
  readonly counts: Float64Array
}

function columnsOf(ranges: readonly CountedRange[]): RangeColumns {
  const paths = new Map<string, number>()
  const types = new Map<string, number>()
  const numberOf = (texts: Map<string, number>, text: string): number => {
    const known = texts.get(text)
    if (known !== undefined) return known
    texts.set(text, texts.size)
    return texts.size - 1
  }
  const [pathOf, typeOf] = [new Uint32Array(ranges.length), new Uint32Array(ranges.length)]
  const counts = new Float64Array(ranges.length)
  for (const [at, { path, type, count }] of ranges.entries()) {
    pathOf[at] = numberOf(paths, path)
    typeOf[at] = numberOf(types, type)
    counts[at] = count
  }
  return { paths: [...paths.keys()], types: [...types.keys()], pathOf, typeOf, counts }
}

export const rangesOf = ({ paths, types, pathOf, typeOf, counts }: RangeColumns): readonly CountedRange[] =>
  Array.from(counts, (count, at) => ({ path: paths[pathOf[at]!]!, type: types[typeOf[at]!]!, count }))

/** The memory of tables, to be transferred instead of copied. */
export const buffersOf = (tables: readonly TableParts[]): ArrayBuffer[] =>
  tables
    .flatMap(({ created, shards, alive, columns, places }) => [
      created,
      shards,
      alive,
      ...columns.flatMap(({ kinds, numbers }) => [kinds, numbers]),
      ...(places ? [places.longitudes, places.latitudes, places.next, places.before, places.chainHeads] : []),
    ])
    .map(array => array.buffer as ArrayBuffer)

/** Makes a Buffer of the bytes of a cloned Buffer, which arrive as a Uint8Array. */
export const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

// A host of shards that keeps counters in memory: for tests of the cluster library alone (counting-main.ts). Entities
// of a shard are numbers that clients raise and read. The simulation of the cluster runs the real shards
// (simulated-node.ts).
//
// Like the real one it decides at once and stages its decisions. It appends all staged rows with one append in flight,
// and replies when they are durable and written. Clients of a shard that another node has taken over get no reply.

import {
  DeposedError,
  type HostReplication,
  type LogPosition,
  type ShardHost,
  type ShardPayload,
  type SnapshotPage,
} from '../../cluster/replication/shard-host.js'

/** An entity as it is kept. */
export interface Counter {
  readonly value: number
  /** The operation that made this value. */
  readonly by: string
}

interface Kept {
  rows: Map<string, Counter>
  position: LogPosition | undefined
}

type Row = readonly [entity: string, counter: Counter]

const encodeRows = (rows: readonly Row[]): Buffer => Buffer.from(JSON.stringify(rows))
const decodeRows = (bytes: Buffer): readonly Row[] => JSON.parse(bytes.toString())

/** Rows of one page. */
const pageRows = 3

interface Waiter {
  readonly shard: number
  readonly run: () => void
}

/** Runs a function, but not before the call has returned. */
type Later = (run: () => void) => void

export class CountingHost implements ShardHost {
  private readonly kept = new Map<number, Kept>()
  private readonly later: Later
  private replication: HostReplication | undefined
  /** Counters that are not written yet. */
  private readonly staged = new Map<number, Map<string, Counter>>()
  private filling = new Map<number, Row[]>()
  private waiting: Waiter[] = []
  private inFlight: Waiter[] = []
  private isCommitting = false
  private shardsInFlight: ReadonlySet<number> = new Set()
  private readonly active = new Set<number>()
  private readonly sealing = new Map<number, (failure?: Error) => void>()
  private onFailure: (failure: Error) => void = () => {}
  failed: Error | undefined
  private readonly counted = new Map<number, number>()

  constructor(later: Later) {
    this.later = later
  }

  begin(replication: HostReplication, onFailure: (failure: Error) => void): void {
    this.replication = replication
    this.onFailure = onFailure
  }

  // Requests of clients

  isActive(shard: number): boolean {
    return this.active.has(shard) && !this.sealing.has(shard) && this.failed === undefined
  }

  /** Raises a counter; replies with its value when that is durable, and never if the outcome is unknown. */
  raise(shard: number, entity: string, by: string, onReply: (counter: Counter) => void): void {
    this.count(shard)
    const counter = { value: (this.look(shard, entity)?.value ?? 0) + 1, by }
    nested(this.staged, shard).set(entity, counter)
    const rows = this.filling.get(shard) ?? []
    rows.push([entity, counter])
    this.filling.set(shard, rows)
    this.waiting.push({ shard, run: () => onReply(counter) })
    this.later(() => this.flush())
  }

  /** Reads a counter after the last turn; replies when its value is durable. */
  read(shard: number, entity: string, onReply: (counter: Counter | undefined) => void): void {
    this.count(shard)
    const counter = this.look(shard, entity)
    if (!this.staged.get(shard)?.has(entity)) return onReply(counter)
    this.waiting.push({ shard, run: () => onReply(counter) })
    this.later(() => this.flush())
  }

  private look(shard: number, entity: string): Counter | undefined {
    return this.staged.get(shard)?.get(entity) ?? this.of(shard).rows.get(entity)
  }

  private flush(): void {
    this.endSeals()
    if (this.isCommitting || this.failed) return
    if (this.filling.size === 0) {
      for (const { run } of this.waiting.splice(0)) run()
      return
    }
    const filling = this.filling
    this.filling = new Map()
    this.inFlight = this.waiting.splice(0)
    this.isCommitting = true
    this.shardsInFlight = new Set(filling.keys())
    const parts: ShardPayload[] = [...filling].map(([shard, rows]) => ({ shard, payload: encodeRows(rows) }))
    this.replication!.append(parts, outcome => {
      if (outcome instanceof DeposedError) for (const { shard } of outcome.losses) this.lose(shard)
      else if (outcome instanceof Error) return this.fail(outcome)
      const reached = outcome instanceof DeposedError ? outcome.reached : outcome
      this.isCommitting = false
      for (const [shard, rows] of filling) {
        if (!reached.has(shard)) continue
        const kept = this.of(shard)
        for (const [entity, counter] of rows) {
          kept.rows.set(entity, counter)
          const staged = this.staged.get(shard)
          if (staged?.get(entity) === counter) staged.delete(entity)
        }
        kept.position = reached.get(shard)
      }
      for (const { run } of this.inFlight.splice(0)) run()
      this.flush()
    })
  }

  private lose(shard: number): void {
    this.staged.delete(shard)
    const isOfOthers = (waiter: Waiter): boolean => waiter.shard !== shard
    this.inFlight = this.inFlight.filter(isOfOthers)
    this.waiting = this.waiting.filter(isOfOthers)
  }

  private fail(failure: Error): void {
    this.failed = failure
    this.onFailure(failure)
  }

  private endSeals(): void {
    for (const [shard, onDone] of this.sealing) {
      if (this.filling.has(shard) || (this.isCommitting && this.shardsInFlight.has(shard))) continue
      this.sealing.delete(shard)
      this.active.delete(shard)
      this.staged.delete(shard)
      onDone()
    }
  }

  // Requests of the cluster

  position(shard: number): LogPosition | undefined {
    return this.of(shard).position
  }

  apply(shard: number, payloads: readonly Buffer[], position: LogPosition, onDone: (failure?: Error) => void): void {
    this.later(() => {
      const kept = this.of(shard)
      for (const payload of payloads)
        for (const [entity, counter] of decodeRows(payload)) kept.rows.set(entity, counter)
      kept.position = position
      onDone()
    })
  }

  activate(shard: number, onDone: (failure?: Error) => void): void {
    this.later(() => {
      this.active.add(shard)
      onDone()
    })
  }

  seal(shard: number, onDone: (failure?: Error) => void): void {
    this.sealing.set(shard, onDone)
    this.later(() => this.flush())
  }

  snapshot(shard: number, after: Buffer | undefined, _bytesMax: number, onDone: (page: SnapshotPage) => void): void {
    this.later(() => {
      const from = after?.toString()
      const rows = [...this.of(shard).rows].filter(([entity]) => from === undefined || entity > from)
      const page = rows.sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, pageRows)
      const last = page.at(-1)?.[0]
      onDone({
        rows: encodeRows(page),
        next: last !== undefined && rows.length > page.length ? Buffer.from(last) : undefined,
      })
    })
  }

  install(shard: number, rows: Buffer, isFirst: boolean, onDone: (failure?: Error) => void): void {
    this.later(() => {
      const kept = this.of(shard)
      if (isFirst) kept.rows.clear()
      kept.position = undefined
      for (const [entity, counter] of decodeRows(rows)) kept.rows.set(entity, counter)
      onDone()
    })
  }

  drop(shard: number, onDone: (failure?: Error) => void): void {
    this.later(() => {
      const kept = this.of(shard)
      kept.rows.clear()
      kept.position = undefined
      onDone()
    })
  }

  sync(onDone: (failure?: Error) => void): void {
    this.later(onDone)
  }

  requests(shard: number): number {
    return this.counted.get(shard) ?? 0
  }

  private count(shard: number): void {
    this.counted.set(shard, this.requests(shard) + 1)
  }

  private of(shard: number): Kept {
    let kept = this.kept.get(shard)
    if (!kept) {
      kept = { rows: new Map(), position: undefined }
      this.kept.set(shard, kept)
    }
    return kept
  }
}

function nested(all: Map<number, Map<string, Counter>>, shard: number): Map<string, Counter> {
  let some = all.get(shard)
  if (!some) {
    some = new Map()
    all.set(shard, some)
  }
  return some
}

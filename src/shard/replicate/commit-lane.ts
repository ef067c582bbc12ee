// The one lane in which a node of a cluster writes to its store: batches of its own shards, rows of those that it
// follows, and syncs.
//
// A store takes one commit at a time. Rows of followed shards that came while one was in flight are written together;
// own batches and syncs are separate. All happen in the order of the calls. After a failure the store refuses all later
// writes, so each waiting caller receives it.

import type { Batch, RowSink, Store } from '../../ports.js'

type OnDone = (failure?: Error) => void

type Item =
  | { readonly kind: 'batch'; readonly batch: Batch; readonly onDone: OnDone }
  | { readonly kind: 'rows'; readonly fill: (sink: RowSink) => void; readonly onDone: OnDone }
  | { readonly kind: 'sync'; readonly onDone: OnDone }

/** Rows of several calls that are written together; one call may exceed it. This work blocks the event loop. */
const operationsMax = 5_000

export class CommitLane {
  private readonly store: Store
  private readonly alongWith: (sink: RowSink) => void
  private readonly rows: Batch
  private waiting: Item[] = []
  private isBusy = false

  /** `alongWith` adds rows to every batch of rows. */
  constructor(store: Store, alongWith: (sink: RowSink) => void) {
    this.store = store
    this.alongWith = alongWith
    this.rows = store.batch()
  }

  /** Commits a batch, which must not be changed until `onDone`. */
  commit(batch: Batch, onDone: OnDone): void {
    this.add({ kind: 'batch', batch, onDone })
  }

  /** Writes rows that `fill` puts, when it is their turn. */
  write(fill: (sink: RowSink) => void, onDone: OnDone): void {
    this.add({ kind: 'rows', fill, onDone })
  }

  /** Calls back when all earlier writes survive a power failure. */
  sync(onDone: OnDone): void {
    this.add({ kind: 'sync', onDone })
  }

  private add(item: Item): void {
    this.waiting.push(item)
    this.next()
  }

  private next(): void {
    const [first] = this.waiting
    if (this.isBusy || !first) return
    this.isBusy = true
    if (first.kind === 'rows') return this.writeRows()
    this.waiting.shift()
    const onDone = this.ending([first.onDone])
    if (first.kind === 'batch') this.store.commit(first.batch, onDone)
    else this.store.sync(onDone)
  }

  private writeRows(): void {
    const { rows } = this
    const callbacks: OnDone[] = []
    rows.clear()
    for (let item = this.waiting[0]; item?.kind === 'rows' && rows.length < operationsMax; item = this.waiting[0]) {
      this.waiting.shift()
      item.fill(rows)
      callbacks.push(item.onDone)
    }
    this.alongWith(rows)
    this.store.commit(rows, this.ending(callbacks))
  }

  /** Calls back the callers of the present commit, and starts the next one. */
  private ending(callbacks: readonly OnDone[]): OnDone {
    return failure => {
      this.isBusy = false
      for (const onDone of callbacks) onDone(failure)
      this.next()
    }
  }
}

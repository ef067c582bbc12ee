// The rules about commits that every store keeps: one in flight, and none after a failure.
//
// A store enters the gate with a batch and leaves it when the outcome is known. After the first failure the content of
// the disk is unknown. So the gate answers every later commit with that same error, and the store writes nothing more.
// An answer never comes before `commit` has returned: the caller may finish its own bookkeeping first.
//
// Not here: how a batch is written (the stores), when to commit (the shards' group commit).

import assert from 'node:assert/strict'
import { resolve, sep } from 'node:path'

/**
 * Key of a deletion that is flushed, to make everything written before it durable. No row has this key. A deletion of
 * nothing is invisible to every cursor and disappears with the next compaction, which a row at this key would not do.
 */
export const syncKey = Buffer.from('\xff\xff\xfforrery sync', 'latin1')

/** The part of a batch that the gate uses: it must not change while its commit is in flight. */
export interface Enterable {
  inFlight: boolean
}

export class CommitGate {
  readonly #directory: string | undefined
  #batch: Enterable | undefined
  #onDone: ((error?: Error) => void) | undefined
  #failure: Error | undefined
  #closed = false
  #drained: Promise<void> | undefined
  #onDrained: (() => void) | undefined

  /** `directory`: the folder of the store's files. Failures name files without it, because clients read them. */
  constructor(directory?: string) {
    this.#directory = directory
  }

  /** The first failure, which answers all later commits; undefined: none has failed. */
  get failure(): Error | undefined {
    return this.#failure
  }

  assertOpen(): void {
    assert(!this.#closed, 'the store is closed')
  }

  /** Accepts a commit. False if an earlier failure answers it; then the store has nothing to do. */
  enter(batch: Enterable, onDone: (error?: Error) => void): boolean {
    this.assertOpen()
    assert(!this.#onDone, 'another commit is in flight')
    this.#batch = batch
    this.#onDone = onDone
    batch.inFlight = true
    if (!this.#failure) return true
    this.leaveSoon()
    return false
  }

  /** Ends the commit in flight and reports its outcome. Must not be called before `commit` has returned. */
  leave(): void {
    const onDone = this.#onDone
    assert(onDone && this.#batch, 'no commit is in flight')
    this.#batch.inFlight = false
    this.#batch = undefined
    this.#onDone = undefined
    // Comes before onDone, which may throw, or commit again. A store that is closing accepts no commit.
    this.#onDrained?.()
    onDone(this.#failure)
  }

  /** Like `leave`, for an outcome known inside `commit`. */
  leaveSoon(): void {
    queueMicrotask(() => this.leave())
  }

  /** Records the first failure; the outcome of the commit in flight is unknown. */
  fail(message: string, cause: unknown): void {
    const why = cause instanceof Error ? cause.message : String(cause)
    this.#failure ??= new Error(`${message}: ${this.#withoutDirectory(why)}`, { cause })
  }

  #withoutDirectory(text: string): string {
    if (this.#directory === undefined) return text
    return text.replaceAll(resolve(this.#directory) + sep, '').replaceAll(this.#directory + sep, '')
  }

  /** Accepts no more commits, and waits for the one in flight. */
  close(): Promise<void> {
    this.#closed = true
    this.#drained ??= new Promise(resolve => {
      if (this.#onDone) this.#onDrained = resolve
      else resolve()
    })
    return this.#drained
  }
}

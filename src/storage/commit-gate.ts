// What every store promises about commits, in one place: one in flight, and none after a failure.
//
// A store enters the gate with a batch and leaves it when the outcome is known. After the first failure nobody knows
// what is on disk, so the gate answers every later commit with that same error and the store writes nothing more. An
// answer never comes before `commit` has returned: the caller may finish its own bookkeeping first.
//
// Not here: how a batch is written (the stores), when to commit (the shards' group commit).

import assert from 'node:assert/strict'
import { resolve, sep } from 'node:path'

/**
 * Deleted with a flush to make everything written before it durable. No row has this key, and a deletion of nothing is
 * invisible to every cursor and gone with the next compaction, which a row put here would not be.
 */
export const syncKey = Buffer.from('\xff\xff\xfforrery sync', 'latin1')

/** A batch as the gate sees it: it must not change while its commit is in flight. */
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

  /** `directory`: where the store's files are. Failures name files without it, because clients read them. */
  constructor(directory?: string) {
    this.#directory = directory
  }

  /** Why commits fail from now on, once one has. */
  get failure(): Error | undefined {
    return this.#failure
  }

  assertOpen(): void {
    assert(!this.#closed, 'the store is closed')
  }

  /** Lets a commit in. False if an earlier failure answers it; then there is nothing to do. */
  enter(batch: Enterable, onDone: (error?: Error) => void): boolean {
    this.assertOpen()
    assert(!this.#onDone, 'one commit at a time')
    this.#batch = batch
    this.#onDone = onDone
    batch.inFlight = true
    if (!this.#failure) return true
    this.leaveSoon()
    return false
  }

  /** Tells the commit in flight how it ended. Not to be called before `commit` has returned. */
  leave(): void {
    const onDone = this.#onDone
    assert(onDone && this.#batch, 'a commit is in flight')
    this.#batch.inFlight = false
    this.#batch = undefined
    this.#onDone = undefined
    // Before onDone: it may throw, or commit again. A store that is closing lets no commit in.
    this.#onDrained?.()
    onDone(this.#failure)
  }

  /** As `leave`, for an outcome known inside `commit`. */
  leaveSoon(): void {
    queueMicrotask(() => this.leave())
  }

  /** Remembers the first failure; the outcome of what was in flight is unknown. */
  fail(message: string, cause: unknown): void {
    const why = cause instanceof Error ? cause.message : String(cause)
    this.#failure ??= new Error(`${message}: ${this.#withoutDirectory(why)}`, { cause })
  }

  #withoutDirectory(text: string): string {
    if (this.#directory === undefined) return text
    return text.replaceAll(resolve(this.#directory) + sep, '').replaceAll(this.#directory + sep, '')
  }

  /** Lets no more commits in, and waits for the one in flight. */
  close(): Promise<void> {
    this.#closed = true
    this.#drained ??= new Promise(resolve => {
      if (this.#onDone) this.#onDrained = resolve
      else resolve()
    })
    return this.#drained
  }
}

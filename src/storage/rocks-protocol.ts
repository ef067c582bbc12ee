// What the event loop and the syncer thread say to each other. Importing the thread's own file would run it.

/** What the syncer is given: the database, and a counter of the flushes that are wanted. */
export interface SyncerInput {
  readonly handle: bigint
  readonly wanted: Int32Array
}

/** What the syncer answers to each flush: null, or why it failed. */
export type SyncerAnswer = null | Error

/** The value of the counter that ends the thread. */
export const endOfFlushes = -1

// What the supervisor and its workers say to each other.

/** Which part of the whole a worker is. */
export interface Part {
  readonly index: number
  readonly workers: number
  /** Where each worker listens for the others. */
  readonly addresses: readonly string[]
}

export type ToWorker =
  /** First of all. */
  | { readonly kind: 'start'; readonly part: Part }
  /** Take no more requests, and answer those under way. */
  | { readonly kind: 'drain' }
  /** Nobody asks you any more: make everything durable and leave. */
  | { readonly kind: 'close' }

export type FromWorker =
  /** Hears what it is told. */
  | { readonly kind: 'hears' }
  /** Serves; `store` is what it runs on. */
  | { readonly kind: 'ready'; readonly store: string }
  | { readonly kind: 'drained' }
  /** Cannot start, or cannot go on: a sentence for the operator. It leaves by itself. */
  | { readonly kind: 'failed'; readonly reason: string }

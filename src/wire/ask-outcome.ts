// How a request to another node or worker has ended, before its bytes are read.

export type AskOutcome =
  | { readonly kind: 'reply'; readonly reply: Buffer }
  /** Certain: nothing has happened and nothing will. */
  | { readonly kind: 'unavailable'; readonly reason: string }
  /** It was asked, and no answer came in time. */
  | { readonly kind: 'unknown'; readonly reason: string }

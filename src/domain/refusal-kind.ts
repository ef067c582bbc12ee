// What a refusal is, and how the common kinds of it are made.
//
// Not here: the texts (refusal.ts, document-refusals.ts).

/**
 * The error names of the interface (base.md "Errors"). Three are ours: `Unavailable`, no shard could answer in time (503), and
 * `InsufficientStorage`, the disk has no room for it (507). `Forbidden`: the tenant has used up what it may cost (403).
 */
export type RefusalKind =
  | 'ParseError'
  | 'BadRequest'
  | 'NotFound'
  | 'TooManyResults'
  | 'Unprocessable'
  | 'PartialUpdate'
  /** Called PartialUpdate as well, with another status (entities.md §20). */
  | 'PartlyForwarded'
  | 'NoResourceAvailable'
  | 'MethodNotAlowed'
  | 'NotAcceptable'
  | 'ContentLengthRequired'
  | 'RequestEntityTooLarge'
  | 'UnsupportedMediaType'
  | 'InternalServerError'
  | 'NotImplemented'
  | 'Unavailable'
  | 'InsufficientStorage'
  | 'Forbidden'

export interface Refusal {
  readonly kind: RefusalKind
  /** For humans; not yet HTML-escaped. */
  readonly description: string
}

export const bad = (description: string): Refusal => ({ kind: 'BadRequest', description })
export const parse = (description: string): Refusal => ({ kind: 'ParseError', description })
export const notAcceptable = (description: string): Refusal => ({ kind: 'NotAcceptable', description })

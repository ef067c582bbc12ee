// The request that a person is typing, and its answer: kept while the page is open, also when another view is shown.
//
// Not in the address: headers and bodies may hold secrets.

import type { TypedAnswer } from '../interface/typed-answer.js'
import { Observable } from './observable.js'

export interface DraftParts {
  readonly headers: string
  readonly body: string
}

/** What became of the latest request. */
export type DraftOutcome =
  | { readonly kind: 'none' }
  | { readonly kind: 'waiting' }
  /** `line`: method and target, since the fields may have other texts by now. */
  | { readonly kind: 'answered'; readonly line: string; readonly answer: TypedAnswer }
  | { readonly kind: 'unanswered'; readonly line: string }

export class RequestDraft {
  readonly parts = new Observable<DraftParts>({ headers: '', body: '' })
  readonly outcome = new Observable<DraftOutcome>({ kind: 'none' })
}

// The buttons to the previous and the next page of a list. The position in the list is the parameter `offset` of the address.

import type { AddressBar, ViewAddress } from '../state/address.js'

/** The position of the first item of the page; 0 if the address has none. */
export const offsetIn = ({ parameters }: ViewAddress): number => Math.max(0, Number(parameters.offset ?? 0) || 0)

export function PageButtons({
  bar,
  offset,
  limit,
  total,
}: {
  readonly bar: AddressBar
  readonly offset: number
  /** Items of a page. */
  readonly limit: number
  /** Items of the list; undefined: not known yet. */
  readonly total: number | undefined
}) {
  return (
    <div class="buttons">
      {offset > 0 && (
        <button type="button" onClick={() => bar.change({ offset: String(Math.max(0, offset - limit)) })}>
          Previous
        </button>
      )}
      {total !== undefined && offset + limit < total && (
        <button type="button" onClick={() => bar.change({ offset: String(offset + limit) })}>
          Next
        </button>
      )}
    </div>
  )
}

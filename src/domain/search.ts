// Binary search.

/**
 * The first place, from `low` up to and with `high`, that `isBefore` does not hold for: so many of the places below it are before what is
 * looked for. It must hold for all places before some one, and for none from there on.
 */
export function partitionPoint(isBefore: (at: number) => boolean, low: number, high: number): number {
  let from = low
  let end = high
  while (from < end) {
    const middle = (from + end) >>> 1
    if (isBefore(middle)) from = middle + 1
    else end = middle
  }
  return from
}

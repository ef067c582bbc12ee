// Binary search: finds the position at which a condition changes, in rows that are in order.

/**
 * The first position from `low` to `high` (included) for which `isBefore` does not hold. It must hold for all positions
 * below some position, and for none from there on.
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

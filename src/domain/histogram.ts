// A histogram: for each of its bounds how many observed values it holds, and the sum of all. The number of bounds is
// fixed, so its memory is as well.
//
// Bounds ascend. A value is counted at the first bound that is not below it, or behind all of them. Counts are not
// cumulative.

export interface Histogram {
  readonly bounds: readonly number[]
  /** One more than there are bounds. */
  readonly counts: number[]
  sum: number
}

/** Nothing observed yet. */
export const emptyHistogram = (bounds: readonly number[]): Histogram => ({
  bounds,
  counts: new Array<number>(bounds.length + 1).fill(0),
  sum: 0,
})

// [hot] Once per request: small values are frequent, and found first.
export function observe(histogram: Histogram, value: number): void {
  const { bounds, counts } = histogram
  let at = 0
  while (at < bounds.length && value > bounds[at]!) at++
  counts[at]!++
  histogram.sum += value
}

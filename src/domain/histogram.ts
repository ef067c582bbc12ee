// A histogram: a count of observed values for each of its bounds, and the sum of all values. The number of bounds is
// fixed, and so is its memory.
//
// Bounds ascend. A value is counted at the first bound that is not below it, or after the last one. Counts are not
// cumulative.

export interface Histogram {
  readonly bounds: readonly number[]
  /** One more than the number of bounds. */
  readonly counts: number[]
  sum: number
}

/** A histogram without observations. */
export const emptyHistogram = (bounds: readonly number[]): Histogram => ({
  bounds,
  counts: new Array<number>(bounds.length + 1).fill(0),
  sum: 0,
})

// [hot] Once per request: small values are frequent, and their bound is found first.
export function observe(histogram: Histogram, value: number): void {
  const { bounds, counts } = histogram
  let at = 0
  while (at < bounds.length && value > bounds[at]!) at++
  counts[at]!++
  histogram.sum += value
}

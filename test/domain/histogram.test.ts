// Histograms: which bound a value goes to, and sums.

import t from 'tap'
import { emptyHistogram, observe } from '../../src/domain/histogram.js'

const filled = (...values: number[]) => {
  const histogram = emptyHistogram([1, 2, 5])
  for (const value of values) observe(histogram, value)
  return histogram
}

t.test('a value goes to the first bound that is not below it', async t => {
  t.same(filled(0, 1, 1.5, 2, 2.1, 5, 5.1, 100).counts, [2, 2, 2, 2])
})

t.test('the sum is that of all values', async t => {
  t.equal(filled(0.5, 3, 10).sum, 13.5)
})

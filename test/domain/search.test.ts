// Binary search, compared with a look at every place.

import t from 'tap'
import { partitionPoint } from '../../src/domain/search.js'
import fc from '../support/properties.js'

t.test('the first place that is not before is found, with a look at no place outside', async () => {
  const places = fc.record({ low: fc.nat(20), length: fc.nat(40), before: fc.nat(40) })
  fc.assert(
    fc.property(places, ({ low, length, before }) => {
      const high = low + length
      const expected = low + Math.min(before, length)
      const isBefore = (at: number): boolean => {
        if (at < low || at >= high) throw new Error(`looked at ${at}`)
        return at < expected
      }
      return partitionPoint(isBefore, low, high) === expected
    }),
  )
})

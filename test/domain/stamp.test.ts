// The ids of documents that stamps make: their time, and their order.

import assert from 'node:assert/strict'
import t from 'tap'
import { documentIdOf, stampOf } from '../../src/domain/stamp.js'
import { checkSubscriptionId } from '../../src/domain/subscriptions/subscription.js'
import fc from '../support/properties.js'

const random = 'f00dfacecafe'

t.test('an id contains its second and can be the id of a subscription', async t => {
  const id = documentIdOf(stampOf(Date.UTC(2026, 0, 1)), random)
  t.equal(checkSubscriptionId(id), undefined)
  t.equal(Number.parseInt(id.slice(0, 8), 16) * 1000, Date.UTC(2026, 0, 1))
  t.equal(id, id.toLowerCase())
})

t.test('ids grow with their stamps, for every random part', async () => {
  const stamps = fc.integer({ min: 0, max: stampOf(Date.UTC(2105, 0, 1)) })
  const digits = fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: 10, maxLength: 12 })
  fc.assert(
    fc.property(stamps, fc.integer({ min: 1, max: 10_000_000 }), digits, digits, (stamp, later, one, other) => {
      const [before, after] = [documentIdOf(stamp, one), documentIdOf(stamp + later, other)]
      assert.ok(before < after)
      assert.equal(before.length, 24)
    }),
  )
})

t.test('ids of one stamp differ by chance', async t => {
  t.not(documentIdOf(4711, random), documentIdOf(4711, 'f00dfacecaff'.split('').reverse().join('')))
})

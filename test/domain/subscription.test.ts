// The small rules of subscriptions: the path they watch, their ids, what they listen to when they do not say.

import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { stampOf } from '../../src/domain/stamp.js'
import { alterationTypesOf, checkSubscriptionId, subscriptionIdOf, watchedPath } from '../../src/domain/subscription.js'
import { subscription } from '../support/subscriptions.js'

t.test('a subscription watches the path of its request, or everything', async t => {
  t.strictSame(watchedPath([]), { ok: true, value: '/#' })
  t.strictSame(watchedPath(['/a/#']), { ok: true, value: '/a/#' })
  t.match(watchedPath(['/a', '/b']), {
    refusal: { kind: 'BadRequest', description: 'max one service-path allowed for subscriptions' },
  })
})

t.test('an id that nothing can have is told from one that is not found', async t => {
  const answer = (id: string) => checkSubscriptionId(id)?.description
  t.equal(answer('65f0c2a1b4d3e2f1a0c9b8d7'), undefined)
  t.equal(answer('65f0c2a1'), 'Invalid subscription ID: bad length - 24 chars expected')
  t.equal(answer('65f0c2a1b4d3e2f1a0c9b8d7f'), 'Invalid subscription ID: bad length - 24 chars expected')
  t.equal(answer('65f0c2a1b4d3e2f1a0c9b8dg'), 'Invalid subscription ID: invalid char in ID string')
})

t.test('creation and change matter when no alteration type is named', async t => {
  const types = (condition: string) =>
    alterationTypesOf(
      subscription(
        `{"subject":{"entities":[{"id":"E"}],"condition":{${condition}}},"notification":{"http":{"url":"http://h"}}}`,
      ).condition,
    )
  t.strictSame(types('"attrs":[]'), ['entityCreate', 'entityChange'])
  t.strictSame(types('"alterationTypes":[]'), ['entityCreate', 'entityChange'])
  t.strictSame(types('"alterationTypes":["entityDelete"]'), ['entityDelete'])
})

const random = 'f00dfacecafe'

t.test('an id tells its second and can be the id of a subscription', async t => {
  const id = subscriptionIdOf(stampOf(Date.UTC(2026, 0, 1)), random)
  t.equal(checkSubscriptionId(id), undefined)
  t.equal(Number.parseInt(id.slice(0, 8), 16) * 1000, Date.UTC(2026, 0, 1))
  t.equal(id, id.toLowerCase())
})

t.test('ids grow with their stamps, whatever chance adds', async () => {
  const stamps = fc.integer({ min: 0, max: stampOf(Date.UTC(2105, 0, 1)) })
  const digits = fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: 10, maxLength: 12 })
  fc.assert(
    fc.property(stamps, fc.integer({ min: 1, max: 10_000_000 }), digits, digits, (stamp, later, one, other) => {
      const [before, after] = [subscriptionIdOf(stamp, one), subscriptionIdOf(stamp + later, other)]
      assert.ok(before < after)
      assert.equal(before.length, 24)
    }),
  )
})

t.test('ids of one stamp differ by chance', async t => {
  t.not(subscriptionIdOf(4711, random), subscriptionIdOf(4711, 'f00dfacecaff'.split('').reverse().join('')))
})

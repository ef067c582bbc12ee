// The small rules of subscriptions: the path they watch, their ids, and their alteration types by default.

import t from 'tap'
import { refusalText } from '../../../src/domain/refusal.js'
import { alterationTypesOf, checkSubscriptionId, watchedPath } from '../../../src/domain/subscriptions/subscription.js'
import { subscription } from '../../support/subscriptions.js'

t.test('a subscription watches the path of its request, or everything', async t => {
  t.strictSame(watchedPath([]), { ok: true, value: '/#' })
  t.strictSame(watchedPath(['/a/#']), { ok: true, value: '/a/#' })
  t.match(watchedPath(['/a', '/b']), {
    refusal: { kind: 'BadRequest', code: 'subscriptionPaths' },
  })
})

t.test('an impossible id is distinct from one that is not found', async t => {
  const answer = (id: string) => {
    const refusal = checkSubscriptionId(id)
    return refusal && refusalText(refusal)
  }
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

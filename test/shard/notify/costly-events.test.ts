// Subscriptions that are older than the bound on the cost of their patterns: an event stops at the bound, and a warning
// is logged.

import t from 'tap'
import { encodeSubscription } from '../../../src/domain/subscriptions/subscription-json.js'
import { random, wild } from '../../support/hurtful-patterns.js'
import { create, idOf, NotifyingOwner, update, watching } from '../../support/notifying.js'

t.test('an event runs patterns until its work is used up, and warns once a minute', async t => {
  const wished = { condition: { alterationTypes: ['entityCreate', 'entityUpdate'] } }
  const costly = Array.from({ length: 300 }, (_, n) => ({
    ...watching(n + 2, wished),
    entities: [{ idPattern: wild(n) }],
  }))
  const owner = await NotifyingOwner.with([watching(1, wished)])
  // As the register of a cluster brings them, without a check of their cost.
  for (const one of costly) owner.shards.parts.subscriptions.put(one, encodeSubscription(one))
  await owner.rest()
  const warnings = (): readonly string[] => owner.lines.filter(line => line.startsWith('the patterns of subscriptions'))
  const ordinary = 'E'
  await owner.end(create(ordinary))
  t.strictSame(
    (await owner.handed()).map(({ subscription }) => subscription),
    [idOf(1)],
  )
  t.strictSame(warnings(), [], 'ids of usual length cost less')
  const longest = random(256)
  await owner.end(create(longest))
  const handed = (await owner.handed()).map(({ subscription }) => subscription)
  t.ok(handed.includes(idOf(1)), 'what costs nothing is found all the same')
  t.ok(handed.length < 300)
  t.match(warnings(), [/^the patterns of subscriptions cost more than 1000000 steps for one event, /])
  await owner.end(update(longest, { n: 2 }))
  t.equal(warnings().length, 1)
  await owner.rest(60_000)
  await owner.end(update(longest, { n: 3 }))
  t.equal(warnings().length, 2)
})

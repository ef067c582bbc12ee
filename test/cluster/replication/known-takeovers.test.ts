// The number of a set of shards: the node that asks and the node that is asked find the same one only for the same set.

import t from 'tap'
import { KnownTakeovers, viewOfServed } from '../../../cluster/replication/known-takeovers.js'
import { FakeClock } from '../../support/fake-clock.js'

const register = 4

/** What another node knows, when node `a` has taken the shards over. */
function viewFromOutside(shards: readonly number[]): number {
  const takeovers = new KnownTakeovers(new FakeClock(), { leaseMs: 3_000, leaseMargin: 0.1 })
  for (const shard of shards) takeovers.note(shard, { epoch: 10 + shard, owner: 'a 1' })
  takeovers.note(register, { epoch: 30, owner: 'a 1' })
  return takeovers.viewOf('a', register)
}

const held = (shard: number, mayBeCounted = true) => ({ shard, epoch: 10 + shard, mayBeCounted })
const all = () => true

t.test('a node and others have the same number for the shards that it answers for', async t => {
  t.equal(viewOfServed([held(0), held(1, false), held(2)], all), viewFromOutside([0, 2]))
  t.equal(viewOfServed([held(2), held(0)], all), viewFromOutside([0, 2]), 'in any order')
  t.equal(viewOfServed([held(1, false)], all), viewFromOutside([]))
  t.not(viewOfServed([held(0), held(2)], all), viewFromOutside([0]))
  t.not(viewOfServed([{ ...held(0), epoch: 9 }], all), viewFromOutside([0]), 'of another epoch')
})

t.test('there is none while a read would count a shard for which the node does not answer', async t => {
  t.equal(
    viewOfServed([held(0), held(1)], shard => shard === 0),
    undefined,
  )
})

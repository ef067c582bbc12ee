// Which nodes should keep which shards.

import fc from 'fast-check'
import t from 'tap'
import { type Candidate, place, placeOne } from '../../../cluster/replication/placement.js'

const nodes = (count: number, domains = 0): Candidate[] =>
  Array.from({ length: count }, (_, index) => ({
    name: `node${index}`,
    domain: domains === 0 ? '' : `zone${index % domains}`,
  }))

const candidates = fc.uniqueArray(
  fc.record({ name: fc.string({ minLength: 1, maxLength: 5 }), domain: fc.constantFrom('', 'a', 'b', 'c') }),
  { selector: ({ name }) => name, maxLength: 12 },
)

t.test('a shard has as many keepers as are wanted and there, all different', async t => {
  fc.assert(
    fc.property(candidates, fc.nat(300), fc.integer({ min: 1, max: 5 }), (all, shard, replicas) => {
      const keepers = placeOne(shard, all, replicas)
      return keepers.length === Math.min(replicas, all.length) && new Set(keepers).size === keepers.length
    }),
  )
  t.pass('for every property run')
})

t.test('the order in which nodes are known does not matter', async t => {
  fc.assert(
    fc.property(candidates, fc.nat(300), (all, shard) => {
      t.same(placeOne(shard, all, 3), placeOne(shard, [...all].reverse(), 3))
    }),
  )
})

t.test('keepers are in different domains as long as there are any', async t => {
  for (const [shard, keepers] of place(64, nodes(9, 3), 3).entries()) {
    const domains = new Set(keepers.map(name => Number(name.slice(4)) % 3))
    t.equal(domains.size, 3, `shard ${shard}`)
  }
  for (const keepers of place(64, nodes(4, 2), 3)) t.equal(keepers.length, 3)
})

t.test('a node that goes moves its own shards only, and its standby takes them over', async t => {
  const before = place(64, nodes(5), 3)
  const left = nodes(5).filter(({ name }) => name !== 'node2')
  for (const [shard, keepers] of place(64, left, 3).entries())
    t.equal(keepers[0], before[shard]![0] === 'node2' ? before[shard]![1] : before[shard]![0], `shard ${shard}`)
})

t.test('no node has much more than its part', async t => {
  const owned = new Map<string, number>()
  for (const [owner] of place(1024, nodes(4), 1)) owned.set(owner!, (owned.get(owner!) ?? 0) + 1)
  for (const [name, count] of owned) t.ok(Math.abs(count - 256) < 64, `${name} has ${count} of 1024`)
})

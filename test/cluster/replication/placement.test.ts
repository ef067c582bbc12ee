// Which nodes should keep a copy of which shards.

import t from 'tap'
import { type Candidate, keepersOf, rank, rankOne } from '../../../cluster/replication/placement.js'
import fc from '../../support/properties.js'

const nodes = (count: number, domains = 0): Candidate[] =>
  Array.from({ length: count }, (_, index) => ({
    name: `node${index}`,
    domain: domains === 0 ? '' : `zone${index % domains}`,
  }))

const candidates = fc.uniqueArray(
  fc.record({ name: fc.string({ minLength: 1, maxLength: 5 }), domain: fc.constantFrom('', 'a', 'b', 'c') }),
  { selector: ({ name }) => name, maxLength: 12 },
)

t.test('a shard has as many keepers as are wanted and there, all different, the owner first', async t => {
  fc.assert(
    fc.property(candidates, fc.nat(300), fc.integer({ min: 1, max: 5 }), fc.nat(11), (all, shard, replicas, index) => {
      const owner = all[index]?.name
      const keepers = keepersOf(rankOne(shard, all), owner, replicas)
      const isWhole = keepers.length === Math.min(replicas, all.length) && new Set(keepers).size === keepers.length
      return isWhole && (owner === undefined || keepers[0] === owner)
    }),
  )
  t.pass('for every property run')
})

t.test('the order in which nodes are known does not matter', async t => {
  fc.assert(
    fc.property(candidates, fc.nat(300), (all, shard) => {
      t.same(rankOne(shard, all), rankOne(shard, [...all].reverse()))
    }),
  )
})

t.test('keepers are in different domains as long as there are any, whichever of them is the owner', async t => {
  for (const [shard, ranked] of rank(64, nodes(9, 3)).entries())
    for (const { name } of nodes(9)) {
      const domains = new Set(keepersOf(ranked, name, 3).map(keeper => Number(keeper.slice(4)) % 3))
      t.equal(domains.size, 3, `shard ${shard}, owner ${name}`)
    }
  for (const ranked of rank(64, nodes(4, 2))) t.equal(keepersOf(ranked, 'node3', 3).length, 3)
})

t.test('another owner among the keepers leaves the copies where they are', async t => {
  fc.assert(
    fc.property(candidates, fc.nat(300), fc.integer({ min: 1, max: 5 }), (all, shard, replicas) => {
      const ranked = rankOne(shard, all)
      const keepers = keepersOf(ranked, undefined, replicas)
      for (const owner of keepers) t.same([...keepersOf(ranked, owner, replicas)].sort(), [...keepers].sort())
    }),
  )
})

t.test('a node that goes is replaced by one more standby, and no other copy moves', async t => {
  const before = rank(64, nodes(5))
  const after = rank(
    64,
    nodes(5).filter(({ name }) => name !== 'node2'),
  )
  for (const [shard, ranked] of after.entries()) {
    const left = keepersOf(before[shard]!, undefined, 3).filter(name => name !== 'node2')
    t.same(keepersOf(ranked, undefined, 3).slice(0, left.length), left, `shard ${shard}`)
  }
})

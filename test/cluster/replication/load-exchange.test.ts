// Which shards are exchanged for load: a table of cases, without clocks and nodes.

import t from 'tap'
import {
  type ExchangeGiven,
  exchangeFor,
  hottest,
  isUneven,
  loadOf,
  type NodeLoad,
} from '../../../cluster/replication/load-exchange.js'
import { Random } from '../../support/random.js'

const limits = { hotPart: 0.25, hotRequestsMin: 100, hotGain: 0.05 }

/** A node with these loads, of shards that are numbered from `first`. */
const node = (name: string, first: number, ...loads: number[]): NodeLoad => ({
  name,
  shards: new Map(loads.map((load, at) => [first + at, load])),
})

const choose = (nodes: readonly NodeLoad[], given: Partial<ExchangeGiven> = {}) =>
  exchangeFor({
    self: 'a',
    nodes,
    limits,
    mayGive: () => true,
    mayTake: () => true,
    isStable: () => true,
    ...given,
  })

const hot = node('a', 0, 500, 400, 10)
const cold = node('b', 10, 20, 30, 200)
const middle = node('c', 20, 200, 200, 100)

const cases: readonly {
  readonly what: string
  readonly nodes: readonly NodeLoad[]
  readonly given?: Partial<ExchangeGiven>
  readonly wanted: string | undefined
}[] = [
  { what: 'the pair that brings two loads closest together', nodes: [hot, cold, middle], wanted: '0 for 12 of b' },
  { what: 'a node that is not in the list gets nothing', nodes: [hot, middle], wanted: '1 for 20 of c' },
  {
    what: 'a shard without a copy at the other node is not given',
    nodes: [hot, cold],
    given: { mayGive: shard => shard !== 0 },
    wanted: '1 for 11 of b',
  },
  {
    what: 'a shard without a copy at this node is not taken',
    nodes: [hot, cold],
    given: { mayTake: shard => shard !== 12 },
    wanted: '1 for 11 of b',
  },
  {
    what: 'an exchange that the plan would take back is left out',
    nodes: [hot, cold],
    given: { isStable: ({ takes }) => takes !== 12 },
    wanted: '1 for 11 of b',
  },
  { what: 'no exchange is stable', nodes: [hot, cold], given: { isStable: () => false }, wanted: undefined },
  {
    what: 'a shard that is hotter than all else stays',
    nodes: [node('a', 0, 1000, 10), node('b', 10, 20, 20), node('c', 20, 20, 20)],
    wanted: undefined,
  },
  {
    what: 'its node gives others away, since that moves less',
    nodes: [node('a', 0, 1000, 300), node('b', 10, 20, 20)],
    wanted: '1 for 10 of b',
  },
  {
    what: 'a gain of less than a twentieth of the mean is none',
    nodes: [node('a', 0, 200, 201), node('b', 10, 160, 200)],
    wanted: undefined,
  },
  { what: 'alone', nodes: [hot], wanted: undefined },
]

for (const { what, nodes, given, wanted } of cases)
  t.test(`exchange: ${what}`, async t => {
    const found = choose(nodes, given)
    t.equal(found && `${found.gives} for ${found.takes} of ${found.node}`, wanted)
  })

t.test('loads are unequal when one is more than a quarter of the mean away from it', async t => {
  const even = (...loads: number[]): boolean =>
    isUneven(
      loads.map((load, at) => node(`n${at}`, at, load)),
      limits,
    )
  t.notOk(even(1250, 1000, 750), 'a quarter is not more than a quarter')
  t.ok(even(1260, 1000, 740))
  t.ok(even(1100, 1100, 700), 'one that has little counts as well')
  t.notOk(even(150, 30, 30), 'a difference of few requests is none')
  t.notOk(even(), 'no node takes part')
})

t.test('one node chooses: the hottest, and of equal ones the first by name', async t => {
  t.equal(hottest([cold, hot, middle]), 'a')
  t.equal(hottest([node('y', 0, 5), node('x', 1, 5)]), 'x')
  t.equal(hottest([]), undefined)
})

t.test('exchanges under steady loads come to an end, and the highest load never rises', async t => {
  const random = Random.fromEnvironment()
  const { seed } = random
  for (let round = 0; round < 50; round++) {
    let nodes = ['a', 'b', 'c', 'd'].map((name, at) =>
      node(name, at * 20, ...Array.from({ length: 20 }, () => random.between(0, random.pick([10, 10, 1000])))),
    )
    let highest = Math.max(...nodes.map(loadOf))
    let exchanges = 0
    for (;;) {
      const self = hottest(nodes)!
      const found = choose(nodes, { self })
      if (!found) break
      nodes = exchanged(nodes, self, found)
      const now = Math.max(...nodes.map(loadOf))
      if (now > highest || ++exchanges > 100) return t.fail(`seed ${seed}, round ${round}: it rises, or has no end`)
      highest = now
    }
  }
  t.pass(`seed ${seed}`)
})

function exchanged(
  nodes: readonly NodeLoad[],
  self: string,
  { node: other, gives, takes }: { readonly node: string; readonly gives: number; readonly takes: number },
): NodeLoad[] {
  const all = new Map(nodes.flatMap(({ shards }) => [...shards]))
  const swapped = (shards: NodeLoad['shards'], from: number, to: number): NodeLoad['shards'] =>
    new Map([...[...shards].filter(([shard]) => shard !== from), [to, all.get(to)!]])
  return nodes.map(({ name, shards }) => {
    if (name === self) return { name, shards: swapped(shards, gives, takes) }
    if (name === other) return { name, shards: swapped(shards, takes, gives) }
    return { name, shards }
  })
}

// Which node should own which shard: equal shares, few moves, and every node at work for every service path.

import t from 'tap'
import { ownersWanted } from '../../../cluster/replication/owner-shares.js'
import { keepersOf, type Ranking, rank } from '../../../cluster/replication/placement.js'
import { ShardMap } from '../../../src/domain/scope.js'
import { Random } from '../../support/random.js'

const shards = 256
const spread = 16
const replicas = 3
t.setTimeout(120_000)

type Owners = readonly (string | undefined)[]

const none: Owners = Array.from({ length: shards }, () => undefined)
const names = (count: number, prefix = 'node'): string[] => Array.from({ length: count }, (_, at) => `${prefix}${at}`)

const rankings = new Map<string, Ranking>()
function rankingOf(members: readonly string[]): Ranking {
  const key = [...members].sort().join()
  const known = rankings.get(key)
  if (known) return known
  const ranking = rank(
    shards,
    members.map(name => ({ name, domain: '' })),
  )
  rankings.set(key, ranking)
  return ranking
}

function wanted(members: readonly string[], present: Owners): readonly string[] {
  const ranking = rankingOf(members)
  return ownersWanted({ members, present, spread, copies: shard => keepersOf(ranking[shard]!, undefined, replicas) })
}

/** The owners when nothing moves any more, after exchanges that follow the first moves. */
function settled(members: readonly string[], present: Owners): readonly string[] {
  let owners = wanted(members, present)
  for (let times = 0; times < 10; times++) {
    const next = wanted(members, owners)
    if (movesOf(owners, next) === 0) return owners
    owners = next
  }
  throw new Error(`shards of ${members.length} nodes do not come to rest`)
}

const countsOf = (members: readonly string[], owners: Owners): number[] =>
  members.map(name => owners.filter(owner => owner === name).length)
const movesOf = (before: Owners, after: Owners): number =>
  before.filter((owner, shard) => owner !== after[shard]).length

function isBalanced(members: readonly string[], owners: Owners): boolean {
  const counts = countsOf(members, owners)
  return Math.max(...counts) - Math.min(...counts) <= 1 && counts.reduce((sum, count) => sum + count, 0) === shards
}

/** The least number of moves: the shards of nodes that have gone, and those above the shares. */
function needed(members: readonly string[], present: Owners): number {
  const counts = countsOf(members, present)
  const least = Math.floor(shards / members.length)
  const larger = shards % members.length
  const above = counts.filter(count => count > least).length
  const excess = counts.reduce((sum, count) => sum + Math.max(0, count - least), 0) - Math.min(above, larger)
  return shards - counts.reduce((sum, count) => sum + count, 0) + excess
}

t.test('shares differ by one shard at most, at every number of nodes', async t => {
  for (const count of [...Array.from({ length: 17 }, (_, at) => at + 1), 50, 300])
    t.ok(isBalanced(names(count), wanted(names(count), none)), `${count} nodes`)
  t.same(wanted([], none), [])
})

t.test('the order in which nodes are known does not matter', async t => {
  for (const count of [3, 5, 16]) t.same(wanted(names(count), none), wanted(names(count).reverse(), none))
})

t.test('what is balanced stays as it is', async t => {
  for (const count of [1, 3, 5, 16, 40]) {
    const owners = wanted(names(count), none)
    t.same(wanted(names(count), owners), owners, `${count} nodes`)
  }
})

t.test('a node that joins gets its share and nothing else moves; one that leaves gives away only its own', async t => {
  let owners: Owners = none
  for (let count = 1; count <= 17; count++) {
    const before = owners
    owners = wanted(names(count), before)
    const isNew = owners.every((owner, shard) => owner === before[shard] || owner === `node${count - 1}`)
    t.ok(isBalanced(names(count), owners), `${count} nodes`)
    if (count > 1) t.ok(isNew && movesOf(before, owners) <= Math.ceil(shards / count), `${count} nodes: moves`)
  }
  for (let count = 16; count >= 1; count--) {
    const before = owners
    owners = wanted(names(count), before)
    t.ok(isBalanced(names(count), owners), `${count} nodes`)
    t.ok(
      before.every((owner, shard) => owner === `node${count}` || owner === owners[shard]),
      `${count} nodes: moves`,
    )
  }
})

t.test('after any history, shares are equal and no more moves than necessary', async t => {
  const random = Random.fromEnvironment()
  for (let round = 0; round < 300; round++) {
    const members = names(1 + random.between(0, 19))
    const owners = none.map(() => (random.fraction() < 0.1 ? undefined : `node${random.between(0, 23)}`))
    const after = wanted(members, owners)
    if (!isBalanced(members, after) || movesOf(owners, after) !== needed(members, owners))
      return t.fail(`seed ${random.seed}, round ${round}: ${countsOf(members, after)}, ${movesOf(owners, after)} moves`)
  }
  t.pass(`seed ${random.seed}`)
})

t.test('shards of a node that has gone go to nodes with a copy', async t => {
  for (const count of [3, 4, 5, 8, 16]) {
    let owners: Owners = none
    for (let joined = 1; joined <= count; joined++) owners = wanted(names(joined), owners)
    const ranking = rankingOf(names(count))
    const left = names(count).slice(1)
    const after = wanted(left, owners)
    const lost = [...owners.keys()].filter(shard => owners[shard] === 'node0')
    const withCopy = lost.filter(shard => keepersOf(ranking[shard]!, owners[shard], replicas).includes(after[shard]!))
    t.comment(`${count} nodes: ${withCopy.length} of ${lost.length}`)
    t.ok(withCopy.length >= lost.length * 0.7, `${count} nodes: ${withCopy.length} of ${lost.length}`)
  }
})

/** The number of nodes that work for a path, for the path that uses the fewest. */
function fewestNodes(owners: Owners): number {
  const map = new ShardMap({ shards, spread })
  let fewest = shards
  for (let number = 0; number < 600; number++) {
    const own = map.shardsOf(`tenant${number % 20}`, `/path${number}`).map(shard => owners[shard])
    fewest = Math.min(fewest, new Set(own).size)
  }
  return fewest
}

for (const count of [2, 3, 5, 8, 12, 16]) {
  t.test(`each service path uses all of ${count} nodes that start together`, async t => {
    t.equal(fewestNodes(wanted(names(count), none)), count)
  })
  t.test(`and so it does when ${count} nodes have joined one by one`, async t => {
    let owners: Owners = none
    for (let joined = 1; joined <= count; joined++) owners = settled(names(joined), owners)
    t.equal(fewestNodes(owners), count)
    t.ok(isBalanced(names(count), owners))
  })
}

t.test('exchanges for the paths are few, and none are needed up to nine nodes', async t => {
  for (const prefix of ['node', 'broker-', 'x']) {
    let owners: Owners = none
    for (let joined = 1; joined <= 16; joined++) {
      const first = wanted(names(joined, prefix), owners)
      owners = settled(names(joined, prefix), first)
      const exchanged = movesOf(first, owners)
      t.ok(exchanged <= (joined <= 9 ? 0 : 12), `${joined} nodes: ${exchanged} shards exchanged`)
    }
  }
})

/** One node, and what it knows. */
interface Peer {
  readonly name: string
  members: readonly string[]
  readonly table: (string | undefined)[]
  plan: readonly string[] | undefined
}

const planOf = (peer: Peer): readonly string[] => (peer.plan ??= wanted(peer.members, peer.table))

/**
 * Peers that ask each other for shards, as replicators do, while reports of takeovers and members reach each of them
 * late. Resolves to the number of moves, and to the owners at the end; fails if they do not come to rest.
 */
function agree(peers: readonly Peer[], members: readonly string[], present: Owners, random: Random) {
  const owners = [...present]
  const late: (() => void)[] = peers.map(peer => () => {
    peer.members = members
    peer.plan = undefined
  })
  let moves = 0
  const learn = (peer: Peer, shard: number, owner: string): void => {
    peer.table[shard] = owner
    peer.plan = undefined
  }
  const move = (shard: number, from: string | undefined, to: string): void => {
    owners[shard] = to
    moves++
    for (const peer of peers)
      if (peer.name === from || peer.name === to) learn(peer, shard, to)
      else late.push(() => learn(peer, shard, owners[shard]!))
  }
  const ask = (peer: Peer, shard: number): void => {
    const from = owners[shard]
    const owner = peers.find(({ name }) => name === from)
    const isAgreed = owner ? planOf(owner)[shard] === peer.name : !members.includes(from ?? '')
    if (from !== peer.name && from === peer.table[shard] && isAgreed) move(shard, from, peer.name)
  }
  for (let step = 0; step < 20_000; step++) {
    const peer = peers[random.between(0, peers.length - 1)]!
    const plan = planOf(peer)
    const shard = random.between(0, shards - 1)
    if (plan[shard] === peer.name) ask(peer, shard)
    if (random.fraction() < 0.4 && late.length > 0) late.splice(random.between(0, late.length - 1), 1)[0]!()
    const isAtRest = late.length === 0 && owners.every((owner, at) => owner === peer.table[at])
    if (isAtRest && step % 50 === 0 && movesOf(owners, wanted(members, owners)) === 0) return { owners, moves }
  }
  throw new Error(`seed ${random.seed}: not at rest after ${moves} moves`)
}

t.test('nodes that learn late of takeovers and members make no additional move, and come to rest', async t => {
  const random = Random.fromEnvironment()
  for (let round = 0; round < 6; round++) {
    const before = names(random.between(1, 8))
    const owners = settled(before, none)
    const isJoin = before.length === 1 || random.fraction() < 0.5
    const after = isJoin ? names(before.length + 1) : before.slice(1)
    const living = random.fraction() < 0.5 ? [...new Set([...before, ...after])] : after
    const peers = living.map(name => ({ name, members: before, table: [...owners], plan: undefined }))
    const found = agree(peers, after, owners, random)
    const least = needed(after, owners)
    if (!isBalanced(after, found.owners) || found.moves > least)
      return t.fail(`seed ${random.seed}, round ${round}: ${found.moves} moves, ${least} are enough`)
  }
  t.pass(`seed ${random.seed}`)
})

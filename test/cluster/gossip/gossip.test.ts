// The promises of gossip, among simulated processes on a network with many faults, under many seeds.
//
// SEED=<number> SIMULATIONS=1 repeats one run; SIMULATIONS=<number> makes more of them.

import t from 'tap'
import { Gossip, type GossipTrouble } from '../../../cluster/gossip/gossip.js'
import { decodeMessage, encodeMessage } from '../../../cluster/gossip/gossip-messages.js'
import {
  gossipOptionsDefault as defaults,
  gossipVersion,
  gossipVersionLowest,
  suspicionMs,
} from '../../../cluster/gossip/gossip-options.js'
import type { Member } from '../../../cluster/gossip/member.js'
import { Random } from '../../support/random.js'
import { type GossipNode, GossipWorld } from '../simulated-gossip.js'

const simulations = Number(process.env.SIMULATIONS ?? 12)
const seed = Random.fromEnvironment().seed
const { periodMs } = defaults
const letters = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']

t.setTimeout(400_000 + simulations * 20_000)
t.comment(`SEED=${seed} and the next ones`)

const seeds = (count = simulations) => Array.from({ length: count }, (_, n) => seed + n)
/** The changes by which a node took members for dead. */
const deaths = ({ changes }: GossipNode) => changes.filter(({ member }) => member.status === 'dead')
const last = (node: GossipNode, name: string) => node.gossip.members().find(member => member.name === name)

t.test('after any trouble all members agree on the members and on the state that each reports of itself', async t => {
  for (const one of seeds()) {
    const { world, wrong } = await trouble(one)
    const truth = world.truth()
    for (const node of world.running) t.strictSame(world.view(node), truth, `SEED=${one} seen by ${node.name}`)
    t.strictSame(wrong(), [], `SEED=${one}`)
  }
})

/** Half a minute of losses, pauses, splits, kills, restarts, goodbyes and changes of mind; then peace. */
async function trouble(seed: number) {
  const random = new Random(seed)
  const gossip = new GossipWorld(random)
  const { world } = gossip
  const names = letters.slice(0, random.between(3, 7))
  const all = await gossip.startAll(names, 2000)
  const gone = new Set<string>()
  const endMs = world.nowMs + 30_000
  Object.assign(gossip.faults, { lost: random.pick([0, 0.05, 0.3]), repeated: random.pick([0, 0.1]) })
  const begin = (name: string) => {
    const address = random.pick([`${name}:1`, `${name}:${random.between(2, 9)}`])
    all.push(gossip.start(name, { address, seeds: ['all'] }))
    gossip.names.set(
      'all',
      [...gossip.nodes.values()].map(node => node.address),
    )
  }
  while (world.nowMs < endMs) {
    const node = gossip.nodes.get(random.pick(names as [string]))!
    const what = random.between(0, 9)
    if (what < 3) {
      node.process.stop()
      world.at(world.nowMs + random.pick([300, 2000, 12_000]) * random.fraction(), () => node.process.goOn())
    } else if (what < 5) {
      const border = random.between(1, names.length - 1)
      gossip.partOf = random.pick([(name: string) => (names.indexOf(name) < border ? 0 : 1), undefined])
    } else if (what < 7 && node.process.alive) {
      gossip.kill(node, random.pick(['alone', 'with its machine']))
      const { name } = node
      if (random.pick([true, false])) world.at(world.nowMs + random.between(10, 4000), () => begin(name))
    } else if (what === 7 && node.process.alive && gossip.running.length > 2) {
      node.process.goOn()
      gone.add(node.life)
      void node.gossip.leave().then(() => gossip.kill(node))
    } else if (node.process.alive && !gone.has(node.life)) node.gossip.setJoined(random.pick([true, false]))
    await world.run(random.between(50, 2000))
  }
  gossip.partOf = undefined
  Object.assign(gossip.faults, { lost: 0, repeated: 0 })
  for (const node of gossip.nodes.values()) node.process.goOn()
  await world.run(90_000)
  return { world: gossip, wrong: () => all.flatMap(node => contradictions(node, gone)) }
}

/** Changes of a node's belief that went back: to an older incarnation, to alive in the same one, or from a goodbye. */
function contradictions({ name: observer, changes }: GossipNode, gone: ReadonlySet<string>): string[] {
  const wrong: string[] = []
  const known = new Map<string, Member>()
  for (const { member, atMs } of changes) {
    const { name, incarnation, status, life } = member
    const before = known.get(name)
    known.set(name, member)
    if (!before || before.life !== life) continue
    const line = `${observer} at ${atMs}: ${name} ${before.status} ${before.incarnation}, then ${status} ${incarnation}`
    if (incarnation < before.incarnation) wrong.push(`older: ${line}`)
    if (
      incarnation === before.incarnation &&
      before.status !== status &&
      before.status !== 'alive' &&
      status === 'alive'
    )
      wrong.push(`revived: ${line}`)
    if (before.status === 'left' && (status !== 'left' || !gone.has(life))) wrong.push(`back: ${line}`)
  }
  return wrong
}

t.test('without losses no living member is declared dead, though messages are slow and repeated', async t => {
  for (const one of seeds()) {
    const gossip = new GossipWorld(new Random(one))
    gossip.faults.repeated = 0.1
    const nodes = await gossip.startAll(letters.slice(0, 3 + (one % 6)), 60_000)
    t.strictSame(nodes.flatMap(deaths), [], `SEED=${one}`)
  }
})

t.test('pauses shorter than suspicion declare no member dead', async t => {
  for (const one of seeds()) {
    const random = new Random(one)
    const gossip = new GossipWorld(random)
    const nodes = await gossip.startAll(letters.slice(0, 5))
    for (let left = 20; left > 0; left--) {
      const { process } = random.pick(nodes as [GossipNode])
      process.stop()
      await gossip.world.run(random.fraction() * (suspicionMs(defaults, 5, 3) - 2 * periodMs))
      process.goOn()
      await gossip.world.run(3000)
    }
    t.strictSame(nodes.flatMap(deaths), [], `SEED=${one}`)
  }
})

t.test('a killed member is dead for all others within the time in gossip-options.ts', async t => {
  for (const one of seeds()) {
    const gossip = new GossipWorld(new Random(one))
    const count = 3 + (one % 6)
    const nodes = await gossip.startAll(letters.slice(0, count))
    const [victim] = nodes as [GossipNode]
    const killedMs = gossip.world.nowMs
    gossip.kill(victim)
    await gossip.world.run(60_000)
    // The longest time until a given node probes, the probe, suspicion, and a few rounds for the rumour.
    const probedMs = (2 * (count - 1) - 1) * periodMs
    const suspectedMs = suspicionMs(defaults, count, count - 2)
    const mostMs = probedMs + periodMs + suspectedMs + 3 * periodMs
    for (const node of nodes.slice(1)) {
      const [death] = deaths(node)
      t.ok(death && death.atMs - killedMs <= mostMs, `SEED=${one} of ${count}: ${death && death.atMs - killedMs} ms`)
      t.equal(deaths(node).length, 1)
    }
  }
})

t.test('of three the first knows within 5 s, and later than suspicion takes', async t => {
  for (const one of seeds()) {
    const gossip = new GossipWorld(new Random(one))
    const [victim, ...others] = (await gossip.startAll(['a', 'b', 'c'])) as [GossipNode]
    const killedMs = gossip.world.nowMs
    gossip.kill(victim)
    await gossip.world.run(8000)
    const firstMs = Math.min(...others.map(node => deaths(node)[0]!.atMs)) - killedMs
    t.ok(firstMs <= 5000 && firstMs >= suspicionMs(defaults, 3, 1), `SEED=${one}: ${firstMs} ms`)
  }
})

t.test('a process that has ended is dead for all others within 1.5 s, if its machine answers', async t => {
  for (const one of seeds()) {
    const gossip = new GossipWorld(new Random(one))
    const [victim, ...others] = (await gossip.startAll(['a', 'b', 'c'])) as [GossipNode]
    const killedMs = gossip.world.nowMs
    gossip.kill(victim, 'alone')
    await gossip.world.run(5000)
    const tookMs = others.map(node => deaths(node)[0]!.atMs - killedMs)
    const leastMs = suspicionMs(defaults, 3, 1, true)
    t.ok(Math.max(...tookMs) <= 1500 && Math.min(...tookMs) >= leastMs, `SEED=${one}: ${tookMs} ms`)
  }
})

t.test('a member that leaves is left for all and never dead, and the promise is kept soon', async t => {
  for (const one of seeds()) {
    const gossip = new GossipWorld(new Random(one))
    const nodes = await gossip.startAll(letters.slice(0, 6))
    const [leaver] = nodes as [GossipNode]
    let isLeft = false
    void leaver.gossip.leave().then(() => {
      isLeft = true
      gossip.kill(leaver)
    })
    await gossip.world.run(1000)
    t.ok(isLeft)
    await gossip.world.run(30_000)
    for (const node of nodes.slice(1)) {
      t.equal(last(node, 'a')?.status, 'left', `SEED=${one} seen by ${node.name}`)
      t.strictSame(deaths(node), [])
    }
  }
})

t.test('a member that leaves while most messages are lost tries others, and ends', async t => {
  for (const one of seeds()) {
    const gossip = new GossipWorld(new Random(one))
    const [leaver] = (await gossip.startAll(['a', 'b', 'c'])) as [GossipNode]
    gossip.faults.lost = 1
    let isLeft = false
    void leaver.gossip.leave().then(() => {
      isLeft = true
    })
    await gossip.world.run(30_000)
    t.ok(isLeft)
  }
})

t.test(
  'a process after a long pause finds itself dead, and comes back by itself with a higher incarnation',
  async t => {
    for (const one of seeds()) {
      const gossip = new GossipWorld(new Random(one))
      const nodes = await gossip.startAll(letters.slice(0, 4))
      const [frozen, ...others] = nodes as [GossipNode, ...GossipNode[]]
      const before = frozen.gossip.members()[0]!.incarnation
      frozen.process.stop()
      await gossip.world.run(40_000)
      t.ok(others.every(node => last(node, 'a')?.status === 'dead'))
      frozen.process.goOn()
      await gossip.world.run(5000)
      for (const node of nodes)
        t.ok(last(node, 'a')?.status === 'alive' && last(node, 'a')!.incarnation > before, `SEED=${one}`)
      t.strictSame(deaths(frozen), [], 'and it has taken nobody for dead')
    }
  },
)

t.test('two parts of a cluster that lost each other meet again, and no member is dead in its own part', async t => {
  for (const one of seeds()) {
    const gossip = new GossipWorld(new Random(one))
    const nodes = await gossip.startAll(letters.slice(0, 6))
    const part = (name: string) => (letters.indexOf(name) < 3 ? 0 : 1)
    gossip.partOf = part
    await gossip.world.run(60_000)
    for (const node of nodes) t.equal(gossip.view(node).length, 3)
    gossip.partOf = undefined
    await gossip.world.run(40_000)
    for (const node of nodes) {
      t.strictSame(gossip.view(node), gossip.truth(), `SEED=${one}`)
      const own = deaths(node).filter(({ member }) => part(member.name) === part(node.name))
      t.strictSame(own, [], `SEED=${one} seen by ${node.name}`)
    }
  }
})

t.test(
  'a new life of a name takes the place of the old one, at the same address or another, noticed or not',
  async t => {
    for (const one of seeds()) {
      const random = new Random(one)
      const gossip = new GossipWorld(random)
      const [, victim] = (await gossip.startAll(['a', 'b', 'c'])) as [GossipNode, GossipNode, GossipNode]
      gossip.kill(victim)
      await gossip.world.run(random.pick([0, 100, 1500, 20_000]))
      const next = gossip.start('b', { address: random.pick(['b:1', 'b:2']) })
      await gossip.world.run(10_000)
      t.strictSame(next.troubles, [])
      for (const node of gossip.running) {
        t.strictSame(gossip.view(node), gossip.truth(), `SEED=${one} seen by ${node.name}`)
        t.equal(last(node, 'b')?.life, next.life)
      }
    }
  },
)

t.test('a second process of a used name is refused with the reason, and no member takes it for the first', async t => {
  for (const one of seeds()) {
    const gossip = new GossipWorld(new Random(one))
    const [first, second, third] = (await gossip.startAll(['a', 'b', 'c'])) as [GossipNode, GossipNode, GossipNode]
    const late = gossip.start('b', { address: 'b:2' })
    await gossip.world.run(20_000)
    t.strictSame(late.troubles, [{ kind: 'superseded', reason: 'a node named b is already there, at b:1' }])
    t.strictSame(second.troubles, [])
    for (const node of [first, second, third]) t.equal(last(node, 'b')?.life, second.life, `SEED=${one}`)
  }
})

t.test('of two processes of one name that start together one stays', async t => {
  for (const one of seeds()) {
    const gossip = new GossipWorld(new Random(one))
    const [first, second] = (await gossip.startAll(['a', 'c'])) as [GossipNode, GossipNode]
    const twins = [gossip.start('b', { address: 'b:1' }), gossip.start('b', { address: 'b:2' })]
    await gossip.world.run(20_000)
    const staying = twins.filter(({ troubles }) => troubles.length === 0)
    t.equal(staying.length, 1, `SEED=${one}`)
    for (const node of [first, second])
      t.match(last(node, 'b'), { status: 'alive', life: staying[0]!.life }, `SEED=${one}`)
  }
})

t.test('a process that was replaced during a pause gives up when it continues', async t => {
  for (const one of seeds()) {
    const gossip = new GossipWorld(new Random(one))
    const [first, old] = (await gossip.startAll(['a', 'b', 'c'])) as [GossipNode, GossipNode]
    old.process.stop()
    await gossip.world.run(5000)
    const next = gossip.start('b', { address: 'b:2' })
    await gossip.world.run(5000)
    old.process.goOn()
    await gossip.world.run(10_000)
    t.match(old.troubles, [{ kind: 'superseded' }], `SEED=${one}`)
    t.strictSame(next.troubles, [])
    t.match(last(first, 'b'), { status: 'alive', life: next.life })
  }
})

t.test('three nodes that name each other as seeds find each other, in any order of starts', async t => {
  for (const one of seeds()) {
    const random = new Random(one)
    const gossip = new GossipWorld(random)
    gossip.names.set('all', ['a:1', 'b:1', 'c:1'])
    const nodes: GossipNode[] = []
    for (const name of ['a', 'b', 'c']) {
      nodes.push(gossip.start(name, { seeds: ['all'] }))
      await gossip.world.run(random.pick([0, 5, 3000]))
    }
    await gossip.world.run(15_000)
    for (const node of nodes) t.strictSame(gossip.view(node), gossip.truth(), `SEED=${one}`)
    t.equal(gossip.truth().length, 3)
  }
})

t.test('seeds that cannot be resolved are tried again, and the operator gets one report', async t => {
  const gossip = new GossipWorld(new Random(seed))
  gossip.start('a', { seeds: [] })
  const node = gossip.start('b', { seeds: ['somewhere'] })
  await gossip.world.run(30_000)
  t.strictSame(node.troubles, [{ kind: 'unresolved', reason: 'somewhere has no address: Error: no such name' }])
  gossip.names.set('somewhere', ['nobody:1', 'a:1'])
  await gossip.world.run(10_000)
  t.equal(gossip.view(node).length, 2)
})

t.test('while no seed answers the operator gets the reason', async t => {
  const gossip = new GossipWorld(new Random(seed))
  const node = gossip.start('a', { seeds: ['nobody:1'] })
  await gossip.world.run(30_000)
  t.strictSame(node.troubles, [{ kind: 'refused', reason: 'nobody:1: no answer in time' }])
})

t.test('a node of another cluster is refused with both names, and neither learns of the other', async t => {
  const gossip = new GossipWorld(new Random(seed))
  const home = gossip.start('a', { seeds: [], clusterId: 'home' })
  const stranger = gossip.start('b', { clusterId: 'abroad' })
  await gossip.world.run(10_000)
  const reason = "a:1: this is a node of the cluster 'home', and not of the cluster 'abroad'"
  t.match(stranger.troubles, [{ kind: 'refused', reason }])
  t.equal(home.gossip.members().length + stranger.gossip.members().length, 2)
})

t.test('whether a node may be given shards is known to all within seconds', async t => {
  const gossip = new GossipWorld(new Random(seed))
  const nodes = await gossip.startAll(letters.slice(0, 8))
  nodes[3]!.gossip.setJoined(false)
  await gossip.world.run(3000)
  for (const node of nodes) t.equal(last(node, 'd')?.isJoined, false)
})

t.test('a gone member is forgotten after a while, and not gossiped again', async t => {
  const gossip = new GossipWorld(new Random(seed))
  const options = { exchangeMs: 5000, forgetMs: 20_000 }
  const nodes = await gossip.startAll(letters.slice(0, 5), 5000, options)
  gossip.kill(nodes[0]!)
  await gossip.world.run(15_000)
  for (const node of nodes.slice(1)) t.equal(last(node, 'a')?.status, 'dead')
  await gossip.world.run(60_000)
  for (const node of nodes.slice(1)) t.equal(last(node, 'a'), undefined)
})

t.test('bytes that are no message are refused in a message', async t => {
  const gossip = new GossipWorld(new Random(seed))
  const node = gossip.start('a', { seeds: [] })
  const replies: Buffer[] = []
  node.gossip.onCall(Buffer.from('GET / HTTP/1.1'), reply => replies.push(reply))
  t.match(replies.map(String), [/bytes that are no message of version 1 of gossip/])
})

t.test('unreadable messages are counted, and reported once for each reason', async t => {
  const gossip = new GossipWorld(new Random(seed))
  const node = gossip.start('a', { seeds: [] })
  const newer = encodeMessage({
    version: gossipVersion + 1,
    lowestVersion: gossipVersion + 1,
    cluster: 'c',
    from: { name: 'b', life: 'x', incarnation: 1 },
    kind: 'exchange',
    rumours: [],
  })
  const replies: Buffer[] = []
  for (const bytes of [Buffer.from([0xff]), newer, Buffer.from([0x0a]), newer])
    node.gossip.onCall(bytes, reply => replies.push(reply))
  t.equal(node.gossip.stats().messagesUnreadable, 4)
  t.strictSame(
    replies.map(reply => decodeMessage(reply)?.kind),
    ['refusal', 'refusal', 'refusal', 'refusal'],
  )
  t.match(node.troubles, [
    { kind: 'unreadable', reason: /its bytes are no message/ },
    { kind: 'unreadable', reason: /node b writes version 2/ },
  ])
})

t.test('calls and answers that are no packets are counted as well', async t => {
  const { world } = new GossipWorld(new Random(seed))
  const process = world.process('a')
  const troubles: GossipTrouble[] = []
  const self = { name: 'a', address: 'a:1', domain: '', life: 'x', isJoined: false }
  const gossip = new Gossip(
    { self, clusterId: 'c', seeds: ['b:1'], options: {} },
    {
      call: (_to, _message, _deadlineMs, onReply) =>
        process.at(world.nowMs, () => onReply(undefined, 'none', 'unreadable')),
    },
    process.clock,
    () => 0.5,
    async seed => [seed],
  )
  gossip.onTrouble(trouble => troubles.push(trouble))
  await world.run(10_000)
  const { messagesUnreadable } = gossip.stats()
  t.ok(messagesUnreadable > 0)
  gossip.noteUnreadable('no packet')
  t.equal(gossip.stats().messagesUnreadable, messagesUnreadable + 1)
  t.match(troubles[0], { kind: 'unreadable', reason: /the answer of b:1 .* its bytes are no message/ })
  gossip.close()
})

t.test('a member answers and continues after any bytes', async t => {
  const random = new Random(seed)
  const gossip = new GossipWorld(random)
  const [node] = (await gossip.startAll(['a', 'b', 'c'])) as [GossipNode]
  const rumours = node.gossip.members().map(member => ({ member, suspectedBy: ['b'] }))
  const from = { name: 'b', life: 'x', incarnation: 1 }
  const head = { version: gossipVersion, lowestVersion: gossipVersionLowest, cluster: 'c', from, rumours }
  const to = { name: 'a', life: node.life }
  const messages = [
    encodeMessage({ ...head, kind: 'ping', to }),
    encodeMessage({ ...head, kind: 'ping-request', to, address: 'c:1', waitMs: 10 }),
    encodeMessage({ ...head, kind: 'exchange' }),
  ]
  for (let left = 3000; left > 0; left--) {
    const bytes = Buffer.from(random.pick(messages as [Buffer]))
    for (let changes = random.between(1, 6); changes > 0; changes--)
      bytes[random.between(0, bytes.length - 1)] = random.between(0, 255)
    node.gossip.onCall(bytes, () => {})
    if (left % 100 === 0) await gossip.world.run(50)
  }
  let answer: Buffer | undefined
  node.gossip.onCall(messages[2]!, reply => {
    answer = reply
  })
  t.ok(answer && decodeMessage(answer), `SEED=${seed}`)
})

t.test('a closed member is silent', async t => {
  const gossip = new GossipWorld(new Random(seed))
  const [node] = (await gossip.startAll(['a', 'b', 'c'])) as [GossipNode]
  node.gossip.close()
  const { messagesSent } = node.gossip.stats()
  await gossip.world.run(5000)
  node.gossip.onCall(Buffer.alloc(0), () => t.fail('it has answered'))
  t.equal(node.gossip.stats().messagesSent, messagesSent)
  await t.resolves(node.gossip.leave())
})

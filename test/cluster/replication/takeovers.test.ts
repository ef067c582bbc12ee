// Takeovers whose messages are late: at no moment do two nodes answer for a shard, so no read is older than an
// acknowledged change.

import t, { type Test } from 'tap'
import type { ShardLog } from '../../../cluster/logs/shard-log.js'
import { momentMs, register, SteeredCluster, type SteeredNode, shard, wholeLeaseMs } from './steered-nodes.js'

/**
 * Lets time pass until a new owner answers, raises the counter there, and checks that no other node answers with the
 * value before.
 */
async function raiseAt(t: Test, cluster: SteeredCluster, owner: SteeredNode): Promise<void> {
  t.ok(await cluster.until(() => owner.answers()), `${owner.name} answers`)
  const before = owner.value(shard)
  t.ok(await owner.raise(shard), 'a change is acknowledged')
  for (const node of cluster.all)
    t.notOk(node.answers() && node.value(shard) === before, `${node.name} does not return the value before`)
}

t.test('a takeover that arrives when its node has given it up waits for the lease of the owner', async t => {
  const cluster = await SteeredCluster.of('a', 'b')
  const [a, b] = [cluster.node('a'), cluster.node('b')]
  await a.raise(shard)
  b.isLate = ({ kind }) => kind === 'takeOver'
  b.holding(shard).claim()
  t.ok(await cluster.until(() => b.holding(shard).phase === 'following'), 'the request had no answer')
  await cluster.until(() => a.answers())
  a.cutOff()
  b.arrive()
  await raiseAt(t, cluster, b)
})

t.test('a node that cannot use such a takeover leaves the shard to another one after that lease only', async t => {
  const cluster = await SteeredCluster.of('a', 'b', 'c')
  const [a, b, c] = [cluster.node('a'), cluster.node('b'), cluster.node('c')]
  await a.raise(shard)
  await cluster.settle()
  b.isLate = ({ kind }) => kind === 'takeOver'
  b.holding(shard).claim()
  t.ok(await cluster.until(() => b.holding(shard).phase === 'following'), 'the request had no answer')
  b.isUnheard = (_, kind) => kind === 'record'
  for (let n = 0; n < 3; n++) await a.raise(shard)
  cluster.engine.trim(shard, 3)
  b.holding(shard).replica.read()
  await cluster.settle()
  t.equal(b.holding(shard).replica.state, 'incomplete')
  a.cutOff()
  b.arrive()
  t.ok(await cluster.until(() => c.holding(shard).latest?.owner === ''), 'the shard has no owner')
  c.holding(shard).claim()
  await raiseAt(t, cluster, c)
})

t.test('a lease is counted from the request, although its answer comes late', async t => {
  const cluster = await SteeredCluster.of('a', 'b')
  const [a, b] = [cluster.node('a'), cluster.node('b')]
  await a.raise(shard)
  const renewedMs = a.holding(shard).certainMs
  t.ok(await cluster.until(() => a.holding(shard).certainMs > renewedMs), 'the lease was just renewed')
  a.isUnheard = () => true
  a.isAnsweredLate = ({ kind }) => kind === 'takeovers'
  // The next request to renew the lease reaches the engine just before the takeover.
  await cluster.world.run(605)
  await cluster.settle()
  a.link.fault = 'cut'
  b.holding(shard).claim()
  await cluster.world.run(wholeLeaseMs - 2 * momentMs)
  a.hear()
  await raiseAt(t, cluster, b)
})

t.test(
  'a node that has lost a shard while it read the log does not answer, although it learns of that late',
  async t => {
    const cluster = await SteeredCluster.of('a', 'b', 'c')
    const [a, b, c] = [cluster.node('a'), cluster.node('b'), cluster.node('c')]
    await a.raise(shard)
    a.holding(shard).handOver('', () => {})
    await cluster.settle()
    b.isUnheard = () => true
    b.isAnsweredLate = request => request.kind === 'read' && request.shard === shard
    b.holding(shard).claim()
    await cluster.settle()
    b.link.fault = 'cut'
    c.holding(shard).claim()
    await cluster.world.run(wholeLeaseMs - 2 * momentMs)
    b.hear()
    await cluster.settle()
    t.equal(b.holding(shard).phase, 'active')
    await raiseAt(t, cluster, c)
  },
)

/** Makes a node take each takeover that it reads in a log for its own. */
function trustItself({ link, owner }: SteeredNode): void {
  const { read } = link
  const trusting: ShardLog['read'] = (one, after, bytesMax, onDone) =>
    read(one, after, bytesMax, outcome => {
      const isTaken = outcome.kind === 'read' && outcome.takeover
      onDone(isTaken ? { ...outcome, takeover: { ...outcome.takeover, owner } } : outcome)
    })
  Object.assign(link, { read: trusting })
}

/** Node b takes the shard over, and then c, of which b does not hear: returns the nodes that answer in the end. */
async function takeInTurn(isTrusting: boolean): Promise<readonly string[]> {
  const cluster = await SteeredCluster.of('a', 'b', 'c')
  const [b, c] = [cluster.node('b'), cluster.node('c')]
  if (isTrusting) trustItself(b)
  b.isUnheard = (_, kind) => kind === 'takeover'
  b.isAnsweredLate = ({ kind }) => kind === 'takeovers'
  b.holding(shard).claim()
  await cluster.settle()
  c.holding(shard).claim()
  await cluster.until(() => c.answers())
  b.hear()
  await cluster.world.run(wholeLeaseMs)
  return cluster.answering()
}

t.test('a node becomes the owner only if the latest takeover is still its own', async t => {
  t.strictSame(await takeInTurn(false), ['c'])
  t.strictSame(await takeInTurn(true), ['b', 'c'], 'otherwise both answer')
})

/**
 * An owner that does not know of its loss makes a change; returns the numbers of changes that were acknowledged, and
 * that the new owner has.
 */
async function changeUnknowing(isFenced: boolean): Promise<readonly [acknowledged: number, known: number]> {
  const cluster = await SteeredCluster.of('a', 'b')
  const [a, b] = [cluster.node('a'), cluster.node('b')]
  cluster.engine.fenced = isFenced
  let acknowledged = Number(await a.raise(shard))
  a.isUnheard = (_, kind) => kind === 'takeover'
  a.isAnsweredLate = ({ kind }) => kind === 'takeovers'
  b.holding(shard).claim()
  await cluster.until(() => b.answers())
  acknowledged += Number(await a.raise(shard))
  return [acknowledged, b.value(shard)]
}

t.test('an owner that does not know of its loss acknowledges nothing, since the engine refuses its record', async t => {
  t.strictSame(await changeUnknowing(true), [1, 1])
  t.strictSame(await changeUnknowing(false), [2, 1], 'otherwise an acknowledged change is missing')
})

/**
 * The nodes that answer when a new owner does, where the clock of the owner before is slow, and the other one fast.
 * `leaseMargin`: the part of a lease that the new one waits in addition; -1: it waits for nothing.
 */
async function answering(leaseMargin?: number): Promise<readonly string[]> {
  const cluster = await SteeredCluster.withClocks({ a: 0.98, b: 1.02 }, leaseMargin)
  const [a, b] = [cluster.node('a'), cluster.node('b')]
  const { certainMs } = a.holding(shard)
  await cluster.until(() => a.holding(shard).certainMs > certainMs)
  a.cutOff()
  b.holding(shard).claim()
  await cluster.until(() => b.answers())
  return cluster.answering()
}

t.test('a new owner waits for longer than a lease, since the clock of the one before may be slower', async t => {
  t.strictSame(await answering(), ['b'])
  t.strictSame(await answering(0.001), ['a', 'b'], 'otherwise both answer')
  t.strictSame(await answering(-1), ['a', 'b'], 'and without any wait')
})

t.test('a node that ends gives up what another one has a copy of, and that one waits for no lease', async t => {
  const cluster = await SteeredCluster.of('a', 'b')
  const [a, b] = [cluster.node('a'), cluster.node('b')]
  await a.raise(register)
  await cluster.world.run(1_500)
  a.know(['a'])
  a.replicator.giveUp()
  await cluster.settle()
  t.ok(a.answers(register), 'nobody else could take it over')
  a.know(['a', 'b'])
  a.replicator.giveUp()
  await cluster.settle()
  t.equal(b.holding(register).latest?.owner, '')
  t.ok(a.answers(), 'b ought not to have this one, since it has not joined')
  b.holding(register).claim()
  t.ok(await cluster.until(() => b.answers(register), 3 * momentMs), 'it answers at once')
  t.equal(b.value(register), a.value(register))
})

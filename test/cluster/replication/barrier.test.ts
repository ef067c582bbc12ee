// A change of the register is acknowledged when no node decides without it any more: not even an owner of which the
// register's owner has never heard.

import t, { type Test } from 'tap'
import { register, SteeredCluster, type SteeredNode, shard, wholeLeaseMs } from './steered-nodes.js'

/** Changes the register at its owner, and returns the nodes that answer without the change when it is acknowledged. */
async function change(owner: SteeredNode, cluster: SteeredCluster): Promise<readonly string[]> {
  const before = owner.value(register)
  await owner.raise(register)
  let isKnown = false
  owner.replicator.barrier(register, owner.holding(register).replica.end.sequence, () => {
    isKnown = true
  })
  if (!(await cluster.until(() => isKnown))) throw new Error('the change was never acknowledged')
  return cluster.all.flatMap(node => (node.answers() && node.value(register) === before ? [node.name] : []))
}

interface Scene {
  readonly cluster: SteeredCluster
  readonly r: SteeredNode
  readonly a: SteeredNode
}

/** Node r owns the register, and a the shard. Node r knows only these, and hears of no takeovers. */
async function begin(): Promise<Scene> {
  const cluster = await SteeredCluster.of('r', 'a', 'x', 'y')
  const [r, a] = [cluster.node('r'), cluster.node('a')]
  r.holding(shard).handOver(a.owner, () => {})
  await cluster.until(() => a.answers())
  // Until no lease of another owner is left that r may not know of.
  await cluster.world.run(5_000)
  r.know(['r', 'a'])
  r.isUnheard = (_, kind) => kind === 'takeover'
  return { cluster, r, a }
}

/**
 * The shard goes to y, which is cut off while its lease lasts, and x takes it over, all between two renewals of r's
 * lease.
 */
async function passBy(t: Test, { cluster, r, a }: Scene): Promise<void> {
  const [x, y] = [cluster.node('x'), cluster.node('y')]
  const { certainMs } = r.holding(register)
  await cluster.until(() => r.holding(register).certainMs > certainMs)
  a.holding(shard).handOver(y.owner, () => {})
  t.ok(await cluster.until(() => y.answers(), 200), 'y answers')
  y.cutOff()
  x.holding(shard).claim()
  await cluster.settle()
  t.strictSame(cluster.answering(), ['y'])
  t.equal(r.replicator.ownerOf(shard), 'a', 'r knows neither takeover')
}

t.test('an owner that was superseded before it was heard of counts', async t => {
  const scene = await begin()
  await passBy(t, scene)
  t.strictSame(await change(scene.r, scene.cluster), [])
})

t.test('an owner that came and went while events were missed counts, although the next event is known', async t => {
  const scene = await begin()
  const { cluster, r, a } = scene
  await passBy(t, scene)
  r.isAnsweredLate = ({ kind }) => kind === 'takeovers'
  r.isUnheard = () => false
  r.link.loseFollower('the connection is lost')
  const { epoch } = cluster.engine.takeoverOf(shard)!
  await cluster.world.run(1_000)
  a.holding(shard).claim()
  t.ok(await cluster.until(() => r.replicator.epochOf(shard) > epoch, 500), 'r knows the third takeover, by its event')
  r.isAnsweredLate = () => false
  t.strictSame(await change(r, cluster), [])
})

t.test('an owner counts although the renewal of a lease has named the next one meanwhile', async t => {
  const scene = await begin()
  const { cluster, r } = scene
  await passBy(t, scene)
  t.ok(await cluster.until(() => r.replicator.ownerOf(shard) === 'x', 800), 'r knows of x')
  t.strictSame(await change(r, cluster), [])
})

t.test('an owner counts for the second of two changes as for the first one', async t => {
  const scene = await begin()
  const { cluster, r } = scene
  await passBy(t, scene)
  r.replicator.barrier(register, 0, () => {})
  await cluster.settle()
  t.strictSame(await change(r, cluster), [])
})

t.test('an owner that has lost its shard, and may not know it, counts while its lease lasts', async t => {
  const { cluster, r, a } = await begin()
  const y = cluster.node('y')
  r.isUnheard = () => false
  r.know(['r', 'y'])
  const { certainMs } = a.holding(shard)
  await cluster.until(() => a.holding(shard).certainMs > certainMs)
  a.cutOff()
  y.holding(shard).claim()
  t.ok(await cluster.until(() => r.replicator.ownerOf(shard) === 'y', 200), 'r knows of y, by the event')
  t.strictSame(cluster.answering(), ['a'])
  t.strictSame(await change(r, cluster), [])
})

t.test('a new owner answers only with a register that it has read since', async t => {
  const { cluster, r, a } = await begin()
  const x = cluster.node('x')
  x.isUnheard = one => one === register
  t.ok(x.replicator.knowsRegister, 'x has read the register')
  x.isAnsweredLate = request => request.kind === 'read' && request.shard === register
  t.strictSame(await change(r, cluster), [])
  a.holding(shard).handOver(x.owner, () => {})
  await cluster.until(() => x.holding(shard).phase === 'active', 500)
  t.equal(x.value(register), 0, 'x lacks the change')
  t.strictSame(cluster.answering(), [])
  x.hear()
  t.ok(await cluster.until(() => x.answers()), 'x answers')
  t.equal(x.value(register), 1)
})

t.test('an owner that cannot read the register stops answering, although its takeover stands', async t => {
  const { cluster, r, a } = await begin()
  a.isUnheard = one => one === register
  a.isAnsweredLate = request => request.kind === 'read' && request.shard === register
  t.strictSame(await change(r, cluster), [])
  t.equal(a.value(register), 0, 'a lacks the change')
  t.equal(a.replicator.epochOf(shard), cluster.engine.takeoverOf(shard)!.epoch, 'a is the owner')
  await cluster.world.run(2 * wholeLeaseMs)
  t.strictSame(cluster.answering(), [])
  a.hear()
  t.ok(await cluster.until(() => a.answers()), 'a answers')
  t.equal(a.value(register), 1)
})

t.test('a former owner of the register answers only with what the next one has changed', async t => {
  const cluster = await SteeredCluster.of('r', 'x')
  const [r, x] = [cluster.node('r'), cluster.node('x')]
  // It hears nothing, and does not know that it hears nothing.
  r.isAlone = true
  r.isUnheard = () => true
  r.isAnsweredLate = () => true
  x.holding(register).claim()
  t.ok(await cluster.until(() => x.holding(register).phase === 'active'), 'x owns the register')
  t.strictSame(await change(x, cluster), [])
  r.isAnsweredLate = request => request.kind === 'read' && request.shard === register
  r.isAlone = false
  t.notOk(await cluster.until(() => r.answers(), 2 * wholeLeaseMs), 'r does not answer')
  t.equal(r.value(register), 0, 'r lacks the change')
  r.isUnheard = () => false
  r.hear()
  t.ok(await cluster.until(() => r.answers()), 'r answers')
  t.equal(r.value(register), 1)
})

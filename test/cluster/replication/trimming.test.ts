// Records leave the log only when enough copies have them on their disks: then nothing acknowledged is lost with the
// disk of one node.

import t, { type Test } from 'tap'
import { register, SteeredCluster, type SteeredNode } from './steered-nodes.js'

const changes = 10

/** The owner makes changes, and has time to trim its log. */
async function change(cluster: SteeredCluster, owner: SteeredNode): Promise<void> {
  for (let n = 0; n < changes; n++) await owner.raise(register)
  await cluster.world.run(3_000)
}

/** The owner never comes back. Checks that another node goes on with all that it has acknowledged. */
async function replace(t: Test, cluster: SteeredCluster, owner: SteeredNode, next: SteeredNode): Promise<void> {
  const value = owner.value(register)
  owner.end()
  next.link.fault = 'none'
  next.isUnheard = () => false
  next.holding(register).replica.read()
  await cluster.settle()
  next.holding(register).claim()
  t.ok(await cluster.until(() => next.answers(register)), `${next.name} answers`)
  t.equal(next.value(register), value, 'with every acknowledged change')
}

t.test('records that a living copy lacks are kept, so that it can replace the owner', async t => {
  const cluster = await SteeredCluster.of('a', 'b', 'c')
  const [a, b] = [cluster.node('a'), cluster.node('b')]
  await a.raise(register)
  await cluster.world.run(3_000)
  b.link.fault = 'cut'
  await change(cluster, a)
  await replace(t, cluster, a, b)
})

t.test('records that only one copy has are kept, although no other node lives', async t => {
  const cluster = await SteeredCluster.of('a', 'b')
  const [a, b] = [cluster.node('a'), cluster.node('b')]
  a.know(['a'])
  b.isAlone = true
  b.link.fault = 'cut'
  await change(cluster, a)
  b.isAlone = false
  await replace(t, cluster, a, b)
})

t.test('records that all copies have are deleted, but the last ones', async t => {
  const cluster = await SteeredCluster.of('a', 'b')
  const a = cluster.node('a')
  await change(cluster, a)
  t.strictSame(
    cluster.engine.recordsOf(register).map(({ sequence }) => sequence),
    [changes],
  )
})

// After any fault of a cluster, acknowledged writes are there, and no read shows an older state.
//
// Three nodes and three members of etcd run as processes; writers and readers use them all the time, and a subscriber
// gets notifications. In each round one event happens (cluster-faults.ts). Afterwards every entity is written again
// within a bounded time, and each node must show each entity, by itself and in lists, as the oracle knows it
// (histories.ts). Increments would reveal a write that happened twice. Meanwhile several clients change and read one
// more entity, and their answers must fit one order (shared-entity.ts). In the end one node is left alone, and shows
// everything from its copies.
//
// CLUSTER_ROUNDS sets the number of rounds, SEED repeats their choice, CLUSTER_LOGS names a directory for the output of
// the nodes.

import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { ClusterScene, memberName, nodeNames } from '../support/cluster-scene.js'
import { noEtcd, startEtcd } from '../support/etcd.js'
import { indexesEqualRebuild } from '../support/inspection.js'
import { root } from '../support/project.js'
import { Random } from '../support/random.js'
import { faults, pickKinds } from './cluster-faults.js'
import { ClusterLoad } from './cluster-load.js'
import { Notified } from './cluster-notified.js'
import { SharedEntity } from './shared-entity.js'

const skip =
  process.platform === 'linux' ? noEtcd() : 'the network in between asks /proc who has dialed, which is for Linux'
const rounds = Number(process.env.CLUSTER_ROUNDS ?? 2)
/**
 * After a fault all entities are written within this time. The promise is less (cluster.test.ts); a busy machine is not
 * a fault.
 */
const recoveryMsMax = 60_000
t.setTimeout(500_000 + rounds * 90_000)

/**
 * After this time a node that is cut off has lost its shards to others, which have acknowledged changes; mostly it
 * happens earlier.
 */
const cutMsMax = 25_000
const roundsUntilNoticed = 4

t.test(`in ${rounds} rounds of faults nothing acknowledged is lost`, { skip }, async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  const scene = await ClusterScene.start(t, await startEtcd(t, { members: 3 }))
  const load = new ClusterLoad(scene, new Random(random.seed + 1))
  t.teardown(() => load.close())
  const notified = new Notified(t, new Random(random.seed + 2), load.histories)
  await notified.subscribe(scene.baseUrl(random.pick(nodeNames)))
  load.onAcknowledged = write => notified.onAcknowledged(write)
  for (const [round, kind] of pickKinds(rounds, random).entries()) {
    const before = { ...load }
    const shared = new SharedEntity(scene, new Random(random.seed + 3 + round), `shared${round}`)
    await shared.begin()
    load.begin()
    await pause(random.between(300, 1_500))
    const what = await faults[kind]({ scene, load, random })
    const overMs = performance.now()
    await load.end()
    const order = await shared.end()
    await load.writeAll()
    const recoveryMs = performance.now() - overMs
    const wrong = [...load.problems]
    for (const name of nodeNames) if (wrong.length === 0) wrong.push(...(await load.differences(name)))
    wrong.push(...notified.problems, ...(await notified.missing()).map(one => `nobody was notified of ${one}`))
    if (order.kind === 'wrong') wrong.push(`no order fits ${shared.count} answers: ${JSON.stringify(order.stuck)}`)
    const writes = `${load.acknowledged - before.acknowledged} writes, ${load.unknown - before.unknown} unknown`
    const shares = `${shared.count} of several clients, ${order.kind}`
    const counts = `${writes}, ${load.read - before.read} reads, ${shares}`
    const said = `round ${round + 1}: ${kind} (${what}); ${counts}, well after ${recoveryMs.toFixed(0)} ms`
    if (wrong.length > 0) {
      t.fail(`${said}, SEED=${random.seed}`, { wrong: wrong.slice(0, 5) })
      return
    }
    t.ok(recoveryMs < recoveryMsMax, said)
  }
  t.ok(notified.count > 0, `${notified.count} changes were notified of`)
  const last = random.pick(nodeNames)
  await Promise.all(nodeNames.map(async name => name !== last && (await scene.kill(name))))
  t.strictSame(await load.differences(last), [], `${last}, left alone, tells all`)
  const { cluster } = await scene.status(last)
  await scene.kill(last)
  for (const name of nodeNames)
    t.strictSame(await indexesEqualRebuild(scene.dataDir(name), cluster), [], `the indexes of ${name} are right`)
  for (const end of scene.ended) t.comment(end)
})

t.test('nodes that answer after their lease are noticed', { skip }, async t => {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  const main = join(root, 'dist/test/support/leaseless-main.js')
  const programOf = (name: string) => ({ main, env: { LEASELESS_NODE: name } })
  const scene = await ClusterScene.start(t, await startEtcd(t, { members: 3 }), programOf)
  const load = new ClusterLoad(scene, new Random(random.seed + 1))
  t.teardown(() => load.close())
  for (let round = 0; round < roundsUntilNoticed && load.problems.length === 0; round++) {
    load.begin()
    const name = random.pick(nodeNames)
    const others = nodeNames.filter(other => other !== name)
    for (const other of [...others, ...scene.etcd.members.map((_, at) => memberName(at))]) {
      scene.network.silence(other, name)
      scene.network.silence(name, other)
    }
    for (const untilMs = performance.now() + cutMsMax; performance.now() < untilMs && load.problems.length === 0; )
      await pause(100)
    scene.network.mend()
    await load.end()
  }
  t.match(load.problems[0], /states too old/, 'a read has shown something older')
})

// A log that is divided among several etcds keeps the promises of the port, and keeps each shard in the etcd that the
// rule names.

import assert from 'node:assert/strict'
import t from 'tap'
import { DividedLog, logIndexOf, oneLog } from '../../../cluster/logs/divided-log.js'
import { openEtcdLog } from '../../../cluster/logs/etcd-log.js'
import type { ShardLog, TakeoversOutcome } from '../../../cluster/logs/shard-log.js'
import { systemClock } from '../../../src/clock.js'
import { noEtcd, startEtcd } from '../../support/etcd.js'
import { FaultyProxy } from '../../support/faulty-proxy.js'
import { Random } from '../../support/random.js'
import { Node, record, shardLogContract } from '../shard-log-contract.js'
import { SimulatedEngine, type SimulatedLog } from '../simulated-log.js'
import { World } from '../simulated-world.js'

const skip = noEtcd()
if (skip) t.comment(skip)

/** Nodes of one test in the contract. */
const nodesMax = 4
const ahead = { deadlineMs: 1000, refollowMsMin: 5, refollowMsMax: 50 }
let clusters = 0

t.test('the contract, over two etcds', { skip }, async t => {
  const targets = [await startEtcd(t), await startEtcd(t)].map(({ members }) => members[0]!.address)
  shardLogContract(
    t,
    async t => {
      const cluster = `c${clusters++}`
      const nodes: FaultyProxy[][] = []
      for (let n = 0; n < nodesMax; n++)
        nodes.push(await Promise.all(targets.map(target => FaultyProxy.start(t, target))))
      const all = nodes.flat()
      let connected = 0
      return {
        connect: () => {
          const proxies = nodes[connected++]
          assert(proxies, 'a test has no more nodes than proxies')
          const each = (run: (proxy: FaultyProxy) => void) => (): void => {
            for (const proxy of proxies) run(proxy)
          }
          const logs = proxies.map(({ address }) =>
            openEtcdLog(
              { members: [address], secure: false, user: undefined, password: undefined },
              cluster,
              systemClock,
              ahead,
            ),
          )
          return {
            log: oneLog(logs),
            holdRequests: each(proxy => {
              proxy.mode = 'hold requests'
            }),
            dropAnswers: each(proxy => {
              proxy.mode = 'drop answers'
            }),
            releaseLate: each(proxy => proxy.releaseLate()),
            mend: each(proxy => proxy.mend()),
          }
        },
        goAway: async () => {
          for (const proxy of all) proxy.goAway()
        },
        comeBack: async () => {
          for (const proxy of all) proxy.mend()
        },
        run: promise => promise,
      }
    },
    targets.length,
  )
})

/** Two simulated engines, and a node's log over both. */
function simulate() {
  const world = new World(new Random(1))
  const { clock } = world.process('engine')
  const engines = [new SimulatedEngine(clock, world.random, {}), new SimulatedEngine(clock, world.random, {})] as const
  const parts = engines.map(engine => engine.connect(world.process('a').clock)) as [SimulatedLog, SimulatedLog]
  const none = (): void => {}
  const run = async <T>(promise: Promise<T>): Promise<T> => {
    let isDone = false
    void promise.finally(() => {
      isDone = true
    })
    while (!isDone) await world.run(10)
    return promise
  }
  const log = oneLog(parts)
  const engine = {
    connect: () => assert.fail('nodes are opened'),
    goAway: async () => {},
    comeBack: async () => {},
    run,
  }
  const node = new Node({ log, holdRequests: none, dropAnswers: none, releaseLate: none, mend: none }, engine)
  return { engines, parts, node, log }
}

t.test('the number of the shard modulo the number of logs is the index of its log', async t => {
  t.strictSame(
    [0, 1, 2, 255, 256].map(shard => logIndexOf(shard, 2)),
    [0, 1, 0, 1, 0],
  )
  t.strictSame(
    [0, 1, 2, 255, 256].map(shard => logIndexOf(shard, 3)),
    [0, 1, 2, 0, 1],
  )
})

t.test('a shard is in one engine, and in no other one', async t => {
  const { engines, node } = simulate()
  for (const shard of [0, 1, 2, 3]) await node.write(shard, await node.own(shard), 1, 'x')
  for (const [index, engine] of engines.entries()) {
    t.strictSame([...engine.takeovers().keys()].sort(), [index, index + 2])
    for (const shard of [0, 1, 2, 3]) t.equal(engine.recordsOf(shard).length, shard % 2 === index ? 1 : 0)
  }
  t.strictSame(await node.lacking([0, 1], [1, 2], [2, 1], [3, 2]), { kind: 'read', shards: [1, 3] })
})

t.test('one log alone is used as it is', async t => {
  const { parts } = simulate()
  t.equal(oneLog([parts[0]]), parts[0])
  t.ok(oneLog(parts) instanceof DividedLog)
  t.throws(() => oneLog([]), /no log/)
})

t.test('shards of different engines share no append, and no heartbeat', async t => {
  const { node, log } = simulate()
  const [one, two] = [await node.own(1), await node.own(2)]
  t.throws(() => log.append([record(1, one, 1, 'x'), record(2, two, 1, 'y')], () => {}), /shards of 2 logs/)
  const epochs = new Map([
    [1, one],
    [2, two],
  ])
  t.throws(() => log.heartbeat({ node: 'a', epochs, bytes: Buffer.from('x') }, () => {}), /shards of 2 logs/)
})

t.test('while one engine is away, its shards have no answers and the others have', async t => {
  const { engines, node, log } = simulate()
  const [one, two] = [await node.own(1), await node.own(2)]
  engines[1].goAway()
  t.match(await node.append(record(1, one, 1, 'x')), { kind: 'unknown' })
  t.strictSame(await node.append(record(2, two, 1, 'x')), { kind: 'appended' })
  t.match(await node.takeovers(), { kind: 'unknown' }, 'not all takeovers are known')
  engines[1].comeBack()
  const all = await node.takeovers()
  t.strictSame([...(all as Extract<TakeoversOutcome, { kind: 'read' }>).takeovers.keys()].sort(), [1, 2])
  await (log as ShardLog).close()
})

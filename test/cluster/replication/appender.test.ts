// What an append says of a shard that another node has taken over meanwhile: which shard, who has it, and since when this node was not certain.

import t from 'tap'
import { Appender } from '../../../cluster/replication/appender.js'
import { beginning } from '../../../cluster/replication/log-record.js'
import { Replica } from '../../../cluster/replication/replica.js'
import { replicationOptionsDefault } from '../../../cluster/replication/replication-options.js'
import { Deposed, type Position } from '../../../cluster/replication/shard-host.js'
import { Random } from '../../support/random.js'
import { SimulatedEngine } from '../simulated-log.js'
import { World } from '../simulated-world.js'

const self = 'a x'
const shards = [3, 5, 7]

/** A node that owns some shards, and an append of it to all of them. */
function simulate() {
  const world = new World(new Random(1))
  const engine = new SimulatedEngine(world.process('engine').clock, world.random, {})
  const { clock } = world.process('a')
  const log = engine.connect(clock)
  const options = replicationOptionsDefault
  const owned = new Map(
    shards.map(shard => {
      const replica = new Replica(shard, beginning, {
        log,
        host: { apply: (_shard, _payloads, _position, onDone) => clock.endOfTick(onDone) },
        clock,
        options,
        onStopped: () => {},
        onAhead: () => {},
        onFailure: error => {
          throw error
        },
      })
      replica.own()
      return [shard, { replica, epoch: engine.takeOver(shard, self).epoch, certainMs: clock.monoMs() - 100 }]
    }),
  )
  const appender = new Appender({
    log,
    clock,
    options,
    self,
    owned: shard => owned.get(shard),
    mayAppend: () => true,
    onLost: () => {},
  })
  const append = async (): Promise<ReadonlyMap<number, Position> | Error | undefined> => {
    let told: ReadonlyMap<number, Position> | Error | undefined
    const parts = shards.map(shard => ({ shard, payload: Buffer.from(`of ${shard}`) }))
    appender.append(parts, outcome => {
      told = outcome
    })
    for (let left = 10_000; !told && left > 0; left--) await world.run(1)
    return told
  }
  return { engine, append }
}

t.test('an append to shards that are this node’s own tells the position of each', async t => {
  const { append } = simulate()
  const outcome = await append()
  t.ok(outcome instanceof Map)
  t.strictSame([...(outcome as Map<number, Position>).keys()], shards)
})

t.test('a refused append names every shard that was taken over, by whom, and since when that may be', async t => {
  const { engine, append } = simulate()
  const { epoch } = engine.takeOver(5, 'b y')
  const { epoch: last } = engine.takeOver(7, '')
  const outcome = await append()
  t.ok(outcome instanceof Deposed)
  const { code, message, losses } = outcome as Deposed
  t.equal(code, 'deposed')
  t.equal(message, 'shard 5 was taken over by b, shard 7 was taken over by nobody')
  t.match(losses, [
    { shard: 5, node: 'b', epoch },
    { shard: 7, node: undefined, epoch: last },
  ])
  for (const { certainMs } of losses) t.ok(certainMs >= 100 && certainMs < 5_000, `${certainMs} ms`)
  t.equal(engine.recordsOf(3).length, 0, 'nothing of it has happened')
})

// An append when another node has taken over some of its shards: it continues without them, and reports which they are,
// the owner of each, and since when this node was not certain.

import t, { type Test } from 'tap'
import { Appender, type OwnedShard } from '../../../cluster/replication/appender.js'
import { beginning } from '../../../cluster/replication/log-record.js'
import { Replica } from '../../../cluster/replication/replica.js'
import { replicationOptionsDefault } from '../../../cluster/replication/replication-options.js'
import { DeposedError, type LogPosition } from '../../../cluster/replication/shard-host.js'
import { Random } from '../../support/random.js'
import { SimulatedEngine } from '../simulated-log.js'
import { World } from '../simulated-world.js'

const self = 'a x'
const shards = [3, 5, 7]

type Owned = { -readonly [key in keyof OwnedShard]: OwnedShard[key] }
type Outcome = ReadonlyMap<number, LogPosition> | Error | undefined

/** A node that owns some shards, and its appends to all of them. */
function simulate(appendBytesMax?: number) {
  const world = new World(new Random(1))
  const engine = new SimulatedEngine(world.process('engine').clock, world.random, {})
  const { clock } = world.process('a')
  const log = engine.connect(clock)
  if (appendBytesMax !== undefined) Object.assign(log, { appendBytesMax })
  const options = replicationOptionsDefault
  const owned = new Map(
    shards.map((shard): [number, Owned] => {
      const replica = new Replica(shard, beginning, {
        log,
        host: { apply: (_shard, _payloads, _position, onDone) => clock.endOfTick(onDone), position: () => beginning },
        clock,
        options,
        onStopped: () => {},
        onAhead: () => {},
        onFailure: error => {
          throw error
        },
      })
      replica.own()
      const { epoch } = engine.takeOver(shard, self)
      const certainMs = clock.monoMs() - 100
      return [shard, { replica, epoch, mayAppend: true, latest: { epoch, owner: self }, certainMs }]
    }),
  )
  const noted: number[] = []
  const appender = new Appender({
    log,
    clock,
    options,
    self,
    holding: shard => owned.get(shard)!,
    onTakeover: (shard, takeover) => {
      noted.push(shard)
      const holding = owned.get(shard)!
      holding.latest = takeover
      if (takeover.owner !== self) holding.mayAppend = false
    },
    mayAppend: () => true,
    onLost: () => {},
  })
  /** `meanwhile` runs once, as soon as the log of a shard has a record. */
  const append = async (payload = 'first', meanwhile?: () => void): Promise<Outcome> => {
    let reported: Outcome
    const parts = shards.map(shard => ({ shard, payload: Buffer.from(`${payload} of ${shard}`) }))
    appender.append(parts, outcome => {
      reported = outcome
    })
    let isToRun = meanwhile !== undefined
    for (let left = 100_000; !reported && left > 0; left--) {
      await world.run(0.1)
      if (!isToRun || engine.recordsOf(5).length === 0) continue
      meanwhile?.()
      isToRun = false
    }
    return reported
  }
  return { engine, append, owned, noted }
}

/** Asserts the type of the outcome after every loss. */
function assertDeposed(t: Test, outcome: Outcome): DeposedError {
  t.ok(outcome instanceof DeposedError, `${outcome}`)
  return outcome as DeposedError
}

t.test('an append to shards that are this node’s own returns the position of each', async t => {
  const { append } = simulate()
  const outcome = await append()
  t.ok(outcome instanceof Map)
  t.strictSame([...(outcome as Map<number, LogPosition>).keys()], shards)
})

t.test(
  'shards that were taken over are named, with the new owner and the time, and the others are appended',
  async t => {
    const { engine, append, noted } = simulate()
    const { epoch } = engine.takeOver(5, 'b y')
    const { epoch: last } = engine.takeOver(7, '')
    const { code, message, losses, reached } = assertDeposed(t, await append())
    t.equal(code, 'deposed')
    t.equal(message, 'shard 5 was taken over by b, shard 7 has no owner now')
    t.match(losses, [
      { shard: 5, node: 'b', epoch },
      { shard: 7, node: undefined, epoch: last },
    ])
    for (const { certainMs } of losses) t.ok(certainMs! >= 100 && certainMs! < 5_000, `${certainMs} ms`)
    t.strictSame(noted.slice(0, 3), shards, 'the takeovers are known before the outcome')
    t.strictSame([...reached.keys()], [3])
    t.strictSame(
      shards.map(shard => engine.recordsOf(shard).length),
      [1, 0, 0],
    )
  },
)

t.test('the next append goes on behind the last one in the shards that are left', async t => {
  const { engine, append } = simulate()
  await append()
  engine.takeOver(5, 'b y')
  t.strictSame([...assertDeposed(t, await append('second')).reached.keys()], [3, 7])
  const { losses, reached } = assertDeposed(t, await append('third'))
  t.match(losses, [{ shard: 5, node: 'b' }])
  t.strictSame(
    [...reached].map(([shard, { sequence }]) => [shard, sequence]),
    [
      [3, 3],
      [7, 3],
    ],
  )
  t.equal(engine.recordsOf(5).length, 1)
})

t.test('records from before a takeover are reported as appended, although their shard is lost now', async t => {
  for (const lost of [[5], shards]) {
    const { engine, append } = simulate()
    engine.faults.answerLost = 1
    const outcome = await append('first', () => {
      engine.faults.answerLost = 0
      for (const shard of lost) engine.takeOver(shard, 'b y')
    })
    t.ok(outcome instanceof Map, `${outcome}`)
    t.strictSame(
      shards.map(shard => engine.recordsOf(shard).length),
      [1, 1, 1],
      'nothing stands there twice',
    )
  }
})

t.test('a shard that is lost in the midst of a payload of several records has no position', async t => {
  const { engine, append, owned } = simulate(400)
  const outcome = await append('x'.repeat(1_000), () => engine.takeOver(5, 'b y'))
  const { losses, reached } = assertDeposed(t, outcome)
  t.match(losses, [{ shard: 5, node: 'b' }])
  t.strictSame([...reached.keys()].sort(), [3, 7])
  t.equal(reached.get(3)!.sequence, owned.get(3)!.replica.end.sequence)
})

t.test('where every shard was taken over nothing is appended', async t => {
  const { engine, append } = simulate()
  for (const shard of shards) engine.takeOver(shard, 'b y')
  const { losses, reached } = assertDeposed(t, await append())
  t.strictSame([losses.length, reached.size], [3, 0])
  t.strictSame(
    shards.map(shard => engine.recordsOf(shard).length),
    [0, 0, 0],
  )
})

t.test('a later takeover of its own is one in whose name the node appends', async t => {
  const { engine, append, owned } = simulate()
  const { epoch } = engine.takeOver(5, self)
  const outcome = await append()
  t.ok(outcome instanceof Map, `${outcome}`)
  t.equal(owned.get(5)!.epoch, epoch)
})

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

/** A node that owns some shards, and its appends to all of them. `isDivided`: shard 6 has another log. */
function simulate(appendBytesMax?: number, isDivided = false) {
  const world = new World(new Random(1))
  const engine = new SimulatedEngine(world.process('engine').clock, world.random, {})
  const { clock } = world.process('a')
  const log = engine.connect(clock)
  if (appendBytesMax !== undefined) Object.assign(log, { appendBytesMax })
  // The logs of even and of odd numbers.
  const even = engine.connect(clock)
  const logs = isDivided ? [even, log] : [log]
  const options = replicationOptionsDefault
  const owned = new Map(
    [...shards, 6].map((shard): [number, Owned] => {
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
      return [shard, { replica, epoch, mayAppend: true, isForsaken: false, latest: { epoch, owner: self }, certainMs }]
    }),
  )
  const noted: number[] = []
  const forsaken: number[] = []
  const appender = new Appender({
    logs,
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
    onForsaken: index => {
      forsaken.push(index)
      for (const [shard, holding] of owned)
        if (shard % logs.length === index) Object.assign(holding, { mayAppend: false, isForsaken: true })
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
  return { engine, append, owned, noted, appender, world, log, even, forsaken }
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

t.test('appends of different shards overlap, and each has an outcome of its own', async t => {
  const { engine, appender, world } = simulate()
  engine.takeOver(5, 'b y')
  const ended: string[] = []
  const payload = Buffer.from('x')
  appender.append([{ shard: 3, payload }], outcome => ended.push(`3 ${outcome instanceof Map}`))
  appender.append([{ shard: 5, payload }], outcome => ended.push(`5 ${outcome instanceof DeposedError}`))
  await world.run(1_000)
  t.strictSame(ended.toSorted(), ['3 true', '5 true'])
  t.strictSame([appender.stalledMs, appender.troubleOf(0)], [0, undefined])
})

t.test('a shard has one append in flight', async t => {
  const { appender, world } = simulate()
  const part = { shard: 3, payload: Buffer.from('x') }
  let ended = 0
  appender.append([part], () => ended++)
  t.throws(() => appender.append([part], () => ended++), { message: 'another append of a shard is in flight' })
  await world.run(1_000)
  appender.append([part], () => ended++)
  await world.run(1_000)
  t.equal(ended, 2)
})

t.test('the append that waits longest shows how long the engine takes none', async t => {
  const { engine, appender, world } = simulate()
  engine.goAway()
  appender.append([{ shard: 3, payload: Buffer.from('x') }], () => {})
  await world.run(2_000)
  appender.append([{ shard: 7, payload: Buffer.from('x') }], () => {})
  await world.run(3_000)
  t.ok(appender.stalledMs >= 5_000, `${appender.stalledMs} ms`)
  t.equal(appender.troubleOf(0)?.kind, 'unknown')
  engine.comeBack()
  await world.run(5_000)
  t.strictSame([appender.stalledMs, appender.troubleOf(0)], [0, undefined])
})

const part = (shard: number) => ({ shard, payload: Buffer.from('x') })

t.test('with several logs the parts of one call go to each log, those of the first part first', async t => {
  const { engine, appender, world, log, even } = simulate(undefined, true)
  const sent: (readonly number[])[] = []
  for (const one of [log, even]) {
    const { append } = one
    one.append = (appends, onDone) => {
      sent.push(appends.map(({ shard }) => shard))
      append(appends, onDone)
    }
  }
  let outcome: Outcome
  appender.append([part(6), part(3), part(5)], given => {
    outcome = given
  })
  await world.run(1_000)
  t.strictSame(sent, [[6], [3, 5]])
  t.strictSame([...(outcome as ReadonlyMap<number, LogPosition>).keys()].sort(), [3, 5, 6])
  for (const shard of [3, 5, 6]) t.equal(engine.recordsOf(shard).length, 1)
})

t.test('one of several logs that is silent for long is given up, and the parts for the others are durable', async t => {
  const { appender, world, log, forsaken } = simulate(undefined, true)
  log.fault = 'cut'
  let outcome: Outcome
  appender.append([part(6), part(3), part(5)], given => {
    outcome = given
  })
  await world.run(replicationOptionsDefault.forsakeMs - 500)
  t.strictSame([outcome, forsaken], [undefined, []], 'an election takes some time')
  t.equal(appender.troubleOf(1)?.kind, 'unknown')
  t.equal(appender.troubleOf(0), undefined)
  t.ok(appender.stalledMsOf(1) > 3_000)
  t.equal(appender.stalledMsOf(0), 0)
  await world.run(5_000)
  t.strictSame(forsaken, [1])
  const { losses, reached, message } = assertDeposed(t, outcome)
  t.match(losses, [
    { shard: 3, node: undefined, isForsaken: true },
    { shard: 5, node: undefined, isForsaken: true },
  ])
  t.strictSame([...reached.keys()], [6])
  t.equal(message, 'the log of shard 3 does not answer, the log of shard 5 does not answer')
  t.strictSame([appender.stalledMs, appender.troubleOf(1)], [0, undefined])
})

t.test('a single log is never given up', async t => {
  const { appender, world, log, forsaken } = simulate()
  log.fault = 'cut'
  let outcome: Outcome
  appender.append([part(3)], given => {
    outcome = given
  })
  await world.run(20_000)
  t.strictSame([outcome, forsaken], [undefined, []])
  log.fault = 'none'
  await world.run(5_000)
  t.ok(outcome instanceof Map)
})

// Whether a copy has all that a cluster has acknowledged, by the logs and by the heartbeats of nodes that run.

import t from 'tap'
import type { AppendOutcome, TakeoverOutcome } from '../../../cluster/logs/shard-log.js'
import { findBehind, findLiving } from '../../../cluster/replication/leaving.js'
import { beginning, encodeRecord, positionOf } from '../../../cluster/replication/log-record.js'
import type { LogPosition } from '../../../cluster/replication/shard-host.js'
import { Random } from '../../support/random.js'
import { SimulatedEngine } from '../simulated-log.js'
import { World } from '../simulated-world.js'

const random = Random.fromEnvironment()
t.comment(`SEED=${random.seed}`)

async function simulate() {
  const world = new World(new Random(random.seed))
  const engine = new SimulatedEngine(world.process('engine').clock, world.random, {})
  const { clock } = world.process('leave')
  const log = engine.connect(clock)
  const owner = engine.connect(world.process('owner').clock)
  const run = async <T>(promise: Promise<T>): Promise<T> => {
    let isOver = false
    const ended = promise.finally(() => {
      isOver = true
    })
    ended.catch(() => {})
    for (let left = 100_000; !isOver && left > 0; left--) {
      await world.run(1)
      if (left % 20 === 0) await new Promise(resolve => setImmediate(resolve))
    }
    return ended
  }
  const shard = 3
  const taken = await run(new Promise<TakeoverOutcome>(resolve => owner.takeOver(shard, 'n1 life', resolve)))
  if (taken.kind !== 'taken') throw new Error('the engine answers')
  const { epoch } = taken
  /** Appends a record, which may begin or continue a fragmented step; returns the position behind it. */
  const append = async (behind: LogPosition, continues = false, continuesPrevious = false): Promise<LogPosition> => {
    const sequence = behind.sequence + 1
    const bytes = encodeRecord(shard, epoch, behind, Buffer.from('payload'), {
      continues,
      continuesPrevious,
    })
    const appends = [{ shard, epoch, sequence, bytes }]
    t.match(await run(new Promise<AppendOutcome>(resolve => owner.append(appends, resolve))), { kind: 'appended' })
    return positionOf(bytes, { epoch, sequence })
  }
  const behind = (position: LogPosition) =>
    run(
      findBehind(
        new Map([
          [shard, position],
          [4, beginning],
        ]),
        log,
        clock,
      ),
    )
  return { engine, log, owner, clock, run, shard, epoch, append, behind }
}

t.test('a copy that has all records of its logs lacks nothing, one that has not is behind', async t => {
  const { append, behind, shard } = await simulate()
  t.strictSame(await behind(beginning), [], 'there is nothing yet')
  const first = await append(beginning)
  const second = await append(first)
  t.strictSame(await behind(second), [])
  t.strictSame(await behind(first), [shard])
  t.strictSame(await behind(beginning), [shard])
})

t.test('a step that was only begun was not acknowledged, and its last record counts', async t => {
  const { append, behind, shard } = await simulate()
  const first = await append(beginning)
  const begun = await append(first, true)
  const more = await append(begun, true, true)
  t.strictSame(await behind(first), [])
  await append(more, false, true)
  t.strictSame(await behind(first), [shard])
})

t.test('trimmed records may have been whole steps', async t => {
  const { append, behind, owner, run, clock, shard } = await simulate()
  const first = await append(beginning)
  const second = await append(first)
  await append(second, true)
  owner.trim(shard, 2)
  await run(new Promise<void>(resolve => clock.after(1000, resolve)))
  t.strictSame(await behind(first), [shard])
  t.strictSame(await behind(second), [])
})

t.test('a node that runs is found by its heartbeats, and one that has ended is not', async t => {
  const { log, owner, engine, clock, run, shard, epoch } = await simulate()
  const beat = () =>
    owner.heartbeat({ node: 'n1', epochs: new Map([[shard, epoch]]), bytes: Buffer.from([1, 8]) }, () => {})
  beat()
  await run(new Promise<void>(resolve => clock.after(2000, resolve)))
  t.strictSame(await run(findLiving(log, clock)), [])
  clock.after(1500, beat)
  t.strictSame(await run(findLiving(engine.connect(clock), clock)), ['n1'])
})

t.test('an engine that does not answer is given up', async t => {
  const { engine, behind } = await simulate()
  engine.goAway()
  await t.rejects(behind(beginning), { message: /^the log engine does not answer: / })
})

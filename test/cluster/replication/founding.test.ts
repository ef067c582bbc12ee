// Logs of shards that have content already: a copy without content needs a snapshot, an interrupted founding is
// continued, and a cluster that already runs is left alone.

import t from 'tap'
import type { LogReading } from '../../../cluster/logs/shard-log.js'
import { assertFoundable, foundLogs } from '../../../cluster/replication/founding.js'
import { beginning, encodeRecord } from '../../../cluster/replication/log-record.js'
import { Replica } from '../../../cluster/replication/replica.js'
import { replicationOptionsDefault } from '../../../cluster/replication/replication-options.js'
import type { LogPosition } from '../../../cluster/replication/shard-host.js'
import { Random } from '../../support/random.js'
import { type LogFaults, SimulatedEngine } from '../simulated-log.js'
import { World } from '../simulated-world.js'

const random = Random.fromEnvironment()
t.comment(`SEED=${random.seed}`)

const shards = 5
const all = Array.from({ length: shards }, (_, shard) => shard)

function simulate(faults: Partial<LogFaults> = {}) {
  const world = new World(new Random(random.seed))
  const engine = new SimulatedEngine(world.process('engine').clock, world.random, faults)
  const { clock } = world.process('init')
  const log = engine.connect(clock)
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
  const found = (mark = 'mark') => run(foundLogs(all, mark, log, clock))
  const look = (mark = 'mark') => run(assertFoundable(all, mark, log, clock))
  /** A copy that begins at a node's position. */
  const copy = async (shard: number, position: LogPosition | undefined): Promise<Replica> => {
    const replica = new Replica(shard, position, {
      log,
      host: { apply: (_shard, _payloads, _position, onDone) => onDone(), position: () => position },
      clock,
      options: replicationOptionsDefault,
      onStopped: (_shard, reason) => t.fail(reason),
      onAhead: () => t.fail('its log has lost something'),
      onFailure: failure => t.fail(failure),
    })
    if (!position) replica.restart(beginning)
    await run(new Promise(resolve => replica.catchUp(resolve)))
    return replica
  }
  return { engine, log, run, found, look, copy }
}

t.test('a node with the content follows, and one without it needs a snapshot', async t => {
  const { engine, found, copy } = simulate()
  const positions = await found()
  t.strictSame([...positions.keys()], [0, 1, 2, 3, 4])
  for (const [shard, position] of positions) {
    t.equal(engine.takeoverOf(shard)?.owner, '', 'the shard belongs to nobody')
    const replica = await copy(shard, position)
    t.equal(replica.state, 'following')
    t.equal(replica.end.sequence, position.sequence)
    t.equal((await copy(shard, undefined)).state, 'incomplete')
  }
})

t.test('the log of such a shard goes on behind its position', async t => {
  const { log, run, found, copy } = simulate()
  const position = (await found()).get(3)!
  const taken = await run(new Promise<{ kind: string; epoch?: number }>(resolve => log.takeOver(3, 'n1 x', resolve)))
  const bytes = encodeRecord(3, taken.epoch!, position, Buffer.from('change'), {
    continues: false,
    continuesPrevious: false,
  })
  const append = { shard: 3, epoch: taken.epoch!, sequence: position.sequence + 1, bytes }
  t.match(await run(new Promise(resolve => log.append([append], resolve))), { kind: 'appended' })
  t.equal((await copy(3, position)).end.sequence, position.sequence + 1)
})

t.test('each log begins once, even if the engine leaves requests unanswered', async t => {
  const { engine, found } = simulate({ lost: 0.2, answerLost: 0.2, late: 0.1, lateMsMax: 300, deadlineMs: 100 })
  const positions = await found()
  for (const [shard, { sequence }] of positions) {
    t.equal(engine.lastOf(shard), sequence)
    t.equal(engine.recordsOf(shard).length, 1)
  }
  t.strictSame(await found(), positions, 'and where it begins stays the same')
})

t.test('an engine that never answers is given up', async t => {
  const { engine, found } = simulate()
  engine.goAway()
  await t.rejects(found(), { message: /^the log engine does not answer: / })
})

t.test('a cluster that goes on already is left alone', async t => {
  const { engine, log, run, found, look } = simulate()
  const read = (shard: number) => run(new Promise<LogReading>(resolve => log.read(shard, 0, 1, resolve as never)))

  await found('another')
  const before = await read(0)
  await t.rejects(found(), {
    message:
      'the log engine keeps a cluster already, and shard 0 cannot begin with other content: its log has 2 records',
  })
  await run(new Promise(resolve => log.takeOver(0, 'n1 x', resolve)))
  await t.rejects(found('another'), { message: /: it belongs to n1$/ })
  t.strictSame((await read(0)).records, before.records)
  t.equal(engine.takeoverOf(0)?.owner, 'n1 x')
  await t.rejects(look('another'), { message: /: it belongs to n1$/ }, 'which can be found out beforehand')
})

t.test('whether logs may begin is found out without beginning them', async t => {
  const { engine, found, look } = simulate()
  await look()
  t.equal(engine.lastOf(0), 0)
  t.equal(engine.takeoverOf(0), undefined)
  await found()
  await look()
  await t.rejects(look('another'), { message: /^the log engine keeps a cluster already, and shard 0 / })
})

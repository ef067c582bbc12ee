// The simulated driver keeps the promises of the port, and causes the faults that it is set to.

import t from 'tap'
import type { AppendOutcome, ShardLog } from '../../cluster/logs/shard-log.js'
import { Random } from '../support/random.js'
import { record, shardLogContract } from './shard-log-contract.js'
import { type LogFaults, SimulatedEngine } from './simulated-log.js'
import { World } from './simulated-world.js'

const seed = Random.fromEnvironment().seed
t.comment(`SEED=${seed}`)

/** A world, an engine in it, and a way to let time pass until a promise is resolved. */
function simulate(faults: Partial<LogFaults> = {}, of = seed) {
  const world = new World(new Random(of))
  const engine = new SimulatedEngine(world.process('engine').clock, world.random, faults)
  const run = async <T>(promise: Promise<T>): Promise<T> => {
    let over = false
    const ended = promise.finally(() => {
      over = true
    })
    ended.catch(() => {})
    for (let left = 200_000; !over && left > 0; left--) {
      await world.run(1)
      // Promises that resolve only through a promise of a promise, or by a real timer, get a turn, too.
      if (left % 100 === 0) await new Promise(resolve => setImmediate(resolve))
    }
    return ended
  }
  return { world, engine, run }
}

t.test('the contract', async t => {
  let nodes = 0
  shardLogContract(t, async () => {
    const { world, engine, run } = simulate()
    return {
      connect: () => {
        const log = engine.connect(world.process(`n${nodes++}`).clock)
        return {
          log,
          holdRequests: () => {
            log.fault = 'hold'
          },
          dropAnswers: () => {
            log.fault = 'deafen'
          },
          releaseLate: () => {
            log.fault = 'none'
            log.release()
          },
          mend: () => {
            log.fault = 'none'
          },
        }
      },
      goAway: async () => engine.goAway(),
      comeBack: async () => engine.comeBack(),
      run,
    }
  })
})

/**
 * Takes a shard over and appends records to it, each under its next number; appends again those that turn out to be
 * missing. Returns the outcomes.
 */
async function append(log: ShardLog, count: number): Promise<string[]> {
  const epoch = await new Promise<number>(resolve => {
    const take = (): void =>
      log.takeOver(1, 'a', outcome => (outcome.kind === 'taken' ? resolve(outcome.epoch) : take()))
    take()
  })
  const kinds: string[] = []
  for (let sequence = 1; sequence <= count; sequence++) {
    const outcome = await new Promise<AppendOutcome>(resolve =>
      log.append([record(1, epoch, sequence, String(sequence))], resolve),
    )
    kinds.push(outcome.kind)
    // The one before was unknown, and has not happened.
    if (outcome.kind === 'short') sequence -= 2
  }
  return kinds
}

const rough = { lost: 0.1, answerLost: 0.1, late: 0.1, lateMsMax: 5000, followLost: 0.1 }

t.test('the same seed gives the same run, another one another', async t => {
  const story = async (of: number): Promise<string> => {
    const { world, engine, run } = simulate(rough, of)
    const kinds = await run(append(engine.connect(world.process('a').clock), 100))
    return JSON.stringify([kinds, engine.events, world.nowMs])
  }
  const first = await story(seed)
  t.equal(await story(seed), first)
  t.not(await story(seed + 1), first)
})

t.test('requests and answers are lost, and requests arrive late', async t => {
  const { world, engine, run } = simulate(rough)
  const kinds = await run(append(engine.connect(world.process('a').clock), 150))
  await world.run(20_000)
  const unknown = kinds.filter(kind => kind === 'unknown').length
  const missing = kinds.filter(kind => kind === 'short').length
  t.ok(unknown > 20, `${unknown} unknown`)
  t.ok(missing < unknown, 'some of what was unknown has happened')
  t.ok(missing > 0, 'some of it has not')
})

t.test('a killed node gets no reply, and its requests happen', async t => {
  const { world, engine, run } = simulate({ delayMsMax: 5 })
  const process = world.process('a')
  const log = engine.connect(process.clock)
  let isDone = false
  log.takeOver(1, 'a', () => {
    isDone = true
  })
  process.kill()
  await run(world.run(5000))
  t.equal(engine.takeoverOf(1)?.owner, 'a')
  t.notOk(isDone)
})

t.test('without its fence the engine lets a superseded owner append, as a checker must notice', async t => {
  const { world, engine, run } = simulate()
  engine.fenced = false
  const log = engine.connect(world.process('a').clock)
  const epoch = await run(
    new Promise<number>(resolve => log.takeOver(1, 'a', o => o.kind === 'taken' && resolve(o.epoch))),
  )
  await run(new Promise<unknown>(resolve => log.takeOver(1, 'b', resolve)))
  t.match(await run(new Promise<AppendOutcome>(resolve => log.append([record(1, epoch, 1, 'x')], resolve))), {
    kind: 'appended',
  })
  t.match(engine.events, [{ kind: 'takeover' }, { kind: 'takeover' }, { kind: 'record', epoch, shard: 1 }])
})

t.test('a node that is cut off gets no reports until the cut ends, and then a gap', async t => {
  const { world, engine, run } = simulate()
  const log = engine.connect(world.process('a').clock)
  const events: string[] = []
  log.follow(() => true, {
    onRecord: (shard, { sequence }) => events.push(`record ${shard} ${sequence}`),
    onTakeover: (_shard, { owner }) => events.push(owner),
    onHeartbeat: node => events.push(`heartbeat ${node}`),
    onGap: () => events.push('gap'),
  })
  await world.run(2000)
  log.fault = 'cut'
  engine.takeOver(1, 'unheard')
  await world.run(5000)
  t.strictSame(events, ['gap'])
  log.fault = 'none'
  await world.run(2000)
  engine.takeOver(1, 'heard')
  await run(world.run(100))
  t.strictSame(events, ['gap', 'gap', 'heard'])
})

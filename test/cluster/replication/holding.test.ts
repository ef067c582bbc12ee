// A shard that a node takes over: it becomes the owner only where the latest takeover that it knows is its own.

import t from 'tap'
import type { LogReading, ShardLog, Takeover } from '../../../cluster/logs/shard-log.js'
import { Holding } from '../../../cluster/replication/holding.js'
import { beginning } from '../../../cluster/replication/log-record.js'
import { Replica } from '../../../cluster/replication/replica.js'
import { replicationOptionsDefault } from '../../../cluster/replication/replication-options.js'
import type { Loss } from '../../../cluster/replication/shard-host.js'
import { Random } from '../../support/random.js'
import { World } from '../simulated-world.js'

const shard = 5
const self = 'a 1'
const other = 'b 1'

/** Node a, which claims a shard of an empty log. The test answers its readings. */
class Scene {
  readonly world = new World(new Random(1))
  readonly activated: number[] = []
  readonly readings: ((takeover: Takeover) => void)[] = []
  isRegisterKnown = true
  readonly waiting: (() => void)[] = []
  readonly holding: Holding
  readonly losses: Loss[] = []

  constructor() {
    const { clock } = this.world.process('a')
    const onFailure = (error: Error): void => {
      throw error
    }
    const log: Pick<ShardLog, 'read' | 'takeOver'> = {
      read: (_shard, _after, _bytesMax, onDone) => {
        this.readings.push(takeover => onDone({ kind: 'read', records: [], last: 0, takeover } satisfies LogReading))
      },
      takeOver: (_shard, _owner, onDone) =>
        clock.endOfTick(() => onDone({ kind: 'taken', epoch: 7, before: undefined })),
    }
    const host = {
      apply: () => {},
      position: () => beginning,
      activate: (one: number, onDone: (failure?: Error) => void) => {
        this.activated.push(one)
        clock.endOfTick(() => onDone())
      },
      seal: (_one: number, onDone: (failure?: Error) => void) => clock.endOfTick(() => onDone()),
    }
    const options = replicationOptionsDefault
    const replica = new Replica(shard, beginning, {
      ...{ log, host, clock, options, onFailure },
      onStopped: () => {},
      onAhead: () => {},
    })
    this.holding = new Holding(replica, {
      ...{ log: log as ShardLog, host, clock, options, self, onFailure },
      whenRegisterIsKnown: (_sinceMs, run) => (this.isRegisterKnown ? run() : this.waiting.push(run)),
      onChange: () => {},
      onLost: loss => this.losses.push(loss),
    })
  }

  /** Takes the shard over, and reads its log. */
  async claimed(): Promise<void> {
    this.holding.claim()
    await this.world.run(100)
  }
}

t.test('a node whose takeover is the latest owns the shard', async t => {
  const scene = new Scene()
  await scene.claimed()
  scene.readings[0]!({ epoch: 7, owner: self })
  await scene.world.run(100)
  t.strictSame([scene.holding.phase, scene.holding.replica.state, scene.activated], ['active', 'owned', [shard]])
})

t.test('a node does not begin with a shard before it knows the register', async t => {
  const scene = new Scene()
  scene.isRegisterKnown = false
  await scene.claimed()
  scene.readings[0]!({ epoch: 7, owner: self })
  await scene.world.run(100)
  t.strictSame([scene.holding.phase, scene.activated], ['waiting', []], 'it would drop notifications of subscriptions')
  for (const run of scene.waiting) run()
  await scene.world.run(100)
  t.strictSame([scene.holding.phase, scene.activated], ['active', [shard]])
})

t.test('a takeover that comes while it waits for the register counts', async t => {
  const scene = new Scene()
  scene.isRegisterKnown = false
  await scene.claimed()
  scene.readings[0]!({ epoch: 7, owner: self })
  await scene.world.run(100)
  scene.holding.onTakeover({ epoch: 8, owner: other })
  for (const run of scene.waiting) run()
  await scene.world.run(100)
  t.strictSame(scene.activated, [])
  scene.readings[1]!({ epoch: 8, owner: other })
  await scene.world.run(100)
  t.strictSame([scene.holding.phase, scene.activated], ['following', []])
})

t.test('a takeover that is reported while the log is read counts, although the reading does not have it', async t => {
  const scene = new Scene()
  await scene.claimed()
  scene.holding.onTakeover({ epoch: 8, owner: other })
  scene.readings[0]!({ epoch: 7, owner: self })
  await scene.world.run(100)
  t.strictSame([scene.holding.phase, scene.holding.replica.state, scene.activated], ['following', 'following', []])
})

t.test('a later takeover of its own, which the reading does not have, makes it read again', async t => {
  const scene = new Scene()
  await scene.claimed()
  scene.holding.onTakeover({ epoch: 9, owner: self })
  scene.readings[0]!({ epoch: 7, owner: self })
  await scene.world.run(100)
  t.strictSame([scene.holding.phase, scene.activated, scene.readings.length], ['waiting', [], 2])
  scene.readings[1]!({ epoch: 9, owner: self })
  await scene.world.run(100)
  t.strictSame([scene.holding.phase, scene.holding.epoch], ['active', 9])
})

t.test('a shard that was given up may not be appended to until it was taken over once more', async t => {
  const scene = new Scene()
  const { holding } = scene
  await scene.claimed()
  scene.readings[0]!({ epoch: 7, owner: self })
  await scene.world.run(100)
  t.strictSame([holding.mayAppend, holding.isForsaken], [true, false])
  holding.forsake()
  t.strictSame([holding.mayAppend, holding.isForsaken], [false, true])
  t.match(scene.losses, [{ shard, node: undefined, isForsaken: true }])
  holding.forsake()
  await scene.world.run(100)
  t.strictSame([holding.phase, holding.mayAppend, holding.isForsaken], ['following', false, true])
  t.equal(scene.losses.length, 1)
  // An append that is on its way may still happen in this epoch, and in no later one.
  holding.onTakeover({ epoch: 8, owner: self })
  t.equal(holding.isForsaken, false)
})

t.test(
  'a read may count a shard from its activation until it is sealed, also after another node has taken over',
  async t => {
    const scene = new Scene()
    const { holding, world } = scene
    await scene.claimed()
    t.notOk(holding.mayBeCounted, 'it waits')
    scene.readings[0]!({ epoch: 7, owner: self })
    await world.run(100)
    t.ok(holding.mayBeCounted)
    holding.onTakeover({ epoch: 8, owner: other })
    t.strictSame([holding.phase, holding.mayBeCounted], ['sealing', true])
    await world.run(100)
    t.strictSame([holding.phase, holding.mayBeCounted], ['following', false])
  },
)

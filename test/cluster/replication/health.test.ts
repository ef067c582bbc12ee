// A node's view of the health of all shards: when it counts as healthy, which fault it reports, and when it reports.

import t from 'tap'
import type { Unknown } from '../../../cluster/logs/shard-log.js'
import { Health, type Unhealthy } from '../../../cluster/replication/health.js'
import type { MissingRecords } from '../../../cluster/replication/log-check.js'
import { FakeClock } from '../../support/fake-clock.js'

const healthMs = 5_000

/** Node a of three, which owns shard 0; b owns 1 and c owns 2. All are healthy by default. */
class Scene {
  readonly clock = new FakeClock()
  readonly reported: (Unhealthy | undefined)[] = []
  readonly owners: (string | undefined)[] = ['a', 'b', 'c']
  readonly cut = new Set<string>()
  serves = true
  loss: MissingRecords | undefined
  diverged: readonly number[] = []
  /** Of each log; shard 1 is in the second one if there are two. */
  trouble: Unknown | undefined
  secondTrouble: Unknown | undefined
  readonly health: Health

  constructor(logs = 1) {
    this.health = new Health({
      clock: this.clock,
      options: { healthMs },
      self: 'a',
      shards: 3,
      ownerOf: shard => this.owners[shard],
      serves: () => this.serves,
      reachable: node => !this.cut.has(node),
      loss: () => this.loss,
      diverged: () => this.diverged,
      logs: logs,
      trouble: log => (log === 0 ? this.trouble : this.secondTrouble),
      onChange: unhealthy => this.reported.push(unhealthy),
    })
  }

  /** Time passes, in which the owners of these shards prove each second that they can append. */
  pass(ms: number, ...proven: number[]): void {
    for (let passed = 0; passed < ms; passed += 1_000) {
      this.health.prove(proven)
      this.clock.advance(1_000)
    }
  }

  static well(logs?: number): Scene {
    const scene = new Scene(logs)
    scene.health.prove([0, 1, 2])
    scene.health.start()
    scene.reported.length = 0
    return scene
  }
}

t.test(
  'a node that has just begun is not well until every shard has an owner that it reaches and that proves itself',
  async t => {
    const scene = new Scene()
    t.strictSame(scene.health.unhealthy, { kind: 'unowned', shards: [0, 1, 2] })
    scene.health.start()
    t.strictSame(scene.health.unhealthy, { kind: 'silent', nodes: ['a', 'b', 'c'], shards: [0, 1, 2] })
    scene.pass(1_000, 0, 1)
    t.strictSame(scene.health.unhealthy, { kind: 'silent', nodes: ['c'], shards: [2] })
    scene.pass(1_000, 0, 1, 2)
    t.equal(scene.health.unhealthy, undefined)
    t.strictSame(
      scene.reported.map(state => state?.kind),
      ['silent', undefined],
      'each other state is told once',
    )
  },
)

t.test('an owner that proves itself keeps all well for as long as it does', async t => {
  const scene = Scene.well()
  scene.pass(20_000, 0, 1, 2)
  t.strictSame([scene.health.unhealthy, scene.reported], [undefined, []])
})

t.test('a node whose copies have diverged from the log is unhealthy at once', async t => {
  const scene = Scene.well()
  scene.diverged = [1]
  scene.pass(1_000, 0, 1, 2)
  t.strictSame(scene.reported, [{ kind: 'diverged', shards: [1] }])
})

t.test('a trouble shorter than the bound makes nothing unhealthy, and a longer one does', async t => {
  for (const [hurt, kind, shards] of [
    [(scene: Scene) => scene.cut.add('b'), 'unreachable', [1]],
    [(scene: Scene) => (scene.owners[2] = undefined), 'unowned', [2]],
    [(scene: Scene) => (scene.serves = false), 'unreachable', [0]],
  ] as const) {
    const scene = Scene.well()
    scene.pass(1_000, 0, 1, 2)
    hurt(scene)
    scene.pass(healthMs - 1_000, 0, 1, 2)
    t.equal(scene.health.unhealthy, undefined)
    scene.pass(2_000, 0, 1, 2)
    t.match(scene.health.unhealthy, { kind, shards })
    t.equal(scene.reported.length, 1)
  }
})

t.test('an owner that is reached and proves nothing is silent', async t => {
  const scene = Scene.well()
  scene.pass(healthMs, 0, 2)
  t.equal(scene.health.unhealthy, undefined)
  scene.pass(1_000, 0, 2)
  t.strictSame(scene.health.unhealthy, { kind: 'silent', nodes: ['b'], shards: [1] })
})

t.test('the worst reason comes first: no owner, then one that is not reached, then a silent one', async t => {
  const scene = Scene.well()
  scene.owners[2] = undefined
  scene.cut.add('b')
  scene.pass(healthMs + 1_000)
  t.match(scene.health.unhealthy, { kind: 'unowned', shards: [2] })
  scene.owners[2] = 'c'
  scene.pass(1_000)
  t.strictSame(scene.health.unhealthy, { kind: 'unreachable', nodes: ['b'], shards: [1] })
  scene.cut.clear()
  scene.pass(1_000)
  t.strictSame(scene.health.unhealthy, { kind: 'silent', nodes: ['a', 'b', 'c'], shards: [0, 1, 2] })
})

t.test('an engine that takes no appends is the reason, once shards have been silent for long', async t => {
  for (const [kind, words] of [
    ['full', { isFull: true }],
    ['away', {}],
  ] as const) {
    const scene = Scene.well()
    scene.trouble = { kind: 'unknown', reason: 'as it says', ...words }
    scene.pass(healthMs)
    t.equal(scene.health.unhealthy, undefined, 'one lost answer is no reason')
    scene.pass(1_000)
    t.strictSame(scene.health.unhealthy, { kind, log: 0, reason: 'as it says', shards: [0, 1, 2] })
  }
})

t.test('of several engines, one that takes no appends is the reason for its shards', async t => {
  const scene = Scene.well(2)
  scene.secondTrouble = { kind: 'unknown', reason: 'as it says' }
  scene.pass(healthMs + 1_000, 0, 2)
  t.strictSame(scene.health.unhealthy, { kind: 'away', log: 1, reason: 'as it says', shards: [1] })
  scene.secondTrouble = undefined
  scene.pass(1_000, 0, 1, 2)
  t.equal(scene.health.unhealthy, undefined)
})

t.test('of several engines, the trouble of one is not the reason for the shards of another', async t => {
  const scene = Scene.well(2)
  scene.pass(healthMs, 1, 2)
  t.equal(scene.health.unhealthy, undefined)
  scene.secondTrouble = { kind: 'unknown', reason: 'as it says' }
  scene.pass(1_000, 1, 2)
  t.match(scene.reported[0], { kind: 'silent', nodes: ['a'], shards: [0] })
})

t.test('a loss of the engine is reported at once, before all else, and again when it grows', async t => {
  const scene = Scene.well()
  scene.loss = { isNameless: false, shards: [1] }
  scene.clock.advance(500)
  t.strictSame(scene.health.unhealthy, { kind: 'lost', loss: scene.loss, shards: [1] })
  scene.loss = { isNameless: false, shards: [1, 2] }
  scene.clock.advance(500)
  scene.clock.advance(500)
  t.equal(scene.reported.length, 2)
  scene.loss = undefined
  scene.pass(1_000, 0, 1, 2)
  t.strictSame([scene.health.unhealthy, scene.reported.length], [undefined, 3])
})

t.test('more shards of one kind, or another word of the engine, are not reported again, but are known', async t => {
  const scene = Scene.well()
  scene.pass(healthMs, 0, 2)
  scene.pass(1_000, 0, 2)
  scene.pass(healthMs + 1_000, 0)
  t.match(scene.health.unhealthy, { kind: 'silent', shards: [1, 2] })
  t.equal(scene.reported.length, 1)
})

t.test('proofs for shards that there are not are ignored, and a node that closes looks no more', async t => {
  const scene = Scene.well()
  scene.health.prove([3, 64])
  scene.health.close()
  scene.pass(10 * healthMs)
  t.strictSame([scene.health.unhealthy, scene.reported], [undefined, []])
})

t.test('proofs from before a trouble of the engine do not count after it', async t => {
  for (const trouble of [{ loss: { isNameless: false, shards: [1] } }, { trouble: { kind: 'unknown', reason: 'x' } }]) {
    const scene = Scene.well()
    scene.pass(1_000, 0, 1, 2)
    Object.assign(scene, trouble)
    scene.pass(healthMs + 1_000)
    scene.health.prove([0, 1])
    scene.clock.advance(500)
    Object.assign(scene, { loss: undefined, trouble: undefined })
    scene.clock.advance(500)
    t.strictSame(scene.health.unhealthy, { kind: 'silent', nodes: ['a', 'b', 'c'], shards: [0, 1, 2] })
    scene.pass(1_000, 0, 1, 2)
    t.equal(scene.health.unhealthy, undefined)
  }
})

t.test('a node becomes well only where it reaches every owner at this moment', async t => {
  const scene = Scene.well()
  scene.pass(healthMs + 1_000, 0, 2)
  scene.cut.add('b')
  scene.pass(1_000, 0, 1, 2)
  t.strictSame(scene.health.unhealthy, { kind: 'unreachable', nodes: ['b'], shards: [1] })
  scene.cut.clear()
  scene.pass(1_000, 0, 1, 2)
  t.equal(scene.health.unhealthy, undefined)
})

// Heartbeats of a node: which shards they prove, how often they go out, and their result when the engine does not write
// them.

import t from 'tap'
import type { Heartbeat, HeartbeatOutcome } from '../../../cluster/logs/shard-log.js'
import { decodeHeartbeat, encodeHeartbeat, Heartbeats } from '../../../cluster/replication/heartbeats.js'
import { FakeClock } from '../../support/fake-clock.js'
import { Random } from '../../support/random.js'

const heartbeatMs = 1_500

/** A node whose served shards the test chooses, and an engine that answers when the test lets it. */
class Scene {
  readonly clock = new FakeClock()
  readonly written: Heartbeat[] = []
  readonly proven: number[][] = []
  readonly heartbeats: Heartbeats
  served: ReadonlyMap<number, number> = new Map([
    [2, 7],
    [5, 9],
  ])
  private readonly outcomes: ((outcome: HeartbeatOutcome) => void)[] = []

  constructor() {
    this.heartbeats = new Heartbeats({
      name: 'a',
      log: {
        heartbeat: (heartbeat, onDone) => {
          this.written.push(heartbeat)
          this.outcomes.push(onDone)
        },
      },
      clock: this.clock,
      options: { heartbeatMs },
      served: () => this.served,
      onProven: shards => this.proven.push([...shards]),
    })
  }

  answer(outcome: HeartbeatOutcome = { kind: 'appended' }): void {
    this.outcomes.shift()!(outcome)
  }
}

const away: HeartbeatOutcome = { kind: 'unknown', reason: 'no answer' }

t.test('a node proves at once, and then in each interval, that it can append to its shards', async t => {
  const scene = new Scene()
  scene.heartbeats.start()
  t.strictSame(scene.written, [{ node: 'a', epochs: scene.served, bytes: encodeHeartbeat([2, 5]) }])
  t.strictSame(scene.proven, [], 'not before the engine has written it')
  scene.answer()
  t.strictSame(scene.proven, [[2, 5]])
  scene.clock.advance(heartbeatMs - 1)
  t.equal(scene.written.length, 1)
  scene.clock.advance(1)
  t.equal(scene.written.length, 2)
})

t.test('a node that serves nothing writes nothing, and has no trouble with the engine', async t => {
  const scene = new Scene()
  scene.heartbeats.start()
  scene.answer(away)
  t.equal(scene.heartbeats.trouble, away)
  scene.served = new Map()
  scene.clock.advance(heartbeatMs)
  t.equal(scene.written.length, 1)
  t.equal(scene.heartbeats.trouble, undefined)
})

t.test('one heartbeat is on its way at a time, however long the engine takes', async t => {
  const scene = new Scene()
  scene.heartbeats.start()
  scene.heartbeats.beatSoon()
  scene.clock.advance(10 * heartbeatMs)
  t.equal(scene.written.length, 1)
  scene.answer()
  scene.clock.advance(heartbeatMs)
  t.equal(scene.written.length, 2)
})

t.test('an engine that does not answer, or is full, is the trouble until it writes again', async t => {
  const scene = new Scene()
  scene.heartbeats.start()
  for (const trouble of [away, { kind: 'unknown', reason: 'full', isFull: true }] as const) {
    scene.answer(trouble)
    t.equal(scene.heartbeats.trouble, trouble)
    scene.clock.advance(heartbeatMs)
    t.equal(scene.heartbeats.trouble, trouble, 'while it is asked again')
  }
  t.strictSame(scene.proven, [])
  scene.answer()
  t.equal(scene.heartbeats.trouble, undefined)
  t.equal(scene.proven.length, 1)
})

t.test(
  'a heartbeat of a node whose takeover is not the latest proves nothing, and is no trouble of the engine',
  async t => {
    const scene = new Scene()
    scene.heartbeats.start()
    scene.answer({ kind: 'superseded' })
    t.strictSame([scene.proven, scene.heartbeats.trouble], [[], undefined])
  },
)

t.test('shards that move together are reported in one heartbeat, soon', async t => {
  const scene = new Scene()
  scene.heartbeats.start()
  scene.answer()
  scene.served = new Map([[6, 1]])
  scene.heartbeats.beatSoon()
  scene.clock.advance(60)
  scene.served = new Map([
    [6, 1],
    [7, 1],
  ])
  scene.heartbeats.beatSoon()
  scene.clock.advance(40)
  t.strictSame(
    scene.written.map(({ epochs }) => [...epochs.keys()]),
    [
      [2, 5],
      [6, 7],
    ],
  )
})

t.test('a node that closes writes no more, and learns nothing from an answer that comes late', async t => {
  const scene = new Scene()
  scene.heartbeats.start()
  scene.heartbeats.beatSoon()
  scene.heartbeats.close()
  scene.answer()
  scene.clock.advance(10 * heartbeatMs)
  t.strictSame([scene.written.length, scene.proven], [1, []])
})

t.test('heartbeats of others prove the shards that they name', async t => {
  const scene = new Scene()
  scene.heartbeats.onHeartbeat(encodeHeartbeat([0, 63]))
  t.strictSame(scene.proven, [[0, 63]])
  for (const bytes of [Buffer.of(2, 0xff), Buffer.alloc(0)]) scene.heartbeats.onHeartbeat(bytes)
  t.equal(scene.proven.length, 1, 'those of a version that is not known prove none')
})

t.test('the contents of a heartbeat are read as they were written', async t => {
  const random = Random.fromEnvironment()
  for (let run = 0; run < 200; run++) {
    const shards = new Set(Array.from({ length: random.between(0, 20) }, () => random.between(0, 300)))
    const sorted = [...shards].sort((a, b) => a - b)
    if (`${decodeHeartbeat(encodeHeartbeat(shards))}` !== `${sorted}`) return t.fail(`SEED=${random.seed}: ${sorted}`)
  }
  t.pass(`seed ${random.seed}`)
})

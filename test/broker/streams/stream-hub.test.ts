// The streams of a process: how long its feeds pause, and who ends a pause.

import t from 'tap'
import type { StreamReader } from '../../../src/broker/streams/reading.js'
import { StreamHub } from '../../../src/broker/streams/stream-hub.js'
import { refusalText } from '../../../src/domain/refusal.js'
import { watchOfMessage } from '../../../src/domain/streams/watch-parser.js'
import type { ShardReply, ShardRequest, Shards } from '../../../src/messages/messages.js'
import { FakeClock } from '../../support/fake-clock.js'

const reader: StreamReader = { onBegun: () => {}, onEvent: () => {}, onRefused: () => {}, whenRoom: next => next() }

/** A hub with one owner, which answers each poll when the test wants it. */
class Scene {
  readonly clock = new FakeClock()
  /** The poll that waits at the owner. */
  private waiting: ((reply: ShardReply) => void) | undefined
  private readonly hub: StreamHub

  constructor() {
    const ask = (_shard: number, _request: ShardRequest, onReply: (reply: ShardReply) => void): void => {
      this.waiting = onReply
    }
    const shards = { ask, owners: () => [0], ownerOf: () => 0 } as unknown as Shards
    const chance = { fraction: () => 0 }
    this.hub = new StreamHub({ shards, clock: this.clock, chance, holder: 'h', filtersMax: 10 })
  }

  open(gather: number): { end(): void } {
    const watch = watchOfMessage({ tenant: '', servicePath: '/#' }, { gather })
    if (!watch.ok) throw new Error(refusalText(watch.refusal))
    return this.hub.open(watch.value, reader)
  }

  get isPolling(): boolean {
    return this.waiting !== undefined
  }

  /** The owner answers that it knows all filters. */
  answer(): void {
    const { waiting } = this
    this.waiting = undefined
    const at = { ring: 'r', position: 1 }
    const content = { what: 'changes', at, tick: 1, lost: false, settled: 99, refused: [], changes: [] } as const
    waiting?.({ kind: 'stream', content })
    this.pass(0)
  }

  /** Time passes. */
  pass(ms: number): void {
    this.clock.advance(ms)
  }
}

t.test('the feeds pause for the shortest time that a present reader has asked for', async t => {
  const scene = new Scene()
  scene.open(300)
  const other = scene.open(100)
  scene.pass(0)
  scene.answer()
  t.notOk(scene.isPolling, 'a pause')
  scene.pass(110)
  t.ok(scene.isPolling, 'after the shorter time')
  other.end()
  scene.answer()
  scene.pass(110)
  t.notOk(scene.isPolling, 'that reader has gone')
  scene.pass(200)
  t.ok(scene.isPolling)
  scene.open(0)
  scene.answer()
  t.ok(scene.isPolling, 'one wants its events at once')
})

t.test('a new reader ends a pause, also one whose filter the owners know', async t => {
  const scene = new Scene()
  scene.open(300)
  scene.pass(0)
  scene.answer()
  t.notOk(scene.isPolling)
  scene.open(300)
  scene.pass(0)
  t.ok(scene.isPolling)
})

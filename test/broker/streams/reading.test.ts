// One reader of a watch: what it gets when timers are late, when shards move, and of what came before a gap.

import t from 'tap'
import { CatchUpBudget } from '../../../src/broker/streams/catch-up-budget.js'
import type { OwnerFeed } from '../../../src/broker/streams/owner-feed.js'
import { type FilterGroup, Reading, type ReadingHub } from '../../../src/broker/streams/reading.js'
import { ChangeTexts, type StreamEvent } from '../../../src/broker/streams/stream-event.js'
import type { JsonObject } from '../../../src/domain/json.js'
import { refusalText } from '../../../src/domain/refusal.js'
import { watchOfMessage } from '../../../src/domain/streams/watch-parser.js'
import type { ShardReply, ShardRequest, Shards } from '../../../src/messages/messages.js'
import type { SentChange } from '../../../src/messages/streams.js'
import { FakeClock } from '../../support/fake-clock.js'
import { changeOf } from '../../support/sent-changes.js'

/** A clock whose timers are late. */
class LateClock extends FakeClock {
  lateMs = 0

  override monoMs(): number {
    return super.monoMs() + this.lateMs
  }
}

type OnReply = (reply: ShardReply) => void

/** Two owners, and a reader of a watch that describes itself in words. */
class Scene {
  readonly clock = new LateClock()
  readonly received: string[] = []
  owners: readonly number[] = [0, 1]
  readonly reading: Reading
  /** Requests to owners, with their replies. */
  readonly asked: { readonly shard: number; readonly request: ShardRequest; readonly onReply: OnReply }[] = []

  /** The tick of the cursor of this process. */
  tick = 100
  /** The revision that the owners must have, and have; `isKnown`: they have it at once. */
  private wanted = 0
  answered = Number.NEGATIVE_INFINITY

  constructor(message: JsonObject, isKnown = true) {
    if (isKnown) this.answered = Number.POSITIVE_INFINITY
    const watch = watchOfMessage({ tenant: '', servicePath: '/#' }, message)
    if (!watch.ok) throw new Error(refusalText(watch.refusal))
    const reader = {
      onBegun: () => void this.received.push('begun'),
      onEvent: (event: StreamEvent) => void this.received.push(inWords(event)),
      onRefused: () => void this.received.push('refused'),
      whenRoom: (next: () => void) => next(),
    }
    const ask = (shard: number, request: ShardRequest, onReply: OnReply) => {
      this.asked.push({ shard, request, onReply })
    }
    const feeds = [0, 1].map(shard => ({ shard, position: { ring: `r${shard}`, position: 9 } }) as OwnerFeed)
    const hub: ReadingHub = {
      parts: { shards: { ask, owners: () => this.owners } as unknown as Shards, clock: this.clock },
      texts: new ChangeTexts(),
      budget: new CatchUpBudget(),
      owners: feeds,
      cursor: () => ({ rings: 'r', tick: this.tick }),
      textOf: ({ tick }) => `c${tick}`,
      isKnown: revision => this.answered >= revision,
      barrier: () => ++this.wanted,
      lastBarrier: 0,
      await: reading => reading.confirm(),
      noteOrder: () => {},
      close: () => {},
    }
    const group = { source: watch.value.source, readings: new Set(), revision: 0 } as unknown as FilterGroup
    this.reading = new Reading(hub, group, watch.value, reader, 0)
    this.reading.confirm()
  }

  /** The owner replies to the last request. */
  reply(reply: ShardReply): void {
    this.asked.pop()!.onReply(reply)
  }

  /** All owners have no entities, until the snapshot ends or begins anew. */
  readNothing(): void {
    const keys = {
      ...{ created: new Float64Array(), shards: new Uint16Array(), rangeOf: new Uint32Array() },
      ...{ ranges: [], values: [] },
    }
    while (this.asked.length > 0) this.reply({ kind: 'part', keys, encodedEntities: undefined, total: 0 })
  }

  replay(isLast: boolean, ...changes: SentChange[]): void {
    this.reply({ kind: 'stream', content: { what: 'replayed', position: 9, isLast, changes } })
  }
}

function inWords({ kind, data }: StreamEvent): string {
  const { changed, reason, end } = JSON.parse(data)
  return `${kind} ${changed ?? reason ?? (end ? 'end' : '')}`
}

const named = (n: number, shard = 1): SentChange => ({ ...changeOf('e', n), named: [`c${n}`], shard })

t.test('with minInterval, a change that comes when the timer is late has what has waited', async t => {
  const { reading, clock, received } = new Scene({ minInterval: 50, options: 'onlyChangedAttrs' })
  for (const n of [1, 2]) reading.onChange(named(n), 'found')
  clock.lateMs = 60
  reading.onChange(named(3), 'found')
  clock.advance(1_000)
  t.strictSame(received, ['begun', 'entityChange c1', 'entityChange c2,c3'])
})

t.test('a change after a deletion that was never sent has what waited before it', async t => {
  for (const how of ['left', 'found'] as const) {
    const { reading, clock, received } = new Scene({ minInterval: 50, options: 'onlyChangedAttrs,leave' })
    for (const n of [1, 2]) reading.onChange(named(n), 'found')
    reading.onChange({ ...changeOf('e', 3, 10, 'delete'), changed: [], named: [] }, how)
    reading.onChange(named(4), 'found')
    clock.advance(1_000)
    t.strictSame(received, ['begun', 'entityChange c1', 'entityChange c2,c4'])
  }
})

t.test('a waiting change is not sent behind a newer snapshot', async t => {
  const scene = new Scene({ minInterval: 5_000, options: 'snapshot' })
  scene.readNothing()
  for (const n of [1, 2]) scene.reading.onChange(named(n), 'found')
  scene.reading.onGap('owner lost')
  scene.readNothing()
  scene.clock.advance(10_000)
  t.strictSame(scene.received, ['begun', 'snapshot end', 'entityChange c1', 'gap owner lost', 'snapshot end'])
})

t.test('a reader that has not begun gets no gap', async t => {
  const scene = new Scene({}, false)
  scene.reading.onGap('restarted')
  scene.answered = Number.POSITIVE_INFINITY
  scene.reading.confirm()
  t.strictSame(scene.received, ['begun'])
  scene.reading.onGap('restarted')
  t.strictSame(scene.received, ['begun', 'gap restarted'])
})

t.test('nothing that waits for its time comes behind a gap', async t => {
  const { reading, clock, received } = new Scene({ minInterval: 50 })
  for (const n of [1, 2]) reading.onChange(named(n), 'found')
  reading.onGap('owner lost')
  clock.advance(1_000)
  t.strictSame(received, ['begun', 'entityChange c1', 'gap owner lost'])
})

t.test('a gap comes when every owner has answered once more, behind what they had', async t => {
  const scene = new Scene({})
  scene.answered = 0
  scene.reading.onGap('owner lost')
  scene.reading.onChange(named(1), 'found')
  scene.answered = 1
  scene.reading.confirm()
  t.strictSame(scene.received, ['begun', 'entityChange c1', 'gap owner lost'])
})

t.test('a cursor that is ahead of this node waits until the owners have answered once more', async t => {
  // 10 in base 36 is 36.
  const message = { from: '1.r.10' }
  const scene = new Scene(message, false)
  scene.answered = 0
  scene.tick = 35
  scene.reading.confirm()
  t.strictSame(scene.received, [])
  scene.tick = 37
  scene.answered = 1
  scene.reading.confirm()
  scene.replay(true, named(20))
  scene.replay(true)
  t.strictSame(scene.received, ['begun', 'entityChange c20'])
  const forged = new Scene(message, false)
  forged.tick = 35
  forged.answered = 0
  forged.reading.confirm()
  forged.answered = 1
  forged.reading.confirm()
  t.strictSame(forged.received, ['begun', 'gap restarted'])
})

t.test('a snapshot begins anew when a shard has moved meanwhile', async t => {
  const scene = new Scene({ options: 'snapshot' })
  scene.owners = [0, 1]
  scene.readNothing()
  t.strictSame(scene.received, ['begun'])
  scene.clock.advance(1_000)
  scene.readNothing()
  t.strictSame(scene.received, ['begun', 'gap owner lost', 'snapshot end'])
})

t.test('a shard that two owners replay is a gap, and so is a change that comes too late', async t => {
  const twice = new Scene({ from: '1.r.a' })
  twice.replay(true, named(20))
  twice.replay(true, named(19))
  t.strictSame(twice.received, ['begun', 'entityChange c20', 'gap owner lost'])
  const late = new Scene({ from: '1.r.a' })
  late.reading.onChange(named(19), 'found')
  late.replay(true, named(20))
  late.replay(true)
  t.strictSame(late.received, ['begun', 'entityChange c20', 'gap owner lost'])
  const right = new Scene({ from: '1.r.a' })
  right.reading.onChange(named(21), 'found')
  right.replay(false, named(19))
  right.replay(true, named(20))
  right.replay(true, named(19, 2))
  t.strictSame(right.received, [
    'begun',
    'entityChange c19',
    'entityChange c20',
    'entityChange c19',
    'entityChange c21',
  ])
})

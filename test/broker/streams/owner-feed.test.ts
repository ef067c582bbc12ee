// The feed of one owner: the effects of the owner's replies.

import t from 'tap'
import { type FiltersSince, OwnerFeed } from '../../../src/broker/streams/owner-feed.js'
import type { ShardReply, ShardRequest, Shards } from '../../../src/messages/messages.js'
import { pollBytesMax, pollChangesMax, type StreamPoll, type StreamReply } from '../../../src/messages/streams.js'
import { changeOf } from '../../support/sent-changes.js'

/** A feed, and an owner whose replies the test gives. */
class Scene {
  readonly feed: OwnerFeed
  readonly events: string[] = []
  readonly polls: StreamPoll[] = []
  /** The shards by which the owner was asked. */
  readonly asked: number[] = []
  /** A shard of the owner. */
  shard: number | undefined = 0
  /** How long the readers let their events be gathered, and the revision of their filters. */
  gatherMs = 0
  revision = 3
  /** The pauses of the feed, in milliseconds. */
  readonly pauses: number[] = []
  private timer: (() => void) | undefined
  private readonly replies: ((reply: ShardReply) => void)[] = []
  private ended: (() => void)[] = []

  constructor() {
    const ask = (
      shard: number,
      { step }: Extract<ShardRequest, { kind: 'stream' }>,
      onReply: (typeof this.replies)[0],
    ) => {
      this.asked.push(shard)
      this.polls.push(step as StreamPoll)
      this.replies.push(onReply)
    }
    this.feed = new OwnerFeed({
      shards: { ask } as unknown as Shards,
      clock: {
        after: (ms, run) => {
          this.pauses.push(ms)
          this.timer = run
          return () => {
            this.timer = undefined
          }
        },
        endOfTick: run => void this.ended.push(run),
      },
      holder: 'h',
      filters: this,
      onChanges: (_feed, { changes }) => void this.events.push(`${changes.length} changes`),
      onLost: reason => void this.events.push(reason),
      onMoved: () => void this.events.push('moved'),
      shardOf: () => this.shard,
    })
    this.feed.pollSoon()
    this.endTick()
  }

  since(fromRevision: number): FiltersSince {
    return { fromRevision, add: [], remove: [] }
  }

  /** Time passes until the pause is over; false: there is none. */
  pass(): boolean {
    const { timer } = this
    this.timer = undefined
    timer?.()
    this.endTick()
    return timer !== undefined
  }

  /** A reader begins. */
  wake(): void {
    this.feed.wake()
    this.endTick()
  }

  /** The owner replies, and the feed polls again. */
  reply(content: StreamReply): StreamPoll | undefined {
    this.replies.at(-1)?.({ kind: 'stream', content })
    this.endTick()
    return this.polls.at(-1)
  }

  private endTick(): void {
    const { ended } = this
    this.ended = []
    for (const run of ended) run()
  }
}

const changes = (ring: string, lost = false, settled?: number): StreamReply => ({
  ...{ what: 'changes', at: { ring, position: 7 }, tick: 1, lost, settled, refused: [], changes: [] },
})

t.test(
  'an owner says up to which revision it has answered everything; an earlier build does so by answering',
  async t => {
    const scene = new Scene()
    scene.reply(changes('r', false, 2))
    t.equal(scene.feed.answered, 2)
    t.match(scene.reply(changes('r')), { fromRevision: 3 })
    t.equal(scene.feed.answered, 3)
    scene.reply({ what: 'unknown' })
    t.equal(scene.feed.answered, 0)
  },
)

t.test('an owner that does not know the holder gets all filters, and changes may be missing', async t => {
  const scene = new Scene()
  t.match(scene.polls, [{ fromRevision: 0, revision: 3, after: undefined }])
  t.match(scene.reply(changes('r')), { fromRevision: 3, after: { ring: 'r', position: 7 } })
  t.match(scene.reply({ what: 'unknown' }), { fromRevision: 0, after: { ring: 'r', position: 7 } })
  scene.reply(changes('r'))
  scene.reply(changes('r'))
  t.strictSame(scene.events, ['0 changes', 'too old', '0 changes', '0 changes'])
})

t.test('if it does not, because it is another process, it was restarted', async t => {
  const scene = new Scene()
  scene.reply(changes('r'))
  scene.reply({ what: 'unknown' })
  scene.reply(changes('another', true))
  t.strictSame(scene.events, ['0 changes', 'restarted', '0 changes'])
})

t.test('an owner is asked by a shard that it has, and not while it has none', async t => {
  const scene = new Scene()
  scene.shard = 4
  scene.reply(changes('r'))
  scene.shard = undefined
  scene.reply(changes('r'))
  t.strictSame(scene.asked, [0, 4])
})

t.test('while all readers let their events be gathered, it pauses after each answer', async t => {
  const scene = new Scene()
  scene.gatherMs = 200
  scene.reply(changes('r'))
  t.equal(scene.polls.length, 1, 'the changes of the pause stay with the owner')
  t.ok(scene.pass())
  t.match(scene.polls[1], { after: { ring: 'r', position: 7 } })
  t.strictSame(scene.pauses, [200])
  scene.gatherMs = 0
  scene.reply(changes('r'))
  t.equal(scene.polls.length, 3, 'a reader that wants its events at once has come')
})

t.test('a reader that begins ends the pause, and one that waits for the owner has none', async t => {
  const scene = new Scene()
  scene.gatherMs = 200
  scene.reply(changes('r'))
  scene.wake()
  t.equal(scene.polls.length, 2)
  t.notOk(scene.pass(), 'its timer has been stopped')
  scene.wake()
  t.equal(scene.polls.length, 2, 'a poll that waits goes on')
  scene.revision = 4
  scene.reply(changes('r', false, 3))
  t.equal(scene.polls.length, 3)
  scene.reply(changes('r', false, 4))
  t.equal(scene.polls.length, 3, 'the owner knows all filters')
})

t.test('a feed that is closed in a pause does not poll again', async t => {
  const scene = new Scene()
  scene.gatherMs = 200
  scene.reply(changes('r'))
  scene.feed.close()
  t.notOk(scene.pass())
  t.equal(scene.polls.length, 1)
})

t.test('it does not pause while the owner may have more changes', async t => {
  const scene = new Scene()
  scene.gatherMs = 200
  scene.reply(changes('r'))
  scene.pass()
  const next = { ...changes('r'), at: { ring: 'r', position: 7 + pollChangesMax } } as StreamReply
  scene.reply(next)
  t.equal(scene.polls.length, 3, 'many changes')
  const large = { ...next, changes: [{ ...changeOf('e', 1), encoded: Buffer.alloc(pollBytesMax) }] } as StreamReply
  scene.reply(large)
  t.equal(scene.polls.length, 4, 'many bytes')
  scene.reply(next)
  t.equal(scene.polls.length, 4)
})

// The changes of an owner for holders of streams: what a poll gets, when, and what a holder learns that was away.

import t from 'tap'
import { allAlterations, type FilterSource } from '../../../src/domain/streams/change-filter.js'
import type { SentChange, StreamPoll, StreamReplay, StreamReply } from '../../../src/messages/streams.js'
import { create, NotifyingOwner, remove, tenant, update } from '../../support/notifying.js'

const anything: FilterSource = {
  tenant,
  servicePath: '/#',
  entities: [{ idPattern: '.*' }],
  attrs: [],
  expression: {},
  alterationTypes: allAlterations,
  leaves: false,
}

const waitMs = 1_000
/** The time between two rounds of answers. */
const gatherMs = 10

/** An owner and one holder. */
class Scene {
  revision = 0
  at: StreamPoll['after']
  tick = 0

  private constructor(readonly owner: NotifyingOwner) {}

  static async with(...filters: readonly FilterSource[]): Promise<Scene> {
    const scene = new Scene(await NotifyingOwner.with([]))
    await scene.add(...filters)
    return scene
  }

  poll(change: Partial<StreamPoll> = {}): StreamReply[] {
    const step: StreamPoll = {
      ...{ what: 'poll', holder: 'h', after: this.at, fromRevision: this.revision, revision: this.revision },
      ...{ add: [], remove: [], waitMs },
      ...change,
    }
    const replies: StreamReply[] = []
    this.owner.shards.ask(0, { kind: 'stream', step }, reply => {
      if (reply.kind === 'stream') replies.push(reply.content)
    })
    return replies
  }

  /** Registers filters under the next numbers. */
  async add(...filters: readonly FilterSource[]): Promise<void> {
    const add = filters.map((source, index) => ({ number: this.revision + index + 1, source }))
    const replies = this.poll({ add, revision: this.revision + filters.length })
    await this.owner.rest()
    this.revision += filters.length
    this.take(replies)
  }

  private take([reply]: readonly StreamReply[]): readonly SentChange[] {
    if (reply?.what !== 'changes') throw new Error(`there are no changes: ${JSON.stringify(reply)}`)
    this.at = reply.at
    this.tick = reply.tick
    return reply.changes
  }

  /** The changes of the next poll. */
  async next(): Promise<readonly SentChange[]> {
    this.owner.clock.advance(gatherMs)
    const replies = this.poll()
    await this.owner.rest()
    return this.take(replies)
  }

  replay(change: Partial<StreamReplay> = {}): StreamReply | undefined {
    const step: StreamReplay = {
      ...{ what: 'replay', source: anything, ring: this.at!.ring, sinceTick: 0, after: 0, upTo: this.at!.position },
      ...change,
    }
    let content: StreamReply | undefined
    this.owner.shards.ask(0, { kind: 'stream', step }, reply => {
      if (reply.kind === 'stream') content = reply.content
    })
    return content
  }
}

const inWords = ({ class: kind, changed, named, found, left }: SentChange): string =>
  `${kind} ${changed.join()} of ${named.join()} found ${found.join()}${left.length > 0 ? ` left ${left.join()}` : ''}`

t.test('a poll gets what its filters found, with the names of attributes', async t => {
  const scene = await Scene.with(anything, { ...anything, alterationTypes: ['entityDelete'] })
  const { owner } = scene
  await owner.end(create('E', { n: 1, m: 1 }))
  await owner.end(update('E', { n: 2, m: 1 }))
  await owner.end(update('E', { n: 2 }))
  await owner.end(remove('E'))
  t.strictSame((await scene.next()).map(inWords), [
    'create n,m of n,m found 1',
    'change n of n,m found 1',
    'update  of n found 1',
    'delete  of  found 1,2',
  ])
})

t.test('a change is sent when it is durable, and not before', async t => {
  const scene = await Scene.with(anything)
  const { owner } = scene
  owner.store.isHeld = true
  owner.ask(create('E'))
  const replies = scene.poll()
  await owner.rest(waitMs / 2)
  t.strictSame(replies, [])
  owner.store.land()
  await owner.rest()
  t.match(replies, [{ what: 'changes', changes: [{ class: 'create' }] }])
})

t.test('a change that cannot be made durable is never sent', async t => {
  const scene = await Scene.with(anything)
  const { owner } = scene
  const replies = scene.poll()
  owner.store.breakDown(new Error('disk full'))
  await owner.end(create('E'))
  await owner.rest(waitMs * 2)
  t.match(replies, [{ what: 'changes', changes: [] }])
})

t.test('a filter that comes while a change is on its way gets it', async t => {
  const scene = await Scene.with({ ...anything, entities: [{ id: 'other' }] })
  const { owner } = scene
  owner.store.isHeld = true
  owner.ask(create('E'))
  await owner.rest()
  const replies = scene.poll({ add: [{ number: 2, source: anything }], revision: 2 })
  await owner.rest(waitMs / 2)
  t.strictSame(replies, [], 'its holder learns that it is known when that is durable')
  owner.store.land()
  await owner.rest()
  t.match(replies, [{ what: 'changes', changes: [{ class: 'create', found: [2] }] }])
})

t.test('new filters delay no changes, and are settled when earlier changes are durable', async t => {
  const scene = await Scene.with(anything)
  const { owner } = scene
  await owner.end(create('E'))
  owner.store.isHeld = true
  owner.ask(create('F'))
  const replies = scene.poll({ add: [{ number: 2, source: anything }], revision: 2 })
  await owner.rest()
  t.match(replies, [{ what: 'changes', changes: [{ class: 'create', found: [1] }], settled: 1 }])
  owner.store.land()
})

t.test('a new revision is answered when everything that was on its way is durable', async t => {
  const scene = await Scene.with(anything)
  const { owner } = scene
  owner.store.isHeld = true
  owner.ask(create('E'))
  const replies = scene.poll({ revision: 2 })
  await owner.rest(waitMs / 2)
  t.strictSame(replies, [])
  owner.store.land()
  await owner.rest()
  t.match(replies, [{ what: 'changes', changes: [{ class: 'create' }], settled: 2 }])
})

t.test('the first filter of a tenant is known when everything that was on its way is durable', async t => {
  const scene = await Scene.with()
  const { owner } = scene
  owner.store.isHeld = true
  owner.ask(create('E'))
  await owner.rest()
  const add = [{ number: 1, source: anything }]
  const first = scene.poll({ add, revision: 1 })
  const second = scene.poll({ add: [...add, { number: 2, source: anything }], revision: 2 })
  await owner.rest(waitMs / 2)
  t.strictSame([first, second], [[{ what: 'superseded' }], []])
  owner.store.land()
  await owner.rest()
  t.match(second, [{ what: 'changes', changes: [] }], 'a snapshot would have it, so it is no change')
})

t.test('an entity that matches no more is left, and comes back', async t => {
  const scene = await Scene.with({ ...anything, expression: { q: 'n>5' }, leaves: true })
  const { owner } = scene
  await owner.end(create('E', { n: 7 }))
  await owner.end(update('E', { n: 3 }))
  await owner.end(update('E', { n: 4 }))
  await owner.end(update('E', { n: 8 }))
  await owner.end(remove('E'))
  t.strictSame((await scene.next()).map(inWords), [
    'create n of n found 1',
    'change n of n found  left 1',
    'change n of n found 1',
    'delete  of  found 1',
  ])
})

t.test('a watch of leaving entities without its deletions receives them as well', async t => {
  const scene = await Scene.with({ ...anything, alterationTypes: ['entityChange'], leaves: true })
  await scene.owner.end(create('E', { n: 7 }))
  await scene.owner.end(remove('E'))
  t.strictSame((await scene.next()).map(inWords), ['delete  of  found  left 1'])
})

t.test('a poll waits, another one of its holder ends it, and time does', async t => {
  const scene = await Scene.with(anything)
  const first = scene.poll()
  await scene.owner.rest(waitMs / 2)
  t.strictSame(first, [])
  const second = scene.poll()
  t.match(first, [{ what: 'superseded' }])
  await scene.owner.rest(waitMs + 250)
  t.match(second, [{ what: 'changes', changes: [], lost: false }])
})

t.test('the tick of a reply is below those of all later changes', async t => {
  const scene = await Scene.with(anything)
  for (let n = 0; n < 5; n++) {
    const { tick } = scene
    await scene.owner.end(create(`E${n}`))
    const [change] = await scene.next()
    t.ok(tick < change!.tick && change!.tick < scene.tick)
  }
})

t.test('changes for other filters do not wake a holder, and are not examined twice', async t => {
  const scene = await Scene.with({ ...anything, entities: [{ id: 'mine' }] })
  const replies = scene.poll()
  for (let n = 0; n < 20; n++) await scene.owner.end(create(`E${n}`))
  t.strictSame(replies, [])
  await scene.owner.end(create('mine'))
  await scene.owner.rest()
  t.match(replies, [{ what: 'changes', at: { position: 21 }, changes: [{ class: 'create' }] }])
})

t.test('changes that follow one another soon come together', async t => {
  const scene = await Scene.with(anything)
  await scene.owner.end(create('E1'))
  t.equal((await scene.next()).length, 1)
  const replies = scene.poll()
  for (const id of ['E2', 'E3', 'E4']) await scene.owner.end(create(id))
  scene.owner.clock.advance(gatherMs - 1)
  await scene.owner.rest()
  t.strictSame(replies, [], 'the first change was answered less than 10 ms ago')
  scene.owner.clock.advance(1)
  await scene.owner.rest()
  t.match(replies, [{ what: 'changes', changes: [{ class: 'create' }, { class: 'create' }, { class: 'create' }] }])
})

t.test('a holder whose filters are not known here sends them again', async t => {
  const scene = await Scene.with(anything)
  scene.revision++
  t.match(scene.poll(), [{ what: 'unknown' }])
  scene.revision = 0
  await scene.add(anything)
  await scene.owner.end(create('E'))
  t.equal((await scene.next()).length, 1)
})

t.test('a holder need not wait for an answer before it sends more filters', async t => {
  const scene = await Scene.with(anything)
  const { owner } = scene
  const add = [2, 3].map(number => ({ number, source: { ...anything, tenant: 'elsewhere' } }))
  owner.store.isHeld = true
  owner.ask(create('E'))
  await owner.rest()
  const first = scene.poll({ add: add.slice(0, 1), revision: 2 })
  const second = scene.poll({ add, remove: [1], revision: 4 })
  t.strictSame([first, second], [[{ what: 'superseded' }], []])
  owner.store.land()
  await owner.rest()
  t.match(second, [{ what: 'changes', lost: false }])
  t.equal(owner.shards.parts.streams.numbers.filters, 2)
  t.match(scene.poll({ revision: 3, fromRevision: 2 }), [{ what: 'unknown' }], 'an earlier poll comes too late')
})

t.test('filters end with their lease, and the changes of their tenant some time later', async t => {
  const scene = await Scene.with(anything)
  const { streams } = scene.owner.shards.parts
  t.equal(streams.numbers.filters, 1)
  await scene.owner.rest(61_000)
  t.strictSame([streams.numbers.filters, streams.concerns(tenant)], [0, true])
  await scene.owner.rest(601_000)
  t.equal(streams.concerns(tenant), false)
})

t.test('a holder that begins gets nothing of before, and one of another ring has lost something', async t => {
  const scene = await Scene.with(anything)
  await scene.owner.end(create('E'))
  const begun = scene.poll({
    holder: 'other',
    after: undefined,
    fromRevision: 0,
    revision: 1,
    add: [{ number: 1, source: anything }],
  })
  await scene.owner.rest()
  t.match(begun, [{ what: 'changes', at: { position: 1 }, lost: false, changes: [] }])
  const strange = scene.poll({ after: { ring: 'another', position: 7 } })
  await scene.owner.rest()
  t.match(strange, [{ what: 'changes', lost: true }])
})

t.test('a replay has the changes behind a tick that match', async t => {
  const scene = await Scene.with(anything)
  await scene.owner.end(create('E', { n: 1 }))
  await scene.next()
  const { tick } = scene
  await scene.owner.end(update('E', { n: 7 }))
  await scene.owner.end(update('E', { n: 3 }))
  await scene.next()
  const source: FilterSource = { ...anything, expression: { q: 'n>5' }, leaves: true }
  const all = scene.replay({ sinceTick: tick, source })
  t.match(all, { what: 'replayed', isLast: true })
  t.strictSame(all?.what === 'replayed' && all.changes.map(inWords), [
    'change n of n found 0',
    'change n of n found  left 0',
  ])
  t.match(scene.replay({ sinceTick: scene.tick, source }), { what: 'replayed', changes: [] })
})

t.test('a replay of another ring, or of a tenant without readers, is a gap', async t => {
  const scene = await Scene.with(anything)
  t.match(scene.replay({ ring: 'another', sinceTick: scene.tick }), { what: 'gap', reason: 'restarted' })
  t.match(scene.replay({ source: { ...anything, tenant: 'elsewhere' }, sinceTick: scene.tick }), { what: 'gap' })
  t.match(scene.replay({ sinceTick: 0 }), { what: 'gap', reason: 'too old' }, 'a tick of long ago')
})

t.test('a filter with a grant finds what its readers may see, also in a replay', async t => {
  const grant = [{ paths: ['/#'], types: undefined, ids: [{ pattern: '^E' }], attributes: ['n'] }]
  const source: FilterSource = { ...anything, expression: { q: 'n<5' }, leaves: true, grant }
  const scene = await Scene.with(anything, source)
  const { owner, tick } = scene
  await owner.end(create('E', { n: 1, m: 1 }))
  await owner.end(create('F', { n: 1 }))
  await owner.end(update('E', { m: 2 }))
  await owner.end(update('E', { n: 2, m: 3 }))
  await owner.end(update('E', { n: 2, m: 4 }))
  await owner.end(update('E', { n: 9 }))
  await owner.end(update('E', { m: 5 }))
  const live = (await scene.next()).map(({ found, left }) => [found.includes(2), left.includes(2)])
  const [isFound, isNothing, hasLeft] = [
    [true, false],
    [false, false],
    [false, true],
  ]
  t.strictSame(live, [isFound, isNothing, isNothing, isFound, isFound, hasLeft, isNothing])
  const replayed = scene.replay({ sinceTick: tick, source })
  t.strictSame(
    replayed?.what === 'replayed' && replayed.changes.map(({ found, left }) => [found.length, left.length]),
    [
      [1, 0],
      [1, 0],
      [1, 0],
      [0, 1],
    ],
  )
})

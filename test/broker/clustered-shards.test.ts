// Shards that move between nodes during an ask: the reply to a write counts, and a read is repeated at the new owner.

import assert from 'node:assert/strict'
import t from 'tap'
import { ClusteredShards, type Nodes } from '../../src/broker/clustered-shards.js'
import { systemClock } from '../../src/clock.js'
import { ShardMap } from '../../src/domain/scope.js'
import type { ShardReply, ShardRequest, Shards } from '../../src/messages/messages.js'
import type { Clock } from '../../src/ports.js'
import type { AskOutcome } from '../../src/wire/exchange.js'
import { decodeReply, decodeRequest, encodeReply, encodeRequest } from '../../src/wire/wire.js'
import { FakeClock } from '../support/fake-clock.js'
import { provided } from '../support/registrations.js'
import { subscription } from '../support/subscriptions.js'

const document = { tenant: 't', id: '65f0c2a1b4d3e2f1a0c9b8d7' } as const
const watching = '{"subject":{"entities":[{"id":"E"}]},"notification":{"http":{"url":"http://h"}}}'
const done: ShardReply = { kind: 'done' }
const waits = { ownerWaitMs: 1_000, listWaitMs: 9_000 }
const list: ShardRequest = { kind: 'types', tenant: 't', paths: ['/#'], type: undefined }

/** A node that owns everything and loses it to another one while its own shards are at work; and the asks to both. */
function losing(
  reply: ShardReply,
  isLost = false,
): { readonly shards: ClusteredShards; readonly asked: readonly string[] } {
  const asked: string[] = []
  const changes: (() => void)[] = []
  let owner = 'here'
  const local: Shards = {
    ask: (_, { kind }, onReply) => {
      asked.push(`here ${kind}`)
      owner = 'there'
      for (const change of changes) change()
      onReply(reply)
    },
    owners: () => [0],
    ownerOf: () => 0,
    pathsOf: () => undefined,
  }
  const nodes: Nodes = {
    self: 'here',
    ownerOf: () => owner,
    serves: () => owner === 'here' && !isLost,
    viewOf: () => 1,
    ownView: 1,
    isLost,
    ask: (name, _, request, onOutcome) => {
      asked.push(`${name} ${decodeRequest(Buffer.from(request)).kind}`)
      onOutcome({ kind: 'reply', reply: encodeReply(reply) })
    },
    noteUndecodable: () => {},
    onChange: listener => changes.push(listener),
  }
  const shardMap = new ShardMap({ shards: 4, spread: 1 })
  return {
    shards: new ClusteredShards({ local, nodes, shardMap, clock, pathsOf: () => new Set(), ...waits }),
    asked,
  }
}

/** Its timers keep the process alive: nothing else does that here. */
const clock: Clock = {
  ...systemClock,
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs)
    return () => clearTimeout(timer)
  },
}

const replyOf = (shards: ClusteredShards, request: ShardRequest): Promise<ShardReply> =>
  new Promise(resolve => shards.ask(0, request, resolve))

t.test('where the log was lost, a request is refused at once, and nothing is done', async t => {
  const { shards, asked } = losing(done, true)
  t.match(await replyOf(shards, { kind: 'removeSubscription', ...document }), {
    kind: 'unreachable',
    reason: /the log engine has lost data/,
  })
  t.strictSame(asked, [])
})

t.test('a read is repeated at the next owner', async t => {
  const { shards, asked } = losing({ kind: 'subscriptions', subscriptions: [], total: 0 })
  t.equal(shards.stillMs, Number.POSITIVE_INFINITY, 'no owner has changed yet')
  t.match(await replyOf(shards, { kind: 'findSubscription', ...document }), { kind: 'subscriptions' })
  t.strictSame(asked, ['here findSubscription', 'there findSubscription'])
  t.ok(Number.isFinite(shards.stillMs), 'the change of the owner is known')
})

const writes: readonly ShardRequest[] = [
  { kind: 'removeSubscription', ...document },
  { kind: 'createSubscription', subscription: subscription(watching) },
  { kind: 'createRegistration', registration: provided(1, [{ id: 'E' }], [], 'http://h') },
  { kind: 'removeRegistration', ...document },
  { kind: 'news', ...document, news: { kind: 'success', code: 200 } },
  { kind: 'handIn', parts: [] },
  { kind: 'announce', tenant: 't', path: '/a' },
  { kind: 'retryDeliveries', ...document },
]

for (const request of writes)
  t.test(`${request.kind}: a write is not repeated at the next owner`, async t => {
    const { shards, asked } = losing(done)
    t.strictSame(await replyOf(shards, request), done)
    t.strictSame(asked, [`here ${request.kind}`])
  })

interface Silent {
  readonly asked: readonly string[]
  /** The reply to a request, however long it takes. */
  reply(request: ShardRequest): ShardReply
}

/** A cluster whose owner is another node, which answers an ask with each of some outcomes in turn. */
function silent(outcomes: readonly AskOutcome[]): Silent {
  const asked: string[] = []
  const time = new FakeClock()
  const nodes: Nodes = {
    self: 'here',
    ownerOf: () => 'there',
    serves: () => false,
    viewOf: () => 1,
    ownView: 1,
    isLost: false,
    ask: (_name, _shard, request, onOutcome, waitMs) => {
      const { kind } = decodeRequest(Buffer.from(request))
      const outcome = outcomes[asked.length]!
      asked.push(kind)
      if (outcome.kind !== 'unknown' || outcome.reason !== late) return onOutcome(outcome)
      time.after(waitMs, () => onOutcome(outcome))
    },
    noteUndecodable: () => {},
    onChange: () => {},
  }
  const local = { ask: () => {}, owners: () => [0], ownerOf: () => 0, pathsOf: () => undefined }
  const shardMap = new ShardMap({ shards: 4, spread: 1 })
  const times = { ownerWaitMs: 200, listWaitMs: 300 }
  const shards = new ClusteredShards({ local, nodes, shardMap, clock: time, pathsOf: () => new Set(), ...times })
  const reply = (request: ShardRequest): ShardReply => {
    let given: ShardReply | undefined
    shards.ask(0, request, one => {
      given = one
    })
    time.advance(10_000)
    assert(given, 'there is a reply')
    return given
  }
  return { asked, reply }
}

const late = 'no answer came in time'
const gone: AskOutcome = { kind: 'unknown', reason: 'it does not answer' }
const found: AskOutcome = { kind: 'reply', reply: encodeReply({ kind: 'subscriptions', subscriptions: [], total: 0 }) }

t.test('a read is asked again when its owner is gone, and a write is not', async t => {
  const read = silent([gone, { kind: 'unavailable', reason: 'there is no node there' }, found])
  t.match(read.reply({ kind: 'findSubscription', ...document }), { kind: 'subscriptions' })
  t.equal(read.asked.length, 3)
  const written = silent([gone, found])
  const lost = { kind: 'lost', reason: 'it does not answer' }
  t.strictSame(written.reply({ kind: 'removeSubscription', ...document }), lost)
  t.equal(written.asked.length, 1)
})

t.test('a read is not asked again when its time is over', async t => {
  const { asked, reply } = silent([{ kind: 'unknown', reason: late }])
  t.strictSame(reply({ kind: 'findSubscription', ...document }), { kind: 'lost', reason: late })
  t.equal(asked.length, 1)
})

t.test('a list begins again when an owner is gone, and not when its time is over', async t => {
  t.strictSame(silent([gone]).reply(list), { kind: 'moved' })
  t.strictSame(silent([{ kind: 'unknown', reason: late }]).reply(list), { kind: 'lost', reason: late })
})

t.test(
  'a list is not kept waiting by a node that has lost shards meanwhile, and its late reply does not count',
  async t => {
    const outcomes: ((outcome: AskOutcome) => void)[] = []
    let change = (): void => {}
    let view = 1
    const nodes: Nodes = {
      self: 'here',
      ownerOf: () => 'there',
      serves: () => false,
      viewOf: () => view,
      ownView: 1,
      isLost: false,
      ask: (_name, _shard, _request, onOutcome) => void outcomes.push(onOutcome),
      noteUndecodable: () => {},
      onChange: listener => {
        change = listener
      },
    }
    const shardMap = new ShardMap({ shards: 4, spread: 1 })
    const local = { ask: () => {}, owners: () => [0], ownerOf: () => 0, pathsOf: () => undefined }
    const shards = new ClusteredShards({ local, nodes, shardMap, clock, pathsOf: () => new Set(), ...waits })
    const replies: string[] = []
    shards.ask(0, list, ({ kind }) => void replies.push(kind))
    change()
    t.strictSame(replies, [], 'the shards of another node have moved')
    view = 2
    change()
    t.strictSame(replies, ['moved'])
    shards.ask(0, list, ({ kind }) => void replies.push(kind))
    const whole = encodeReply({ kind: 'types', types: [] })
    for (const onOutcome of outcomes) onOutcome({ kind: 'reply', reply: whole })
    t.strictSame(replies, ['moved', 'types'], 'the second is answered, the first not again')
  },
)

t.test('a backup begins only with shards that this node still owns afterwards', async t => {
  const begun: ShardReply = {
    kind: 'backup',
    content: { what: 'begun', shards: [0, 1], isKeeper: true, stamp: 1, positions: [] },
  }
  const { shards, asked } = losing(begun)
  const reply = await new Promise<ShardReply>(resolve =>
    shards.ask(1, { kind: 'backup', step: { what: 'begin', session: 's' } }, resolve),
  )
  t.strictSame(reply, { kind: 'backup', content: { ...begun.content, shards: [], isKeeper: false } })
  t.strictSame(asked, ['here backup'])
})

t.test('a node that ends answers the asks of other nodes that are under way, and takes no more', async t => {
  const time = new FakeClock()
  const replies: ((reply: ShardReply) => void)[] = []
  const local: Shards = {
    ask: (_shard, _request, onReply) => void replies.push(onReply),
    owners: () => [0],
    ownerOf: () => 0,
    pathsOf: () => undefined,
  }
  const nodes: Nodes = {
    ...{ self: 'here', ownerOf: () => 'here', serves: () => true, viewOf: () => 1, ownView: 1, isLost: false },
    ...{ ask: () => {}, noteUndecodable: () => {}, onChange: () => {} },
  }
  const shardMap = new ShardMap({ shards: 4, spread: 1 })
  const shards = new ClusteredShards({ local, nodes, shardMap, clock: time, pathsOf: () => new Set(), ...waits })
  const answers: string[] = []
  const ask = (): void =>
    shards.onAsk(
      0,
      encodeRequest({ kind: 'removeSubscription', ...document }),
      bytes => void answers.push(decodeReply(Buffer.from(bytes)).kind),
      0,
      'there',
    )
  ask()
  let ends = 0
  shards.end(() => void ends++)
  time.advance(200)
  ask()
  t.strictSame(answers, ['moved'])
  time.advance(1_000)
  t.equal(ends, 0)
  replies[0]!(done)
  t.strictSame(answers, ['moved', 'done'])
  ask()
  time.advance(200)
  t.equal(ends, 0, 'further asks may be on their way')
  time.advance(250)
  t.equal(ends, 1)
})

// Shards that move between nodes during an ask: the reply to a write counts, and a read is repeated at the new owner.

import t from 'tap'
import { ClusteredShards, type Nodes } from '../../src/broker/clustered-shards.js'
import { systemClock } from '../../src/clock.js'
import { ShardMap } from '../../src/domain/scope.js'
import type { ShardReply, ShardRequest, Shards, WriteRequest } from '../../src/messages/messages.js'
import type { Clock } from '../../src/ports.js'
import type { AskOutcome } from '../../src/wire/exchange.js'
import { decodeRequest, encodeReply } from '../../src/wire/wire.js'
import { create } from '../support/notifying.js'
import { provided } from '../support/registrations.js'
import { subscription } from '../support/subscriptions.js'

const document = { tenant: 't', id: '65f0c2a1b4d3e2f1a0c9b8d7' } as const
const watching = '{"subject":{"entities":[{"id":"E"}]},"notification":{"http":{"url":"http://h"}}}'
const done: ShardReply = { kind: 'done' }
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
    shards: new ClusteredShards({ local, nodes, shardMap, clock, pathsOf: () => new Set(), listWaitMs: 1000 }),
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

const creationIn = (tenant: string, path: string): WriteRequest =>
  ({ ...create('E'), target: { tenant, path, id: 'E' } }) as WriteRequest

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
  t.match(await replyOf(shards, { kind: 'findSubscription', ...document }), { kind: 'subscriptions' })
  t.strictSame(asked, ['here findSubscription', 'there findSubscription'])
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

t.test('another node gets more time for a request that every owner has to know first', async t => {
  const waits: (number | undefined)[] = []
  const ask: Nodes['ask'] = (_name, _shard, _request, onOutcome, waitMs) => {
    waits.push(waitMs)
    onOutcome({ kind: 'reply', reply: encodeReply(done) })
  }
  const nodes: Nodes = {
    ...{ self: 'here', ownerOf: () => 'there', serves: () => false, viewOf: () => 1, ownView: 1, isLost: false },
    ...{ ask, noteUndecodable: () => {}, onChange: () => {} },
  }
  const local = { ask: () => {}, owners: () => [0], ownerOf: () => 0, pathsOf: () => undefined }
  const shardMap = new ShardMap({ shards: 4, spread: 1 })
  const pathsOf = (tenant: string) => (tenant === 'many' ? undefined : new Set(['/known']))
  const shards = new ClusteredShards({ local, nodes, shardMap, clock, pathsOf, listWaitMs: 9_000 })
  const asked: readonly (readonly [number, ShardRequest])[] = [
    [shardMap.register, { kind: 'createSubscription', subscription: subscription(watching) }],
    [shardMap.register, { kind: 'announce', tenant: 't', path: '/new' }],
    [shardMap.register, { kind: 'findSubscription', ...document }],
    [0, creationIn('t', '/new')],
    [0, creationIn('t', '/known')],
    [0, creationIn('many', '/new')],
    [0, { kind: 'batch', items: [creationIn('t', '/new')] }],
  ]
  for (const [shard, request] of asked) await new Promise<ShardReply>(resolve => shards.ask(shard, request, resolve))
  t.strictSame(waits, [4_000, 4_000, undefined, 5_000, undefined, undefined, 5_000])
})

t.test('a list that an owner has not answered is repeated if another node owns the shard by then', async t => {
  let owner = 'there'
  let next = 'other'
  const nodes: Nodes = {
    self: 'here',
    ownerOf: () => owner,
    serves: () => false,
    viewOf: () => 1,
    ownView: 1,
    isLost: false,
    ask: (_name, _shard, _request, onOutcome) => {
      owner = next
      onOutcome({ kind: 'unknown', reason: 'it has left' })
    },
    noteUndecodable: () => {},
    onChange: () => {},
  }
  const local = { ask: () => t.fail('not here'), owners: () => [0], ownerOf: () => 0, pathsOf: () => undefined }
  const shardMap = new ShardMap({ shards: 4, spread: 1 })
  const shards = new ClusteredShards({ local, nodes, shardMap, clock, pathsOf: () => new Set(), listWaitMs: 1000 })
  t.strictSame(await replyOf(shards, list), { kind: 'moved' })
  owner = 'there'
  next = 'there'
  t.strictSame(await replyOf(shards, list), { kind: 'lost', reason: 'it has left' }, 'and not if it may still answer')
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
    const shards = new ClusteredShards({ local, nodes, shardMap, clock, pathsOf: () => new Set(), listWaitMs: 35_000 })
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

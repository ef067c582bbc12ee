// No bytes of a peer, of a client of the cluster's port, of the log engine or of a file end a process. The test sends
// thousands of each kind into the real handlers, and nothing throws. Unreadable bytes are refused and reported, and
// afterwards a peer with valid messages gets answers.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openAsks } from '../../cluster/asks/asks.js'
import { decodeFrame, encodeFrame, type Frame, type Hello } from '../../cluster/asks/frames.js'
import { decodePacket, encodePacket } from '../../cluster/asks/grpc-calls.js'
import type { Guests, Stream, StreamListener, Transport } from '../../cluster/ports.js'
import { beginning, decodeRecord, encodeRecord, positionOf } from '../../cluster/replication/log-record.js'
import { decodePeerReply, encodePeerMessage, replyOf, textOf } from '../../cluster/replication/peer-messages.js'
import { Replica } from '../../cluster/replication/replica.js'
import { replicationOptionsDefault } from '../../cluster/replication/replication-options.js'
import { fetchShard } from '../../cluster/replication/snapshot-fetch.js'
import { ClusteredShards, type Nodes } from '../../src/broker/clustered-shards.js'
import { ShardClient } from '../../src/broker/shard-client.js'
import { refusals } from '../../src/domain/refusal.js'
import type { ReadRequest, ShardReply, ShardRequest, Shards } from '../../src/messages/messages.js'
import { checkFirstLine, firstLine, lastLine, parseLastLine, readLine } from '../../src/move/lines.js'
import { stateFileAt } from '../../src/move/move.js'
import { openDataDirectory } from '../../src/storage/data-directory.js'
import { decodeReply, encodeReply, encodeRequest } from '../../src/wire/wire.js'
import { tempDir } from '../support/broker-process.js'
import { FakeClock } from '../support/fake-clock.js'
import { create, idOf, originOf, tenant, update, watching } from '../support/notifying.js'
import { Random } from '../support/random.js'
import { provided } from '../support/registrations.js'
import { Cluster, register, shardCount, shardMap } from '../support/replicated-hosts.js'
import { selectionOf } from '../support/selections.js'
import { hostileBytes } from './hostile-bytes.js'
import { SimulatedCluster } from './simulated-cluster.js'

/** Messages of each kind: 20,000 of all kinds together. */
const each = 2_500

const random = Random.fromEnvironment()
t.comment(`SEED=${random.seed}`)
t.setTimeout(600_000)

const hello: Hello = { lowest: 2, highest: 2, name: 'a', incarnation: 'i', to: 'b' }
const plain: Frame = {
  sentMs: 1,
  echoMs: undefined,
  ping: true,
  hello: undefined,
  trouble: undefined,
  asks: [],
  answers: [],
}
const request = Buffer.from('request')
const frames = [
  encodeFrame({ ...plain, hello }),
  encodeFrame({ ...plain, hello: { ...hello, refusal: 'no' } }),
  encodeFrame({ ...plain, trouble: 'a reply that is none', echoMs: 3 }),
  encodeFrame({ ...plain, asks: [{ number: 7, deadlineMs: 1e12, shard: 3, request, view: 5 }] }),
  encodeFrame({ ...plain, answers: [{ number: 1, kind: 0, reply: request, offset: 0, total: 0 }] }),
  encodeFrame({ ...plain, answers: [{ number: 2, kind: 0, reply: request, offset: 0, total: 99 }] }),
  encodeFrame({ ...plain, answers: [{ number: 3, kind: 5, reply: request, offset: 0, total: 0 }] }),
]

/** A transport of which the test plays the other side. */
class Wires implements Transport {
  guests: Guests | undefined

  async listen(address: string, guests: Guests) {
    this.guests = guests
    return { address, close: async () => {} }
  }

  dial(): Stream {
    return { send: () => true, close: () => {} }
  }

  call(): void {}

  /** A new connection from a peer; the messages sent to it, and the reasons for which it was closed. */
  dialed(): { listener: StreamListener; sent: Buffer[]; closed: string[] } {
    const sent: Buffer[] = []
    const closed: string[] = []
    const stream: Stream = {
      send: message => {
        sent.push(message)
        return true
      },
      close: reason => closed.push(reason ?? 'ended'),
    }
    return { listener: this.guests!.onStream(stream), sent, closed }
  }
}

t.test('a node that is sent frames of any bytes, before and after a greeting, goes on', async t => {
  const wires = new Wires()
  const clock = new FakeClock()
  const host = { onAsk: (_: number, request: Uint8Array, onReply: (reply: Uint8Array) => void) => onReply(request) }
  const self = { name: 'b', address: 'b' }
  const asks = await openAsks(wires, self, 'life', [{ name: 'a', address: 'a' }], host, clock, {})
  const troubles: string[] = []
  asks.onTrouble(trouble => troubles.push(trouble))
  for (let n = 0; n < each; n++) {
    const { listener } = wires.dialed()
    if (random.fraction() < 0.7) listener.onMessage(encodeFrame({ ...plain, hello: { ...hello, incarnation: `${n}` } }))
    asks.ask('a', 0, Buffer.from('ask'), () => {})
    for (let times = random.between(1, 3); times > 0; times--) listener.onMessage(hostileBytes(random, frames))
    clock.tick()
  }
  t.ok(asks.statsOf('a')!.undecodable > each / 10, `${asks.statsOf('a')!.undecodable} are counted`)
  t.equal(troubles.length, 1, 'and told once')
  const { listener, sent } = wires.dialed()
  listener.onMessage(encodeFrame({ ...plain, hello: { ...hello, incarnation: 'last' } }))
  clock.tick()
  t.equal(decodeFrame(sent[0]!)?.hello?.name, 'b', 'who greets properly is greeted')
  await asks.close()
})

const document = { tenant, id: idOf(1) }
const list = {
  kind: 'list',
  tenant,
  paths: ['/#'],
  selection: selectionOf({ q: 'n>0' }),
  order: [{ name: 'n', descending: true }],
  offset: 0,
  limit: 5,
} as const
const place = { created: 1, shard: 3, path: '/', type: 'T' }
const asked: readonly ShardRequest[] = [
  create('E'),
  update('E', { n: 2 }),
  { kind: 'batch', items: [create('F'), update('E', { n: 3 })] },
  { kind: 'find', tenant, paths: ['/#'], id: 'E', type: undefined },
  list,
  { ...list, part: 'entities', bytesMax: 1000 },
  { kind: 'fetch', tenant, places: [place], bytesMax: 1000 },
  { kind: 'types', tenant, paths: ['/'], type: undefined },
  { kind: 'createSubscription', subscription: watching(2, { condition: { attrs: ['n'], expression: { q: 'n>1' } } }) },
  { kind: 'removeSubscription', ...document },
  { kind: 'findSubscription', ...document },
  { kind: 'listSubscriptions', tenant, servicePath: undefined, offset: 0, limit: 20 },
  { kind: 'createRegistration', registration: provided(1, [{ id: 'E' }], [], 'http://h') },
  { kind: 'listRegistrations', tenant, servicePath: undefined, offset: 0, limit: 20 },
  { kind: 'progress', tenant, ids: [idOf(1)] },
  { kind: 'claim', ...document, notification: 'n' },
  { kind: 'news', ...document, news: { kind: 'failure', reason: 'no' } },
  { kind: 'deliveries', ...document, limit: 20 },
  { kind: 'announce', tenant, path: '/a' },
  {
    kind: 'updateValue',
    target: { tenant, path: '/', id: 'E', type: 'T' },
    origin: originOf(),
    name: 'n',
    value: 4,
    forcedUpdate: false,
  },
  { kind: 'deleteEntity', target: { tenant, path: '/', id: 'F', type: 'T' }, origin: originOf() },
]

const view = 1
const routing = { shardMap, pathsOf: () => undefined, ownerWaitMs: 1000, listWaitMs: 1000 }

/** A node that owns either no shard or all shards, among others. */
const nodesOf = (owner: string, ask: Nodes['ask'], onUnreadable: (what: string) => void): Nodes => ({
  self: 'here',
  ownerOf: () => owner,
  serves: () => owner === 'here',
  isLost: false,
  viewOf: () => view,
  ownView: view,
  ask,
  noteUndecodable: (_node, what) => onUnreadable(what),
  onChange: () => {},
})

/** The shards of one host that owns all of them, as another process asks them. */
async function asking(t: Parameters<typeof Cluster.of>[0]) {
  const cluster = await Cluster.of(t, new FakeClock(), 1)
  const unreadable: string[] = []
  const { local } = cluster.host(0)
  const nodes = nodesOf(
    'here',
    () => {},
    what => unreadable.push(what),
  )
  const shards = new ClusteredShards({ ...routing, local, nodes, clock: cluster.clock })
  const ask = (bytes: Buffer, shard: number): Promise<ShardReply> =>
    new Promise((resolve, reject) => {
      const onReply = (reply: Uint8Array): void => resolve(decodeReply(Buffer.from(reply)))
      try {
        shards.onAsk(shard, bytes, onReply, view, 'there')
      } catch (error) {
        reject(error)
      }
    })
  return { cluster, unreadable, ask }
}

t.test('shards answer asks in any bytes, and invalid ones do not change them', async t => {
  const { cluster, unreadable, ask } = await asking(t)
  const valid = asked.map(encodeRequest)
  const shardOf = (at: number): number => {
    const { kind } = asked[at % asked.length]!
    return /ubscription|egistration|progress|claim|news|announce/.test(kind) ? register : random.between(0, shardCount)
  }
  await cluster.waitFor(ask(valid[0]!, shardMap.shardOf(tenant, '/', 'E')))
  for (let n = 0; n < each; n += 25) {
    const some = Array.from({ length: 25 }, (_, at) => ask(hostileBytes(random, valid), shardOf(n + at)))
    await cluster.waitFor(Promise.all(some))
  }
  t.ok(unreadable.length > each / 4, `${unreadable.length} are reported`)
  t.strictSame(cluster.host(0).failures, [])
  const find = { kind: 'find', tenant, paths: ['/'], id: 'unheard-of', type: undefined } as const
  t.match(await cluster.waitFor(ask(encodeRequest(find), 0)), { kind: 'found' })
})

t.test('a node that asks shards of others and gets any bytes gives each caller one result', async t => {
  const { cluster, ask } = await asking(t)
  for (const id of ['E', 'F', 'G'])
    await cluster.waitFor(ask(encodeRequest(create(id)), shardMap.shardOf(tenant, '/', id)))
  const replies: Buffer[] = [
    encodeReply({ kind: 'refused', refusal: refusals.unreachable('none') }),
    encodeReply({ kind: 'batch', replies: [{ kind: 'done' }] }),
    encodeReply({ kind: 'moved' }),
    encodeReply({ kind: 'lost', reason: 'gone' }),
  ]
  for (const one of asked) {
    const reply = await cluster.waitFor(ask(encodeRequest(one), one.kind.endsWith('ription') ? register : 0))
    replies.push(encodeReply(reply))
  }
  let unreadable = 0
  let own = 0
  const nobody: Shards = { ask: () => {}, owners: () => [0], ownerOf: () => 0, pathsOf: () => undefined }
  const answer: Nodes['ask'] = (_node, _shard, _request, onOutcome) => {
    const bytes = hostileBytes(random, replies)
    if (random.fraction() < 0.3) own++
    const valid = replies[own % replies.length]!
    onOutcome({ kind: 'reply', reply: random.fraction() < 0.3 ? valid : bytes })
  }
  const clock = new FakeClock()
  const others = nodesOf('there', answer, () => unreadable++)
  const ownerOf = (shard: number): string => (shard % 2 === 0 ? 'there' : 'elsewhere')
  const shards = new ClusteredShards({ ...routing, local: nobody, nodes: { ...others, ownerOf }, clock })
  const client = new ShardClient(shards, shardMap, undefined, { clock, rest: () => {}, stillMs: () => 0 })
  let results = 0
  const count = (): void => {
    results++
  }
  const reads: ((done: () => void) => void)[] = [
    done => client.find({ kind: 'find', tenant, paths: ['/#'], id: 'E', type: undefined }, done),
    done => client.list(list, done),
    done => client.list({ ...list, offset: 2, order: [] }, done),
    done => client.types({ kind: 'types', tenant, paths: ['/#'], type: undefined } satisfies ReadRequest, done),
    done => client.write(update('E', { n: 1 }), done),
    done => client.readSubscriptions({ kind: 'findSubscription', ...document }, done),
    done =>
      client.readRegistrations(
        { kind: 'listRegistrations', tenant, servicePath: undefined, offset: 0, limit: 9 },
        done,
      ),
    done => client.deliveries({ kind: 'deliveries', ...document, limit: 9 }, done),
    done => client.retryDeliveries({ kind: 'retryDeliveries', ...document }, done),
  ]
  for (let n = 0; n < each; n++) {
    reads[n % reads.length]!(count)
    // Asks with a reply that asks for another try are repeated for a while.
    if (n % 100 === 0) clock.advance(100)
  }
  clock.advance(10_000)
  t.equal(results, each, 'one for each')
  t.ok(unreadable > each / 2, `${unreadable} are reported`)
})

t.test('a node whose replicator is asked in any bytes answers or waits', async t => {
  const scene = new SimulatedCluster(new Random(random.seed), 3)
  await scene.world.run(10_000)
  const position = textOf({ sequence: 3, epoch: 2, hash: Buffer.alloc(16, 7) })
  const valid = [
    encodePeerMessage({ kind: 'handOver', shard: 1, to: 'n1 life1' }),
    encodePeerMessage({ kind: 'reached', shard: 2, sequence: 1 }),
    encodePeerMessage({ kind: 'snapshot', shard: 3, after: '' }),
    encodePeerMessage({ kind: 'standing', owner: 'n1 life1', flushed: [[1, 2]] }),
    encodePeerMessage({ kind: 'page', position, next: 'eA==' }, Buffer.from('[]')),
    encodePeerMessage({ kind: 'handedOver', epoch: 9 }),
    encodePeerMessage({ kind: 'refused', reason: 'no' }),
  ]
  let answered = 0
  for (let n = 0; n < each; n++) {
    const { replicator } = scene.nodes[n % 3]!.now!
    const bytes = hostileBytes(random, valid)
    replicator.onAsk(bytes, reply => {
      assert(replyOf(reply), 'what it answers can be read')
      answered++
    })
    decodePeerReply(bytes)
    if (n % 100 === 0) await scene.world.run(50)
  }
  await scene.world.run(10_000)
  t.ok(answered > each / 2, `${answered} are answered`)
  t.strictSame(scene.losses, [])
  t.strictSame(scene.stopped, [])
  t.ok(
    scene.nodes.every(({ now }) => now?.replicator.isWhole),
    'and every shard has an owner',
  )
})

t.test('records and snapshot pages of any bytes are refused as unreadable, and the host is well', async t => {
  const cluster = await Cluster.of(t, new FakeClock(), 2)
  const writer = cluster.host(0)
  cluster.followsAlways = false
  const ask = (request: ShardRequest, shard: number) =>
    cluster.waitFor(new Promise<ShardReply>(resolve => cluster.ask(shard, request, resolve)))
  await ask({ kind: 'createSubscription', subscription: watching(1) }, register)
  for (const id of ['E', 'F', 'G', 'H']) await ask(create(id), shardMap.shardOf(tenant, '/', id))
  const shard = shardMap.shardOf(tenant, '/', 'E')
  const payloads = [...cluster.log.behind(shard, undefined), ...cluster.log.behind(register, undefined)]
  const page = await cluster.waitFor(
    new Promise<Buffer>((resolve, reject) =>
      writer.shardHost.snapshot(shard, undefined, 100_000, found =>
        found instanceof Error ? reject(found) : resolve(found.rows),
      ),
    ),
  )
  const valid = [...payloads.map(({ payload }) => payload), page]
  const { shardHost } = cluster.host(1)
  let refused = 0
  const note = (failure: Error | undefined): void => {
    if (!failure) return
    assert.equal((failure as Error & { code?: unknown }).code, 'unreadable', failure.stack)
    refused++
  }
  const position = (sequence: number) => ({ sequence, epoch: 1, hash: Buffer.alloc(16) })
  /** Shards that have a first page of a snapshot, and no position yet. */
  const begun = new Set<number>()
  for (let n = 0; n < each; n++) {
    const bytes = hostileBytes(random, valid)
    const of = random.pick([shard, register])
    await cluster.waitFor(
      new Promise<void>(resolve => {
        const ending = (whenDone: () => unknown) => (failure?: Error) => {
          note(failure)
          if (!failure) whenDone()
          resolve()
        }
        const isFirst = !begun.has(of) || random.fraction() < 0.1
        if (random.fraction() < 0.8)
          shardHost.apply(
            of,
            [bytes],
            position(n + 1),
            ending(() => begun.delete(of)),
          )
        else
          shardHost.install(
            of,
            bytes,
            isFirst,
            ending(() => begun.add(of)),
          )
      }),
    )
  }
  t.ok(refused > each / 4, `${refused} are refused`)
  t.strictSame(cluster.host(1).failures, [])
})

t.test('a copy that reads any bytes from the log stops with a sentence, or goes on', async t => {
  const valid = [true, false].map(continues =>
    encodeRecord(5, 1, beginning, Buffer.from('payload'), { continues, continuesPrevious: false }),
  )
  let stopped = 0
  for (let n = 0; n < each; n++) {
    const clock = new FakeClock()
    const replica = new Replica(5, beginning, {
      log: { read: (_shard, _after, _bytesMax, onDone) => onDone({ kind: 'unknown', reason: 'away' }) },
      host: {
        apply: (_shard, _payloads, _position, onDone) =>
          onDone(Object.assign(new Error('not to be read'), { code: 'unreadable' })),
        position: () => beginning,
      },
      clock,
      options: replicationOptionsDefault,
      onStopped: (_shard, reason) => {
        assert(reason !== '')
        stopped++
      },
      onAhead: () => {},
      onFailure: failure => {
        throw failure
      },
    })
    const bytes = hostileBytes(random, valid)
    replica.onRecord({ sequence: 1, bytes })
    const record = decodeRecord(bytes)
    if (record) positionOf(bytes, record)
  }
  t.ok(stopped > each / 2, `${stopped} have stopped`)
})

t.test('a snapshot whose pages are any bytes ends with a reason, not with a failure', async t => {
  const position = textOf({ sequence: 3, epoch: 2, hash: Buffer.alloc(16, 7) })
  const pages = [encodePeerMessage({ kind: 'page', position }, Buffer.from('rows'))]
  const reasons = new Set<string>()
  for (let n = 0; n < each; n++) {
    let outcome: unknown
    fetchShard(
      1,
      {
        log: {
          read: (_shard, _after, _bytesMax, onDone) =>
            onDone({ kind: 'read', records: [], last: 9, takeover: undefined }),
        },
        host: {
          install: (_shard, _rows, _isFirst, onDone) =>
            onDone(Object.assign(new Error('not to be read'), { code: 'unreadable' })),
          drop: (_shard, onDone) => onDone(),
          apply: (_shard, _payloads, _position, onDone) => onDone(),
        },
        ask: (_request, onReply) => onReply(hostileBytes(random, pages)),
        onUnreadable: reason => reasons.add(reason),
      },
      result => {
        outcome = result
      },
    )
    assert(typeof outcome === 'string', String(outcome))
  }
  t.ok(reasons.has('not to be read'))
})

t.test('packets, and files of an export, of its state and of a data directory, are refused in words', async t => {
  const packets = [encodePacket(Buffer.from('gossip'))]
  const lines = [firstLine('orrery'), lastLine({ entity: 1, registration: 0, subscription: 2 })].map(line =>
    Buffer.from(line),
  )
  const entity = Buffer.from('{"entity":{"id":"E","type":"T","n":{"type":"Number","value":1,"metadata":{}}}}')
  const folder = tempDir(t)
  const state = stateFileAt(join(folder, 'state'))
  const job = { verb: 'import' }
  const states = [Buffer.from(JSON.stringify({ 'orrery-state': 1, job, begunMs: 1, done: 2, counts: {}, sink: null }))]
  openDataDirectory(join(folder, 'data'), { shards: 8, spread: 1 }, () => 'id')
  const directories = [Buffer.from('{"format":4,"shards":8,"spread":1,"workers":1,"id":"id"}')]
  for (let n = 0; n < each; n++) {
    decodePacket(hostileBytes(random, packets))
    checkFirstLine(hostileBytes(random, lines))
    parseLastLine(hostileBytes(random, lines))
    readLine(hostileBytes(random, [...lines, entity]), 0)
    if (n % 10 > 0) continue
    writeFileSync(state.path, hostileBytes(random, states))
    writeFileSync(join(folder, 'data', 'orrery.json'), hostileBytes(random, directories))
    try {
      state.load(job)
    } catch (error) {
      assert.equal((error as Error).constructor.name, 'MoveError', (error as Error).stack)
    }
    try {
      openDataDirectory(join(folder, 'data'), { shards: 8, spread: 1 }, () => 'id')
    } catch (error) {
      assert.equal((error as Error).name, 'DataDirectoryError', (error as Error).stack)
    }
  }
  t.pass('nothing else was thrown')
})

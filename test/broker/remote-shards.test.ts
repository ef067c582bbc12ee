// Shards of this node and of others: each is asked where it is, and a new service path is told to all before anything is created under it.

import t from 'tap'
import { type Placement, RemoteShards } from '../../src/broker/remote-shards.js'
import type { ShardReply, ShardRequest, WriteRequest } from '../../src/messages/messages.js'
import type { AskOutcome } from '../../src/ports.js'
import { decodeReply, encodeReply, encodeRequest } from '../../src/wire/wire.js'

const owners = [0, 1, 2, 0, 1, 2]

const create = (id: string, path = '/a'): WriteRequest => ({
  kind: 'create',
  target: { tenant: 't', path, id, type: 'T' },
  entity: { id, type: 'T', attributes: new Map() },
  upsert: false,
  options: { overrideMetadata: false, forcedUpdate: false },
  origin: { correlatorRoot: '' },
})

/** Nodes in one process that ask each other at once; a test may take one away, or let what is asked wait. */
class Net {
  readonly nodes: readonly RemoteShards[]
  /** What each node's own shards were asked. */
  readonly asked: ShardRequest[][] = [[], [], []]
  readonly away = new Set<number>()
  /** Paths that the nodes have stored. */
  readonly stored: [tenant: string, paths: string[]][][] = [[], [], []]
  held: (() => void)[] | undefined
  /** What could not be read, by whom it was sent. */
  readonly undecodable: string[] = []

  constructor() {
    this.nodes = [0, 1, 2].map(self => this.node({ self, owners }))
  }

  node(placement: Placement): RemoteShards {
    const { self } = placement
    const local = {
      ask: (_: number, request: ShardRequest, onReply: (reply: ShardReply) => void) => {
        this.asked[self]!.push(request)
        onReply(request.kind === 'paths' ? { kind: 'paths', tenants: this.stored[self]! } : { kind: 'done' })
      },
      owners: () => [0],
      ownerOf: () => 0,
      pathsOf: () => undefined,
    }
    return new RemoteShards(local, placement, 5000, {
      ask: (owner, shard, request, onOutcome) => {
        const go = () => this.deliver(owner, shard, request, onOutcome)
        if (this.held) this.held.push(go)
        else go()
      },
      noteUndecodable: (owner, what) => this.undecodable.push(`${owner}: ${what}`),
    })
  }

  private deliver(owner: number, shard: number, request: Uint8Array, onOutcome: (outcome: AskOutcome) => void): void {
    if (this.away.has(owner)) return onOutcome({ kind: 'unavailable', reason: 'it is away' })
    const onReply = (reply: Uint8Array): void => onOutcome({ kind: 'reply', reply: Buffer.from(reply) })
    this.nodes[owner]!.onAsk(shard, request, onReply, what => this.undecodable.push(what))
  }

  kinds(node: number): string[] {
    return this.asked[node]!.map(({ kind }) => kind)
  }
}

function ask(node: RemoteShards, shard: number, request: ShardRequest): ShardReply | undefined {
  let told: ShardReply | undefined
  node.ask(shard, request, reply => {
    told = reply
  })
  return told
}

t.test('a shard is asked where it is', async t => {
  const net = new Net()
  const find = { kind: 'find', tenant: 't', paths: ['/'], id: 'E', type: undefined } as const
  for (const shard of owners.keys()) ask(net.nodes[1]!, shard, find)
  t.strictSame(
    net.asked.map(asked => asked.length),
    [2, 2, 2],
  )
  t.strictSame(net.nodes[1]!.owners(), [0, 1, 2])
})

t.test('what cannot be asked is unreachable, what is not answered is lost', async t => {
  const outcomes: AskOutcome[] = [
    { kind: 'unavailable', reason: 'away' },
    { kind: 'unknown', reason: 'silent' },
  ]
  const local = { ask: () => {}, owners: () => [0], ownerOf: () => 0, pathsOf: () => undefined }
  const node = new RemoteShards(local, { self: 0, owners }, 5000, {
    ask: (_owner, _shard, _request, onOutcome) => onOutcome(outcomes.shift()!),
    noteUndecodable: () => {},
  })
  t.strictSame(ask(node, 1, { kind: 'paths' }), { kind: 'unreachable', reason: 'away' })
  t.strictSame(ask(node, 1, { kind: 'paths' }), { kind: 'lost', reason: 'silent' })
})

t.test('bytes that are no request are refused, and it is certain that nothing has happened', async t => {
  const net = new Net()
  for (const [bytes, shard] of [
    [Buffer.from('{'), 0],
    [Buffer.of(0x99), 0],
    [Buffer.from('\x85{"kind":"paint"}', 'latin1'), 0],
    [Buffer.from('\x85{"kind":"find","tenant":"t"}', 'latin1'), 0],
    [encodeRequest({ kind: 'paths' }), 7],
    [encodeRequest(create('E')), 6],
  ] as const) {
    let told: ShardReply | undefined
    const said: string[] = []
    net.nodes[0]!.onAsk(
      shard,
      bytes,
      reply => {
        told = decodeReply(Buffer.from(reply))
      },
      what => said.push(what),
    )
    t.match(told, { kind: 'unreachable', reason: /another release/ })
    t.equal(said.length, 1)
  }
  t.strictSame(net.asked[0], [], 'and nothing was asked')
})

t.test('a reply that cannot be read, or does not fit the request, is lost', async t => {
  const replies: Buffer[] = [
    Buffer.from('nonsense'),
    Buffer.alloc(0),
    Buffer.of(0x99),
    encodeReply({ kind: 'retried', count: 1 }),
    encodeReply({ kind: 'batch', replies: [] }),
  ]
  const undecodable: string[] = []
  const local = { ask: () => {}, owners: () => [0], ownerOf: () => 0, pathsOf: () => undefined }
  const node = new RemoteShards(local, { self: 0, owners }, 5000, {
    ask: (_owner, _shard, _request, onOutcome) => onOutcome({ kind: 'reply', reply: replies.shift()! }),
    noteUndecodable: (owner, what) => undecodable.push(`${owner}: ${what}`),
  })
  while (replies.length > 0) t.match(ask(node, 1, { kind: 'paths' }), { kind: 'lost' })
  t.equal(undecodable.length, 5)
  t.match(undecodable[3], '1: a reply of kind retried to a request of kind paths')
})

t.test('all have heard of a path before anything is created under it, once', async t => {
  const net = new Net()
  t.match(ask(net.nodes[0]!, 2, create('E1')), { kind: 'done' })
  t.strictSame(
    [0, 1, 2].map(node => net.kinds(node)),
    [['announce'], ['announce'], ['announce', 'create']],
  )
  ask(net.nodes[0]!, 2, create('E2'))
  t.strictSame(net.kinds(2), ['announce', 'create', 'create'])
})

t.test('nothing is created under a new path while one of them is away', async t => {
  const net = new Net()
  net.away.add(1)
  t.match(ask(net.nodes[0]!, 2, create('E1')), { kind: 'unreachable', reason: 'it is away' })
  t.notOk(net.kinds(2).includes('create'))
  net.away.clear()
  t.match(ask(net.nodes[0]!, 2, create('E1')), { kind: 'done' })
})

t.test('what comes while a path is being announced waits, and keeps its order', async t => {
  const net = new Net()
  net.held = []
  const told: string[] = []
  for (const id of ['E1', 'E2', 'E3']) net.nodes[0]!.ask(2, create(id), () => told.push(id))
  t.equal(net.held.length, 2, 'one announcement to each of the others')
  const held = net.held
  net.held = undefined
  for (const go of held) go()
  t.strictSame(told, ['E1', 'E2', 'E3'])
  const created = net.asked[2]!.flatMap(request => (request.kind === 'create' ? [request.entity.id] : []))
  t.strictSame(created, ['E1', 'E2', 'E3'])
})

t.test('a batch that may create is announced like one creation', async t => {
  const net = new Net()
  ask(net.nodes[0]!, 1, { kind: 'batch', items: [create('E1'), create('E4')] })
  t.strictSame(net.kinds(1), ['announce', 'batch'])
})

t.test('paths are known when all have told what they have, and what is announced from then on', async t => {
  const net = new Net()
  net.stored[0]!.push(['t', ['/', '/a']])
  net.stored[2]!.push(['t', ['/b']])
  const node = net.nodes[1]!
  net.away.add(2)
  node.learn()
  t.equal(node.pathsOf('t'), undefined, 'one has not told yet')
  net.away.clear()
  node.learn()
  t.strictSame([...node.pathsOf('t')!].sort(), ['/', '/a', '/b'])
  t.strictSame([...node.pathsOf('nobody')!], [])
  ask(net.nodes[0]!, 0, create('E', '/c'))
  t.strictSame([...node.pathsOf('t')!].sort(), ['/', '/a', '/b', '/c'])
})

t.test('who starts anew learns what was announced and is not stored yet', async t => {
  const net = new Net()
  ask(net.nodes[0]!, 1, create('E', '/new'))
  const again = net.node({ self: 2, owners })
  again.learn()
  t.strictSame([...again.pathsOf('t')!], ['/new'])
})

t.test('of many paths no more is known than that', async t => {
  const net = new Net()
  for (const node of net.nodes) node.learn()
  for (let n = 0; n < 8; n++) ask(net.nodes[0]!, 0, create('E', `/p${n}`))
  t.equal([...net.nodes[2]!.pathsOf('t')!].length, 8)
  ask(net.nodes[0]!, 0, create('E', '/one/more'))
  for (const node of net.nodes) t.equal(node.pathsOf('t'), undefined)
})

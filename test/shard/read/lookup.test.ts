// Reads over paths: the entities found for an id, and those of a page.

import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import t from 'tap'
import { ShardMap } from '../../../src/domain/scope.js'
import { decodeEntity } from '../../../src/encoded-entity.js'
import type { FindRequest, ListRequest, ReadRequest, ShardReply, WriteRequest } from '../../../src/messages/messages.js'
import type { LocalShards } from '../../../src/shard/shards.js'
import { FakeClock } from '../../support/fake-clock.js'
import { localShards } from '../../support/local-shards.js'
import { MemoryStore } from '../../support/memory-store.js'
import { meaning } from '../../support/selections.js'

const shardMap = new ShardMap({ shards: 16, spread: 16 })
const origin = { correlatorRoot: '' }
const options = { overrideMetadata: false, forcedUpdate: false }

class Node {
  readonly store: MemoryStore
  readonly clock: FakeClock
  private readonly shards: LocalShards

  private constructor(store: MemoryStore, clock: FakeClock, shards: LocalShards) {
    this.store = store
    this.clock = clock
    this.shards = shards
  }

  /** A node with entities in this order, each as `path id type`. */
  static async with(...places: string[]): Promise<Node> {
    const store = new MemoryStore()
    const clock = new FakeClock()
    return new Node(store, clock, await localShards(store, shardMap, clock)).with(...places)
  }

  ask(request: WriteRequest | ReadRequest): ShardReply[] {
    const replies: ShardReply[] = []
    const { tenant, path, id } = 'target' in request ? request.target : { tenant: request.tenant, path: '/', id: '' }
    this.shards.ask(shardMap.shardOf(tenant, path, id), request, reply => replies.push(reply))
    return replies
  }

  async rest(): Promise<void> {
    for (let rounds = 0; rounds < 4; rounds++) {
      this.clock.tick()
      await turnOfTheLoop()
    }
  }

  /** Adds entities in this order, each as `path id type`. */
  async with(...places: string[]): Promise<this> {
    for (const place of places) this.create(place)
    await this.rest()
    return this
  }

  create(place: string): ShardReply[] {
    const [path, id, type] = place.split(' ') as [string, string, string]
    const entity = { id, type, attributes: new Map() }
    return this.ask({ kind: 'create', target: { tenant: 't', path, id, type }, origin, entity, upsert: false, options })
  }

  remove(place: string): ShardReply[] {
    const [path, id, type] = place.split(' ') as [string, string, string]
    return this.ask({ kind: 'deleteEntity', target: { tenant: 't', path, id, type }, origin })
  }

  async find(id: string, paths: readonly string[], type?: string): Promise<string[]> {
    const replies = this.ask(find(id, paths, type))
    await this.rest()
    return places(replies[0]).sort()
  }

  async list(wanted: Partial<ListRequest> = {}): Promise<[total: number, ...string[]]> {
    const replies = this.ask(list(wanted))
    await this.rest()
    return page(replies[0])
  }
}

const find = (id: string, paths: readonly string[], type?: string): FindRequest => ({
  kind: 'find',
  tenant: 't',
  paths,
  id,
  type,
})
const list = (wanted: Partial<ListRequest>): ListRequest => ({
  kind: 'list',
  tenant: 't',
  paths: ['/#'],
  selection: meaning(),
  order: [],
  offset: 0,
  limit: 20,
  ...wanted,
})

/** The entities of a reply, each as `path id type`. */
function places(reply: ShardReply | undefined): string[] {
  if (reply?.kind !== 'found' && reply?.kind !== 'listed') return [JSON.stringify(reply)]
  return reply.entities.map(({ path, encoded }) => {
    const { id, type } = decodeEntity(encoded)
    return `${path} ${id} ${type}`
  })
}
const page = (reply: ShardReply | undefined): [number, ...string[]] => [
  reply?.kind === 'listed' ? reply.total : -1,
  ...places(reply),
]

const several = ['/ E T', '/a E T', '/a/b E T', '/ab E T', '/ F T', '/a F U', '/ E U']

t.test('an id under one path is that of the path alone', async t => {
  const node = await Node.with(...several)
  t.strictSame(await node.find('E', ['/a']), ['/a E T'])
  t.strictSame(await node.find('E', ['/']), ['/ E T', '/ E U'])
})

t.test('/# is every path', async t => {
  const node = await Node.with(...several)
  t.strictSame(await node.find('E', ['/#']), ['/ E T', '/ E U', '/a E T', '/a/b E T', '/ab E T'])
})

t.test('/a/# is /a and all paths below, not those that merely begin like it', async t => {
  const node = await Node.with(...several)
  t.strictSame(await node.find('E', ['/a/#']), ['/a E T', '/a/b E T'])
})

t.test('several paths that overlap find an entity once', async t => {
  const node = await Node.with(...several)
  t.strictSame(await node.find('E', ['/a', '/a/#', '/ab']), ['/a E T', '/a/b E T', '/ab E T'])
})

t.test('a type leaves only the entity of that type', async t => {
  const node = await Node.with(...several)
  t.strictSame(await node.find('E', ['/#'], 'U'), ['/ E U'])
})

t.test('another tenant has none of it', async t => {
  const node = await Node.with(...several)
  const replies = node.ask({ ...find('E', ['/#']), tenant: '' })
  await node.rest()
  t.strictSame(places(replies[0]), [])
})

t.test('with many paths an id is found under each that has it', async t => {
  const many = Array.from({ length: 12 }, (_, k) => `/p${k} E${k % 3} T`)
  const node = await Node.with('/ E1 T', ...many)
  t.strictSame(await node.find('E1', ['/#']), ['/ E1 T', '/p1 E1 T', '/p10 E1 T', '/p4 E1 T', '/p7 E1 T'])
  t.strictSame(await node.find('E1', ['/p4/#']), ['/p4 E1 T'])
})

t.test('a find over known paths answers at once when nothing of it is staged', async t => {
  const node = await Node.with(...several)
  await node.find('E', ['/#'])
  t.equal(node.ask(find('E', ['/#'])).length, 1)
})

t.test('a find over paths waits for changes staged under one of them', async t => {
  const node = await Node.with(...several)
  await node.find('E', ['/#'])
  node.create('/a G T')
  const replies = node.ask(find('G', ['/#']))
  t.strictSame(replies, [])
  await node.rest()
  t.strictSame(places(replies[0]), ['/a G T'])
})

t.test('a find over paths waits for a removal in flight that takes the last entity of its path', async t => {
  const node = await Node.with('/a E T', '/b F T')
  await node.find('E', ['/#'])
  node.remove('/a E T')
  node.clock.tick()
  const replies = node.ask(find('E', ['/#']))
  t.strictSame(replies, [], 'what the removal does may yet be lost')
  await node.rest()
  t.strictSame(places(replies[0]), [])
})

t.test('a find by the id index waits for a removal in flight', async t => {
  const many = Array.from({ length: 12 }, (_, k) => `/p${k} E T`)
  const node = await Node.with(...many, '/p1 F T')
  await node.find('F', ['/#'])
  // A commit that ends when the test calls `land`.
  let land = () => {}
  const commit = node.store.commit.bind(node.store)
  node.store.commit = (batch, onDone) =>
    commit(batch, error => {
      land = () => onDone(error)
    })
  node.remove('/p1 F T')
  node.clock.tick()
  const replies = node.ask(find('F', ['/#']))
  await turnOfTheLoop()
  t.strictSame(replies, [], 'what the removal does may yet be lost')
  land()
  await node.rest()
  t.strictSame(places(replies[0]), [])
})

t.test('a list is in order of creation, over all paths and types', async t => {
  const node = await Node.with(...several)
  t.strictSame(await node.list(), [7, ...several])
})

t.test('offset and limit cut a page, and the total is that of all', async t => {
  const node = await Node.with(...several)
  t.strictSame(await node.list({ offset: 2, limit: 3 }), [7, ...several.slice(2, 5)])
  t.strictSame(await node.list({ offset: 6, limit: 3 }), [7, several[6]])
  t.strictSame(await node.list({ offset: 7, limit: 3 }), [7])
  t.strictSame(await node.list({ offset: 0, limit: 0 }), [7])
})

t.test('pages one after the other show every entity once, also beyond one read of the store', async t => {
  const all = Array.from({ length: 300 }, (_, k) => `/p${k % 3} E${k} T${k % 2}`)
  const node = await Node.with(...all)
  const shown: string[] = []
  for (let offset = 0; offset < 300; offset += 70)
    shown.push(...((await node.list({ offset, limit: 70 })).slice(1) as string[]))
  t.strictSame(shown, all)
})

t.test('a list of types merges them in order of creation', async t => {
  const node = await Node.with('/ A T', '/ B U', '/ C V', '/ D T', '/ E U')
  t.strictSame(await node.list({ selection: meaning({ types: ['T', 'U'] }) }), [4, '/ A T', '/ B U', '/ D T', '/ E U'])
  t.strictSame(await node.list({ selection: meaning({ types: ['none'] }) }), [0])
})

t.test('a list of paths merges them in order of creation', async t => {
  const node = await Node.with(...several)
  t.strictSame(await node.list({ paths: ['/ab', '/a/#'] }), [4, '/a E T', '/a/b E T', '/ab E T', '/a F U'])
})

t.test('a list of ids is in order of creation, for any order in the request', async t => {
  const node = await Node.with(...several)
  t.strictSame(await node.list({ selection: meaning({ ids: ['F', 'E', 'F'] }), paths: ['/a', '/'] }), [
    5,
    '/ E T',
    '/a E T',
    '/ F T',
    '/a F U',
    '/ E U',
  ])
  t.strictSame(await node.list({ selection: meaning({ ids: ['E'], types: ['T'] }), offset: 1, limit: 2 }), [
    4,
    '/a E T',
    '/a/b E T',
  ])
})

t.test('a list of ids goes through the id index when there are many paths', async t => {
  const many = Array.from({ length: 12 }, (_, k) => `/p${k} E${k % 3} T`)
  const node = await Node.with(...many, '/ E1 T')
  t.strictSame(await node.list({ selection: meaning({ ids: ['E1'] }) }), [
    5,
    '/p1 E1 T',
    '/p4 E1 T',
    '/p7 E1 T',
    '/p10 E1 T',
    '/ E1 T',
  ])
})

t.test('entities that were removed leave list and total', async t => {
  const node = await Node.with(...several)
  node.remove('/a/b E T')
  node.remove('/ F T')
  await node.rest()
  t.strictSame(await node.list(), [5, '/ E T', '/a E T', '/ab E T', '/a F U', '/ E U'])
})

t.test('one that was removed and created again is at the end', async t => {
  const node = await Node.with('/ A T', '/ B T')
  node.remove('/ A T')
  node.create('/ A T')
  await node.rest()
  t.strictSame(await node.list(), [2, '/ B T', '/ A T'])
})

t.test('a list waits for the commit in flight', async t => {
  const node = await Node.with('/ A T')
  node.create('/ B T')
  node.clock.tick()
  const replies = node.ask(list({}))
  t.strictSame(replies, [])
  await node.rest()
  t.strictSame(page(replies[0]), [2, '/ A T', '/ B T'])
})

t.test('an entity that is removed while a list is read is shown or not, and the others are', async t => {
  const all = Array.from({ length: 20 }, (_, k) => `/p${k % 2} E${k} T`)
  const node = await Node.with(...all)
  const replies = node.ask(list({}))
  node.remove('/p1 E9 T')
  await node.rest()
  t.strictSame(
    places(replies[0]).filter(place => place !== '/p1 E9 T'),
    all.filter(place => place !== '/p1 E9 T'),
  )
})

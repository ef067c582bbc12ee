// Names that come and go: tenants, service paths, types, attributes and ids that are no longer in use leave no memory
// behind. And many names: other work has its turn while they are read.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { systemClock } from '../../src/clock.js'
import type { SelectionSource } from '../../src/domain/queries/selection.js'
import { ShardMap } from '../../src/domain/scope.js'
import type { EntityTarget, ReadRequest, ShardReply, WriteRequest } from '../../src/messages/messages.js'
import type { Clock } from '../../src/ports.js'
import { viewedRangesMax } from '../../src/shard/read/lists.js'
import type { LocalShards } from '../../src/shard/shards.js'
import { localShards, queriesForTests } from '../support/local-shards.js'
import { MemoryStore } from '../support/memory-store.js'
import { selectionOf } from '../support/selections.js'

/** Number of names of each kind. */
const namesCount = 3_000
/**
 * Memory that so many names may leave: caches that have a limit of their own, and the runtime's own use. If nothing is
 * forgotten, it is 3 to 7 MB.
 */
const bytesMax = 4 * 1024 * 1024
const atATime = 200

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

function heapUsed(): number {
  for (let times = 0; times < 4; times++) collect()
  return process.memoryUsage().heapUsed
}

const shardMap = new ShardMap({ shards: 16, spread: 16 })

/** Numbers of names in memory. */
const kept = ({ parts: { actors, views, entities, attributes } }: LocalShards) => ({
  actors: actors.size,
  views: views.size,
  entities: entities.size,
  attributes: attributes.size,
})

const noCounts = { tenants: 0, pairs: 0, rows: 0 }

const ask = (shards: LocalShards, request: WriteRequest | ReadRequest): Promise<ShardReply> => {
  const { tenant, path, id } = 'target' in request ? request.target : { tenant: request.tenant, path: '/', id: '' }
  return new Promise(resolve => shards.ask(shardMap.shardOf(tenant, path, id), request, resolve))
}

const origin = { correlatorRoot: '' }

function create(target: Required<Omit<EntityTarget, 'limits'>>, name = 'x', type = 'Number'): WriteRequest {
  const { id, type: entityType } = target
  const attributes = new Map([[name, { type, value: 1, operator: undefined, metadata: undefined }]])
  return {
    kind: 'create',
    target,
    entity: { id, type: entityType as string, attributes },
    upsert: false,
    options: { overrideMetadata: false, forcedUpdate: false },
    origin,
  }
}

/** Makes an entity for the name of that number. */
type MakeEntity = (n: number) => WriteRequest & { readonly target: EntityTarget }

const at = (tenant: string, path: string, id: string, type: string): Required<Omit<EntityTarget, 'limits'>> => ({
  tenant,
  path,
  id,
  type,
})

const kinds: Readonly<Record<string, MakeEntity>> = {
  tenants: n => create(at(`tenant_number_${n}`, '/', 'E', 'T')),
  'service paths': n => create(at('t', `/some/path_number_${n}`, 'E', 'T')),
  types: n => create(at('t', '/', `E${n}`, `TypeNumber${n}`)),
  'attribute names': n => create(at('t', '/', `E${n}`, 'T'), `attribute_number_${n}`, `AttributeType${n}`),
  ids: n => create(at('t', '/', `urn:some:entity:number:${n}`, 'T')),
}

/** Creates an entity for each name, removes it, and removes it again in vain. */
async function comeAndGo(shards: LocalShards, make: MakeEntity, from: number, count: number): Promise<void> {
  for (let first = from; first < from + count; first += atATime) {
    const some = Array.from({ length: Math.min(atATime, from + count - first) }, (_, index) => make(first + index))
    await Promise.all(some.map(request => ask(shards, request)))
    await Promise.all(some.map(({ target }) => ask(shards, { kind: 'deleteEntity', target, origin })))
    await Promise.all(some.map(({ target }) => ask(shards, { kind: 'deleteEntity', target, origin })))
  }
}

/** Names that only reads have. */
async function askForMissing(shards: LocalShards, from: number, count: number): Promise<void> {
  for (let n = from; n < from + count; n++) {
    const [tenant, path] = [`unknown_tenant_${n}`, `/unknown/path_${n}`]
    await ask(shards, { kind: 'find', tenant, paths: [path], id: `unknown${n}`, type: undefined })
    await ask(shards, { kind: 'find', tenant, paths: ['/#'], id: `unknown${n}`, type: `Unknown${n}` })
    await ask(shards, { kind: 'types', tenant, paths: ['/#'], type: `Unknown${n}` })
    const selection = selectionOf({ selectors: [{ types: [`Unknown${n}`] }], q: `unknown${n}>1` })
    await ask(shards, { kind: 'list', tenant, paths: ['/#'], selection, order: [], offset: 0, limit: 20 })
  }
}

async function setting(): Promise<LocalShards> {
  const shards = await localShards(new MemoryStore(), shardMap, systemClock)
  return shards
}

/** Makes the commits with which removed names leave memory. */
async function settle(shards: LocalShards): Promise<void> {
  const last = create(at('last', '/', 'E', 'T'))
  for (let times = 0; times < 2; times++) {
    await ask(shards, last)
    await ask(shards, { kind: 'deleteEntity', target: last.target, origin } as WriteRequest)
  }
  await shards.drain()
}

for (const [kind, make] of Object.entries(kinds))
  t.test(`${kind} that come and go leave no memory behind`, async t => {
    const shards = await setting()
    await comeAndGo(shards, make, 0, 500)
    await settle(shards)
    const before = heapUsed()
    await comeAndGo(shards, make, 1000, namesCount)
    await settle(shards)
    const grown = heapUsed() - before
    t.comment(`${(grown / 1024).toFixed(0)} KB`)
    const { actors, views, entities, attributes } = kept(shards)
    t.strictSame({ actors, views }, { actors: 0, views: 0 })
    t.ok(
      Math.max(...Object.values(entities), ...Object.values(attributes)) <= 1,
      'what the last commit has taken away may be there',
    )
    t.ok(grown < bytesMax, `the heap has grown by ${grown}`)
  })

t.test('names that only reads have leave no memory behind', async t => {
  const shards = await setting()
  await askForMissing(shards, 0, 500)
  const before = heapUsed()
  await askForMissing(shards, 1000, namesCount)
  const grown = heapUsed() - before
  t.comment(`${(grown / 1024).toFixed(0)} KB`)
  t.strictSame(kept(shards), { actors: 0, views: 0, entities: noCounts, attributes: noCounts })
  t.ok(grown < bytesMax, `the heap has grown by ${grown}`)
})

/** A clock that advances five milliseconds with each look, and counts the turns of the event loop. */
function countingClock() {
  let nowMs = 0
  const turns = { count: 0 }
  const clock: Clock = {
    ...systemClock,
    monoMs: () => (nowMs += 5),
    endOfTick(run) {
      turns.count++
      systemClock.endOfTick(run)
    },
  }
  return { clock, turns }
}

t.test('lists over many paths and types are read bit by bit', async t => {
  const { clock, turns } = countingClock()
  const shards = await localShards(new MemoryStore(), shardMap, clock, {
    queries: { ...queriesForTests, scanDeadlineMs: 10_000_000 },
  })
  const count = 2 * viewedRangesMax
  await Promise.all(
    Array.from({ length: count }, (_, n) => ask(shards, create(at('t', `/p${n % 50}`, `E${n % 200}`, `T${n}`)))),
  )
  const page = { tenant: 't', paths: ['/#'], order: [], offset: 0, limit: 20 } as const
  const pattern = { typePattern: 'T[0-9]{1,4}' }
  const lists: readonly [SelectionSource['selectors'], string | undefined][] = [
    [[], undefined],
    [[], 'x==1'],
    [[pattern], undefined],
    [[pattern], 'x==1'],
    [[{ ids: Array.from({ length: 200 }, (_, n) => `E${n}`) }], undefined],
  ]
  for (const [selectors, q] of lists) {
    const before = turns.count
    const selection = selectionOf({ selectors, ...(q && { q }) })
    const reply = await ask(shards, { kind: 'list', ...page, selection })
    t.match(reply, { kind: 'listed', total: count })
    t.ok(turns.count - before > 10, `${turns.count - before} turns`)
  }
  for (const request of [
    { kind: 'types', tenant: 't', paths: ['/#'], type: undefined },
    { kind: 'find', tenant: 't', paths: ['/#'], id: 'E0', type: undefined },
  ] as const) {
    const before = turns.count
    await ask(shards, request)
    t.ok(turns.count > before, `${turns.count - before} turns`)
  }
  t.equal(kept(shards).views, 0, 'no view is built for each of so many')
})

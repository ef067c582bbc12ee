// Scans in steps: a scan of all entities finds the same as a plain program, and ends at its limits. A sweep returns
// every entity of some paths, in the shards that count.

import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import t from 'tap'
import { refusals } from '../../../src/domain/refusal.js'
import { anyCoversPath, ShardMap } from '../../../src/domain/scope.js'
import { encodedId } from '../../../src/encoded-entity.js'
import type { ListRequest } from '../../../src/messages/messages.js'
import type { CountedRange } from '../../../src/shard/read/entity-place.js'
import { StepwiseScanner, sweep } from '../../../src/shard/read/scans.js'
import { named } from '../../../src/shard/read/views/column.js'
import { cellsOf, Table } from '../../../src/shard/read/views/table.js'
import { entityOf, fill, type Placed, pageOf, plainPage } from '../../support/entities.js'
import { FakeClock } from '../../support/fake-clock.js'
import { listRequests, placedEntities, rangesOf } from '../../support/list-requests.js'
import { MemoryStore } from '../../support/memory-store.js'
import fc from '../../support/properties.js'
import { selectionOf } from '../../support/selections.js'
import { statementOf } from '../../support/statements.js'
import { contentOf, lineOf } from '../../support/tables.js'

/** One map where the paths of a tenant share all shards, and one where each path has a few of many. */
const shardMaps = [new ShardMap({ shards: 4, spread: 4 }), new ShardMap({ shards: 32, spread: 2 })] as const
const [shardMap] = shardMaps
const deadlineMs = 1000

async function setting(all: readonly Placed[], map = shardMap) {
  const store = new MemoryStore()
  await fill(store, map, 't', all)
  const clock = new FakeClock()
  const scanner = new StepwiseScanner(store, map, clock)
  /** Runs steps until the scan ends. */
  const run = async <T>(scan: Promise<T>): Promise<T> => {
    let isDone = false
    const noted = scan.finally(() => {
      isDone = true
    })
    noted.catch(() => {}) // the failure is reported below
    while (!isDone) {
      clock.tick()
      await turnOfTheLoop()
    }
    return noted
  }
  return { store, clock, scanner, run }
}

/** The existing ranges of a list: a scan gets only those. */
const known = (request: ListRequest, all: readonly Placed[], count: number): CountedRange[] =>
  rangesOf(all, count).filter(({ path }) => anyCoversPath(request.paths, path))

/** The stated number of entities of a range: a small range is read by the index, a large one by a sweep. */
const counts = fc.constantFrom(1, 10_000)

t.test('a list equals that of a plain program that reads every entity, sorts and cuts', async t => {
  let found = 0
  await fc.assert(
    fc.asyncProperty(
      placedEntities,
      fc.array(listRequests, { minLength: 5, maxLength: 5 }),
      fc.constantFrom(...shardMaps),
      counts,
      async (all, requests, map, count) => {
        const { scanner, run } = await setting(all, map)
        for (const request of requests) {
          const reply = await run(scanner.list({ request, ranges: known(request, all, count), deadlineMs }))
          const expected = plainPage(request, all)
          if (JSON.stringify(pageOf(reply)) !== JSON.stringify(expected)) return false
          found += expected.length - 1
        }
        return true
      },
    ),
    { numRuns: 120 },
  )
  t.ok(found > 50, `${found} found`)
})

t.test('tables are built of every entity of their type and path', async () => {
  const layout = { columns: [named(statementOf('a').path)], places: true }
  const parts = [
    { path: '/', type: 'A', layout },
    { path: '/a', type: 'A', layout },
    { path: '/', type: 'none', layout },
  ]
  await fc.assert(
    fc.asyncProperty(placedEntities, fc.constantFrom(...shardMaps), counts, async (all, map, count) => {
      const { scanner, run } = await setting(all, map)
      const scan = { tenant: 't', parts: parts.map(part => ({ ...part, count })) }
      const tables = await run(scanner.build(scan))
      return parts.every(({ path, type }, at) => {
        const entities = all.filter(one => one.path === path && one.entity.type === type)
        const expected = entities.map(({ entity }) =>
          lineOf(
            entity.created,
            map.shardOf('t', path, entity.id),
            cellsOf(layout, entity, path),
            text => text.length <= 64,
          ),
        )
        return contentOf(Table.of(tables[at]!)).join('\n') === expected.join('\n')
      })
    }),
    { numRuns: 100 },
  )
})

t.test('a first page is the first places behind a position', async t => {
  const all = Array.from({ length: 300 }, (_, n) => ({ path: '/', entity: entityOf(`E${n}`, 'T', 1000 + n, {}) }))
  const { scanner, run } = await setting(all)
  const range = { path: '/', type: 'T' }
  const ids = async (after: number | undefined, count: number): Promise<string[]> => {
    const position = after === undefined ? undefined : { created: after, shard: 9 }
    const places = await run(scanner.head({ tenant: 't', range, after: position, count }))
    return places.map(({ id }) => id)
  }
  t.strictSame(await ids(undefined, 2), ['E0', 'E1'])
  t.strictSame(await ids(1002, 2), ['E3', 'E4'])
  t.equal((await ids(1099, 200)).length, 200)
  t.equal((await ids(1099, 201)).length, 200)
  t.strictSame(await ids(1299, 5), [])
})

const many = Array.from({ length: 1000 }, (_, n) => ({ path: '/', entity: entityOf(`E${n}`, 'T', 1000 + n, { n }) }))
const whole: readonly CountedRange[] = [{ path: '/', type: 'T', count: 10_000 }]
const everything: ListRequest = {
  kind: 'list',
  tenant: 't',
  paths: ['/'],
  selection: selectionOf({ q: 'n>=0' }),
  order: [],
  offset: 0,
  limit: 1000,
}

t.test('a list that takes longer than its deadline ends with a refusal', async t => {
  const { clock, scanner, run } = await setting(many)
  const late = scanner.list({ request: everything, ranges: whole, deadlineMs })
  clock.advance(deadlineMs + 1)
  t.strictSame(await run(late), { kind: 'refused', refusal: refusals.scanTooLong(deadlineMs) })
  const inTime = scanner.list({ request: everything, ranges: whole, deadlineMs })
  clock.advance(deadlineMs)
  t.match(await run(inTime), { kind: 'listed', total: 1000 })
})

t.test('the time of a list begins with the list', async t => {
  const { clock, scanner, run } = await setting(many)
  clock.advance(10 * deadlineMs)
  t.match(await run(scanner.list({ request: everything, ranges: whole, deadlineMs })), { kind: 'listed' })
})

t.test('a scan lets the event loop have its turn', async t => {
  const { clock, scanner } = await setting(many)
  let isDone = false
  const list = scanner.list({ request: everything, ranges: whole, deadlineMs }).finally(() => {
    isDone = true
  })
  let turns = 0
  for (; !isDone; turns++) {
    clock.tick()
    await turnOfTheLoop()
  }
  await list
  t.ok(turns > 1000 / 128, `${turns} turns`)
})

t.test('close ends running scans, and waits for them', async t => {
  const { clock, scanner } = await setting(many)
  const list = scanner.list({ request: everything, ranges: whole, deadlineMs })
  const build = scanner.build({
    tenant: 't',
    parts: whole.map(range => ({ ...range, layout: { columns: [], places: false } })),
  })
  const ended: string[] = []
  for (const scan of [list, build]) scan.catch((error: Error) => ended.push(error.message))
  await turnOfTheLoop() // both have begun
  const closing = scanner.close().then(() => ended.push('closed'))
  await turnOfTheLoop()
  t.strictSame(ended, [])
  clock.tick()
  await closing
  t.strictSame(ended.toSorted(), ['closed', 'the node is stopping', 'the node is stopping'])
})

t.test('close ends at once when nothing runs', async t => {
  const { scanner } = await setting([])
  await t.resolves(scanner.close())
})

t.test('a store that cannot be read fails the scan', async t => {
  const { scanner, run, store } = await setting(many)
  store.cursor = () => ({ next: () => Promise.reject(new Error('unreadable')), close: async () => {} })
  await t.rejects(run(scanner.list({ request: everything, ranges: whole, deadlineMs })), { message: 'unreadable' })
})

const sweptMap = new ShardMap({ shards: 8, spread: 4 })
const paths = ['/', '/a', '/b'] as const

const sweptEntities = paths.flatMap(path =>
  Array.from({ length: 30 }, (_, n) => ({ path, entity: entityOf(`${path}${n}`, 'T', 1 + n, {}) })),
)

async function swept(wanted: readonly string[], owned?: Uint8Array): Promise<string[]> {
  const store = new MemoryStore()
  await fill(store, sweptMap, 't', sweptEntities)
  const found: string[] = []
  const take = ({ encoded }: { readonly encoded: Buffer }): boolean => found.push(encodedId(encoded)) > 0
  await sweep(store, sweptMap, 't', wanted, async () => {}, take, owned)
  return found.sort()
}

const idsOf = (wanted: readonly string[], counts: (shard: number) => boolean): string[] =>
  sweptEntities
    .filter(({ path, entity }) => wanted.includes(path) && counts(sweptMap.shardOf('t', path, entity.id)))
    .map(({ entity }) => entity.id)
    .sort()

// Few paths are read path by path, many shard by shard.
for (const wanted of [['/a'], ['/'], paths])
  t.test(`a sweep of ${wanted.join(' ')} returns all entities, or those in own shards`, async t => {
    t.strictSame(
      await swept(wanted),
      idsOf(wanted, () => true),
    )
    t.strictSame(await swept(wanted, new Uint8Array(8)), [])
    t.strictSame(
      await swept(wanted, Uint8Array.of(1, 0, 0, 1, 0, 1, 1, 0)),
      idsOf(wanted, shard => [0, 3, 5, 6].includes(shard)),
    )
  })

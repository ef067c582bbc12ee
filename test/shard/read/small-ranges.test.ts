// The first places of many small ranges, read in one pass: they equal those of ranges that are read one by one, and the
// number of cursors does not grow with the ranges.

import t from 'tap'
import { systemClock } from '../../../src/clock.js'
import { ShardMap } from '../../../src/domain/scope.js'
import type { CountedRange, EntityPlace } from '../../../src/shard/read/entity-place.js'
import { type FirstPageSource, Places, placesOfPassMax, readPlaces } from '../../../src/shard/read/places.js'
import { firstOfSmallRanges } from '../../../src/shard/read/small-ranges.js'
import { entityOf, fill, type Placed } from '../../support/entities.js'
import { MemoryStore } from '../../support/memory-store.js'
import fc from '../../support/properties.js'

const shardMap = new ShardMap({ shards: 8, spread: 8 })
const clock = systemClock
/** Index rows that the pass reads at a time. */
const rowsPerRead = 512

class CountingStore extends MemoryStore {
  opened = 0

  override cursor(range: Parameters<MemoryStore['cursor']>[0]): ReturnType<MemoryStore['cursor']> {
    this.opened++
    return super.cursor(range)
  }
}

async function storeOf(all: readonly Placed[]): Promise<CountingStore> {
  const store = new CountingStore()
  await fill(store, shardMap, 't', all)
  return store
}

/** First pages that are read from the store whenever they are wanted. */
const unkept = (store: MemoryStore, pagesMax: number): FirstPageSource => ({
  pagesMax,
  head: async (tenant, range) => ({
    places: await readPlaces(store, { tenant, range, after: undefined, count: Number.MAX_SAFE_INTEGER }),
    rest: undefined,
  }),
})

/** `count` entities in a range, of which each is as old as it is numbered. */
const entities = (path: string, type: string, count: number, from: number): Placed[] =>
  Array.from({ length: count }, (_, n) => ({ path, entity: entityOf(`E${from + n}`, type, from + n, {}) }))

const rangesOf = (all: readonly Placed[]): CountedRange[] => {
  const counts = new Map<string, CountedRange>()
  for (const { path, entity } of all) {
    const name = `${path} ${entity.type}`
    counts.set(name, { path, type: entity.type, count: (counts.get(name)?.count ?? 0) + 1 })
  }
  return [...counts.values()]
}

const idsOf = (places: readonly EntityPlace[]): string[] => places.map(({ id }) => id)

const placed = fc.record({
  path: fc.constantFrom('/', '/a', '/a/b', '/a-b', '/b', '/z'),
  type: fc.constantFrom('A', 'B', 'Ä'),
  created: fc.nat(1000),
})

t.test('a pass and cursors of single ranges find the same places, whatever is wanted', async () => {
  const wanted = fc.tuple(fc.nat(30), fc.nat(40), fc.array(fc.boolean(), { minLength: 18, maxLength: 18 }))
  await fc.assert(
    fc.asyncProperty(fc.array(placed, { maxLength: 120 }), wanted, async (all, [offset, limit, chosen]) => {
      const stock = all.map(({ path, type, created }, n) => ({
        path,
        entity: entityOf(`E${n}`, type, 1_000 * created + n, {}),
      }))
      const store = await storeOf(stock)
      const ranges = rangesOf(stock).filter((_, n) => chosen[n])
      const pages: string[] = []
      for (const pagesMax of [0, 3, ranges.length]) {
        const places = new Places({ store, firstPages: unkept(store, pagesMax), clock }, 't', ranges, offset + limit)
        await places.skip(offset)
        pages.push(JSON.stringify(await places.next(limit)))
        await places.close()
      }
      return pages.every(page => page === pages[2])
    }),
    { numRuns: 200 },
  )
})

t.test('a pass opens one cursor, and one more for each gap of a portion', async t => {
  const many = Array.from({ length: 3_000 }, (_, n) => entities(`/p${n}`, 'T', 1, 10_000 - n)).flat()
  const store = await storeOf(many)
  const found = await firstOfSmallRanges(store, clock, { tenant: 't', ranges: rangesOf(many), placesMax: 3 })
  t.strictSame([idsOf(found), store.opened], [['E7001', 'E7002', 'E7003'], 1])

  const gap = entities('/b', 'U', 3 * rowsPerRead, 100)
  const [first, last] = [entities('/a', 'T', 2, 1), entities('/c', 'T', 2, 3)]
  const other = await storeOf([...first, ...gap, ...last])
  let rows = 0
  const { cursor } = other
  other.cursor = range => {
    const opened = cursor.call(other, range)
    const { next } = opened
    opened.next = async rowsMax => {
      const read = await next.call(opened, rowsMax)
      rows += read.length
      return read
    }
    return opened
  }
  const ranges = rangesOf([...first, ...last])
  t.strictSame(idsOf(await firstOfSmallRanges(other, clock, { tenant: 't', ranges, placesMax: 9 })), [
    'E1',
    'E2',
    'E3',
    'E4',
  ])
  t.strictSame([other.opened, rows], [2, rowsPerRead + 2], 'the rest of the gap is not read')
})

t.test('a pass ends behind its last range', async t => {
  const first = entities('/a', 'T', 1, 1)
  const store = await storeOf([...first, ...entities('/b', 'U', 5 * rowsPerRead, 2)])
  const found = await firstOfSmallRanges(store, clock, { tenant: 't', ranges: rangesOf(first), placesMax: 5 })
  t.strictSame([idsOf(found), store.opened], [['E1'], 1])
})

t.test('places of other owners are left out', async t => {
  const all = entities('/a', 'T', 40, 1)
  const store = await storeOf(all)
  const owned = new Uint8Array(8).fill(1, 0, 4)
  const found = await firstOfSmallRanges(store, clock, { tenant: 't', ranges: rangesOf(all), placesMax: 99 }, owned)
  const ours = all.filter(({ path, entity }) => shardMap.shardOf('t', path, entity.id) < 4)
  t.ok(ours.length > 5 && ours.length < 35)
  t.strictSame(
    idsOf(found),
    ours.map(({ entity }) => entity.id),
  )
})

t.test('of many places a pass keeps the earliest, in whatever order they come', async t => {
  const count = 3_000
  // 7919 and 3001 are prime, so these are the numbers from 1 to 3000 in another order.
  const all = Array.from({ length: count }, (_, n) => entities(`/p${n % 150}`, 'T', 1, (7919 * (n + 1)) % 3001)).flat()
  const store = await storeOf(all)
  const places = new Places({ store, firstPages: unkept(store, 100), clock }, 't', rangesOf(all), 60)
  await places.skip(30)
  const wanted = Array.from({ length: 30 }, (_, n) => `E${n + 31}`)
  t.strictSame([idsOf(await places.next(30)), store.opened], [wanted, 1])
})

t.test('a list that may need more places than a pass may keep reads each range', async t => {
  const all = Array.from({ length: 1_600 }, (_, n) => entities(`/p${n}`, 'T', 1, n + 1)).flat()
  const store = await storeOf(all)
  const ranges = rangesOf(all).map(range => ({ ...range, count: 64 }))
  t.ok(64 * ranges.length > placesOfPassMax)
  const cursorsFor = async (placesMax: number): Promise<number> => {
    store.opened = 0
    const places = new Places({ store, firstPages: unkept(store, 100), clock }, 't', ranges, placesMax)
    t.strictSame(idsOf(await places.next(2)), ['E1', 'E2'])
    await places.close()
    return store.opened
  }
  t.equal(await cursorsFor(placesOfPassMax), 1)
  t.ok((await cursorsFor(placesOfPassMax + 1)) >= ranges.length)
})

// Pages in order of creation, from the cached first pages and from the store behind them, against the type index.

import assert from 'node:assert/strict'
import t from 'tap'
import { encodeEntity } from '../../../src/encoded-entity.js'
import type { Cursor, Range, Row } from '../../../src/ports.js'
import { parseTypeKey, typeKey, typeRange } from '../../../src/shard/layout.js'
import type { CountedRange, EntityPlace } from '../../../src/shard/read/entity-place.js'
import { FirstPages } from '../../../src/shard/read/first-pages.js'
import { type FirstPageScan, Places, readPlaces } from '../../../src/shard/read/places.js'
import { Changes, tenant, type Where } from '../../support/changes.js'
import { entityOf } from '../../support/entities.js'
import fc from '../../support/properties.js'

/** Number of places read at a time, and the number left at which a first page is continued. */
const headPlaces = 64
const headPlacesMin = 32
const firstPagesMax = 2000
/** If more entities than this may have gone, a scan reads a first page. */
const goneMax = 2000

/** First pages over a store. The test sees each read, and may delay it. */
class Reader {
  readonly changes = new Changes()
  /** Ranges of the reads of the type index. */
  readonly asked: Range[] = []
  readonly scans: FirstPageScan[] = []
  readonly firstPages: FirstPages
  private isHeld = false
  private held: (() => void)[] = []
  private readonly open: (range: Range) => Cursor

  constructor() {
    const { store, commit } = this.changes
    this.open = store.cursor.bind(store)
    store.cursor = range => {
      this.asked.push(range)
      return this.guarded(this.open(range))
    }
    const head = (scan: FirstPageScan): Promise<EntityPlace[]> => {
      this.scans.push(scan)
      return readPlaces(store, scan)
    }
    this.firstPages = new FirstPages(store, { head }, commit)
    commit.addFollower(this.firstPages)
  }

  /** While held, reads wait with the rows that they have seen. */
  hold(isHeld: boolean): void {
    this.isHeld = isHeld
    if (isHeld) return
    for (const go of this.held.splice(0)) go()
  }

  private guarded(cursor: Cursor): Cursor {
    return {
      next: async (rowsMax: number): Promise<Row[]> => {
        const rows = await cursor.next(rowsMax)
        if (this.isHeld) await new Promise<void>(resolve => this.held.push(resolve))
        return rows
      },
      close: () => cursor.close(),
    }
  }

  /** The places in the type index, in order. */
  async index({ path = '/', type = 'T' }: Where = {}): Promise<EntityPlace[]> {
    const cursor = this.open(typeRange(tenant, path, type))
    const rows = await cursor.next(1_000_000)
    return rows.map(({ key, value }) => {
      const { created, shard } = parseTypeKey(key)
      return { created, shard, path, type, id: value.toString() }
    })
  }

  /** The page of a list. */
  async page(ranges: readonly CountedRange[], offset: number, limit: number): Promise<EntityPlace[]> {
    const { store, clock } = this.changes
    const places = new Places({ store, firstPages: this.firstPages, clock }, tenant, ranges, offset + limit)
    await places.skip(offset)
    const page = await places.next(limit)
    await places.close()
    return page
  }

  /** Runs steps until the work is done. */
  async run<T>(work: Promise<T>): Promise<T> {
    let isDone = false
    const noted = work.finally(() => {
      isDone = true
    })
    noted.catch(() => {}) // the failure is reported below
    for (let steps = 0; !isDone; steps++) {
      assert(steps < 10_000, 'it does not end')
      await this.changes.step()
    }
    return noted
  }

  /** Adds entities, and makes them durable. */
  async add(count: number, where: Where = {}): Promise<void> {
    const from = this.added
    this.added += count
    for (let n = from; n < this.added; n++) this.changes.put(`E${n}`, {}, where)
    await this.changes.settle()
  }
  private added = 0

  async remove(places: readonly EntityPlace[]): Promise<void> {
    for (const { id, path, type } of places) this.changes.remove(id, { path, type })
    await this.changes.settle()
  }
}

const rangeOf = (count: number, { path = '/', type = 'T' }: Where = {}): CountedRange => ({ path, type, count })
const ids = (places: readonly EntityPlace[]): string =>
  places.map(({ path, type, id }) => `${path} ${type} ${id}`).join()
const byCreation = (a: EntityPlace, b: EntityPlace): number => a.created - b.created

// Random changes and pages

const wheres: readonly Where[] = [{}, { type: 'U' }, { path: '/a' }]
const where = fc.constantFrom(...wheres)
/** The places that go: the first, the last, or some between. */
const gone = fc.record({ from: fc.constantFrom(0, 0, 0, 0.5, 0.9), share: fc.constantFrom(0.05, 0.3, 0.7, 1) })
const amounts = fc.constantFrom(1, 5, 40, 130)
const page = fc.record({
  kind: fc.constant('page' as const),
  where: fc.subarray([...wheres], { minLength: 1 }),
  offset: fc.constantFrom(0, 0, 3, 60, 150),
  limit: fc.constantFrom(1, 20, 100),
})
const add = fc.record({ kind: fc.constant('add' as const), where, amount: amounts })
const remove = fc.record({ kind: fc.constant('remove' as const), where, gone })

/** The places that go. */
function chosen(places: readonly EntityPlace[], { from, share }: { from: number; share: number }): EntityPlace[] {
  const first = Math.floor(places.length * from)
  return places.slice(first, first + Math.ceil(places.length * share))
}

t.test('a page equals the type index, after any additions and removals', async t => {
  let places = 0
  await fc.assert(
    fc.asyncProperty(fc.array(fc.oneof(page, add, remove), { maxLength: 25, size: 'max' }), async steps => {
      const reader = new Reader()
      for (const step of steps) {
        if (step.kind === 'add') await reader.add(step.amount, step.where)
        else if (step.kind === 'remove') await reader.remove(chosen(await reader.index(step.where), step.gone))
        else {
          const { offset, limit } = step
          const indexes = await Promise.all(step.where.map(one => reader.index(one)))
          const ranges = indexes.map((index, at) => rangeOf(index.length, step.where[at]))
          const expected = indexes
            .flat()
            .sort(byCreation)
            .slice(offset, offset + limit)
          const found = await reader.run(reader.page(ranges, offset, limit))
          if (ids(found) !== ids(expected)) return false
          places += found.length
        }
      }
      return true
    }),
    { numRuns: 120 },
  )
  t.ok(places > 200, `${places} places`)
})

t.test('a first page that is read while entities come and go knows of them', async () => {
  let reads = 0
  const held = fc.constantFrom(
    { kind: 'hold' as const },
    { kind: 'release' as const },
    { kind: 'land' as const },
    { kind: 'fly' as const },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(fc.oneof(page, add, remove, held), { maxLength: 25, size: 'max' }), async steps => {
      const reader = new Reader()
      const { changes } = reader
      await reader.add(100)
      const pages: Promise<unknown>[] = []
      for (const step of steps) {
        if (step.kind === 'hold' || step.kind === 'release') reader.hold(step.kind === 'hold')
        else if (step.kind === 'land' || step.kind === 'fly') changes.hold(step.kind === 'fly')
        else if (step.kind === 'add')
          for (let n = 0; n < step.amount; n++) changes.put(`new ${reads++} ${n}`, {}, step.where)
        else if (step.kind === 'remove')
          for (const { id, path, type } of chosen(await reader.index(step.where), step.gone))
            changes.remove(id, { path, type })
        else
          pages.push(
            reader.page(
              step.where.map(one => rangeOf(1, one)),
              0,
              step.limit,
            ),
          )
        await changes.step()
      }
      reader.hold(false)
      await changes.settle()
      await Promise.all(pages)
      for (const one of wheres) {
        const index = await reader.index(one)
        const found = await reader.run(reader.page([rangeOf(index.length, one)], 0, 200))
        if (ids(found) !== ids(index.slice(0, 200))) return false
      }
      return true
    }),
    { numRuns: 150 },
  )
})

// Reads and their callers

t.test('the first page of a type is read once, and then follows', async t => {
  const reader = new Reader()
  await reader.add(10)
  for (let times = 0; times < 3; times++) t.equal((await reader.page([rangeOf(10)], 0, 20)).length, 10)
  t.equal(reader.asked.length, 1)
  await reader.add(30)
  await reader.remove((await reader.index()).slice(5, 8))
  t.equal(ids(await reader.page([rangeOf(37)], 0, 100)), ids(await reader.index()))
  t.equal(reader.asked.length, 1)
})

t.test('an older entity that comes after a newer one has its place between the others, once', async t => {
  for (const stored of [10, 100]) {
    const reader = new Reader()
    const { firstPages } = reader
    await reader.add(stored)
    const range = rangeOf(stored)
    const { places } = await reader.run(firstPages.head(tenant, range))
    const { created, shard, ...rest } = places[4]!
    const late = { created: created + 0.5, shard, ...rest, id: 'late' }
    const encoded = encodeEntity({ ...entityOf('late', 'T', late.created, {}) }, '')
    const record = { ...late, tenant, before: undefined, attributes: [], encoded }
    for (let times = 0; times < 2; times++) firstPages.follow(record)
    const { places: now } = await firstPages.head(tenant, range)
    t.equal(ids(now), ids([...places.slice(0, 5), late, ...places.slice(5)]))
  }
})

t.test('several callers at once wait for one read', async t => {
  const reader = new Reader()
  await reader.add(100)
  const pages = await Promise.all([0, 1, 2].map(() => reader.page([rangeOf(100)], 0, 20)))
  t.strictSame(new Set(pages.map(ids)).size, 1)
  t.equal(reader.asked.length, 1)
})

t.test('places that were given do not change with the first page', async t => {
  const reader = new Reader()
  await reader.add(40)
  await reader.firstPages.head(tenant, rangeOf(40))
  const { places } = await reader.firstPages.head(tenant, rangeOf(40))
  const before = ids(places)
  await reader.remove(places.slice(0, 5))
  await reader.add(5)
  t.equal(ids(places), before)
})

t.test('when all read entities have gone meanwhile, the page has those behind them', async t => {
  const reader = new Reader()
  await reader.add(200)
  const all = await reader.index()
  reader.hold(true)
  const page = reader.page([rangeOf(200)], 0, 20)
  await reader.remove(all.slice(0, 100))
  reader.hold(false)
  t.equal(ids(await reader.run(page)), ids(all.slice(100, 120)))
})

t.test('a first page that grows too long is cut at its end', async t => {
  const reader = new Reader()
  await reader.add(10)
  await reader.page([rangeOf(10)], 0, 1)
  for (let times = 0; times < 5; times++) {
    await reader.add(40)
    const head = await reader.firstPages.head(tenant, rangeOf(210))
    t.ok(head.places.length < 2 * headPlaces, `${head.places.length} places`)
    const index = await reader.index()
    t.equal(ids(head.places), ids(index.slice(0, head.places.length)))
    t.equal(head.rest === undefined, head.places.length === index.length)
  }
  t.equal(reader.asked.length, 1)
  t.equal(ids(await reader.run(reader.page([rangeOf(210)], 0, 300))), ids(await reader.index()))
})

t.test('behind entities that have gone, no read begins before the last place that was known', async t => {
  const reader = new Reader()
  await reader.add(300)
  const all = await reader.index()
  await reader.page([rangeOf(300)], 0, 20)
  let mark = headPlaces - 1
  for (let from = 0; from < 280; from += 10) {
    await reader.remove(all.slice(from, from + 10))
    reader.asked.length = 0
    t.equal(ids(await reader.page([rangeOf(290 - from)], 0, 20)), ids(all.slice(from + 10, from + 30)))
    const { created, shard } = all[mark]!
    const markKey = typeKey(tenant, '/', 'T', created, shard)
    for (const { gte } of reader.asked) t.ok(gte.compare(markKey) > 0, `after ${from + 10} have gone`)
    if (reader.asked.length > 0) mark = Math.min(mark + headPlaces, all.length - 1)
  }
  t.equal(mark, all.length - 1)
})

t.test('a first page is read on when it runs short, not before', async t => {
  const reader = new Reader()
  await reader.add(200)
  const all = await reader.index()
  await reader.page([rangeOf(200)], 0, 20)
  reader.asked.length = 0
  await reader.remove(all.slice(0, headPlaces - headPlacesMin))
  await reader.page([rangeOf(168)], 0, 20)
  t.equal(reader.asked.length, 0)
  await reader.remove(all.slice(headPlaces - headPlacesMin, headPlaces - headPlacesMin + 1))
  await reader.page([rangeOf(167)], 0, 20)
  t.equal(reader.asked.length, 1)
  await reader.page([rangeOf(167)], 0, 20)
  t.equal(reader.asked.length, 1)
})

t.test('a scan reads the first page of many unknown entities, and reads on where many have gone', async t => {
  const reader = new Reader()
  await reader.add(goneMax + 200)
  const all = await reader.index()
  const range = rangeOf(all.length)
  t.equal(ids(await reader.page([range], 0, 20)), ids(all.slice(0, 20)))
  t.match(reader.scans, [{ tenant, range: { path: '/', type: 'T' }, after: undefined, count: headPlaces }])
  await reader.remove(all.slice(0, 40))
  await reader.page([range], 0, 20)
  t.equal(reader.scans.length, 1, 'few have gone')
  await reader.remove(all.slice(40, goneMax + 41))
  t.equal(ids(await reader.page([range], 0, 20)), ids(all.slice(goneMax + 41, goneMax + 61)))
  t.equal(reader.scans.length, 2)
  const { created, shard } = all[2 * headPlaces - 1]!
  t.strictSame(reader.scans[1]!.after, { created, shard })
})

t.test('a failed read is reported, and the next one succeeds', async t => {
  const reader = new Reader()
  await reader.add(100)
  const { store } = reader.changes
  const { cursor } = store
  store.cursor = () => ({ next: () => Promise.reject(new Error('unreadable')), close: async () => {} })
  await t.rejects(reader.page([rangeOf(100)], 0, 20), { message: 'unreadable' })
  store.cursor = cursor
  t.equal(ids(await reader.page([rangeOf(100)], 0, 20)), ids((await reader.index()).slice(0, 20)))
})

t.test('of more first pages than are kept the one used least recently goes', async t => {
  const reader = new Reader()
  const ranges = Array.from({ length: firstPagesMax }, (_, n) => rangeOf(0, { type: `T${n}` }))
  for (const range of ranges) await reader.firstPages.head(tenant, range)
  await reader.firstPages.head(tenant, ranges[0]!)
  await reader.firstPages.head(tenant, rangeOf(0, { type: 'one more' }))
  reader.asked.length = 0
  await reader.firstPages.head(tenant, ranges[0]!)
  t.equal(reader.asked.length, 0)
  await reader.firstPages.head(tenant, ranges[1]!)
  t.equal(reader.asked.length, 1)
})

t.test('a first page that went and is read again while changes are staged has nothing that is gone', async t => {
  const reader = new Reader()
  const { changes } = reader
  await reader.add(10)
  await reader.firstPages.head(tenant, rangeOf(10))
  reader.hold(true)
  const others = Array.from({ length: firstPagesMax }, (_, n) =>
    reader.firstPages.head(tenant, rangeOf(0, { type: `T${n}` })),
  )
  await changes.step()
  changes.put('short-lived')
  reader.hold(false)
  await Promise.all(others) // they take the place of the first page
  changes.remove('short-lived')
  const { places } = await reader.run(reader.firstPages.head(tenant, rangeOf(10)))
  t.equal(ids(places), ids(await reader.index()))
})

t.test('a deep page lets the event loop have its turn', async t => {
  const reader = new Reader()
  await reader.add(1000)
  const page = reader.page([rangeOf(1000)], 900, 10)
  let turns = 0
  const { clock } = reader.changes
  const { endOfTick } = clock
  clock.endOfTick = run => {
    turns++
    endOfTick.call(clock, run)
  }
  await reader.run(page)
  t.ok(turns >= 6, `${turns} turns`)
})

// A table against a plain map, through all changes of its rows.

import t from 'tap'
import type { Geometry } from '../../../../src/domain/places/location.js'
import type { Operand } from '../../../../src/domain/queries/query.js'
import { named } from '../../../../src/shard/read/views/column.js'
import { bytesFor, type Cells, type Layout, Table } from '../../../../src/shard/read/views/table.js'
import fc from '../../../support/properties.js'
import { statementOf } from '../../../support/statements.js'
import { contentOf, lineOf } from '../../../support/tables.js'
import { wkt } from '../../../support/wkt.js'

const layout: Layout = { columns: [named(statementOf('a').path)], places: true }
const shards = 4

/** The cells of an entity: some of every kind, by a number. */
const cellsOf = (n: number): Cells => ({
  targets: [targets[n % targets.length]],
  geometry: geometries[n % geometries.length],
})
const targets: readonly Operand[] = [1, -2.5, 'short', 'x'.repeat(100), null, true, false, undefined, ['list'], 7]
const geometries: readonly (Geometry | undefined)[] = [
  { type: 'Point', coordinates: [1, 2] },
  undefined,
  wkt('LINESTRING (0 0, 1 1)'),
]

const isKept = (text: string): boolean => text === 'short'

interface Known {
  readonly created: number
  readonly shard: number
  readonly cells: Cells
}

/** A table, and its expected contents. */
class Pair {
  table = new Table(layout)
  readonly model = new Map<number, Known>()
  private now = 100
  /** The row of each entity as long as rows do not move. */
  private rows = new Map<number, number>()
  private moves = 0

  /** Adds entities, one stamp after the other, in any shard. */
  add(count: number, seed: number): void {
    for (let n = seed; n < seed + count; n++) this.put(this.newKnown(n))
  }

  /** Adds the entities of a build in any order, and then sorts them. */
  append(count: number, seed: number): void {
    const all = Array.from({ length: count }, (_, n) => this.newKnown(n + seed))
    for (const known of all.toSorted((a, b) => ((a.created * 7919) % 101) - ((b.created * 7919) % 101))) {
      this.model.set(known.created, known)
      this.table.append(known.created, known.shard, known.cells)
    }
    this.table.sort()
  }

  /** Changes some of the entities. */
  change(share: number, seed: number): void {
    for (const known of this.some(share, seed)) this.put({ ...known, cells: cellsOf(known.created + seed) })
  }

  /** Removes some entities, and every second of them twice. */
  remove(share: number, seed: number): void {
    for (const [at, known] of this.some(share, seed).entries()) {
      for (let times = 0; times < 1 + (at % 2); times++) this.table.remove(known.created, known.shard)
      this.model.delete(known.created)
    }
  }

  /** Removes some entities and adds them again at once, as when a build gets changes that it has already seen. */
  revive(share: number, seed: number): void {
    for (const known of this.some(share, seed)) {
      const { moves } = this.table
      this.table.remove(known.created, known.shard)
      if (this.table.moves === moves) this.put(known)
      else this.model.delete(known.created)
    }
  }

  /** Removes the entity at a place, if there is one, and all that came after it. */
  cut(share: number): void {
    const from = 100 + Math.floor((this.now - 100) * (1 - share))
    this.table.removeFrom(from, this.model.get(from)?.shard ?? 0)
    for (const created of [...this.model.keys()]) if (created >= from) this.model.delete(created)
  }

  /** The first fault; undefined: none. */
  check(): string | undefined {
    const { table, model } = this
    const expected = [...model.values()]
      .sort((a, b) => a.created - b.created)
      .map(({ created, shard, cells }) => lineOf(created, shard, cells, isKept))
    if (contentOf(table).join('\n') !== expected.join('\n')) return 'another content'
    if (table.live !== model.size) return `${table.live} live, not ${model.size}`
    for (let row = 1; row < table.rows; row++) {
      const later = table.created[row]! - table.created[row - 1]! || table.shards[row]! - table.shards[row - 1]!
      if (later <= 0) return `row ${row} out of order`
    }
    return this.checkMoves() ?? this.checkCopy()
  }

  private checkMoves(): string | undefined {
    const { table } = this
    const rows = new Map([...table.created.subarray(0, table.rows)].map((created, row) => [created, row]))
    const moved = [...rows].find(([created, row]) => (this.rows.get(created) ?? row) !== row)
    if (moved && table.moves === this.moves) return `row ${moved} moved in silence`
    this.rows = rows
    this.moves = table.moves
    return undefined
  }

  /** A table made of the same parts has the same contents, and behaves the same from here on. */
  private checkCopy(): string | undefined {
    const copy = Table.of(structuredClone(this.table.parts))
    if (copy.live !== this.table.live) return `a copy with ${copy.live} live`
    if (copy.bytes !== this.table.bytes) return 'a copy of another size'
    this.table = copy
    this.moves = copy.moves
    return contentOf(copy).length === this.model.size ? undefined : 'a copy of another content'
  }

  private put(known: Known): void {
    if (!this.table.put(known.created, known.shard, known.cells)) throw new Error(`${known.created} was not taken`)
    this.model.set(known.created, known)
  }

  private newKnown(n: number): Known {
    this.now += 1 + (n % 3)
    return { created: this.now, shard: n % shards, cells: cellsOf(n) }
  }

  private some(share: number, seed: number): Known[] {
    return [...this.model.values()].filter(({ created }) => ((created + seed) * 2654435761) % 2 ** 32 < share * 2 ** 32)
  }
}

const seed = fc.nat(1000)
const share = fc.constantFrom(0.01, 0.3, 0.6, 0.99)
const step = fc.oneof(
  fc.record({
    kind: fc.constantFrom('add' as const, 'append' as const),
    amount: fc.constantFrom(1, 3, 70, 2000),
    seed,
  }),
  fc.record({
    kind: fc.constantFrom('change' as const, 'remove' as const, 'remove' as const, 'revive' as const, 'cut' as const),
    amount: share,
    seed,
  }),
)

t.test('a table equals a map, in order of creation, and so does a table of its parts', async t => {
  let compactions = 0
  fc.assert(
    fc.property(fc.constantFrom(0, 2500, 2500), fc.array(step, { maxLength: 10, size: 'max' }), (first, taken) => {
      const pair = new Pair()
      pair.add(first, 0)
      for (const { kind, amount, seed } of taken) {
        const { moves } = pair.table
        pair[kind](amount, seed)
        if (kind === 'remove' && pair.table.moves > moves) compactions++
        const wrong = pair.check()
        if (wrong !== undefined) throw new Error(`after ${kind} ${amount}: ${wrong}`)
      }
    }),
    { numRuns: 50 },
  )
  t.ok(compactions > 0, `${compactions} compactions`)
})

const one = cellsOf(0)

t.test('a new entity that is older than the newest is refused', async t => {
  const table = new Table(layout)
  t.ok(table.put(10, 1, one))
  t.ok(table.put(20, 1, one))
  const before = contentOf(table)
  t.notOk(table.put(15, 1, one))
  t.notOk(table.put(20, 0, one), 'of two with one stamp the shard decides')
  t.strictSame(contentOf(table), before)
  t.ok(table.put(20, 2, one))
})

t.test('the removal of a missing entity changes nothing', async t => {
  const table = new Table(layout)
  table.put(10, 1, one)
  table.remove(10, 2)
  table.remove(11, 1)
  t.equal(table.live, 1)
})

t.test('rows that have gone keep the others in their place until they are the most', async t => {
  const table = new Table(layout)
  for (let n = 0; n < 3000; n++) table.put(n, 0, one)
  for (let n = 0; n < 1500; n++) table.remove(n, 0)
  t.equal(table.moves, 0)
  t.equal(table.rows, 3000)
  table.remove(1500, 0)
  t.equal(table.moves, 1)
  t.equal(table.rows, 1499)
  t.equal(table.created[0], 1501)
})

t.test('few rows that have gone are no reason to move', async t => {
  const table = new Table(layout)
  for (let n = 0; n < 1000; n++) table.put(n, 0, one)
  for (let n = 0; n < 1000; n++) table.remove(n, 0)
  t.equal(table.moves, 0)
  t.equal(table.live, 0)
})

t.test('memory grows with additions and shrinks with removals', async t => {
  const table = new Table(layout)
  const empty = table.bytes
  for (let n = 0; n < 10_000; n++) table.put(n, 0, { targets: [n], geometry: { type: 'Point', coordinates: [1, 1] } })
  const full = table.bytes
  const expected = bytesFor(10_000, layout)
  t.ok(full > 0.75 * expected && full < 1.25 * expected, `${full} bytes`)
  for (let n = 0; n < 9900; n++) table.remove(n, 0)
  t.ok(table.bytes < full / 3, `${table.bytes} bytes`)
  t.ok(empty < full / 50, `${empty} bytes`)
})

t.test('the bytes of a new table equal the estimate before it was built', async t => {
  for (const places of [false, true])
    for (const count of [0, 1, 64, 65, 5000]) {
      const wanted = { columns: layout.columns, places }
      const table = new Table(wanted)
      for (let n = 0; n < count; n++) table.append(n, 0, { targets: [n], geometry: undefined })
      table.sort()
      const grid = places ? 4 * table.places!.parts.chainHeads.length : 0
      t.equal(table.bytes, bytesFor(count, wanted) + grid, `${count} rows`)
    }
})

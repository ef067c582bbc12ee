// The order of a list: its keys, and the order of values of different kinds.
import t from 'tap'
import type { Attribute, Entity } from '../../../src/domain/entities/entity.js'
import type { Json } from '../../../src/domain/json.js'
import { orderKeysMax } from '../../../src/domain/limits.js'
import { compareSortValues, type OrderKey, parseOrder, sortValues } from '../../../src/domain/queries/order.js'
import { refusalText } from '../../../src/domain/refusal.js'
import { stampOf } from '../../../src/domain/stamp.js'
import { selectionOf } from '../../support/selections.js'

type Given = Json | { readonly date: string } | { readonly point: string }

const madeMs = Date.UTC(2024, 0, 1)

function attributeOf(given: Given): Attribute {
  const times = { metadata: new Map(), createdMs: madeMs, modifiedMs: madeMs }
  if (typeof given === 'object' && given !== null && 'date' in given)
    return { type: 'DateTime', value: given.date as string, ...times }
  if (typeof given === 'object' && given !== null && 'point' in given)
    return { type: 'geo:point', value: given.point as string, ...times }
  return { type: 'Any', value: given as Json, ...times }
}

function entity(id: string, attributes: Readonly<Record<string, Given>> = {}, more: Partial<Entity> = {}): Entity {
  const all = new Map(Object.entries(attributes).map(([name, given]) => [name, attributeOf(given)]))
  return { id, type: 'T', attributes: all, created: stampOf(madeMs), modifiedMs: madeMs, ...more }
}

function keysOf(orderBy: string): readonly OrderKey[] {
  const keys = parseOrder(orderBy)
  if (!keys.ok) throw new Error(refusalText(keys.refusal))
  return keys.value
}

/** The ids in order; entities with equal values keep the given order. */
function ordered(orderBy: string, entities: readonly Entity[], paths: Readonly<Record<string, string>> = {}): string {
  const keys = keysOf(orderBy)
  return entities
    .map(each => ({ id: each.id, values: sortValues(keys, each, paths[each.id] ?? '/', undefined) }))
    .sort((a, b) => compareSortValues(keys, a.values, b.values))
    .map(({ id }) => id)
    .join(' ')
}

t.test('an order is a list of keys, each of which may be reversed', async t => {
  t.strictSame(keysOf('a,!b,geo:distance'), [
    { name: 'a', descending: false },
    { name: 'b', descending: true },
    { name: 'geo:distance', descending: false },
  ])
  t.strictSame(parseOrder(undefined), { ok: true, value: [] })
})

t.test('a repeated key counts once, and many keys are refused', async t => {
  t.strictSame(keysOf('a,!a,b,a'), [
    { name: 'a', descending: false },
    // In the other direction the other end of an array counts.
    { name: 'a', descending: true },
    { name: 'b', descending: false },
  ])
  const names = Array.from({ length: orderKeysMax }, (_, at) => `k${at}`).join(',')
  t.equal(keysOf(`${names},${names}`).length, orderKeysMax)
  t.match(parseOrder(`${names},more`), {
    refusal: { code: 'orderKeysTooMany', count: 17, countMax: 16 },
  })
})

const later = madeMs + 5000
const stock = [
  entity('m', { v: 1 }, { type: 'C', modifiedMs: later + 3000 }),
  entity('Z', { v: 2, dateExpires: { date: '2030-01-02T00:00:00.000Z' } }, { type: 'A', created: stampOf(later) }),
  entity(
    'a',
    { v: 3, dateExpires: { date: '2030-01-01T00:00:00.000Z' } },
    { type: 'B', created: stampOf(later + 9000) },
  ),
]
const paths = { m: '/b', Z: '/a/x', a: '/a' }

t.test('every key orders', async t => {
  for (const [orderBy, expected] of [
    ['id', 'Z a m'],
    ['!id', 'm a Z'],
    ['type', 'Z a m'],
    ['!type', 'm a Z'],
    ['dateCreated', 'm Z a'],
    ['!dateCreated', 'a Z m'],
    ['dateModified', 'Z a m'],
    ['!dateModified', 'm Z a'],
    ['dateExpires', 'm a Z'],
    ['!dateExpires', 'Z a m'],
    ['servicePath', 'a Z m'],
    ['!servicePath', 'm Z a'],
    ['v', 'm Z a'],
    ['!v', 'a Z m'],
    ['none', 'm Z a'],
    ['!none', 'm Z a'],
    ['v.sub', 'm Z a'],
  ] as const)
    t.equal(ordered(orderBy, stock, paths), expected, orderBy)
})

t.test('the first key with a difference decides', async t => {
  const rows = [
    entity('1', { a: 1, b: 1 }),
    entity('2', { a: 2, b: 1 }),
    entity('3', { a: 1, b: 2 }),
    entity('4', { a: 1, b: 2 }),
  ]
  t.equal(ordered('a,!b', rows), '3 4 1 2')
  t.equal(ordered('!a,b', rows), '2 1 3 4')
  t.equal(ordered('a,!b,!id', rows), '4 3 1 2')
})

/** Values from the lowest to the highest; those in one row are equal. */
const ascending: readonly (readonly (Given | undefined)[])[] = [
  [undefined, null],
  [-3],
  [0],
  [2.5],
  [10],
  [{ date: '2001-09-09T01:46:40.000Z' }, 1e9],
  [{ date: '2001-09-09T01:46:40.500Z' }, 1e9 + 0.5],
  [1e9 + 1],
  [''],
  ['10'],
  ['9'],
  ['Z'],
  ['a'],
  ['é'],
  [{ a: 1 }],
  [[]],
  [false],
  [true],
]

t.test('values of all kinds have one order', async t => {
  const rows = ascending.flatMap((row, rank) => row.map(value => ({ rank, value })))
  const valuesOf = (value: Given | undefined, orderBy: string) =>
    sortValues(keysOf(orderBy), entity('E', value === undefined ? {} : { v: value }), '/', undefined)
  for (const a of rows)
    for (const b of rows)
      for (const [orderBy, sign] of [
        ['v', 1],
        ['!v', -1],
      ] as const) {
        const order = Math.sign(
          compareSortValues(keysOf(orderBy), valuesOf(a.value, orderBy), valuesOf(b.value, orderBy)),
        )
        const name = `${orderBy}: ${JSON.stringify(a.value)} and ${JSON.stringify(b.value)}`
        t.ok(order === sign * Math.sign(a.rank - b.rank), name)
      }
})

t.test('an array is ordered by its smallest element, descending by its largest', async t => {
  const rows = [
    entity('wide', { v: [9, 1] }),
    entity('five', { v: 5 }),
    entity('two', { v: [2, 3, 2] }),
    entity('word', { v: ['x', 6] }),
  ]
  t.equal(ordered('v', rows), 'wide two five word')
  t.equal(ordered('!v', rows), 'word wide five two')
})

t.test('all objects are equal in the order, and so are arrays in arrays', async t => {
  const rows = [entity('b', { v: { k: 2 } }), entity('a', { v: { k: 1 } }), entity('n', { v: 7 })]
  t.equal(ordered('v', rows), 'n b a')
  t.equal(ordered('!v', rows), 'b a n')
  t.equal(ordered('v', [entity('two', { v: [[2]] }), entity('one', { v: [[1]] })]), 'two one')
  t.equal(ordered('!v', [entity('mixed', { v: [{ k: 1 }, 'x'] }), entity('word', { v: 'y' })]), 'mixed word')
})

t.test('entities without the attribute come first, descending last', async t => {
  const rows = [entity('x', { v: 0 }), entity('none'), entity('flag', { v: true })]
  t.equal(ordered('v', rows), 'none x flag')
  t.equal(ordered('!v', rows), 'flag x none')
})

t.test('an attribute named like a builtin is not the key', async t => {
  const rows = [entity('a', { id: 2, type: 9, dateModified: 9 }), entity('b', { id: 1, type: 1, dateModified: 1 })]
  for (const key of ['id', 'type', 'dateModified']) t.equal(ordered(key, rows), 'a b', key)
})

t.test('the distance from the point of near is a key, alone and ascending only', async t => {
  const rows = [
    entity('far', { v: 1, at: { point: '0, 3' } }),
    entity('near', { v: 2, at: { point: '0, 1' } }),
    entity('mid', { v: 1, at: { point: '0, 2' } }),
  ]
  const near = selectionOf({ geo: { georel: 'near;maxDistance:1000000', geometry: 'point', coords: '0,0' } }).geo
  const within = selectionOf({ geo: { georel: 'intersects', geometry: 'box', coords: '-9,-9;9,9' } }).geo
  const by = (orderBy: string, geo: typeof near) => {
    const keys = keysOf(orderBy)
    return rows
      .map(({ id, ...rest }) => ({ id, values: sortValues(keys, { id, ...rest }, '/', geo) }))
      .sort((a, b) => compareSortValues(keys, a.values, b.values))
      .map(({ id }) => id)
      .join(' ')
  }
  t.equal(by('geo:distance', near), 'near mid far')
  t.equal(by('!geo:distance', near), 'far near mid', 'not supported: the order of creation')
  t.equal(by('v,geo:distance', near), 'far mid near', 'not the only key: it does not tell')
  t.equal(by('geo:distance', within), 'far near mid', 'without near: the order of creation')
  t.equal(by('geo:distance', undefined), 'far near mid', 'without geography: the order of creation')
})

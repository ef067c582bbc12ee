// The merge of keys: the page is what sorting all of them and cutting would give, wherever it begins.

import fc from 'fast-check'
import t from 'tap'
import { mergedPage } from '../../src/broker/merge.js'
import type { Json } from '../../src/domain/json.js'
import { compareSortValues, type OrderKey } from '../../src/domain/queries/order.js'
import type { ListKeys } from '../../src/messages/messages.js'
import { orderOf } from '../support/selections.js'

interface Key {
  readonly part: number
  readonly created: number
  readonly shard: number
  readonly values: readonly Json[]
}

const columnsOf = (keys: readonly Key[]): ListKeys => ({
  created: Float64Array.from(keys, ({ created }) => created),
  shards: Uint16Array.from(keys, ({ shard }) => shard),
  rangeOf: new Uint32Array(keys.length),
  ranges: [['/', 'T']],
  values: keys.map(({ values }) => values),
})

const comparing =
  (order: readonly OrderKey[]) =>
  (a: Key, b: Key): number =>
    compareSortValues(order, a.values, b.values) || a.created - b.created || a.shard - b.shard

const value = fc.constantFrom<Json>(null, 0, 1, 1.5, 'a', 'b', true, [], {})

/** Keys of one part each, many created at the same moment by different owners; a shard is always of the same part. */
const keys = (parts: number, width: number) =>
  fc
    .uniqueArray(fc.record({ created: fc.nat(40), shard: fc.nat(15) }), {
      maxLength: 200,
      size: 'max',
      selector: ({ created, shard }) => `${created} ${shard}`,
    })
    .chain(all =>
      fc
        .array(fc.array(value, { minLength: width, maxLength: width }), {
          minLength: all.length,
          maxLength: all.length,
        })
        .map(values => all.map((key, n): Key => ({ ...key, part: key.shard % parts, values: values[n]! }))),
    )

const orders = fc.constantFrom('', 'a', '!a', 'a,!b').map(orderOf)
const numbers = fc.oneof(fc.nat(220), fc.constantFrom(0, Number.MAX_SAFE_INTEGER))

const lists = fc
  .tuple(orders, fc.integer({ min: 1, max: 5 }))
  .chain(([order, parts]) =>
    fc.record({ order: fc.constant(order), parts: fc.constant(parts), all: keys(parts, order.length) }),
  )

t.test('a page is cut from the keys of all parts in order', async t => {
  let begun = 0
  fc.assert(
    fc.property(lists, numbers, fc.constantFrom(1, 7, 1000), ({ order, parts, all }, offset, limit) => {
      const sorted = all.toSorted(comparing(order))
      const given = Array.from({ length: parts }, (_, part) =>
        sorted.filter(key => key.part === part).slice(0, offset + limit),
      )
      const page = mergedPage(given.map(columnsOf), order, offset, limit)
      const picked = page.map(({ part, at }) => given[part]![at]!)
      if (offset > 0 && picked.length > 0) begun++
      return JSON.stringify(picked) === JSON.stringify(sorted.slice(offset, offset + limit))
    }),
    { numRuns: 1000 },
  )
  t.ok(begun > 100, `${begun} pages further on`)
})

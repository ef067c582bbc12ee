// What a list answers: entities, or the keys by which several owners' parts are merged.

import t from 'tap'
import { refusals } from '../../../src/domain/refusal.js'
import type { Standing } from '../../../src/messages/messages.js'
import { KeyColumns, keysMax, keysReply } from '../../../src/shard/read/pages.js'

const standing = (created: number, path = '/', type = 'T'): Standing => ({ created, shard: created % 7, path, type })

t.test('keys are columns, each path and type stands once, and what has no value has null', async t => {
  const places = [standing(3, '/a'), standing(1), standing(2, '/a'), standing(9, '/a', 'U')]
  const values = [
    ['x', undefined],
    [null, 1],
    [true, 'y'],
    [[], {}],
  ]
  t.strictSame(keysReply({ places, values, total: 44 }), {
    kind: 'part',
    keys: {
      created: Float64Array.of(3, 1, 2, 9),
      shards: Uint16Array.of(3, 1, 2, 2),
      rangeOf: Uint32Array.of(0, 1, 0, 2),
      ranges: [
        ['/a', 'T'],
        ['/', 'T'],
        ['/a', 'U'],
      ],
      values: [
        ['x', null],
        [null, 1],
        [true, 'y'],
        [[], {}],
      ],
    },
    images: undefined,
    total: 44,
  })
})

t.test('as many keys as may be are given, and one more is refused', async t => {
  const keys = new KeyColumns()
  const place = standing(1)
  for (let count = 0; count < keysMax; count++) keys.add(place, undefined)
  t.equal(keys.reply(0).kind, 'part')
  keys.add(place, undefined)
  t.strictSame(keys.reply(0), { kind: 'refused', refusal: refusals.pageTooDeep })
})

t.test('long texts count', async t => {
  const text = 'x'.repeat(1024 * 1024)
  const page = (count: number) =>
    keysReply({ places: Array(count).fill(standing(1)), values: Array(count).fill([text]), total: count })
  t.equal(page(60).kind, 'part')
  t.strictSame(page(65), { kind: 'refused', refusal: refusals.pageTooDeep })
})

// The text format, and several processes as one.

import fc from 'fast-check'
import t from 'tap'
import { type Family, joinFamilies, renderExposition } from '../../src/domain/exposition.js'
import { emptyHistogram, observe } from '../../src/domain/histogram.js'
import { parseExposition } from '../support/exposition-parser.js'

const gauge = (name: string, join: Family['join'], value: number, labels = {}): Family => ({
  name,
  type: 'gauge',
  help: 'Help.',
  join,
  samples: [{ labels, value }],
})

const seconds = (...values: number[]): Family => {
  const value = emptyHistogram([0.1, 1])
  for (const one of values) observe(value, one)
  return { name: 'seconds', type: 'histogram', help: 'Times.', join: 'sum', samples: [{ labels: { a: 'b' }, value }] }
}

t.test('a family is its help, its type and its samples', async t => {
  t.equal(
    renderExposition([gauge('up', 'sum', 1.5, { path: '/a', verb: 'GET' }), seconds(0.1, 0.5, 7)]),
    [
      '# HELP up Help.',
      '# TYPE up gauge',
      'up{path="/a",verb="GET"} 1.5',
      '# HELP seconds Times.',
      '# TYPE seconds histogram',
      'seconds_bucket{a="b",le="0.1"} 1',
      'seconds_bucket{a="b",le="1"} 2',
      'seconds_bucket{a="b",le="+Inf"} 3',
      'seconds_sum{a="b"} 7.6',
      'seconds_count{a="b"} 3',
      '',
    ].join('\n'),
  )
})

t.test('a family without samples is not told of', async t => {
  t.equal(renderExposition([{ ...gauge('up', 'sum', 1), samples: [] }, gauge('x', 'sum', 1)]).includes('up'), false)
})

t.test('whatever text a label has, and whatever number a sample, it is read back', async t => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.double({ noNaN: true }), (label, value) => {
      const text = renderExposition([gauge('x', 'sum', value, { label })])
      t.equal(parseExposition(text).value('x', { label }), value === 0 ? Number(String(value)) : value)
    }),
    { numRuns: 300 },
  )
})

t.test('of several processes counts are added', async t => {
  const { value } = parseExposition(
    renderExposition(
      joinFamilies([
        [gauge('x', 'sum', 1), seconds(0.5)],
        [gauge('x', 'sum', 2), seconds(5)],
      ]),
    ),
  )
  t.equal(value('x'), 3)
  t.equal(value('seconds_count'), 2)
  t.equal(value('seconds_bucket', { le: '1' }), 1)
  t.equal(value('seconds_sum'), 5.5)
})

t.test('what all processes know is told once, what is about a process for each', async t => {
  const part = (value: number) => [gauge('known', 'max', value), gauge('memory', 'apart', value)]
  const { value } = parseExposition(renderExposition(joinFamilies([part(4), part(3)])))
  t.equal(value('known'), 4)
  t.equal(value('memory', { worker: '0' }), 4)
  t.equal(value('memory', { worker: '1' }), 3)
})

t.test('one process alone needs no label', async t => {
  t.equal(renderExposition(joinFamilies([[gauge('memory', 'apart', 1)]])).includes('worker'), false)
})

t.test('samples that one process alone has are there', async t => {
  const joined = joinFamilies([[], [gauge('x', 'sum', 1, { route: '/a' })]])
  t.equal(parseExposition(renderExposition(joined)).value('x', { route: '/a' }), 1)
})

for (const [what, text] of [
  ['a sample without a family', 'x 1\n'],
  ['no end', '# HELP x y\n# TYPE x gauge\nx 1'],
  ['a sample twice', '# HELP x y\n# TYPE x gauge\nx 1\nx 1\n'],
  ['a label that does not end', '# HELP x y\n# TYPE x gauge\nx{a="b} 1\n'],
  ['no number', '# HELP x y\n# TYPE x gauge\nx one\n'],
  [
    'buckets that shrink',
    '# HELP x y\n# TYPE x histogram\nx_bucket{le="1"} 2\nx_bucket{le="+Inf"} 1\nx_sum 1\nx_count 1\n',
  ],
] as const)
  t.test(`the reader of these tests refuses ${what}`, async t => {
    t.throws(() => parseExposition(text))
  })

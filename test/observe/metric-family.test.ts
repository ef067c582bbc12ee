// The text of metrics, and several processes as one.

import t from 'tap'
import { emptyHistogram, observe } from '../../src/domain/histogram.js'
import type { MetricFamily } from '../../src/messages/admin.js'
import { gauge as gaugeOf, histograms, renderMetrics } from '../../src/observe/metric-family.js'
import { type Exposition, parseExposition } from '../support/exposition-parser.js'
import fc from '../support/properties.js'

const gauge = (
  name: string,
  value: number,
  labels = {},
  aggregator: MetricFamily['aggregator'] = 'sum',
): MetricFamily => gaugeOf(name, 'Help.', value, aggregator, labels)

const seconds = (...values: number[]): MetricFamily => {
  const histogram = emptyHistogram([0.1, 1])
  for (const one of values) observe(histogram, one)
  return histograms('seconds', 'Times.', [{ labels: { a: 'b' }, histogram }])
}

const read = async (...parts: MetricFamily[][]): Promise<Exposition> => parseExposition(await renderMetrics(parts))

t.test('a family is its help, its type and its samples', async t => {
  const text = await renderMetrics([[gauge('up', 1.5, { path: '/a', verb: 'GET' }), seconds(0.1, 0.5, 7)]])
  t.equal(
    text,
    [
      '# HELP up Help.',
      '# TYPE up gauge',
      'up{path="/a",verb="GET"} 1.5',
      '',
      '# HELP seconds Times.',
      '# TYPE seconds histogram',
      'seconds_bucket{a="b",le="0.1"} 1',
      'seconds_bucket{a="b",le="1"} 2',
      'seconds_bucket{a="b",le="+Inf"} 3',
      'seconds_sum{a="b"} 7.6',
      'seconds_count{a="b"} 3',
      '',
      '# HELP orrery_workers Processes that have answered for these metrics.',
      '# TYPE orrery_workers gauge',
      'orrery_workers 1',
      '',
    ].join('\n'),
  )
})

t.test('a family without samples is left out', async t => {
  const { families } = await read([{ ...gauge('up', 1), values: [] }, gauge('x', 1)])
  t.same([...families.keys()], ['x', 'orrery_workers'])
})

t.test('any text of a label, and any number of a sample, is read back', async t => {
  const labels = fc.string({ unit: 'binary' })
  await fc.assert(
    fc.asyncProperty(labels, fc.double({ noNaN: true }), async (label, value) => {
      const exposition = await read([gauge('x', value, { label })])
      t.equal(exposition.value('x', { label }), value === 0 ? Number(String(value)) : value)
    }),
    { numRuns: 300 },
  )
})

t.test('of several processes counts are added', async t => {
  const { value } = await read([gauge('x', 1), seconds(0.5)], [gauge('x', 2), seconds(5)])
  t.equal(value('x'), 3)
  t.equal(value('seconds_count'), 2)
  t.equal(value('seconds_bucket', { le: '1' }), 1)
  t.equal(value('seconds_sum'), 5.5)
  t.equal(value('orrery_workers'), 2)
})

t.test('facts that all processes know are there once, facts about a process for each', async t => {
  const part = (worker: number, value: number) => [
    gauge('known', value, {}, 'max'),
    gauge('earliest', value, {}, 'min'),
    gauge('memory', value, { worker: String(worker) }),
  ]
  const { value } = await read(part(0, 4), part(1, 3))
  t.equal(value('known'), 4)
  t.equal(value('earliest'), 3)
  t.equal(value('memory', { worker: '0' }), 4)
  t.equal(value('memory', { worker: '1' }), 3)
})

t.test('samples that one process alone has are there', async t => {
  const { value } = await read([], [gauge('x', 1, { route: '/a' })])
  t.equal(value('x', { route: '/a' }), 1)
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

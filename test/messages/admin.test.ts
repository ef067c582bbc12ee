// What operators ask: trace levels as texts and sets of numbers, and histograms.

import t from 'tap'
import {
  emptyHistogram,
  noTraces,
  observe,
  parseTraceLevels,
  renderTraceLevels,
  withoutTraceLevels,
} from '../../src/messages/admin.js'

const levels = (text: string): ReadonlySet<number> => {
  const parsed = parseTraceLevels(text)
  if (!parsed) throw new Error(`no trace levels: ${text}`)
  return parsed
}

for (const [text, rendered] of [
  ['19,21-25', '19, 21-25'],
  ['0-255', '0-255'],
  ['3,1,2', '1-3'],
  ['7', '7'],
  ['5-5,5', '5'],
  ['255,0', '0, 255'],
] as const)
  t.test(`${text} is rendered as ${rendered}`, async t => {
    t.equal(renderTraceLevels(levels(text)), rendered)
  })

t.test('no levels are rendered as nothing', async t => {
  t.equal(renderTraceLevels(noTraces), '')
})

for (const text of ['', 'a', '1-', '-1', '1,,2', '256', '5-4', '1 ', '1--2', '1-2-3', '0x1', '1;2', '9999'])
  t.test(`${JSON.stringify(text)} is no list of levels`, async t => {
    t.equal(parseTraceLevels(text), undefined)
  })

t.test('a level inside a range is taken out of it', async t => {
  t.equal(renderTraceLevels(withoutTraceLevels(levels('19,21-25'), levels('23'))), '19, 21-22, 24-25')
})

t.test('levels that are not there can be taken out', async t => {
  t.equal(renderTraceLevels(withoutTraceLevels(levels('1-3'), levels('3-9'))), '1-2')
})

const filled = (...values: number[]) => {
  const histogram = emptyHistogram([1, 2, 5])
  for (const value of values) observe(histogram, value)
  return histogram
}

t.test('a value goes to the first bound that is not below it', async t => {
  t.same(filled(0, 1, 1.5, 2, 2.1, 5, 5.1, 100).counts, [2, 2, 2, 2])
})

t.test('the sum is that of all values', async t => {
  t.equal(filled(0.5, 3, 10).sum, 13.5)
})

// Trace levels, as texts and as sets of numbers.

import t from 'tap'
import { noTraces, parseTraceLevels, renderTraceLevels, withoutTraceLevels } from '../../src/messages/admin.js'

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

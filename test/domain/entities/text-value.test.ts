import fc from 'fast-check'
import t from 'tap'
import { parseTextValue } from '../../../src/domain/entities/text-value.js'
import type { Json } from '../../../src/domain/json.js'
import { refusals } from '../../../src/domain/refusal.js'

const values: [text: string, value: Json][] = [
  ['"on"', 'on'],
  ['""', ''],
  ['"a\\nb"', 'a\\nb'],
  ['"a"b"', 'a"b'],
  ['"21"', '21'],
  ['true', true],
  ['True', true],
  ['TRUE', true],
  ['false', false],
  ['False', false],
  ['FALSE', false],
  ['null', null],
  ['Null', null],
  ['NULL', null],
  ['0', 0],
  ['-12.1', -12.1],
  ['3.2e2', 320],
  ['1E-2', 0.01],
]

t.test('a text stands for a string in quotes, a number, a boolean or null', async t => {
  for (const [text, value] of values) t.strictSame(parseTextValue(text), { ok: true, value }, text)
})

t.test('a string without its closing quote is refused', async t => {
  for (const text of ['"', '"on', '"on"x', '"on"\n'])
    t.strictSame(parseTextValue(text), { ok: false, refusal: refusals.textUnclosed }, text)
})

t.test('anything else is refused', async t => {
  const texts = [
    '',
    'on',
    'on"',
    'tRUE',
    'nil',
    '+1',
    '01',
    '1.',
    '.5',
    '1e',
    '0x10',
    ' 1',
    '1 ',
    '-',
    'NaN',
    'Infinity',
  ]
  for (const text of [...texts, '1e999', '-1e999', '{"a":1}', '[1]'])
    t.strictSame(parseTextValue(text), { ok: false, refusal: refusals.textUnknown }, text)
})

t.test('every finite number is read from its JSON text', async () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), n => {
      const parsed = parseTextValue(JSON.stringify(n))
      return parsed.ok && parsed.value === n
    }),
  )
})

// Texts of strangers on a terminal: nothing in them controls it, and columns are as wide as they look.

import t from 'tap'
import { clipped, padded, visible, widthOf } from '../../src/watch/terminal-text.js'

const dangerous: readonly (readonly [name: string, text: string, shown: string])[] = [
  ['a colour', '\u001b[31mred', '\\u001b[31mred'],
  ['a title of the window', '\u001b]0;x\u0007', '\\u001b]0;x\\u0007'],
  ['an 8-bit control sequence', 'a\u009b2Jb', 'a\\u009b2Jb'],
  ['a new line and a return', 'a\nb\rc\td', 'a\\u000ab\\u000dc\\u0009d'],
  ['DEL', '\u007f', '\\u007f'],
  ['a change of direction', 'abc\u202ecba', 'abc\\u202ecba'],
  ['a zero-width space', 'a\u200bb', 'a\\u200bb'],
  ['separators of lines', 'a\u2028b\u2029c', 'a\\u2028b\\u2029c'],
  ['half of a character', 'a\ud83d', 'a\\ud83d'],
  ['a tag character of two units', 'a\u{e0041}', 'a\\udb40\\udc41'],
]
for (const [name, text, shown] of dangerous)
  t.test(`${name} is shown as an escape`, async t => {
    t.equal(visible(text), shown)
    t.equal(JSON.parse(`"${visible(text)}"`), text, 'which means the same in JSON')
  })

t.test('other characters stay as they are', async t => {
  for (const text of ['', 'plain', 'Straße 12°', '温度', 'e\u0301', '🚌']) t.equal(visible(text), text)
})

t.test('a width counts columns, not characters', async t => {
  t.strictSame(['', 'abc', '温度', 'e\u0301', '🚌', 'ä…'].map(widthOf), [0, 3, 4, 1, 2, 2])
})

t.test('a text is clipped to columns, and says so', async t => {
  t.equal(clipped('abcdef', 6), 'abcdef')
  t.equal(clipped('abcdef', 4), 'abc…')
  t.equal(clipped('温度計', 4), '温…')
  t.equal(clipped('🚌🚌', 3), '🚌…')
  t.equal(clipped('abc', 1), '…')
  t.equal(clipped('abc', 0), '')
})

t.test('a text is padded to columns', async t => {
  t.equal(padded('温', 4), '温  ')
  t.equal(padded('abc', 2), 'abc')
})

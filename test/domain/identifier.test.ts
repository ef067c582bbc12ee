// Identifiers: which characters and lengths are legal, and the texts of the refusals. The character table is written down
// once more from the rule, as one list of what is refused.
import t from 'tap'
import { checkIdentifier, hasIdentifierCharacters } from '../../src/domain/identifier.js'
import { type IdentifierPlace, refusals } from '../../src/domain/refusal.js'

const places: IdentifierPlace[] = [
  'entity id',
  'entity type',
  'attribute name',
  'attribute type',
  'metadata name',
  'metadata type',
]

const refusedPrintable = ['&', '?', '/', '#', '<', '>', '"', "'", '=', ';', '(', ')']
const isLegal = (code: number): boolean =>
  code > 32 && code < 127 && !refusedPrintable.includes(String.fromCharCode(code))

const all256 = Array.from({ length: 256 }, (_, code) => code)
const inWords = (code: number): string => `code ${code} ${JSON.stringify(String.fromCharCode(code))}`

t.test('every character of one byte is legal or refused as the rule says, wherever it stands', async t => {
  for (const code of all256) {
    const character = String.fromCharCode(code)
    for (const text of [character, `${character}b`, `a${character}`, `a${character}b`])
      t.equal(checkIdentifier('entity id', text) === undefined, isLegal(code), inWords(code))
  }
})

t.test('the characters that other systems dislike are legal here', async t => {
  for (const text of [
    'a.b',
    '$a',
    'urn:ngsi-ld:Room:1',
    '@',
    '*',
    '[]',
    '{}',
    '|',
    '%',
    ',',
    '!',
    '+',
    '~',
    '\\',
    '^',
    '`',
  ])
    t.equal(checkIdentifier('attribute name', text), undefined, text)
})

const beyondOneByte: [what: string, text: string][] = [
  ['umlaut', 'Köln'],
  ['Chinese', '漢'],
  ['emoji', '\u{1f600}'],
  ['line separator', 'a\u2028b'],
  ['half of a pair', '\ud800'],
]

t.test('characters beyond one byte are refused', async t => {
  for (const [what, text] of beyondOneByte)
    t.match(checkIdentifier('entity id', text), refusals.identifierCharacters('entity id'), what)
})

t.test('a refused character is told with its position', async t => {
  for (const place of places) t.strictSame(checkIdentifier(place, 'a b'), refusals.identifierCharacters(place))
})

t.test('an empty identifier is refused with its position', async t => {
  for (const place of places) t.strictSame(checkIdentifier(place, ''), refusals.identifierTooShort(place))
})

t.test('an identifier of more than 256 characters is refused with its length', async t => {
  for (const place of places)
    for (const length of [257, 1000])
      t.strictSame(checkIdentifier(place, 'a'.repeat(length)), refusals.identifierTooLong(place, length, 256))
})

t.test('identifiers of 1 and of 256 characters are accepted', async t => {
  for (const place of places)
    for (const length of [1, 2, 255, 256]) t.equal(checkIdentifier(place, 'a'.repeat(length)), undefined, `${length}`)
})

t.test('the characters alone can be judged whatever the length', async t => {
  t.ok(hasIdentifierCharacters(''))
  t.ok(hasIdentifierCharacters('a'.repeat(1000)))
  for (const code of all256)
    t.equal(hasIdentifierCharacters(`a${String.fromCharCode(code)}`), isLegal(code), inWords(code))
})

t.test('what is legal stays legal, and what is not stays refused, however many names were looked at', async t => {
  const verdicts = () => places.map(place => [checkIdentifier(place, 'name'), checkIdentifier(place, 'no name')?.kind])
  const first = verdicts()
  for (let n = 0; n < 5000; n++) checkIdentifier('attribute name', `n${n}`)
  t.strictSame(verdicts(), first)
  t.strictSame(first, Array(places.length).fill([undefined, 'BadRequest']))
})

// Statements of the query language over one attribute `a`, and values for it. There are so few of each that statements
// often match.

import assert from 'node:assert/strict'
import type { Attribute } from '../../src/domain/entities/entity.js'
import type { Json } from '../../src/domain/json.js'
import { parseQuery, type Statement } from '../../src/domain/queries/query-parser.js'
import { attribute } from './entities.js'
import fc from './properties.js'

const day = 86_400
const first = Date.UTC(2024, 0, 1) / 1000
const dates = [first, first + day / 2, first + day, -day].map(seconds => new Date(seconds * 1000).toISOString())

/** Some of them are next to each other, some at the ends of the range of numbers. */
const numbers = [
  ...[0, -0, 1, -1, 2.5, 21, first, first + day],
  ...[1 + Number.EPSILON, 1 - Number.EPSILON / 2, -1 - Number.EPSILON, -1 + Number.EPSILON / 2],
  ...[Number.MIN_VALUE, -Number.MIN_VALUE, Number.MAX_VALUE, -Number.MAX_VALUE],
]

const texts = ['', 'a', 'b', 'ab', 'ä', '€', 'K', 'k5', 'k1023', 'true', 'null', '1', '21', dates[0]!]
/** Longer than a column keeps, or just as long. */
const longTexts = [64, 65, 66, 200].flatMap(length => ['x'.repeat(length), `${'x'.repeat(length - 1)}y`])
/** These differ from texts above only in the upper halves of their characters. */
const twins = ['š', `${'x'.repeat(64)}Ÿ`]

const scalars: fc.Arbitrary<Json> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom<Json>(...numbers) },
  { weight: 1, arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true }) },
  { weight: 4, arbitrary: fc.constantFrom<Json>(...texts) },
  { weight: 2, arbitrary: fc.constantFrom<Json>(...longTexts, ...twins) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 4 }) },
  { weight: 2, arbitrary: fc.constantFrom<Json>(null, true, false) },
)

const values: fc.Arbitrary<Json> = fc.oneof(
  { weight: 6, arbitrary: scalars },
  { weight: 1, arbitrary: fc.array(scalars, { maxLength: 3 }) },
  { weight: 1, arbitrary: fc.record({ k: scalars }, { requiredKeys: [] }) as fc.Arbitrary<Json> },
  { weight: 1, arbitrary: fc.array(fc.record({ k: scalars }) as fc.Arbitrary<Json>, { maxLength: 2 }) },
)

/** The attribute `a` that an entity may have; undefined: none. */
export const attributesForStatements: fc.Arbitrary<Attribute | undefined> = fc.oneof(
  { weight: 8, arbitrary: values.map(value => attribute(value)) },
  { weight: 1, arbitrary: fc.constantFrom(...dates).map(value => attribute(value, 'DateTime')) },
  { weight: 1, arbitrary: fc.constant(undefined) },
)

/** Characters that have a meaning in a query, or are not allowed there. */
const unfit = /[<>"'=;(),\r\n\t\0 ]|\.\./
const quotedTexts = [...texts, ...longTexts, ...twins].filter(text => text !== '').map(text => `'${text}'`)
const plainTexts = [...texts, ...longTexts, ...twins].filter(text => text !== '' && !unfit.test(text))
const numberTexts = [...numbers.map(String), '-0', '1e400', '-1e400', '1.50', '+1']

const numberWords = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...numberTexts) },
  { weight: 1, arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true }).map(String) },
)
const textWords = fc.constantFrom(...quotedTexts)
const dateWords = fc.constantFrom(...dates, '2024-01-01')
const ordered = [numberWords, textWords, dateWords] as const

const oneOf = <T>(choices: readonly fc.Arbitrary<T>[]): fc.Arbitrary<T> => fc.oneof(...choices)

/** Right sides that `==` and `!=` take. */
const choices: fc.Arbitrary<string> = fc.oneof(
  oneOf([...ordered, fc.constantFrom('true', 'false', 'null', ...plainTexts)]),
  oneOf(ordered.map(words => fc.tuple(words, words).map(([from, to]) => `${from}..${to}`))),
  oneOf(
    [numberWords, dateWords, oneOf([textWords, fc.constant('null')])].map(words =>
      fc.array(words, { minLength: 2, maxLength: 4 }).map(all => all.join()),
    ),
  ),
)

const patterns = ['a', '^a', 'b$', '^ab$', '[0-9]', '.', '^.*$', 'a+b?', '^[^a]', 'x{64}', '^k', '^$']

const rightSides: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(fc.constantFrom('==', '!=', ':'), choices).map(parts => parts.join('')) },
  {
    weight: 4,
    arbitrary: fc.tuple(fc.constantFrom('>', '<', '>=', '<='), oneOf(ordered)).map(parts => parts.join('')),
  },
  { weight: 1, arbitrary: fc.constantFrom(...patterns).map(pattern => `~=${pattern}`) },
)

/** The texts of statements about `a`, or about the key `k` in it. */
export const statementTexts: fc.Arbitrary<string> = fc
  .tuple(
    fc.constantFrom('a', 'a', 'a', 'a.k'),
    fc.oneof({ weight: 1, arbitrary: fc.constantFrom('', '!') }, { weight: 8, arbitrary: rightSides }),
  )
  .map(([path, rest]) => (rest === '!' ? `!${path}` : path + rest))

/** The one statement of a text that must parse. */
export function statementOf(text: string): Statement {
  const query = parseQuery(text, 'q')
  assert(query.ok, `${text}: ${JSON.stringify(query)}`)
  assert(query.value.statements.length === 1)
  return query.value.statements[0]!
}

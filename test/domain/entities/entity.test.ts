// Reading entities and attributes from JSON. The refusals are in test/cases/entity-payloads.ts. Accepted input is shown
// as [type, value, metadata], metadata as `name: [type, value]`.

import t from 'tap'
import {
  checkIdentifier,
  hasIdentifierCharacters,
  type MetadataMap,
  type Payload,
  parseAttributes,
  parseEntity,
  parseSingleAttribute,
  parseTextValue,
  parseValue,
  type WantedAttribute,
} from '../../../src/domain/entities/entity.js'
import type { Json } from '../../../src/domain/json.js'
import { type IdentifierPlace, type Result, refusals, refusalText } from '../../../src/domain/refusal.js'
import {
  duplicates,
  refusedAttributeLists,
  refusedAttributes,
  refusedEntities,
  refusedExpiries,
  refusedNames,
} from '../../cases/entity-payloads.js'
import fc from '../../support/properties.js'

/** A body as the HTTP layer passes it; `deep` as for any body that could nest too deep. */
const body = (text: string, duplicates: Payload['duplicates'] = []): Payload => ({
  value: JSON.parse(text) as Json,
  duplicates,
  deep: true,
})

/** The text of the refusal, with its kind when that is not BadRequest; `accepted` when there is no refusal. */
function answer(result: Result<unknown>): string {
  if (result.ok) return 'accepted'
  const { kind } = result.refusal
  const text = refusalText(result.refusal)
  return kind === 'BadRequest' ? text : `${kind} ${text}`
}

function plainMetadata(metadata: MetadataMap | undefined): Record<string, [string, Json]> | undefined {
  return metadata && Object.fromEntries([...metadata].map(([name, { type, value }]) => [name, [type, value]]))
}

type Plain = [type: string, value: Json, metadata?: Record<string, [string, Json]> | undefined]

const plain = ({ type, value, metadata }: WantedAttribute): Plain =>
  metadata ? [type, value, plainMetadata(metadata)] : [type, value]

function acceptedOf<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(refusalText(result.refusal))
  return result.value
}

/** The attribute temp of an update, as it is read. */
const attributeOf = (text: string): Plain => plain(acceptedOf(parseSingleAttribute('temp', body(text))))
const keyValueOf = (text: string): Plain =>
  plain(acceptedOf(parseAttributes(body(`{"temp":${text}}`), true)).get('temp')!)

t.test('an entity that breaks a rule about its id or type is refused, with keyValues too', async t => {
  for (const [what, text, description] of refusedEntities) {
    t.equal(answer(parseEntity(body(text), false)), description, what)
    if (text !== '{"type":"Room","temp":{"value":21}}')
      t.equal(answer(parseEntity(body(text), true)), description, `${what}, keyValues`)
  }
})

t.test('a list of attributes that breaks a rule is refused, with keyValues too', async t => {
  for (const [what, text, description] of refusedAttributeLists)
    for (const keyValues of [false, true])
      t.equal(answer(parseAttributes(body(text), keyValues)), description, `${what}${keyValues ? ', keyValues' : ''}`)
})

t.test('an attribute that breaks a rule is refused wherever attributes are sent', async t => {
  for (const [what, text, description] of refusedAttributes) {
    t.equal(answer(parseEntity(body(`{"id":"R1","temp":${text}}`), false)), description, `${what}, in an entity`)
    t.equal(answer(parseAttributes(body(`{"a":{},"temp":${text}}`), false)), description, `${what}, in a list`)
    if (text.startsWith('{')) t.equal(answer(parseSingleAttribute('temp', body(text))), description, `${what}, alone`)
  }
})

t.test('a single attribute that is no object is no payload at all', async t => {
  for (const text of ['21', '"21"', 'null', '[]', 'true'])
    t.equal(answer(parseSingleAttribute('temp', body(text))), 'ParseError Errors found in incoming JSON buffer', text)
})

t.test('an attribute name that breaks a rule is refused, with keyValues too', async t => {
  for (const [what, name, description] of refusedNames) {
    const named = (value: string) => body(`{"id":"R1",${JSON.stringify(name)}:${value}}`)
    t.equal(answer(parseEntity(named('{}'), false)), description, what)
    t.equal(answer(parseEntity(named('1'), true)), description, `${what}, keyValues`)
    t.equal(answer(parseAttributes(body(`{${JSON.stringify(name)}:{}}`), false)), description, `${what}, in a list`)
  }
})

t.test('dateExpires must be a date, and declared as one', async t => {
  for (const [what, text, description] of refusedExpiries) {
    t.equal(answer(parseEntity(body(`{"id":"R1","dateExpires":${text}}`), false)), description, what)
    t.equal(answer(parseAttributes(body(`{"dateExpires":${text}}`), false)), description, `${what}, in a list`)
    t.equal(answer(parseSingleAttribute('dateExpires', body(text))), description, `${what}, alone`)
  }
  t.equal(
    answer(parseEntity(body('{"id":"R1","dateExpires":"2030-01-01"}'), true)),
    'error processing date expiration attribute, see log traces',
    'keyValues',
  )
})

t.test('dateExpires takes a date, a past date, or null', async t => {
  for (const text of ['"2030-01-01"', '"1999-01-01"', 'null'])
    for (const type of ['DateTime', 'ISO8601'])
      t.equal(answer(parseSingleAttribute('dateExpires', body(`{"type":"${type}","value":${text}}`))), 'accepted', text)
})

t.test('duplicate keys are refused, except where the last one wins', async t => {
  const bodies = {
    entity: (where: Payload['duplicates']) => parseEntity(body('{"id":"R1","temp":{"value":1}}', where), false),
    keyValues: (where: Payload['duplicates']) => parseEntity(body('{"id":"R1","temp":{"a":1}}', where), true),
    attribute: (where: Payload['duplicates']) => parseSingleAttribute('temp', body('{"value":1}', where)),
    value: (where: Payload['duplicates']) => parseValue(body('{"a":1}', where)),
  }
  for (const [carrier, where, expected] of duplicates)
    t.equal(answer(bodies[carrier]([where])), expected, `${carrier}: ${where.join(' ')}`)
})

t.test('duplicate keys are refused in lists of attributes as in entities', async t => {
  const list = (where: readonly string[]) => answer(parseAttributes(body('{"temp":{"value":1}}', [where]), false))
  t.equal(list(['temp']), 'duplicated attribute /temp/')
  t.equal(list(['temp', 'value', 'b', 'a']), 'duplicated tag-name: /a/ in path: /b/')
  t.equal(list(['temp', 'type']), 'accepted')
})

t.test('a harmless duplicate does not hide one behind it', async t => {
  const found = [['type'], ['temp', 'type'], ['temp']]
  t.equal(answer(parseEntity(body('{"id":"R1"}', found), false)), 'duplicated attribute /temp/')
})

t.test('an entity has the id and type of its payload, and is a Thing without type', async t => {
  t.match(acceptedOf(parseEntity(body('{"id":"R1","type":"Room"}'), false)), { id: 'R1', type: 'Room' })
  t.match(acceptedOf(parseEntity(body('{"type":"Room","id":"R1"}'), false)), { id: 'R1', type: 'Room' })
  t.match(acceptedOf(parseEntity(body('{"id":"R1"}'), false)), { id: 'R1', type: 'Thing' })
})

t.test('an entity without attributes is legal', async t => {
  t.equal(acceptedOf(parseEntity(body('{"id":"R1","type":"Room"}'), false)).attributes.size, 0)
})

t.test('ids and types of the greatest length are legal together', async t => {
  const longest = 'a'.repeat(256)
  const text = `{"id":"${longest}","type":"${longest}","${longest}":{"type":"${longest}"}}`
  t.equal(answer(parseEntity(body(text), false)), 'accepted')
})

/** A sent value, and its default type. */
const values: [sent: string, type: string][] = [
  ['"on"', 'Text'],
  ['""', 'Text'],
  ['21', 'Number'],
  ['-2.5', 'Number'],
  ['true', 'Boolean'],
  ['false', 'Boolean'],
  ['{"a":1}', 'StructuredValue'],
  ['{}', 'StructuredValue'],
  ['[1,"2"]', 'StructuredValue'],
  ['[]', 'StructuredValue'],
  ['null', 'None'],
  ['"2030-01-01"', 'Text'],
  ['{"$inc":1}', 'StructuredValue'],
  ['{"type":"Point","coordinates":[1,2]}', 'StructuredValue'],
]

t.test('an attribute without type has the default one for its value', async t => {
  for (const [sent, type] of values) t.strictSame(attributeOf(`{"value":${sent}}`), [type, JSON.parse(sent)], sent)
})

t.test('metadata without type has the default one for its value', async t => {
  for (const [sent, type] of values)
    t.strictSame(
      attributeOf(`{"metadata":{"m":{"value":${sent}}}}`),
      ['None', null, { m: [type, JSON.parse(sent)] }],
      sent,
    )
})

t.test('with keyValues any JSON is the value itself, of the default type', async t => {
  for (const [sent, type] of [...values, ['{"value":1,"type":"T"}', 'StructuredValue'] as const])
    t.strictSame(keyValueOf(sent), [type, JSON.parse(sent)], sent)
})

t.test('a given type is kept, for every value', async t => {
  for (const [sent] of values)
    t.strictSame(attributeOf(`{"value":${sent},"type":"Celsius"}`), ['Celsius', JSON.parse(sent)], sent)
})

t.test('an attribute without value is null', async t => {
  t.strictSame(attributeOf('{}'), ['None', null])
  t.strictSame(attributeOf('{"type":"Celsius"}'), ['Celsius', null])
  t.strictSame(attributeOf('{"metadata":{"m":{"value":1}}}'), ['None', null, { m: ['Number', 1] }])
})

t.test('metadata without value is null', async t => {
  t.strictSame(attributeOf('{"metadata":{"m":{}}}'), ['None', null, { m: ['None', null] }])
  t.strictSame(attributeOf('{"metadata":{"m":{"type":"T"}}}'), ['None', null, { m: ['T', null] }])
})

t.test('metadata that is not mentioned differs from metadata that is empty', async t => {
  t.strictSame(attributeOf('{"value":1}'), ['Number', 1])
  t.strictSame(attributeOf('{"value":1,"metadata":{}}'), ['Number', 1, {}])
})

const dates: [sent: string, stored: string][] = [
  ['2016-10-01', '2016-10-01T00:00:00.000Z'],
  ['2016-10-01T00', '2016-10-01T00:00:00.000Z'],
  ['2016-10-01T0000Z', '2016-10-01T00:00:00.000Z'],
  ['2016-10-01T02:00:00+02:00', '2016-10-01T00:00:00.000Z'],
  ['2016-10-01T17:21:24.2386', '2016-10-01T17:21:24.238Z'],
]

t.test('dates are stored in the form in which they are rendered, in attributes and metadata', async t => {
  for (const [sent, stored] of dates)
    for (const type of ['DateTime', 'ISO8601'])
      t.strictSame(
        attributeOf(`{"type":"${type}","value":"${sent}","metadata":{"m":{"type":"${type}","value":"${sent}"}}}`),
        [type, stored, { m: [type, stored] }],
        `${type} ${sent}`,
      )
})

t.test('a date may be null', async t => {
  t.strictSame(attributeOf('{"type":"DateTime","value":null,"metadata":{"m":{"type":"DateTime"}}}'), [
    'DateTime',
    null,
    { m: ['DateTime', null] },
  ])
})

t.test('a type counts only in the case in which it is defined', async t => {
  t.strictSame(attributeOf('{"type":"datetime","value":"tomorrow"}'), ['datetime', 'tomorrow'])
  t.strictSame(attributeOf('{"type":"GEO:JSON","value":1}'), ['GEO:JSON', 1])
})

t.test('an attribute of type TextUnrestricted may hold any character', async t => {
  for (const value of ['<>"\'=;()', ['<'], { 'a=b': { c: ['(;)'] } }])
    t.strictSame(attributeOf(JSON.stringify({ type: 'TextUnrestricted', value })), ['TextUnrestricted', value])
})

t.test('values may hold every character that is not forbidden', async t => {
  const value = 'Köln 漢 😀 & ? / # {} [] | % , ! + ~ \\ ^ ` \n'
  t.strictSame(attributeOf(JSON.stringify({ value, metadata: { m: { value } } })), [
    'Text',
    value,
    { m: ['Text', value] },
  ])
})

t.test('a geo:json value is an object or null', async t => {
  t.strictSame(attributeOf('{"type":"geo:json","value":null}'), ['geo:json', null])
  t.strictSame(attributeOf('{"type":"geo:json","value":{"type":"Point","coordinates":[1,2]}}'), [
    'geo:json',
    { type: 'Point', coordinates: [1, 2] },
  ])
})

t.test('a value is an operator by its first key, with keyValues too', async t => {
  const single = (text: string) => acceptedOf(parseSingleAttribute('temp', body(text))).operator
  t.match(single('{"value":{"$inc":1}}'), { name: '$inc', argument: 1 })
  t.match(single('{"type":"Number","value":{"$push":[1]}}'), { name: '$push', argument: [1] })
  t.match(acceptedOf(parseAttributes(body('{"temp":{"$inc":1}}'), true)).get('temp')?.operator, { name: '$inc' })
  t.equal(single('{"value":{"a":1,"$inc":1}}'), undefined)
  t.equal(single('{"value":{"$other":1}}'), undefined)
})

t.test('names with a meaning elsewhere are ordinary names', async t => {
  const names = [
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'value',
    'metadata',
    'a.b',
    '$inc',
    '*',
    'geo:distance',
  ]
  for (const name of [...names, 'dateCreated', 'servicePath']) {
    const key = JSON.stringify(name)
    const normalized = acceptedOf(
      parseEntity(body(`{"id":"R1",${key}:{"value":1,"metadata":{${key}:{"value":2}}}}`), false),
    )
    t.strictSame([...normalized.attributes.keys()], [name], name)
    t.strictSame(plain(normalized.attributes.get(name)!).slice(0, 2), ['Number', 1], name)
    t.strictSame([...normalized.attributes.get(name)!.metadata!.keys()], [name], `metadata ${name}`)
    t.equal(normalized.attributes.get(name)!.metadata!.get(name)!.value, 2, `metadata ${name}`)
    const bare = acceptedOf(parseAttributes(body(`{${key}:1}`), true))
    t.strictSame(plain(bare.get(name)!), ['Number', 1], `${name}, keyValues`)
  }
})

t.test('keys with a meaning to the language are ordinary keys of a value', async t => {
  const sent = '{"__proto__":{"a":1},"constructor":2}'
  t.equal(JSON.stringify(attributeOf(`{"value":${sent}}`)[1]), sent)
  t.equal(
    answer(parseSingleAttribute('temp', body('{"value":{"__proto__":{"a":"<"}}}'))),
    'Invalid characters in attribute value',
  )
})

t.test('an entity whose only id is in __proto__ has none', async t => {
  const text = '{"__proto__":{"id":"R1"}}'
  t.equal(answer(parseEntity(body(text), true)), 'entity id length: 0, min length supported: 1')
})

t.test('attributes are read in the order in which they are sent', async t => {
  const { attributes } = acceptedOf(parseEntity(body('{"b":{},"id":"R1","a":{},"type":"Room","c":{}}'), false))
  t.strictSame([...attributes.keys()], ['b', 'a', 'c'])
})

/** This number of levels of brackets, alternately objects and arrays. */
const nested = (levels: number): string => {
  let text = '1'
  for (let level = 0; level < levels; level++) text = level % 2 ? `[${text}]` : `{"a":${text}}`
  return text
}

const tooDeep = 'ParseError attribute or metadata value has overpassed maximum nesting limit: 50'

const carriers: [what: string, read: (value: string) => Result<unknown>][] = [
  ['an attribute of an entity', value => parseEntity(body(`{"id":"R1","temp":{"value":${value}}}`), false)],
  ['an attribute of an entity, keyValues', value => parseEntity(body(`{"id":"R1","temp":${value}}`), true)],
  ['an attribute of a list', value => parseAttributes(body(`{"temp":{"value":${value}}}`), false)],
  ['a single attribute', value => parseSingleAttribute('temp', body(`{"value":${value}}`))],
  ['metadata', value => parseSingleAttribute('temp', body(`{"metadata":{"m":{"value":${value}}}}`))],
  ['a value', value => parseValue(body(value))],
]

t.test('values nest 50 levels deep, and no deeper', async t => {
  for (const [what, read] of carriers) {
    t.equal(answer(read(nested(50))), 'accepted', `${what}: 50`)
    t.equal(answer(read(nested(51))), tooDeep, `${what}: 51`)
    t.equal(answer(read(`[1,[2],${nested(50)}]`)), tooDeep, `${what}: 51 behind shallow ones`)
  }
})

t.test('a value alone is any JSON', async t => {
  for (const text of ['1', '"a"', 'true', 'null', '[1]', '{"value":5,"type":"X"}', '{"id":1}', '{}'])
    t.strictSame(acceptedOf(parseValue(body(text))), JSON.parse(text), text)
})

// Identifiers: which characters and lengths are legal, and the texts of the refusals. The character table is written
// down once more from the rule, as one list of the refused ones.

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

t.test('every character of one byte is legal or refused by the rule, in every place', async t => {
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

t.test('the refusal of a character names its position', async t => {
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

t.test('the characters alone can be checked, for every length', async t => {
  t.ok(hasIdentifierCharacters(''))
  t.ok(hasIdentifierCharacters('a'.repeat(1000)))
  for (const code of all256)
    t.equal(hasIdentifierCharacters(`a${String.fromCharCode(code)}`), isLegal(code), inWords(code))
})

t.test('legal names stay legal, and others stay refused, after checks of any number of names', async t => {
  const verdicts = () => places.map(place => [checkIdentifier(place, 'name'), checkIdentifier(place, 'no name')?.kind])
  const first = verdicts()
  for (let n = 0; n < 5000; n++) checkIdentifier('attribute name', `n${n}`)
  t.strictSame(verdicts(), first)
  t.strictSame(first, Array(places.length).fill([undefined, 'BadRequest']))
})

// Values written as plain text

const textValues: [text: string, value: Json][] = [
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

t.test('a text means a string in quotes, a number, a boolean or null', async t => {
  for (const [text, value] of textValues) t.strictSame(parseTextValue(text), { ok: true, value }, text)
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

// Equality, order and rendering of JSON values. Examples are tables; properties hold for any value fast-check invents.

import t from 'tap'
import {
  canonical,
  compare,
  equal,
  hasForbiddenCharacters,
  isRenderedAsIs,
  type Json,
  JsonWriter,
  renderJson,
  renderNumber,
  valueHasForbiddenCharacters,
} from '../../src/domain/json.js'
import fc from '../support/properties.js'

const parse = (text: string): Json => JSON.parse(text) as Json

/** Values with few distinct parts, so that equal ones meet often. */
const smallJson = fc.jsonValue({ maxDepth: 3, noUnicodeString: true }) as fc.Arbitrary<Json>
const clashingJson = fc.letrec<{ value: Json }>(tie => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<Json>(null, true, false, 0, -0, 1, '', 'a', 'b', '1'),
    fc.array(tie('value'), { maxLength: 2 }),
    fc
      .array(fc.tuple(fc.constantFrom('a', 'b', '1', '__proto__', 'constructor'), tie('value')), { maxLength: 3 })
      .map(members => Object.fromEntries(members)),
  ),
})).value

const equalities: [a: string, b: string, same: boolean][] = [
  ['{"a":1,"b":{"c":2,"d":3}}', '{"b":{"d":3,"c":2},"a":1}', true],
  ['[1,2]', '[2,1]', false],
  ['[1,2]', '[1,2,3]', false],
  ['[]', '{}', false],
  ['{}', '[]', false],
  ['{"0":1}', '[1]', false],
  ['null', '{}', false],
  ['1', '"1"', false],
  ['1', 'true', false],
  ['0', '-0', true],
  ['{"a":null}', '{"b":null}', false],
  ['{"__proto__":1}', '{"__proto__":1}', true],
  ['{"__proto__":{}}', '{"a":{}}', false],
  ['{"constructor":1}', '{"toString":1}', false],
]

t.test('values are equal in any order of keys, but not of elements', async t => {
  for (const [a, b, same] of equalities) {
    t.equal(equal(parse(a), parse(b)), same, `${a} and ${b}`)
    t.equal(equal(parse(b), parse(a)), same, `${b} and ${a}`)
  }
})

t.test('equality agrees with the canonical text and with the order', async () => {
  fc.assert(
    fc.property(clashingJson, clashingJson, (a, b) => {
      const same = equal(a, b)
      return same === (canonical(a) === canonical(b)) && same === (compare(a, b) === 0)
    }),
  )
})

t.test('a value equals itself after its keys were reversed', async () => {
  const reversed = (value: Json): Json =>
    Array.isArray(value)
      ? value.map(reversed)
      : typeof value === 'object' && value !== null
        ? Object.fromEntries(
            Object.entries(value)
              .reverse()
              .map(([key, part]) => [key, reversed(part)]),
          )
        : value
  fc.assert(fc.property(smallJson, value => equal(value, reversed(value))))
})

t.test('kinds are ordered null, number, string, object, array, boolean', async t => {
  const ascending = ['null', '-1e300', '-1', '0', '0.5', '1e300', '""', '"10"', '"9"', '"Z"', '"a"', '"é"', '{}']
    .concat(['{"a":1}', '{"a":1,"b":0}', '{"a":2}', '{"b":0}', '[]', '[1]', '[1,0]', '[2]', '["1"]', 'false', 'true'])
    .map(parse)
  for (let at = 1; at < ascending.length; at++) {
    const [lower, higher] = [ascending[at - 1]!, ascending[at]!]
    t.ok(compare(lower, higher) < 0, `${JSON.stringify(lower)} < ${JSON.stringify(higher)}`)
    t.ok(compare(higher, lower) > 0, `${JSON.stringify(higher)} > ${JSON.stringify(lower)}`)
  }
})

t.test('a missing value is ordered like null', async t => {
  t.equal(compare(undefined, null), 0)
  t.equal(compare(undefined, undefined), 0)
  t.ok(compare(undefined, -1) < 0)
  t.ok(compare('', undefined) > 0)
})

t.test('the order is total: antisymmetric and transitive', async () => {
  fc.assert(
    fc.property(clashingJson, clashingJson, clashingJson, (a, b, c) => {
      if (Math.sign(compare(a, b)) !== -Math.sign(compare(b, a))) return false
      return !(compare(a, b) <= 0 && compare(b, c) <= 0) || compare(a, c) <= 0
    }),
  )
})

const numbers: [n: number, text: string][] = [
  [200, '200'],
  [200.0000000001, '200'],
  [199.9999999999, '200'],
  [-199.9999999999, '-200'],
  [0, '0'],
  [-0, '0'],
  [1e-10, '0'],
  [-1e-10, '0'],
  [5e-324, '0'],
  [0.1, '0.1'],
  [0.1 + 0.2, '0.3'],
  [442.123456785551, '442.123456786'],
  [-442.123456785551, '-442.123456786'],
  [123456789.123, '123456789.123'],
  [1.5e-7, '0.00000015'],
  [2e-9, '0.000000002'],
  [1.0000000014, '1.000000001'],
  [0.10000000004, '0.1'],
  [2 ** 53, '9007199254740992'],
  [1e20, '100000000000000000000'],
  [1e21, '1000000000000000000000'],
  [-1.25e22, '-12500000000000000000000'],
  [1e23, '100000000000000000000000'],
  [1.7976931348623157e308, `17976931348623157${'0'.repeat(292)}`],
]

t.test('numbers are written whole or with at most nine decimals, never with an exponent', async t => {
  for (const [n, text] of numbers) t.equal(renderNumber(n), text, String(n))
})

t.test('a rendered number is plain, short, and near the number', async () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), n => {
      const text = renderNumber(n)
      const near = Math.abs(Number(text) - n) <= 1e-9
      return near && /^(0|-?[1-9][0-9]*|-?[0-9]+\.[0-9]{0,8}[1-9])$/.test(text)
    }),
  )
})

t.test('whole numbers of any size read back as they were', async () => {
  const whole = fc.double({ noNaN: true, noDefaultInfinity: true }).map(Math.round)
  fc.assert(fc.property(whole, n => Number(renderNumber(n)) === n))
})

t.test('a value is rendered as is exactly when the platform writes it the same', async () => {
  const numeric = fc.oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.double({ min: -2, max: 2, noNaN: true }),
    fc.integer(),
    fc.integer({ min: -1e9, max: 1e9 }).map(n => n / 1e6),
    fc.constantFrom(...numbers.map(([n]) => n)),
  )
  fc.assert(fc.property(numeric, n => isRenderedAsIs(n) === (JSON.stringify(n) === renderNumber(n))))
  fc.assert(fc.property(smallJson, value => isRenderedAsIs(value) === (JSON.stringify(value) === renderJson(value))))
})

t.test('compound values are compact, with numbers as the interface writes them', async t => {
  const value = parse('{"a": [1.0, 442.123456785551, {"__proto__": 1e21}], "b\\"": "é\\n"}')
  const text = '{"a":[1,442.123456786,{"__proto__":1000000000000000000000}],"b\\"":"é\\n"}'
  t.equal(renderJson(value), text)
  t.equal(renderJson([]), '[]')
  t.equal(renderJson([1e-10, []]), '[0,[]]')
  t.equal(renderJson([1e-10, {}]), '[0,{}]')
})

t.test('fifty levels are rendered and compared', async t => {
  const deep = (n: number): Json => {
    let value: Json = n
    for (let level = 0; level < 50; level++) value = level % 2 ? [value] : { a: value }
    return value
  }
  t.ok(equal(deep(1), deep(1)))
  t.ok(compare(deep(1), deep(2)) < 0)
  t.match(renderJson(deep(1e-10)), /\{"a":0\}/)
})

t.test('the general forbidden characters are found, and no others', async t => {
  for (const character of '<>"\'=;()') t.ok(hasForbiddenCharacters(`a${character}b`), character)
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), text => {
      return hasForbiddenCharacters(text) === [...'<>"\'=;()'].some(character => text.includes(character))
    }),
  )
  t.notOk(hasForbiddenCharacters('&?/#{}[]|%,.!$é 漢'))
})

t.test('forbidden characters are found in strings and keys at any depth', async t => {
  const bad = ['"<"', '["a","("]', '{"a":{"b":[{"c":"="}]}}', '{"a;":1}', '[[{"(":null}]]'].map(parse)
  const good = ['"a"', '1', 'null', 'true', '{"a":{"b":["c",1,null,false]}}', '[]', '{}'].map(parse)
  for (const value of bad) t.ok(valueHasForbiddenCharacters(value), JSON.stringify(value))
  for (const value of good) t.notOk(valueHasForbiddenCharacters(value), JSON.stringify(value))
})

// The writer of JSON bytes, compared with JSON.stringify and with the text that the interface renders

/** One writer for all tests: earlier output must not show. */
const shared = new JsonWriter()

function written(value: Json, offset = 0): { text: string; asIs: boolean } {
  shared.restart(offset)
  shared.value(value)
  return { text: Buffer.from(shared.bytes.subarray(offset, shared.length)).toString(), asIs: shared.asIs }
}

const number = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.integer(),
  fc.integer({ min: -1e9, max: 1e9 }).map(n => n / 1e6),
  fc.constantFrom(0, -0, 1e21, -1e21, 1e-10, 5e-324, 1.7976931348623157e308, 2 ** 53, 0.1 + 0.2, 442.123456785551),
)
const text = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: 'binary-ascii' }),
  fc.string({ unit: fc.constantFrom('"', '\\', '\n', '\u0000', '\u001f', '\u007f', '\u0080', '߿', 'ࠀ', '￿', '😀') }),
)
const json = fc.letrec<{ value: Json }>(tie => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom<Json>(null, true, false),
    number,
    text,
    fc.array(tie('value'), { maxLength: 5 }),
    fc
      .array(fc.tuple(fc.oneof(text, fc.constantFrom('__proto__', 'constructor', '1')), tie('value')), { maxLength: 5 })
      .map(members => Object.fromEntries(members)),
  ),
})).value

t.test('any JSON is written byte for byte as JSON.stringify writes it', async () => {
  fc.assert(
    fc.property(json, value => written(value).text === JSON.stringify(value)),
    { numRuns: 1000 },
  )
})

const awkward: [value: Json, text: string][] = [
  [-0, '0'],
  [1e21, '1e+21'],
  [1e-7, '1e-7'],
  [[], '[]'],
  [{}, '{}'],
  [[[], {}, [{}]], '[[],{},[{}]]'],
  ['', '""'],
  [{ '': '' }, '{"":""}'],
  ['a"b\\c', '"a\\"b\\\\c"'],
  ['\u0000\b\t\n\u001f', '"\\u0000\\b\\t\\n\\u001f"'],
  ['\u007f', '"\u007f"'],
  ['é漢😀', '"é漢😀"'],
  [{ é: { '😀"': 1 } }, '{"é":{"😀\\"":1}}'],
  [[null, true, false], '[null,true,false]'],
  [JSON.parse('{"__proto__":{"constructor":1}}') as Json, '{"__proto__":{"constructor":1}}'],
]

t.test('awkward values are written as JSON wants them', async t => {
  for (const [value, text] of awkward) t.equal(written(value).text, text, text)
})

t.test('whole numbers around every power of ten are written digit by digit or not, all the same', async t => {
  for (let power = 1; power <= 1e21; power *= 10)
    for (const n of [power - 1, power, power + 1, 9 * power, -power]) t.equal(written(n).text, JSON.stringify(n))
  t.equal(written(-0).text, '0')
})

t.test('a copy of any length is that part of the bytes', async t => {
  const from = Uint8Array.from({ length: 400 }, (_, at) => at % 251)
  const writer = new JsonWriter()
  for (let length = 0; length <= 300; length++) {
    writer.restart(3)
    writer.copy(from, 7, 7 + length)
    writer.raw('x')
    const expected = [...from.subarray(7, 7 + length), 0x78]
    t.strictSame([...writer.bytes.subarray(3, writer.length)], expected, `${length}`)
  }
})

t.test('a lone surrogate is escaped, so that the bytes stay UTF-8', async t => {
  t.equal(written('\ud800a').text, '"\\ud800a"')
})

t.test('the values that are written as is are those that are rendered as is', async () => {
  fc.assert(
    fc.property(json, value => {
      const { text, asIs } = written(value)
      return asIs === isRenderedAsIs(value) && (!asIs || text === renderJson(value))
    }),
    { numRuns: 1000 },
  )
})

t.test('one number that is rendered otherwise spoils the whole text until the writer begins anew', async t => {
  const writer = new JsonWriter()
  writer.value([1, { a: [1e21] }, 2])
  writer.value('a')
  t.notOk(writer.asIs)
  writer.restart(0)
  writer.value(2)
  t.ok(writer.asIs)
})

t.test('pieces follow one another', async t => {
  const writer = new JsonWriter()
  writer.raw('{"id":')
  writer.string('Räum "1"')
  writer.raw(',"a":')
  writer.value([1.5])
  writer.utf8(',"ß":"漢😀"')
  writer.raw('}')
  t.equal(Buffer.from(writer.bytes.subarray(0, writer.length)).toString(), '{"id":"Räum \\"1\\"","a":[1.5],"ß":"漢😀"}')
})

t.test('beginning anew leaves the asked room for the caller', async t => {
  const writer = new JsonWriter()
  writer.value('x'.repeat(100))
  writer.restart(8)
  writer.bytes.fill(0x2e, 0, 8)
  writer.value(true)
  t.equal(Buffer.from(writer.bytes.subarray(0, writer.length)).toString(), '........true')
})

/** Values that are larger than the writer's first buffer. */
const large: [by: string, value: Json][] = [
  ['one long plain string', 'a'.repeat(200_000)],
  ['one long string beyond ASCII', 'é漢😀'.repeat(60_000)],
  ['one long string of escapes', '"\n\u0001'.repeat(60_000)],
  ['many numbers', Array.from({ length: 50_000 }, (_, n) => n / 8)],
  ['many short members', Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`k${n}`, `v${n}`]))],
  ['many empty objects', Array.from({ length: 50_000 }, () => ({}))],
]

t.test('text beyond the first buffer keeps the text before it', async t => {
  for (const [by, value] of large) {
    const writer = new JsonWriter()
    const room = writer.bytes.length
    writer.raw('head:')
    writer.value(value)
    const text = Buffer.from(writer.bytes.subarray(0, writer.length)).toString()
    t.ok(writer.length > room, `${by}: is larger`)
    t.ok(text === `head:${JSON.stringify(value)}`, by)
  }
})

t.test('text that ends exactly with the buffer, or one byte on either side of it, is whole', async t => {
  for (const difference of [-2, -1, 0, 1, 2]) {
    const writer = new JsonWriter()
    const value = 'a'.repeat(writer.bytes.length + difference - 2)
    writer.string(value)
    t.ok(Buffer.from(writer.bytes.subarray(0, writer.length)).toString() === `"${value}"`, `${difference}`)
  }
})

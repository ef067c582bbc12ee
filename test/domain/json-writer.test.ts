// The writer of JSON bytes, held against JSON.stringify and against the text the interface would render.
import fc from 'fast-check'
import t from 'tap'
import { isRenderedAsIs, type Json, renderJson } from '../../src/domain/json.js'
import { JsonWriter } from '../../src/domain/json-writer.js'

/** One writer for all: what was written before must not show. */
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

t.test('what is written as is agrees with what is rendered as is', async () => {
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

/** By what the writer is brought beyond its first buffer. */
const large: [by: string, value: Json][] = [
  ['one long plain string', 'a'.repeat(200_000)],
  ['one long string beyond ASCII', 'é漢😀'.repeat(60_000)],
  ['one long string of escapes', '"\n\u0001'.repeat(60_000)],
  ['many numbers', Array.from({ length: 50_000 }, (_, n) => n / 8)],
  ['many short members', Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`k${n}`, `v${n}`]))],
  ['many empty objects', Array.from({ length: 50_000 }, () => ({}))],
]

t.test('text beyond the first buffer keeps what was written before', async t => {
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

// JSON from the bytes of a body: accepted and refused bodies, and duplicate keys. And bodies that take long: they share
// a slice of each tick.

import t from 'tap'
import { refusalText } from '../../src/domain/refusal.js'
import { BodyTurns, parseJson } from '../../src/http/body.js'
import fc from '../support/properties.js'

const parse = (body: string | Uint8Array) => parseJson(Buffer.from(body))

/** The error text, or undefined if the body was accepted. */
function refusalOf(body: string | Uint8Array): string | undefined {
  const result = parse(body)
  return result.ok ? undefined : `${result.refusal.kind}: ${refusalText(result.refusal)}`
}

/** Paths of duplicate keys, each written as JSON. */
function duplicatesOf(body: string): string[] {
  const result = parse(body)
  if (!result.ok) throw new Error(refusalText(result.refusal))
  return result.value.duplicates.map(path => JSON.stringify(path))
}

const notJson = 'ParseError: Errors found in incoming JSON buffer'
const tooDeep = 'ParseError: attribute or metadata value has overpassed maximum nesting limit: 50'

t.test('a body that is JSON gives its value', async t => {
  for (const text of ['{}', '[]', 'null', 'true', '-0.5e3', '""', ' \t\r\n{"a" : [1, {"b":"ü€😀"}]}\n']) {
    const result = parse(text)
    t.strictSame(result.ok && result.value.value, JSON.parse(text), text)
  }
})

t.test('a body that is not JSON is refused', async t => {
  const texts = ['{', '}', '{]', '{"a"}', '{"a":}', '{"a":1,}', '[1,]', '{a:1}', "{'a':1}", '{"a":1}x', '{} {}']
  for (const text of [...texts, 'nul', 'NaN', '01', '+1', '1.', '"a', '"\\x"', '"\n"', '{"a":1 /* no */}'])
    t.equal(refusalOf(text), notJson, text)
})

t.test('an empty body and one of blanks are not JSON', async t => {
  for (const text of ['', ' ', '\n\t \r']) t.equal(refusalOf(text), notJson, JSON.stringify(text))
})

t.test('a byte order mark is not JSON', async t => {
  t.equal(refusalOf('\ufeff{}'), notJson)
})

t.test('bytes that are not UTF-8 are refused, inside and outside of strings', async t => {
  const inQuotes = (...bytes: number[]) => Buffer.from([0x22, ...bytes, 0x22])
  const bodies: readonly (readonly [string, Uint8Array])[] = [
    ['a lone continuation byte', inQuotes(0x80)],
    ['a sequence cut short', inQuotes(0xe2, 0x82)],
    ['an overlong slash', inQuotes(0xc0, 0xaf)],
    ['a surrogate as three bytes', inQuotes(0xed, 0xa0, 0x80)],
    ['a code point beyond the last', inQuotes(0xf4, 0x90, 0x80, 0x80)],
    ['Latin-1', inQuotes(0xe9)],
    ['behind an escape', inQuotes(0x5c, 0x6e, 0xff)],
    ['outside of a string', Buffer.from([0x7b, 0xff, 0x7d])],
  ]
  for (const [name, body] of bodies) t.equal(refusalOf(body), notJson, name)
})

t.test('a lone surrogate written as an escape is refused, in values and in keys', async t => {
  const texts = ['"\\ud800"', '"\\udc00"', '"\\udc00\\ud800"', '{"\\ud800":1}', '[[{"a":"x\\uDBFFy"}]]']
  for (const text of texts) t.equal(refusalOf(text), notJson, text)
})

t.test('a pair of surrogates written as escapes is a character', async t => {
  t.match(parse('{"\\ud83d\\ude00":"\\ud83d\\ude00"}'), { ok: true, value: { value: { '😀': '😀' } } })
})

t.test('a number beyond a double is refused at any depth', async t => {
  for (const text of ['1e999', '-1e999', '{"a":[1,{"b":1e999}]}']) t.equal(refusalOf(text), notJson, text)
})

t.test('a number too small for a double is zero', async t => {
  t.match(parse('1e-999'), { ok: true, value: { value: 0 } })
})

const duplicates: readonly (readonly [name: string, text: string, ...paths: (readonly (string | number)[])[]])[] = [
  ['none', '{"a":1,"b":{"a":1}}'],
  ['the same key at different levels', '{"a":{"a":{"a":1}}}'],
  ['the same key in two items', '[{"a":1},{"a":2}]'],
  ['at the root', '{"a":1,"b":2,"a":3}', ['a']],
  ['three times is told once', '{"a":1,"a":2,"a":3}', ['a']],
  ['with equal values', '{"a":1,"a":1}', ['a']],
  ['below a key', '{"a":{"b":{"c":1,"c":2}}}', ['a', 'b', 'c']],
  ['inside an array', '{"a":[0,[{"b":1},{"b":1,"b":2}]]}', ['a', 1, 1, 'b']],
  ['an escaped letter and the letter', '{"a":1,"\\u0061":2}', ['a']],
  ['the letter and an escaped letter', '{"\\u0061":1,"a":2}', ['a']],
  ['two ways to escape', '{"\\n":1,"\\u000a":2}', ['\n']],
  ['a slash and an escaped slash', '{"/":1,"\\/":2}', ['/']],
  ['the empty key', '{"":1,"":2}', ['']],
  ['the names of what every object has', '{"__proto__":1,"constructor":2,"__proto__":3}', ['__proto__']],
  ['keys with braces, colons and quotes', '{"{\\":[":1,"{\\":[":2}', ['{":[']],
  ['keys that end in a backslash', '{"a\\\\":1,"a\\\\":{"b":2}}', ['a\\']],
  ['non-ASCII keys', '{"ü":1,"\\u00fc":2}', ['ü']],
  ['in both of two objects', '[{"a":1,"a":1},{"b":1,"b":1}]', [0, 'a'], [1, 'b']],
  ['within blanks', ' { "a" : 1 ,\n"a"\t: [ ] , "b" : { } } ', ['a']],
  ['behind all kinds of values', '{"x":[1.5e3,true,null,"],}",{},[]],"a":-1,"a":false}', ['a']],
]

t.test('a duplicate key is found with its path', async t => {
  for (const [name, text, ...paths] of duplicates)
    t.strictSame(
      duplicatesOf(text),
      paths.map(path => JSON.stringify(path)),
      name,
    )
})

t.test('colons, braces, quotes and backslashes inside strings are text', async t => {
  const value = { 'a:b': '{"x":1,"x":2}', '\\': '"\\":', ':::': ['[[[[', '}}', '\\"', '\\\\'], '"': ':' }
  t.strictSame(duplicatesOf(JSON.stringify(value)), [])
})

t.test('a duplicate key is found in plain text, behind an escape and behind a letter beyond ASCII', async t => {
  for (const text of ['plain :{[', 'a \\n b', 'ü', 'ü \\n'])
    t.strictSame(duplicatesOf(`{"x":"${text}","a":1,"b":{"a":"]}"},"a":2}`), ['["a"]'], text)
})

t.test('names that every object has are ordinary keys', async t => {
  const text = '{"__proto__":{"polluted":true},"constructor":1,"toString":2,"hasOwnProperty":3}'
  const result = parse(text)
  t.equal(result.ok && JSON.stringify(result.value.value), text)
  t.equal(({} as Record<string, unknown>).polluted, undefined)
})

t.test('nesting of 100,000 levels is refused at once', async t => {
  const levels = 100_000
  const bodies = [
    '['.repeat(levels) + ']'.repeat(levels),
    `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`,
    '['.repeat(levels),
    '[{"a":'.repeat(levels),
  ]
  for (const body of bodies) {
    const beginMs = performance.now()
    t.equal(refusalOf(body), tooDeep, body.slice(0, 12))
    t.ok(performance.now() - beginMs < 1_000, 'at once')
  }
})

t.test('levels are the brackets open at a time, not their number', async t => {
  t.equal(refusalOf(`[${'[],'.repeat(10_000)}[]]`), undefined)
})

t.test('brackets inside strings are not levels', async t => {
  t.equal(refusalOf(JSON.stringify(['['.repeat(1000), { '{{{{': '['.repeat(1000) }])), undefined)
})

t.test('only a document that nests deeper than a value may is marked as deep', async t => {
  const deep = (levels: number) => {
    const result = parse('['.repeat(levels) + ']'.repeat(levels))
    return result.ok && result.value.deep
  }
  t.equal(deep(50), false)
  t.equal(deep(51), true)
})

t.test('fifty thousand duplicate keys are found in reasonable time', async t => {
  const beginMs = performance.now()
  const found = duplicatesOf(`{${Array.from({ length: 100_000 }, (_, i) => `"k${i % 50_000}":1`).join()}}`)
  t.equal(found.length, 50_000)
  t.ok(performance.now() - beginMs < 5_000)
})

t.test('random JSON is read as JSON.parse reads it, and has no duplicates', async () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 6 }), fc.constantFrom(undefined, 2, '\t'), (text, indent) => {
      const pretty = JSON.stringify(JSON.parse(text), null, indent)
      const result = parse(pretty)
      return (
        result.ok &&
        JSON.stringify(result.value.value) === JSON.stringify(JSON.parse(pretty)) &&
        result.value.duplicates.length === 0
      )
    }),
  )
})

t.test('random text is taken exactly when JSON.parse takes it', async () => {
  const tokens = fc.array(
    fc.constantFrom('{', '}', '[', ']', ',', ':', '"a"', '"\\""', '1', '-', 'null', ' ', '"', '\\', 'é'),
    { maxLength: 12 },
  )
  fc.assert(
    fc.property(tokens, parts => {
      const text = parts.join('')
      let valid = true
      try {
        JSON.parse(text)
      } catch {
        valid = false
      }
      return parse(text).ok === valid
    }),
    { numRuns: 2_000 },
  )
})

t.test('a duplicate key injected into any object is found', async () => {
  const object = fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue({ maxDepth: 3 }), { minKeys: 1 })
  const escapeAll = (key: string) => {
    let text = ''
    for (let i = 0; i < key.length; i++) text += `\\u${key.charCodeAt(i).toString(16).padStart(4, '0')}`
    return text
  }
  fc.assert(
    fc.property(object, fc.nat(), fc.boolean(), fc.boolean(), (members, pick, escaped, wrapped) => {
      const keys = Object.keys(members)
      const key = keys[pick % keys.length] as string
      const again = escaped ? `"${escapeAll(key)}"` : JSON.stringify(key)
      const text = `${JSON.stringify(members).slice(0, -1)},${again}:[{}]}`
      const path = wrapped ? ['list', 0, key] : [key]
      const found = duplicatesOf(wrapped ? `{"list":[${text}]}` : text)
      return found.length === 1 && found[0] === JSON.stringify(path)
    }),
  )
})

/** Turns by a clock that only a handler moves; `tick` ends a tick of the event loop. */
function turnsOf() {
  let nowMs = 0
  let ends: (() => void)[] = []
  const handled: string[] = []
  const turns = new BodyTurns({ monoMs: () => nowMs }, run => ends.push(run))
  return {
    handled,
    /** Takes a body whose handler needs `takesMs`. */
    take: (body: Uint8Array, takesMs: number) =>
      turns.take(body, bytes => {
        nowMs += takesMs
        handled.push(Buffer.from(bytes).toString())
      }),
    tick: () => {
      const ended = ends
      ends = []
      for (const run of ended) run()
    },
    ticksDue: () => ends.length,
  }
}

const bytesOf = (text: string): Uint8Array => Buffer.from(text)

t.test('bodies are handled at once until they have taken 10 ms, then in the next tick, in their order', async t => {
  const { take, tick, handled } = turnsOf()
  take(bytesOf('a'), 6)
  take(bytesOf('b'), 6)
  take(bytesOf('c'), 6)
  take(bytesOf('d'), 6)
  t.strictSame(handled, ['a', 'b'])
  take(bytesOf('e'), 1)
  tick()
  t.strictSame(handled, ['a', 'b', 'c', 'd'])
  tick()
  t.strictSame(handled, ['a', 'b', 'c', 'd', 'e'])
})

t.test('a body that waits is a copy: the receive buffer may be used again', async t => {
  const { take, tick, handled } = turnsOf()
  take(bytesOf('first'), 10)
  const buffer = bytesOf('second')
  take(buffer, 1)
  buffer.fill(0x78)
  tick()
  t.strictSame(handled, ['first', 'second'])
})

t.test(
  'a body that takes longer than a slice delays the next one by one tick only, and nothing runs when nothing waits',
  async t => {
    const { take, tick, handled, ticksDue } = turnsOf()
    take(bytesOf('a'), 30)
    take(bytesOf('b'), 30)
    take(bytesOf('c'), 30)
    tick()
    t.strictSame(handled, ['a', 'b'])
    tick()
    t.strictSame(handled, ['a', 'b', 'c'])
    tick()
    t.equal(ticksDue(), 0, 'the loop is left alone')
  },
)

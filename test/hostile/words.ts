// Texts and values that are difficult for programs: names that objects have by themselves, characters that are
// forbidden, numbers without an end.
//
// Not here: where they are put (mutations), what is valid (valid-requests).

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: a macro looks like that

import { one } from '../support/mutator.js'
import type { Random } from '../support/random.js'

/**
 * Every one is a legal identifier (docs/interface/entities.md#identifiers), and most have another meaning for a
 * program.
 */
export const oddNames = [
  '__proto__',
  'constructor',
  'hasOwnProperty',
  'toString',
  'prototype',
  'valueOf',
  'toJSON',
  'then',
  'length',
  '__defineGetter__',
  '$inc',
  '$set',
  '.',
  '..',
  '%',
  '%00',
  '*',
  '!a',
  'a,b',
  'a.b',
  'a:b',
  '{id}',
  '[0]',
  '${id}',
  'dateCreated',
  'dateExpires',
  'servicePath',
  'previousValue',
  'null',
  'undefined',
  'NaN',
  '0',
  '-1',
] as const

/** None is a legal identifier. */
export const wrongNames: readonly string[] = [
  '',
  ' ',
  'a b',
  'a/b',
  'a?b',
  'a&b',
  'a#b',
  '<script>alert(1)</script>',
  '"',
  "'",
  '=',
  ';',
  '(',
  ')',
  'é',
  '一',
  '😀',
  'e\u0301',
  '\u202e',
  '\ud800',
  '\udc00x',
  '\0',
  'a\0b',
  '\t',
  '\n',
  '\r\nX-Forged: yes',
  ' | lvl=FATAL | forged',
  '\x7f',
  '\u0085',
  '\u2028',
  '\ufeff',
  '\uffff',
  '../../etc/passwd',
  'x'.repeat(257),
  'é'.repeat(129),
  'x'.repeat(20_000),
]

export const anyNames: readonly string[] = [...oddNames, ...wrongNames]

/** A place in a tree for text that is not a JSON value: `writeJson` writes the text unchanged. */
export class RawJson {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

const nested = (open: string, close: string, depth: number): RawJson =>
  new RawJson(open.repeat(depth) + close.repeat(depth))

/** Values that `oddValue` copies, to replace any value of a body. */
const oddValues: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e308,
  -1e308,
  5e-324,
  1e-9,
  2 ** 53,
  1e21,
  '',
  'text',
  [],
  {},
  [[]],
  [null],
  [{}],
  { a: {} },
  ['__proto__'],
  { value: null },
  { type: 'Number', value: 'x' },
  { type: 'DateTime', value: '2026-13-45T99:99:99Z' },
  { type: 'DateTime', value: '9999999-01-01' },
  { type: 'geo:point', value: '91,181' },
  { type: 'geo:json', value: { type: 'Polygon', coordinates: [[[0, 0]]] } },
  { type: 'geo:json', value: { type: 'Point', coordinates: ['1', null] } },
  { type: 'geo:json', value: { type: 'GeometryCollection', geometries: [{ type: 'Point' }] } },
  { value: { $inc: 'x' } },
  { value: { $push: { $each: 1 } } },
  { value: { $set: { $set: { $set: 1 } } } },
  { $inc: 1, $mul: 2 },
  new RawJson('-0'),
  new RawJson('1e400'),
  new RawJson('-1e400'),
  new RawJson('1'.repeat(5_000)),
  new RawJson('0.'.padEnd(3_000, '1')),
  new RawJson('1e-99999'),
  new RawJson('9007199254740993'),
  new RawJson('01'),
  new RawJson('1.'),
  new RawJson('.5'),
  new RawJson('0x10'),
  new RawJson('NaN'),
  new RawJson('Infinity'),
  new RawJson('undefined'),
  new RawJson("'text'"),
  new RawJson('"\\ud800"'),
  new RawJson('"\\udc00\\ud800"'),
  new RawJson('"\\u0000"'),
  new RawJson('"\\x"'),
  new RawJson('"a\nb"'),
  new RawJson('/* */ 1'),
  new RawJson('{"a":1,"a":2}'),
  new RawJson('{"__proto__":{"polluted":true}}'),
  new RawJson('{"constructor":{"prototype":{"polluted":true}}}'),
  new RawJson('{"\\u005f_proto__":{"polluted":true}}'),
  nested('[', ']', 49),
  nested('[', ']', 50),
  nested('[', ']', 51),
  nested('[', ']', 5_000),
  new RawJson(`${'{"a":'.repeat(49)}1${'}'.repeat(49)}`),
  new RawJson(`${'{"a":'.repeat(60)}1${'}'.repeat(60)}`),
  new RawJson(`${'{"a":'.repeat(4_000)}1${'}'.repeat(4_000)}`),
  new RawJson('['.repeat(30_000)),
  ...anyNames,
]

/** A copy of one of them, which the caller may change. */
export const oddValue = (random: Random): unknown => copyOf(one(random, oddValues))

export function copyOf(value: unknown): unknown {
  if (value instanceof RawJson || typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(copyOf)
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, copyOf(member)]))
}

/** As JSON.stringify, but raw texts are written unchanged. The tree comes from a parser or from literals. */
export function writeJson(value: unknown): string {
  if (value instanceof RawJson) return value.text
  if (Array.isArray(value)) return `[${value.map(writeJson).join(',')}]`
  if (typeof value === 'object' && value !== null)
    return `{${Object.entries(value)
      .map(([key, member]) => `${JSON.stringify(key)}:${writeJson(member)}`)
      .join(',')}}`
  return JSON.stringify(value) ?? 'null'
}

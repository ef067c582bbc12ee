// Entities with values that are rare, large, deep or misleading, under the names that the tables of test/cases use.

import type { Attribute, Entity } from '../../src/domain/entities/entity.js'
import type { Json } from '../../src/domain/json.js'
import { stampOf } from '../../src/domain/stamp.js'

const madeMs = Date.UTC(2024, 5, 1)

const repeated = (part: string, length: number): string => part.repeat(Math.ceil(length / part.length)).slice(0, length)

/** A text of `a` and `b` without a period, which keeps automata busy. */
export function restless(length: number): string {
  let text = ''
  for (let at = 0, state = 1; at < length; at++) {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0
    text += state & 0x10000 ? 'a' : 'b'
  }
  return text
}

/** Texts of up to 10,000 characters that are difficult for patterns and comparisons. */
export const oddTexts: readonly string[] = [
  '',
  'a',
  'Room',
  'urn:ngsi-ld:Device:17',
  '\0',
  '\n\r\n',
  'é😀一\u2028',
  '\ud800',
  '\udc00a',
  '__proto__',
  '2024-01-01T00:00:00.000Z',
  repeated('a', 28),
  `${repeated('a', 27)}!`,
  restless(300),
  repeated('ab', 1_000),
  repeated('a', 10_000),
  `${repeated('a', 9_999)}!`,
  restless(10_000),
  repeated('😀', 10_000),
  repeated('a b.c:d\n', 10_000),
]

function deep(levels: number): Json {
  let value: Json = 1
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { k: value }
  return value
}

const oddValues: readonly Json[] = [
  null,
  true,
  false,
  0,
  -0,
  21,
  1e308,
  5e-324,
  1704067200.5,
  ...oddTexts.filter(text => text.isWellFormed()),
  [],
  {},
  [[]],
  [1, 'a', null, true, { k: 1 }, [2]],
  JSON.parse('{"__proto__":{"city":"Vigo"},"constructor":1,"":2,"toString":null,"0":3}'),
  deep(50),
  Array.from({ length: 1_000 }, (_, at) => at),
  Array.from({ length: 1_000 }, (_, at) => ({ k: at, city: `c${at}`, 0: [{ k: at }] })),
  Array.from({ length: 300 }, () => restless(30)),
  Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`k${at}`, at])),
  { city: 'Vigo', zip: 36201, k: { k: { k: ['x'] } }, 'x.y': 1 },
]

/** Types with a value that is valid for them. */
const typedValues: readonly (readonly [type: string, value: Json])[] = [
  ['DateTime', '2024-01-01T00:00:00.000Z'],
  ['ISO8601', '9999-12-31T23:59:59.999Z'],
  ['DateTime', null],
  ['geo:point', '40.4, -3.7'],
  [
    'geo:json',
    {
      type: 'Polygon',
      coordinates: [
        [
          [0, 0],
          [4, 0],
          [4, 2],
          [0, 2],
          [0, 0],
        ],
      ],
    },
  ],
  [
    'geo:json',
    {
      type: 'Feature',
      geometry: {
        type: 'MultiPoint',
        coordinates: [
          [180, 90],
          [-180, -90],
        ],
      },
    },
  ],
  ['geo:json', null],
]

/** `0` first: stored names that are array indexes come first. */
const names = ['0', 'A', 'B', 'temp', 'status', 'tags', 'addr', 'at', 'last', 'k', 'x.y', '__proto__', 'dateExpires']

const valued = (type: string, value: Json, metadata: Attribute['metadata'] = new Map()): Attribute => ({
  type,
  value,
  metadata,
  createdMs: madeMs,
  modifiedMs: madeMs + 1000,
})

const isLocation = (type: string): boolean => type.startsWith('geo:')

/** Every odd value occurs under every name in some entity. Each entity has one location at most. */
export const oddEntities: readonly Entity[] = Array.from({ length: oddValues.length }, (_, shift) => {
  const attributes = new Map<string, Attribute>()
  let located = false
  for (const [at, name] of names.entries()) {
    const value = oddValues[(at + shift) % oddValues.length] as Json
    const [type, typed] = typedValues[(at + shift) % typedValues.length] as (typeof typedValues)[number]
    const metadata = new Map([
      ['acc', { type: 'Any', value: at % 5 === 0 ? value : at }],
      ['cal.date', { type: 'DateTime', value: '2024-01-01T00:00:00.000Z' }],
      ['dateCreated', { type: 'Number', value: 7 }],
    ])
    if (at % 3 !== 0 || (located && isLocation(type))) attributes.set(name, valued('Any', value, metadata))
    else attributes.set(name, valued(type, typed, metadata))
    located ||= at % 3 === 0 && isLocation(type)
  }
  const id = shift === 0 ? 'a'.repeat(256) : `urn:ngsi-ld:Odd:${shift}`
  return { id, type: shift % 2 === 0 ? 'Room' : 'T', attributes, created: stampOf(madeMs) + shift, modifiedMs: madeMs }
})

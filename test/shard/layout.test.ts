// Keys: no two places share one, they sort as their parts do, and a range has exactly the keys that begin with it.

import assert from 'node:assert/strict'
import t from 'tap'
import type { Range } from '../../src/ports.js'
import {
  decodeDocumentRow,
  documentKey,
  documentRange,
  encodeDocumentRow,
  parseDocumentKey,
} from '../../src/shard/documents/document-layout.js'
import { decodeNumber, encodeNumber, shardOfKey, under } from '../../src/shard/keys.js'
import {
  allEntities,
  allIndexes,
  decodeRow,
  encodeRow,
  entityCounts,
  entityKey,
  expiryKey,
  expiryRange,
  idKey,
  idRange,
  parseEntityKey,
  parseExpiryKey,
  parseIdKey,
  parseTypeKey,
  stampKey,
  typeKey,
  typeRange,
} from '../../src/shard/layout.js'
import {
  decodeLetterRow,
  encodeLetterRow,
  letterKey,
  letterRange,
  parseLetterKey,
} from '../../src/shard/notify/notification-layout.js'
import fc from '../support/properties.js'

/** Any text, and often one near another: beginnings of it, with the bytes 0, 1 and 2, or beyond ASCII. */
const texts = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.string({ unit: fc.constantFrom('\0', '\u0001', '\u0002', 'a', '/', 'é', '𝄞', '\uffff'), maxLength: 4 }),
)
const shards = fc.oneof(fc.nat(65_535), fc.constantFrom(0, 1, 255, 256, 65_535))
const stamps = fc.oneof(fc.maxSafeNat(), fc.nat(3))
const dates = fc.oneof(fc.integer({ min: -1e14, max: 3e14 }), fc.integer({ min: -2, max: 2 }))

const inRange = ({ gte, lt }: Range, key: Buffer): boolean => key.compare(gte) >= 0 && key.compare(lt) < 0

type Part = string | number
/** Texts compare as their UTF-8 bytes do, so by code points and not by code units. */
function comparePart(a: Part, b: Part): number {
  if (typeof a === 'string') return Buffer.from(a).compare(Buffer.from(b as string))
  return Math.sign(a - (b as number))
}
function compareParts(a: readonly Part[], b: readonly Part[]): number {
  for (const [index, part] of a.entries()) {
    const order = comparePart(part, b[index]!)
    if (order !== 0) return order
  }
  return 0
}

interface Kind<T extends Part[]> {
  readonly name: string
  /** The parts in the order in which keys sort. */
  readonly parts: fc.Arbitrary<T>
  readonly key: (...parts: T) => Buffer
  readonly parse: (key: Buffer) => Part[]
}
const kindOf = <T extends Part[]>(kind: Kind<T>): Kind<Part[]> => kind as unknown as Kind<Part[]>

const kinds: readonly Kind<Part[]>[] = [
  kindOf({
    name: 'entity',
    parts: fc.tuple(shards, texts, texts, texts),
    key: entityKey,
    parse: key => {
      const { shard, tenant, path, id } = parseEntityKey(key)
      return [shard, tenant, path, id]
    },
  }),
  kindOf({
    name: 'type',
    parts: fc.tuple(texts, texts, texts, stamps, shards),
    key: typeKey,
    parse: key => {
      const { tenant, path, type, created, shard } = parseTypeKey(key)
      return [tenant, path, type, created, shard]
    },
  }),
  kindOf({
    name: 'id',
    parts: fc.tuple(texts, texts, texts),
    key: idKey,
    parse: key => {
      const { tenant, id, path } = parseIdKey(key)
      return [tenant, id, path]
    },
  }),
  kindOf({
    name: 'expiry',
    parts: fc.tuple(dates, shards, texts, texts, texts, texts),
    key: (expiresMs, shard, tenant, path, id, type) => expiryKey({ expiresMs, shard, tenant, path, id, type }),
    parse: key => {
      const { expiresMs, shard, tenant, path, id, type } = parseExpiryKey(key)
      return [expiresMs, shard, tenant, path, id, type]
    },
  }),
  kindOf({
    name: 'directory',
    parts: fc.tuple(texts, texts, texts, shards),
    key: entityCounts.key,
    parse: key => {
      const { tenant, path, type, shard } = entityCounts.parse(key)
      return [tenant, path, type, shard]
    },
  }),
  kindOf({
    name: 'subscription',
    parts: fc.tuple(shards, texts, texts),
    key: (home, tenant, id) => documentKey('subscription', { register: home, tenant, id }),
    parse: key => {
      const { register: home, tenant, id } = parseDocumentKey(key)
      return [home, tenant, id]
    },
  }),
  kindOf({
    name: 'letter',
    parts: fc.tuple(shards, texts, texts, stamps),
    key: (shard, tenant, subscription, stamp) => letterKey({ shard, tenant, subscription, stamp }),
    parse: key => {
      const { shard, tenant, subscription, stamp } = parseLetterKey(key)
      return [shard, tenant, subscription, stamp]
    },
  }),
]

for (const { name, parts, key, parse } of kinds) {
  t.test(`parsing the key of kind ${name} returns its parts`, async () => {
    fc.assert(
      fc.property(parts, built => {
        const parsed = parse(key(...built))
        assert.deepEqual(parsed, built.slice(built.length - parsed.length))
      }),
      { numRuns: 300 },
    )
  })

  t.test(`keys of kind ${name} sort as their parts do, and are equal only when all parts are`, async () => {
    // The second is often the first with one part changed.
    const pairs = fc.tuple(parts, parts, fc.array(fc.boolean(), { minLength: 6, maxLength: 6 }))
    fc.assert(
      fc.property(pairs, ([a, other, taken]) => {
        const b = a.map((part, index) => (taken[index] ? other[index]! : part))
        assert.equal(key(...a).compare(key(...b)), compareParts(a, b))
      }),
      { numRuns: 1000 },
    )
  })
}

const two = fc.tuple(texts, texts)
const sameTexts = (a: readonly string[], b: readonly string[]): boolean => a.every((text, index) => text === b[index])

t.test('the type range of a scope and type holds its keys and no others', async () => {
  const scopes = fc.tuple(texts, texts, texts)
  fc.assert(
    fc.property(scopes, scopes, fc.boolean(), stamps, shards, (wanted, other, same, created, shard) => {
      const stored = same ? wanted : other
      assert.equal(inRange(typeRange(...wanted), typeKey(...stored, created, shard)), sameTexts(wanted, stored))
    }),
    { numRuns: 500 },
  )
})

t.test('a type range behind a position holds the keys after it', async () => {
  const positions = fc.record({ created: stamps, shard: shards })
  fc.assert(
    fc.property(texts, texts, texts, positions, positions, (tenant, path, type, after, { created, shard }) => {
      const range = typeRange(tenant, path, type, after)
      const isAfter = created > after.created || (created === after.created && shard > after.shard)
      assert.equal(inRange(range, typeKey(tenant, path, type, created, shard)), isAfter)
      assert.equal(inRange(range, typeKey(tenant, path, type, after.created, after.shard)), false)
    }),
  )
})

t.test('the id range of a tenant and id holds its keys and no others', async () => {
  fc.assert(
    fc.property(two, two, fc.boolean(), texts, (wanted, other, same, path) => {
      const stored = same ? wanted : other
      assert.equal(inRange(idRange(...wanted), idKey(...stored, path)), sameTexts(wanted, stored))
    }),
    { numRuns: 500 },
  )
})

t.test('the directory range of a tenant holds its keys and no others', async () => {
  fc.assert(
    fc.property(texts, texts, fc.boolean(), two, (wanted, other, same, [path, type]) => {
      const stored = same ? wanted : other
      assert.equal(inRange(entityCounts.range(wanted), entityCounts.key(stored, path, type, 1)), wanted === stored)
    }),
    { numRuns: 500 },
  )
})

t.test('the range of a register holds its subscriptions and no others', async () => {
  fc.assert(
    fc.property(shards, shards, fc.boolean(), two, (wanted, other, same, [tenant, id]) => {
      const home = same ? wanted : other
      assert.equal(
        inRange(documentRange('subscription', wanted), documentKey('subscription', { register: home, tenant, id })),
        home === wanted,
      )
    }),
  )
})

t.test(
  'the row of a subscription gives back its text, the empty one too, and one of another version is refused',
  async t => {
    fc.assert(
      fc.property(texts, text => {
        assert.equal(decodeDocumentRow(encodeDocumentRow(text)), text)
      }),
    )
    t.throws(() => decodeDocumentRow(Buffer.from([2, 0x7b, 0x7d])), /has version 2, and this release reads version 1/)
  },
)

t.test(
  'the range of a shard holds its dead letters and no others, and each has its shard as an entity does',
  async () => {
    fc.assert(
      fc.property(shards, shards, fc.boolean(), two, stamps, (wanted, other, same, [tenant, subscription], stamp) => {
        const shard = same ? wanted : other
        const key = letterKey({ shard, tenant, subscription, stamp })
        assert.equal(inRange(letterRange(wanted), key), shard === wanted)
        assert.deepEqual([shardOfKey(key), shardOfKey(entityKey(shard, tenant, '/', 'E'))], [shard, shard])
      }),
    )
  },
)

t.test('the row of a dead letter returns its report and its message, either may be empty', async () => {
  fc.assert(
    fc.property(texts, fc.uint8Array(), (head, bytes) => {
      const message = Buffer.from(bytes)
      assert.deepEqual(decodeLetterRow(encodeLetterRow(head, message)), { head, message })
    }),
  )
})

t.test('the expiry range holds the keys that fall due between its times, both included', async () => {
  fc.assert(
    fc.property(dates, dates, dates, shards, texts, (fromMs, untilMs, expiresMs, shard, text) => {
      const key = expiryKey({ expiresMs, shard, tenant: text, path: text, id: text, type: text })
      assert.equal(inRange(expiryRange(fromMs, untilMs), key), fromMs <= expiresMs && expiresMs <= untilMs)
    }),
  )
})

t.test('keys that begin with a key are under it, and no others are', async () => {
  const bytes = fc.uint8Array({ maxLength: 5 })
  const starts = bytes.filter(start => start.some(byte => byte < 0xff))
  fc.assert(
    fc.property(starts, bytes, fc.boolean(), (start, rest, begins) => {
      const key = Buffer.from(begins ? [...start, ...rest] : rest)
      assert.equal(inRange(under(Buffer.from(start)), key), Buffer.from(start).equals(key.subarray(0, start.length)))
    }),
    { numRuns: 500 },
  )
})

t.test('every kind of key has a range of its own', async t => {
  const keys = [
    entityKey(65_535, 't', '/', 'E'),
    typeKey('t', '/', 'T', 1, 1),
    idKey('t', 'E', '/a'),
    expiryKey({ expiresMs: 0, shard: 1, tenant: 't', path: '/', id: 'E', type: 'T' }),
    entityCounts.key('t', '/', 'T', 1),
    stampKey(),
  ]
  const ranges = [allEntities(), ...allIndexes()]
  t.strictSame(
    keys.map(key => ranges.flatMap((range, index) => (inRange(range, key) ? [index] : []))),
    [[0], [1], [2], [3], [4], []],
  )
})

t.test('a key keeps its bytes when the next one is made', async t => {
  const key = idKey('t', 'E', '/a')
  idKey('other', 'X', '/b')
  t.strictSame(parseIdKey(key), { tenant: 't', id: 'E', path: '/a' })
})

t.test('a key beyond all limits is not written', async t => {
  t.throws(() => entityKey(1, 't', '/', 'x'.repeat(9000)))
  t.throws(() => entityKey(1, 't', '/', 'é'.repeat(9000)))
})

/** Encoded entities begin with their version, which is far below the mark of a row of several. */
const encodedEntities = fc.uint8Array({ minLength: 1, maxLength: 30 }).map(bytes => Buffer.from([1, ...bytes]))

t.test('a row of one or several encoded entities gives them back', async () => {
  fc.assert(
    fc.property(fc.array(encodedEntities, { minLength: 1, maxLength: 5 }), several => {
      assert.deepEqual(decodeRow(encodeRow(several)), several)
    }),
  )
})

t.test('a row of one encoded entity is that entity', async t => {
  const encoded = Buffer.from([1, 2, 3])
  t.strictSame(encodeRow([encoded]), encoded)
})

t.test('an empty row is not written', async t => {
  t.throws(() => encodeRow([]), /at least one entity/)
})

t.test('a number comes out of its bytes as it went in', async () => {
  fc.assert(
    fc.property(fc.maxSafeInteger(), n => {
      assert.equal(decodeNumber(encodeNumber(n)), n)
    }),
  )
})

// Encoded entities: decoding gives the entity that was encoded, and the fields at fixed places have its values.

import assert from 'node:assert/strict'
import t from 'tap'
import { renderDateTime } from '../src/domain/date-time.js'
import type { Attribute, Entity, Metadata } from '../src/domain/entities/entity.js'
import { fullView, renderEntity } from '../src/domain/entities/representation.js'
import { expiresMs } from '../src/domain/entities/update.js'
import type { Json } from '../src/domain/json.js'
import {
  decodeEntity,
  encodedCreated,
  encodedExpiresMs,
  encodedJson,
  encodedRoot,
  encodedType,
  encodeEntity,
  isAnswer,
  SeenMembers,
  Wanted,
} from '../src/encoded-entity.js'
import fc from './support/properties.js'

const characters = '!$%*+,-.09:@AZ[\\]^_`az{|}~'
const identifiers = fc.string({ unit: fc.constantFrom(...characters), minLength: 1, maxLength: 12 })
/** Difficult names are frequent. `dateExpires` comes separately. */
const names = fc.oneof(identifiers, fc.constantFrom('__proto__', 'constructor', 'toString', '0', '17', '4294967295'))
/** Records with the usual prototype, as the code makes them. */
const usual = { noNullPrototype: true } as const
const requestClock = fc.integer({ min: 0, max: 2 ** 48 - 1 })
const dates = fc.integer({ min: 0, max: Date.UTC(2999, 0) }).map(renderDateTime)

/** Values as a parser gives them: keys in the language's order, no `-0`. */
const values: fc.Arbitrary<Json> = fc
  .oneof(
    fc.jsonValue({ stringUnit: 'binary', maxDepth: 3 }),
    fc.constantFrom(1e-10, 1e21, 42.0000000001, 0.1234567891, -7, 'ü €', '𝄞"\\\u0000'),
  )
  .map(value => JSON.parse(JSON.stringify(value)) as Json)

/** The order in which names survive as keys of a JSON object. */
function inStoredOrder<T>(pairs: readonly (readonly [string, T])[]): Map<string, T> {
  const order: Record<string, T> = Object.create(null)
  for (const [name, value] of pairs) order[name] = value
  return new Map(Object.entries(order))
}

const metadata = fc
  .array(fc.tuple(names, fc.record<Metadata>({ type: identifiers, value: values }, usual)), { maxLength: 3 })
  .map(inStoredOrder)

const attributes: fc.Arbitrary<Attribute> = fc.record(
  {
    type: identifiers,
    value: values,
    metadata,
    createdMs: requestClock,
    modifiedMs: requestClock,
  },
  usual,
)

const hiddenAttributes: fc.Arbitrary<Attribute> = fc.record(
  {
    type: fc.constantFrom('DateTime', 'ISO8601'),
    value: fc.oneof(fc.constant(null), dates),
    metadata,
    createdMs: requestClock,
    modifiedMs: requestClock,
  },
  usual,
)

const features: fc.Arbitrary<Attribute> = attributes.map(attribute => ({
  ...attribute,
  type: 'geo:json',
  value: { type: 'Feature', properties: {}, geometry: { type: 'Point', coordinates: [1, 2] } },
}))

const entities: fc.Arbitrary<Entity> = fc
  .record({
    id: identifiers,
    type: identifiers,
    named: fc.array(
      fc.tuple(
        names.filter(name => name !== 'id' && name !== 'type'),
        fc.oneof({ arbitrary: attributes, weight: 9 }, { arbitrary: features, weight: 1 }),
      ),
      { maxLength: 5 },
    ),
    hidden: fc.option(hiddenAttributes, { nil: undefined }),
    hiddenAt: fc.nat(5),
    created: fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
    modifiedMs: requestClock,
  })
  .map(({ id, type, named, hidden, hiddenAt, created, modifiedMs }) => {
    const pairs: (readonly [string, Attribute])[] = [...inStoredOrder(named)]
    // Only after names that are array indexes, which come first in any case.
    const least = pairs.findLastIndex(([name]) => /^[0-9]+$/.test(name)) + 1
    if (hidden) pairs.splice(Math.max(least, Math.min(hiddenAt, pairs.length)), 0, ['dateExpires', hidden])
    return { id, type, attributes: new Map(pairs), created, modifiedMs }
  })

/** The attributes with `dateExpires` at the end. */
function hiddenLast(entity: Entity): [string, Attribute][] {
  const pairs = [...entity.attributes]
  return [...pairs.filter(([name]) => name !== 'dateExpires'), ...pairs.filter(([name]) => name === 'dateExpires')]
}

const root = 'b5c1a4d2-root'
const encodedOf = (entity: Entity): Buffer => encodeEntity(entity, root)

/** An entity and a changed one: attributes kept, changed, removed, new, or in another order. */
const changes = fc
  .tuple(entities, entities, fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 6, maxLength: 6 }))
  .map(([before, other, fates]) => {
    const kept = [...before.attributes].flatMap(([name, attribute], index): [string, Attribute][] => {
      switch (fates[index]) {
        case 0:
          return []
        case 1:
          return [[name, { ...attribute, modifiedMs: 7, value: index }]]
        default:
          return [[name, attribute]]
      }
    })
    const added = fates[5]! < 2 ? [...other.attributes] : []
    const attributes = inStoredOrder([...kept, ...added])
    return { before, after: { ...before, attributes, modifiedMs: 7 } }
  })

t.test('an encoded entity made from the one before is the same as one made from nothing', async () => {
  fc.assert(
    fc.property(changes, ({ before, after }) => {
      const stored = decodeEntity(encodedOf(before))
      const attributes = new Map(
        [...after.attributes].map(([name, attribute]) => [
          name,
          before.attributes.get(name) === attribute ? stored.attributes.get(name)! : attribute,
        ]),
      )
      const entity = { ...after, attributes }
      assert.deepEqual(encodeEntity(entity, root, { entity: stored, encoded: encodedOf(before) }), encodedOf(entity))
    }),
    { numRuns: 2000 },
  )
})

t.test('some attributes are read as when all are', async () => {
  fc.assert(
    fc.property(entities, fc.array(fc.nat(5)), fc.boolean(), (entity, picks, locations) => {
      const encoded = encodedOf(entity)
      const all = decodeEntity(encoded)
      const names = new Set(picks.map(pick => [...all.attributes.keys(), 'none'][pick] ?? 'none'))
      const some = new Wanted(names, locations).decode(encoded)
      const expected = [...all.attributes].filter(
        ([name, { type }]) => names.has(name) || (locations && name !== 'dateExpires' && type.startsWith('geo:')),
      )
      const { id: _, type: __, ...content } = all
      assert.deepEqual(some, { ...content, attributes: new Map(expected) })
    }),
    { numRuns: 2000 },
  )
})

t.test('the JSON without hidden attributes is that of the entity without them', async () => {
  // Reused, as for a list: what it remembers of one entity must not decide about the next.
  const sees = (name: string): boolean => name.length % 2 === 0
  const members = new SeenMembers(sees)
  fc.assert(
    fc.property(entities, entity => {
      const encoded = encodedOf(entity)
      if (!isAnswer(encoded)) return
      const attributes = new Map([...entity.attributes].filter(([name]) => sees(name)))
      assert.equal(members.jsonOf(encoded).bytes().toString(), renderEntity({ ...entity, attributes }, '/', fullView))
    }),
    { numRuns: 2000 },
  )
})

t.test('a number is read alone as it was stored, to the last bit', async () => {
  const decimals = fc
    .tuple(fc.maxSafeInteger(), fc.nat(18), fc.nat(16))
    .map(([digits, point, length]) => Number(`${Math.trunc(digits / 10 ** length)}e-${point}`))
  const numbers = fc.oneof(decimals, fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer())
  fc.assert(
    fc.property(numbers, identifiers, (value, type) => {
      const attribute = { type, value, metadata: new Map(), createdMs: 1, modifiedMs: 2 }
      const encoded = encodedOf({
        id: 'E',
        type: 'T',
        created: 3,
        modifiedMs: 4,
        attributes: new Map([['a', attribute]]),
      })
      const read = new Wanted(new Set(['a']), false).decode(encoded).attributes.get('a')
      // A negative zero is stored as zero.
      assert.deepEqual(read, { ...attribute, value: value === 0 ? 0 : value })
    }),
    { numRuns: 5000 },
  )
})

t.test('an entity is decoded as it was encoded, a hidden dateExpires last', async () => {
  fc.assert(
    fc.property(entities, entity => {
      const decoded = decodeEntity(encodedOf(entity))
      assert.deepEqual(decoded, entity)
      assert.deepEqual([...decoded.attributes], hiddenLast(entity))
    }),
    { numRuns: 500 },
  )
})

t.test('a plain dateExpires stays plain when it is encoded, shows in its JSON, and ends nothing', async t => {
  const date = { type: 'DateTime', value: '2015-01-01T00:00:00.000Z', metadata: new Map(), createdMs: 1, modifiedMs: 2 }
  const attributes = new Map<string, Attribute>([['dateExpires', { ...date, isPlain: true }]])
  const entity = { id: 'E', type: 'T', attributes, created: 1, modifiedMs: 1 }
  const encoded = encodeEntity(entity, '')
  t.strictSame(decodeEntity(encoded), entity)
  t.equal(encodedExpiresMs(encoded), undefined)
  t.equal(encodedJson(encoded).toString(), renderEntity(entity, '/', fullView))
  t.match(encodedJson(encoded).toString(), 'dateExpires')
  t.ok(isAnswer(encoded))
  const next = { ...entity, attributes: new Map<string, Attribute>([['dateExpires', date]]) }
  const updated = encodeEntity(next, '', { entity, encoded })
  t.equal(encodedExpiresMs(updated), Date.UTC(2015, 0))
  t.notMatch(encodedJson(updated).toString(), 'dateExpires')
})

t.test('the JSON of an encoded entity is the normalized entity without dateExpires', async () => {
  fc.assert(
    fc.property(entities, entity => {
      const shown = [...entity.attributes]
        .filter(([name]) => name !== 'dateExpires')
        .map(([name, { type, value, metadata }]) => [name, { type, value, metadata: Object.fromEntries(metadata) }])
      const json = JSON.parse(encodedJson(encodedOf(entity)).toString())
      assert.deepEqual(json, Object.fromEntries([['id', entity.id], ['type', entity.type], ...shown]))
    }),
    { numRuns: 500 },
  )
})

t.test('an encoded entity is marked as the answer exactly when rendering gives the same text', async () => {
  fc.assert(
    fc.property(entities, entity => {
      const encoded = encodedOf(entity)
      assert.equal(isAnswer(encoded), encodedJson(encoded).toString() === renderEntity(entity, '/', fullView))
    }),
    { numRuns: 500 },
  )
})

t.test('numbers in the metadata of a hidden dateExpires do not keep the JSON from being the answer', async t => {
  const hidden = {
    type: 'DateTime',
    value: '2030-01-01T00:00:00.000Z',
    metadata: new Map([['m', { type: 'Number', value: 1e-10 }]]),
    createdMs: 1,
    modifiedMs: 1,
  }
  const entity = { id: 'E', type: 'T', attributes: new Map([['dateExpires', hidden]]), created: 1, modifiedMs: 1 }
  t.ok(isAnswer(encodedOf(entity)))
})

t.test('type, creation and expiry are read without decoding', async () => {
  fc.assert(
    fc.property(entities, entity => {
      const encoded = encodedOf(entity)
      assert.equal(encodedType(encoded), entity.type)
      assert.equal(encodedCreated(encoded), entity.created)
      assert.equal(encodedExpiresMs(encoded), expiresMs(entity))
    }),
  )
})

t.test('the root is kept with an encoded entity, up to 255 characters and well-formed', async () => {
  const bare: Entity = { id: 'E', type: 'T', attributes: new Map(), created: 1, modifiedMs: 1 }
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 300 }), root => {
      const kept = root.length > 255 ? root.slice(0, 255).toWellFormed() : root
      assert.equal(encodedRoot(encodeEntity(bare, root)), kept)
    }),
  )
})

t.test('an encoded entity does not change when the next one is made', async t => {
  const entity = (id: string): Entity => ({ id, type: 'T', attributes: new Map(), created: 1, modifiedMs: 1 })
  const first = encodedOf(entity('first'))
  encodedOf(entity('other'))
  t.equal(decodeEntity(first).id, 'first')
})

t.test('an entity far larger than the usual one has an encoded entity, and a small one after it too', async t => {
  const many = Array.from({ length: 20_000 }, (_, k): [string, Attribute] => [
    `a${k}`,
    { type: 'Text', value: 'ü'.repeat(20), metadata: new Map(), createdMs: k, modifiedMs: k },
  ])
  const large: Entity = { id: 'E', type: 'T', attributes: new Map(many), created: 1, modifiedMs: 2 }
  assert.deepEqual(decodeEntity(encodedOf(large)), large)
  const small = { ...large, attributes: new Map(many.slice(0, 1)) }
  t.strictSame(decodeEntity(encodedOf(small)), small)
})

t.test('an encoded entity of an unknown version is not read', async t => {
  const encoded = encodedOf({ id: 'E', type: 'T', attributes: new Map(), created: 1, modifiedMs: 1 })
  encoded[0] = 2
  t.throws(() => decodeEntity(encoded), {
    code: 'unreadable',
    message: /^a stored entity has version 2, and this release reads/,
  })
})

t.test(
  'of a damaged entity whose texts have no end the wanted attributes are looked for in vain, and in time',
  async t => {
    const attribute = { type: 'Number', value: 1, metadata: new Map(), createdMs: 1, modifiedMs: 2 }
    const encoded = encodedOf({
      id: 'E',
      type: 'T',
      created: 3,
      modifiedMs: 4,
      attributes: new Map([['a', attribute]]),
    })
    for (let at = encoded.readUInt32BE(30); at < encoded.length; at++) if (encoded[at] === 0x22) encoded[at] = 0x78
    t.strictSame([...new Wanted(new Set(['b']), true).decode(encoded).attributes], [])
  },
)

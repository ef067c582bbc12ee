// Records: the outcome of a turn goes through bytes and back unchanged.

import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { decodeRecord, encodeRecord, type ShardRecord } from '../../../src/shard/turn/record.js'

const texts = fc.string({ unit: 'binary', maxLength: 20 })
const maybe = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(arbitrary, { nil: undefined })

const records: fc.Arbitrary<ShardRecord> = fc.record({
  shard: fc.nat(65_535),
  tenant: texts,
  path: texts,
  id: texts,
  type: texts,
  before: maybe(fc.record({ created: fc.maxSafeNat(), expiresMs: maybe(fc.maxSafeInteger()) })),
  attributes: fc.array(fc.tuple(texts, texts, fc.constantFrom<1 | -1>(1, -1))),
  image: maybe(fc.uint8Array({ maxLength: 60 }).map(bytes => Buffer.from(bytes))),
})

/** All that a record says; a member that is undefined says as much as one that is absent. */
const said = ({ shard, tenant, path, id, type, before, attributes, image }: ShardRecord): unknown[] => [
  [shard, tenant, path, id, type],
  before && [before.created, before.expiresMs],
  attributes,
  image && [...image],
]

t.test('a record comes out of its bytes as it went in', async () => {
  fc.assert(
    fc.property(records, record => {
      assert.deepEqual(said(decodeRecord(encodeRecord(record))), said(record))
    }),
    { numRuns: 300 },
  )
})

t.test('an empty image is not a deletion', async t => {
  const record: ShardRecord = {
    shard: 1,
    tenant: '',
    path: '/',
    id: 'E',
    type: 'T',
    before: undefined,
    attributes: [],
    image: Buffer.alloc(0),
  }
  t.equal(decodeRecord(encodeRecord(record)).image?.length, 0)
})

t.test('a record of an unknown version is not read', async t => {
  const bytes = encodeRecord({
    shard: 1,
    tenant: '',
    path: '/',
    id: 'E',
    type: 'T',
    before: undefined,
    attributes: [],
    image: undefined,
  })
  bytes[0] = 2
  t.throws(() => decodeRecord(bytes), /unknown version/)
})

// The bytes of records: encoded operations decode to the same ones. Damaged bytes, and those of another shard, are
// refused as a whole.

import assert from 'node:assert/strict'
import t from 'tap'
import { documentKey, progressKey } from '../../../src/shard/documents/document-layout.js'
import {
  attributeCounts,
  entityCounts,
  entityKey,
  expiryKey,
  idKey,
  stampKey,
  typeKey,
} from '../../../src/shard/layout.js'
import { letterKey, outboxKey } from '../../../src/shard/notify/notification-layout.js'
import { mayBeOf, pathKey, positionKey } from '../../../src/shard/replicate/replicated-layout.js'
import { decodeOperations, OperationWriter, type RowOperation } from '../../../src/shard/replicate/row-operations.js'
import fc from '../../support/properties.js'

/** A key of every kind that a shard has. */
const keysOf = (shard: number): readonly Buffer[] => [
  entityKey(shard, 't', '/a', 'E'),
  outboxKey({ shard, stamp: 7 }),
  letterKey({ shard, tenant: 't', subscription: 's', stamp: 7 }),
  entityCounts.key('t', '/a', 'T', shard),
  attributeCounts.key('t', '/a', 'T\0n\0Number', shard),
  documentKey('subscription', { register: shard, tenant: 't', id: 's' }),
  documentKey('registration', { register: shard, tenant: 't', id: 's' }),
  progressKey({ register: shard, tenant: 't', id: 's' }),
  pathKey(shard, 't', '/a'),
  typeKey('t', '/a', 'T', 7, shard),
  expiryKey({ expiresMs: 7, shard, tenant: 't', path: '/a', id: 'E', type: 'T' }),
  idKey('t', 'E', '/a'),
]

const written = (operations: readonly RowOperation[], stamp = 7): Buffer => {
  const writer = new OperationWriter()
  for (const { key, value } of operations)
    if (value) writer.put(key, value)
    else writer.del(key)
  return writer.end(stamp)
}

const operations: fc.Arbitrary<readonly RowOperation[]> = fc.array(
  fc.record(
    {
      key: fc.constantFrom(...keysOf(3)),
      value: fc.option(
        fc.uint8Array({ maxLength: 3000 }).map(bytes => Buffer.from(bytes)),
        { nil: undefined },
      ),
    },
    { noNullPrototype: true },
  ),
  { maxLength: 20 },
)

t.test('operations come out of their bytes as they went in', async () => {
  fc.assert(
    fc.property(operations, fc.maxSafeNat(), (all, stamp) =>
      assert.deepEqual(decodeOperations(written(all, stamp), 3), { stamp, operations: all }),
    ),
  )
})

t.test('bytes that end too early, or whose lengths were changed, are refused as a whole', async () => {
  fc.assert(
    fc.property(operations, fc.nat(), fc.nat(255), (all, at, byte) => {
      const bytes = written(all)
      const cut = bytes.subarray(0, at % bytes.length)
      try {
        decodeOperations(cut, 3)
        assert.equal(written(decodeOperations(cut, 3).operations).length, cut.length, 'it was cut between operations')
      } catch (error) {
        assert.match((error as Error).message, /^a record of shard 3 /)
      }
      const changed = Buffer.from(bytes)
      changed[at % bytes.length] = byte
      try {
        decodeOperations(changed, 3)
      } catch (error) {
        assert.match((error as Error).message, /^a record of shard 3 /)
      }
    }),
  )
})

t.test('a row of another shard, or of the node itself, is refused', async t => {
  for (const key of keysOf(3).slice(0, -1)) {
    t.equal(mayBeOf(key, 3), true)
    t.throws(() => decodeOperations(written([{ key, value: undefined }]), 4), /has a row of another shard/)
  }
  for (const key of [stampKey(), positionKey(3), Buffer.from('D\0\x03t'), Buffer.alloc(0)])
    t.throws(() => decodeOperations(written([{ key, value: Buffer.alloc(1) }]), 3), /has a row of another shard/)
})

t.test('a version, a stamp or an operation that is not known is refused', async t => {
  const bytes = written([{ key: keysOf(3)[0]!, value: undefined }])
  for (const [at, byte, why] of [
    [0, 1, /a record of shard 3 has version 1, and this release reads version 2/],
    [1, 0xff, /its stamp is none/],
    [9, 3, /has an operation 3/],
  ] as const) {
    const changed = Buffer.from(bytes)
    changed[at] = byte
    t.throws(() => decodeOperations(changed, 3), why)
  }
  t.throws(() => decodeOperations(Buffer.alloc(8), 3), /ends too early/)
})

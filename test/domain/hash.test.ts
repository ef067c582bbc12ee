// The hash that places entities: published vectors, values frozen for good, and a second implementation of the
// algorithm.

import t from 'tap'
import { xxHash64 } from '../../src/domain/hash.js'
import fc from '../support/properties.js'

const hex = (text: string): string => {
  const { high, low } = xxHash64(text)
  return high.toString(16).padStart(8, '0') + low.toString(16).padStart(8, '0')
}

const published: [text: string, hash: string][] = [
  ['', 'ef46db3751d8e999'],
  ['a', 'd24ec4f1a98c6e5b'],
  ['abc', '44bc2cf5ad770999'],
  ['Nobody inspects the spammish repetition', 'fbcea83c8a378bf1'],
]

t.test('published vectors of xxHash64 come out as published', async t => {
  for (const [text, hash] of published) t.equal(hex(text), hash, `'${text}'`)
})

/** `urn:ngsi-ld:Room:` repeated and cut to the length: lengths on both sides of every step of the algorithm. */
const room = (length: number): string => 'urn:ngsi-ld:Room:'.repeat(6).slice(0, length)

const frozen: [length: number, hash: string][] = [
  [1, '610001cba66e07f0'],
  [3, '2e7c0437d19ff086'],
  [4, 'bbaa92026edfa20b'],
  [5, 'db2de61f2ebf8ef6'],
  [7, '89fa301e2258f600'],
  [8, 'd2e79c4fac6f71b3'],
  [9, 'b5b59d4cb300e8a7'],
  [11, '702e5b798e7b803c'],
  [12, 'ba103102d559d0cb'],
  [13, '3f68642f41f5007b'],
  [31, 'ad3d0f32b3c8499f'],
  [32, '471af3f23cb9826f'],
  [33, '699062e91b67d33b'],
  [35, 'b20c87175c756d34'],
  [36, '402fa0e64c65dd37'],
  [40, 'd742501490fcc2de'],
  [63, 'eea5bd32827fe9b4'],
  [64, '257ff61c0cdf6e90'],
  [65, '5b646b177a002f2a'],
  [96, 'c6b90a6f6db5ba42'],
  [100, 'fef3c96ce4fcde14'],
]

t.test('hashes never change, since every data directory is built on them', async t => {
  for (const [length, hash] of frozen) t.equal(hex(room(length)), hash, `${length} bytes`)
})

const bits64 = (1n << 64n) - 1n
const [prime1, prime2, prime3, prime4, prime5] = [
  0x9e3779b185ebca87n,
  0xc2b2ae3d27d4eb4fn,
  0x165667b19e3779f9n,
  0x85ebca77c2b2ae63n,
  0x27d4eb2f165667c5n,
] as const
const times = (a: bigint, b: bigint): bigint => (a * b) & bits64
const plus = (...terms: bigint[]): bigint => terms.reduce((sum, n) => (sum + n) & bits64, 0n)
const rotated = (n: bigint, by: bigint): bigint => ((n << by) | (n >> (64n - by))) & bits64
const mixed = (lane: bigint, into = 0n): bigint => times(rotated(plus(into, times(lane, prime2)), 31n), prime1)

/** The algorithm in the words of its specification, with whole 64-bit numbers. */
function plainHash(bytes: Uint8Array): bigint {
  const word = (at: number, size: number): bigint =>
    bytes.subarray(at, at + size).reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n)
  let at = 0
  let hash: bigint = prime5
  if (bytes.length >= 32) {
    let lanes = [plus(prime1, prime2), prime2, 0n, plus(0n, -prime1 & bits64)]
    for (; at + 32 <= bytes.length; at += 32) lanes = lanes.map((lane, index) => mixed(word(at + 8 * index, 8), lane))
    hash = plus(...lanes.map((lane, index) => rotated(lane, [1n, 7n, 12n, 18n][index]!)))
    for (const lane of lanes) hash = plus(times(hash ^ mixed(lane), prime1), prime4)
  }
  hash = plus(hash, BigInt(bytes.length))
  for (; at + 8 <= bytes.length; at += 8) hash = plus(times(rotated(hash ^ mixed(word(at, 8)), 27n), prime1), prime4)
  if (at + 4 <= bytes.length) {
    hash = plus(times(rotated(hash ^ times(word(at, 4), prime1), 23n), prime2), prime3)
    at += 4
  }
  for (; at < bytes.length; at++) hash = times(rotated(hash ^ times(word(at, 1), prime5), 11n), prime1)
  hash = times(hash ^ (hash >> 33n), prime2)
  hash = times(hash ^ (hash >> 29n), prime3)
  return hash ^ (hash >> 32n)
}

t.test('arithmetic in halves equals arithmetic with whole 64-bit numbers', async () => {
  const text = fc.string({ unit: 'binary-ascii', maxLength: 150 })
  fc.assert(
    fc.property(text, text => BigInt(`0x${hex(text)}`) === plainHash(Buffer.from(text, 'latin1'))),
    { numRuns: 1000 },
  )
})

t.test('of text beyond ASCII the low byte of each unit counts', async t => {
  t.equal(hex('caf\u00e9'), plainHash(Buffer.from('caf\u00e9', 'latin1')).toString(16).padStart(16, '0'))
  t.equal(hex('\u0161'), hex('a'))
})

// Compressed bodies of requests: accepted and refused ones, and the limit of the cost of a bomb.

import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import t from 'tap'
import type { Result } from '../../src/domain/refusal.js'
import type { Coding } from '../../src/http/codings.js'
import { Inflater, inflateRatioMax } from '../../src/http/inflater.js'

const mb = 1024 * 1024
const compressed = { gzip: gzipSync, br: brotliCompressSync }
const codings: readonly Coding[] = ['gzip', 'br']

const inflate = (inflater: Inflater, body: Uint8Array, coding: Coding, bytesMax = mb) =>
  new Promise<Result<Uint8Array>>(resolve => inflater.inflate(body, coding, bytesMax, resolve))

const codeOf = (result: Result<Uint8Array>): string =>
  result.ok ? `${result.value.length} bytes` : result.refusal.code

t.test('a body comes out as it went in, at once or later', async t => {
  const inflater = new Inflater()
  for (const coding of codings)
    for (const bytes of [1, 1000, 65_536, 65_537, mb]) {
      const body = Buffer.alloc(bytes, '{"id":"E1","type":"T"}')
      const result = await inflate(inflater, compressed[coding](body), coding)
      t.ok(result.ok && body.equals(result.value), `${coding} ${bytes}`)
    }
})

t.test('the limit counts inflated bytes', async t => {
  const inflater = new Inflater()
  for (const coding of codings)
    for (const limit of [1000, 70_000, mb]) {
      const of = (bytes: number) => inflate(inflater, compressed[coding](Buffer.alloc(bytes)), coding, limit)
      t.equal(codeOf(await of(limit)), `${limit} bytes`)
      t.equal(codeOf(await of(limit + 1)), 'payloadBeyond')
      t.equal(codeOf(await of(40 * mb)), 'payloadBeyond')
    }
})

t.test('where the limit is large, few bytes may not become very many', async t => {
  const inflater = new Inflater()
  const bomb = gzipSync(Buffer.alloc(20 * mb))
  t.ok(bomb.length * inflateRatioMax < 20 * mb)
  t.equal(codeOf(await inflate(inflater, bomb, 'gzip', 100 * mb)), 'payloadInflates')
  t.equal(codeOf(await inflate(inflater, gzipSync(Buffer.alloc(mb)), 'gzip', 100 * mb)), `${mb} bytes`)
})

t.test('a body that is cut, wrong, foreign or followed by anything is refused, members in a row are not', async t => {
  const inflater = new Inflater()
  const text = Buffer.from('{"id":"E1"}')
  for (const coding of codings) {
    const good = compressed[coding](text)
    const isRefused = async (body: Uint8Array, what: string) =>
      t.equal(codeOf(await inflate(inflater, body, coding)), 'notInflated', `${coding}: ${what}`)
    for (let length = 0; length < good.length; length++) await isRefused(good.subarray(0, length), `cut at ${length}`)
    for (const tail of ['\0', 'x', '\x1f', '\x1f\x8b\x08', 'more than a few bytes of text'])
      await isRefused(Buffer.concat([good, Buffer.from(tail)]), tail)
    await isRefused(text, 'plain')
    await isRefused(deflateSync(text), 'zlib')
    const long = Buffer.concat([compressed[coding](Buffer.alloc(200_000)), Buffer.from('tail')])
    await isRefused(long, 'a tail behind a long one')
  }
  const wrong = Buffer.from(gzipSync(text))
  wrong[wrong.length - 6]! ^= 1
  t.equal(codeOf(await inflate(inflater, wrong, 'gzip')), 'notInflated')
  t.equal(codeOf(await inflate(inflater, Buffer.concat([gzipSync('{"a"'), gzipSync(':1}')]), 'gzip')), '7 bytes')
})

t.test('many bombs at once wait for each other, and beyond some bytes are refused', async t => {
  const bomb = gzipSync(Buffer.alloc(20 * mb))
  const inflater = new Inflater({ jobsMax: 2, waitingBytesMax: 3.5 * bomb.length })
  const all = await Promise.all(Array.from({ length: 8 }, () => inflate(inflater, bomb, 'gzip')))
  t.same(all.map(codeOf), [...Array(5).fill('payloadBeyond'), ...Array(3).fill('requestsTooMany')])
  t.equal(codeOf(await inflate(inflater, gzipSync('{}'), 'gzip')), '2 bytes')
})

// Bodies of answers, compressed: the output, and its size at a time.

import { randomBytes } from 'node:crypto'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import t from 'tap'
import type { Coding } from '../../src/http/codings.js'
import { Compressor, compressNowBytesMax } from '../../src/http/compressor.js'

const inflated = { gzip: gunzipSync, br: brotliDecompressSync }
const codings: readonly Coding[] = ['gzip', 'br']
const text = (bytes: number): Buffer =>
  Buffer.from(Array.from({ length: bytes / 8 }, (_, n) => `{"n":${n % 997}}`).join(''))

const later = (compressor: Compressor, parts: readonly Uint8Array[], coding: Coding) =>
  new Promise<readonly Uint8Array[] | undefined | 'no room'>(resolve => {
    const length = parts.reduce((sum, part) => sum + part.length, 0)
    if (!compressor.compressLater(parts, length, coding, resolve)) resolve('no room')
  })

t.test('a body comes out as it went in', async t => {
  const compressor = new Compressor()
  for (const coding of codings) {
    const short = text(compressNowBytesMax / 2)
    const compressed = compressor.compressNow(short, coding)
    t.ok(compressed && compressed.length < short.length / 3, coding)
    t.ok(inflated[coding](compressed!).equals(short), coding)
    const parts = [text(200_000), Buffer.alloc(0), Buffer.from('x'), text(70_000)]
    const pieces = await later(compressor, parts, coding)
    t.ok(Array.isArray(pieces), coding)
    t.ok(inflated[coding](Buffer.concat(pieces as Uint8Array[])).equals(Buffer.concat(parts)), coding)
  }
})

t.test('a body that gets no shorter is reported', async t => {
  const compressor = new Compressor()
  for (const coding of codings) {
    t.equal(compressor.compressNow(randomBytes(5_000), coding), undefined)
    t.equal(await later(compressor, [randomBytes(300_000)], coding), undefined)
  }
})

t.test('bodies beyond a number or a sum of bytes at a time find no room, and later ones do', async t => {
  const one = [text(20_000)]
  for (const limits of [
    { jobsMax: 2, jobBytesMax: 1e9 },
    { jobsMax: 9, jobBytesMax: 50_000 },
  ]) {
    const compressor = new Compressor(limits)
    const all = await Promise.all(Array.from({ length: 4 }, () => later(compressor, one, 'gzip')))
    t.same(
      all.map(result => result === 'no room'),
      [false, false, true, true],
    )
    t.not(await later(compressor, one, 'br'), 'no room')
  }
})

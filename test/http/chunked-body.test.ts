// A body that comes in chunks, put together.

import t from 'tap'
import { ChunkedBody } from '../../src/http/chunked-body.js'
import { chunksMax } from '../../src/http/front.js'

t.test('chunks of all sizes come out in their order, even if their memory is overwritten', async t => {
  const body = new ChunkedBody(1_000_000)
  const sizes = [0, 1, 4_095, 4_096, 3, 200_000, 1]
  for (const [n, size] of sizes.entries()) {
    const chunk = Buffer.alloc(size, n)
    t.equal(body.add(chunk), undefined)
    chunk.fill(255)
  }
  t.ok(Buffer.concat(sizes.map((size, n) => Buffer.alloc(size, n))).equals(body.whole()))
})

t.test('bytes have a limit, and so have chunks', async t => {
  const bytes = new ChunkedBody(1_000)
  t.equal(bytes.add(Buffer.alloc(1_000)), undefined)
  t.equal(bytes.add(Buffer.alloc(1)), 'bytes')
  const chunks = new ChunkedBody(100_000)
  for (let n = 0; n < chunksMax(100_000); n++) if (chunks.add(Buffer.alloc(1))) t.fail(`chunk ${n}`)
  t.equal(chunks.add(Buffer.alloc(1)), 'chunks')
})

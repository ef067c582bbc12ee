// A page is read no further than its bytes go, in steps that begin small.

import t from 'tap'
import { PageImages } from '../../../src/shard/read/page-images.js'

/** A page of entities of these sizes; 0: it has gone. */
function pageOf(sizes: readonly number[], bytesMax: number | undefined, needed?: number) {
  const steps: number[] = []
  const page = new PageImages(
    sizes.length,
    bytesMax,
    (from, count) => {
      steps.push(count)
      return sizes.slice(from, from + count).map(size => (size === 0 ? undefined : Buffer.alloc(size)))
    },
    needed,
  )
  return { page, steps }
}

const lengths = (images: readonly (Buffer | undefined)[]): number[] => images.map(image => image?.length ?? 0)

t.test('a page of small entities is read in larger and larger steps, to its end', async t => {
  const { page, steps } = pageOf(new Array<number>(100).fill(1), undefined)
  t.equal(page.all().length, 100)
  t.strictSame(steps, [1, 2, 4, 8, 16, 32, 32, 5])
})

t.test('of 1,000 entities of 1 MB no more than the step is read that passes 64 MB', async t => {
  const shared = Buffer.alloc(1_000_000)
  let read = 0
  const page = new PageImages(1000, 64_000_000, (_, count) => {
    read += count
    return new Array<Buffer>(count).fill(shared)
  })
  t.equal(page.all().length, 64)
  t.equal(read, 65)
})

t.test('what fits exactly is taken, one byte more is not, and nothing behind it', async t => {
  t.strictSame(lengths(pageOf([5, 0, 5, 1, 1], 10).page.all()), [5, 0, 5])
  t.strictSame(lengths(pageOf([5, 0, 6, 1, 1], 10).page.all()), [5, 0])
  t.strictSame(lengths(pageOf([5, 0, 5], 10).page.all()), [5, 0, 5])
  t.strictSame(lengths(pageOf([11, 1], 10).page.all()), [])
  t.strictSame(lengths(pageOf([], 0).page.all()), [])
})

t.test('what is needed is taken whatever it has', async t => {
  t.strictSame(lengths(pageOf([11, 1], 10, 1).page.all()), [11])
  t.strictSame(lengths(pageOf([0, 11, 1], 10, 1).page.all()), [0])
})

// Loops over rows of a store: all of them, in order, and no cursor is left open.

import t from 'tap'
import type { Cursor, Range, StoreReader } from '../src/ports.js'
import { allRowsOf, rowsOf } from '../src/rows.js'
import { MemoryStore } from './support/memory-store.js'

const everything: Range = { gte: Buffer.from([0]), lt: Buffer.from([255]) }

/** A store with this number of rows, and the number of its open cursors. */
function watched(rows: number): { readonly store: Pick<StoreReader, 'cursor'>; readonly open: () => number } {
  const inner = new MemoryStore()
  const batch = inner.batch()
  for (let n = 1; n <= rows; n++) batch.put(Buffer.from([n]), Buffer.from(`${n}`))
  inner.commit(batch, () => {})
  let open = 0
  const cursor = (range: Range): Cursor => {
    const made = inner.cursor(range)
    open++
    return {
      next: rowsMax => made.next(rowsMax),
      close: async () => {
        open--
        await made.close()
      },
    }
  }
  return { store: { cursor }, open: () => open }
}

t.test('all rows come in order, so many at a time', async t => {
  const { store, open } = watched(7)
  const sizes: number[] = []
  const values: string[] = []
  for await (const rows of rowsOf(store, everything, { rowsPerRead: 3 })) {
    sizes.push(rows.length)
    values.push(...rows.map(({ value }) => value.toString()))
  }
  t.same(sizes, [3, 3, 1])
  t.same(values, ['1', '2', '3', '4', '5', '6', '7'])
  t.equal(open(), 0)
})

t.test('a loop that is left, or fails, closes the cursor', async t => {
  const { store, open } = watched(7)
  for await (const _ of rowsOf(store, everything, { rowsPerRead: 2 })) {
    t.equal(open(), 1)
    break
  }
  t.equal(open(), 0)
  const failing = async (): Promise<void> => {
    for await (const _ of rowsOf(store, everything)) throw new Error('no')
  }
  await t.rejects(failing(), { message: 'no' })
  t.equal(open(), 0)
})

t.test('a loop that never begins opens no cursor', async t => {
  const { store, open } = watched(1)
  await rowsOf(store, everything).return()
  t.equal(open(), 0)
})

t.test('all rows of a range come at once', async t => {
  const { store, open } = watched(5)
  t.equal((await allRowsOf(store, everything, { rowsPerRead: 2 })).length, 5)
  t.equal(open(), 0)
})

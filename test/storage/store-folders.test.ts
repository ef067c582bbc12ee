// The folders of each number of workers, and the folders that may be removed.

import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import t from 'tap'
import type { DataDirectory } from '../../src/storage/data-directory.js'
import {
  discardLeftovers,
  discardStores,
  freeBytes,
  leftovers,
  makeStoreFolder,
  storeBytes,
  storeFolder,
} from '../../src/storage/store-folders.js'

const directory = (path: string, workers: number, becoming?: number): DataDirectory => ({
  path,
  shards: 16,
  spread: 4,
  workers,
  id: 'an-id',
  ...(becoming && { becoming }),
})

/** A directory with stores for 1, 2 and 3 workers, one that is half deleted, and something that is not ours. */
function full(path: string): string {
  for (const workers of [1, 2, 3]) writeFileSync(join(makeStoreFolder(path, workers, 0), 'file'), 'four')
  mkdirSync(join(path, 'stores', 'discarded-7'))
  mkdirSync(join(path, 'stores', 'notes of the operator'))
  return path
}

t.test('one worker has the folder it always had, several have folders by their number', async t => {
  t.equal(storeFolder('/data', 1, 0), '/data/store')
  t.equal(storeFolder('/data', 3, 2), '/data/stores/3/2')
})

t.test('the folder of a store is for its owner only', async t => {
  const path = t.testdir()
  for (const folder of [makeStoreFolder(path, 3, 1), join(path, 'stores')])
    t.equal(statSync(folder).mode & 0o777, 0o700, folder)
})

t.test('the path of the directory may be relative, and may end with a slash', async t => {
  const whole = t.testdir()
  for (const path of [`./${relative('.', whole)}/data`, relative('.', join(whole, 'other')), `${whole}/slash/`]) {
    const folders = [makeStoreFolder(path, 1, 0), makeStoreFolder(path, 3, 1)]
    t.strictSame(folders, [storeFolder(path, 1, 0), storeFolder(path, 3, 1)])
    for (const folder of folders) t.ok(existsSync(folder), folder)
  }
})

t.test('left over are the stores of numbers that the file does not name, and half-deleted ones', async t => {
  const path = full(t.testdir())
  const names = (one: DataDirectory) => leftovers(one).map(folder => folder.slice(path.length + 1))
  t.strictSame(names(directory(path, 1)).sort(), ['stores/2', 'stores/3', 'stores/discarded-7'])
  t.strictSame(names(directory(path, 3, 1)).sort(), ['stores/2', 'stores/discarded-7'])
})

t.test('left-over folders are removed, foreign ones stay', async t => {
  const path = full(t.testdir())
  discardLeftovers(directory(path, 3))
  t.strictSame(readdirSync(path), ['stores'])
  t.strictSame(readdirSync(join(path, 'stores')).sort(), ['3', 'notes of the operator'])
  t.ok(existsSync(join(storeFolder(path, 3, 0), 'file')))
})

t.test('with one worker nothing remains of the others', async t => {
  const path = t.testdir()
  for (const workers of [1, 2]) makeStoreFolder(path, workers, 0)
  discardLeftovers(directory(path, 1))
  t.strictSame(readdirSync(path), ['store'])
})

t.test('the stores of one number can be removed, for any number in the file', async t => {
  const path = full(t.testdir())
  for (const workers of [1, 2, 5]) discardStores(path, workers)
  t.notOk(existsSync(join(path, 'store')))
  t.strictSame(readdirSync(join(path, 'stores')).sort(), ['3', 'discarded-7', 'notes of the operator'])
})

t.test('the bytes of a number of workers are those of all its stores', async t => {
  const path = full(t.testdir())
  writeFileSync(join(makeStoreFolder(path, 2, 1), 'file'), 'three')
  t.equal(storeBytes(path, 2), 9)
  t.equal(storeBytes(path, 9), 0)
})

t.test('there is room on the disk of a folder', async t => {
  t.ok(freeBytes(t.testdir()) > 0)
})

// Accepted data directories, and the texts of refusals for an operator.

import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { placementDefault } from '../../src/domain/scope.js'
import {
  assertUnchanged,
  DataDirectoryError,
  openDataDirectory,
  recordBecoming,
  recordStore,
  recordWorkers,
} from '../../src/storage/data-directory.js'

const wanted = { shards: 256, spread: 16 }
const id = () => '6f1f3b1e-0000-4000-8000-000000000001'
const never = () => {
  throw new Error('asked for an id')
}

t.test('a new directory is created with its parents, for its owner only', async t => {
  const path = join(t.testdir(), 'var', 'lib', 'orrery')
  const directory = openDataDirectory(path, wanted, id)
  t.same(directory, { path, ...wanted, workers: 1, id: id() })
  t.equal(statSync(path).mode & 0o777, 0o700)
  t.equal(statSync(join(path, '..')).mode & 0o777, 0o700)
  t.same(readdirSync(path), ['orrery.json'])
})

t.test('the settings in the file win over the wanted ones', async t => {
  const path = t.testdir()
  openDataDirectory(path, wanted, id)
  t.match(openDataDirectory(path, { shards: 64, spread: 1 }, never), { ...wanted, id: id() })
})

t.test('the store that made the directory is remembered', async t => {
  const path = t.testdir()
  recordStore(openDataDirectory(path, wanted, id), 'level')
  t.equal(openDataDirectory(path, wanted, never).store, 'level')
  t.same(JSON.parse(readFileSync(join(path, 'orrery.json'), 'utf8')), {
    format: 4,
    ...wanted,
    workers: 1,
    store: 'level',
    id: id(),
  })
})

const written = (path: string): unknown => JSON.parse(readFileSync(join(path, 'orrery.json'), 'utf8'))

t.test('a directory for several workers contains their number', async t => {
  const path = t.testdir()
  t.equal(openDataDirectory(path, { ...wanted, workers: 3 }, id).workers, 3)
  t.same(written(path), { format: 4, ...wanted, workers: 3, id: id() })
  t.equal(openDataDirectory(path, wanted, never).workers, 3)
})

t.test('while it is divided anew it contains the number of workers that it will have', async t => {
  const path = t.testdir()
  const directory = recordStore(openDataDirectory(path, wanted, id), 'level')
  const begun = recordBecoming(directory, 2)
  t.same(written(path), { format: 4, ...wanted, workers: 1, becoming: 2, store: 'level', id: id() })
  t.same(openDataDirectory(path, wanted, never), begun)
  t.same(recordBecoming(begun, undefined), directory)
  t.same(written(path), { format: 4, ...wanted, workers: 1, store: 'level', id: id() })
})

t.test('when it has been divided anew, the future number is the present one', async t => {
  const path = t.testdir()
  const begun = recordBecoming(openDataDirectory(path, { ...wanted, workers: 3 }, id), 2)
  recordWorkers(begun, 2)
  t.same(openDataDirectory(path, wanted, never), { path, ...wanted, workers: 2, id: id() })
  recordWorkers(recordBecoming(begun, 1), 1)
  t.same(written(path), { format: 4, ...wanted, workers: 1, id: id() })
})

t.test('a directory of a node of a cluster names the cluster', async t => {
  const path = t.testdir()
  const cluster = { id: 'c1' }
  const of = { ...placementDefault, cluster }
  const directory = recordStore(openDataDirectory(path, of, id), 'rocksdb')
  t.same(written(path), { format: 4, ...placementDefault, workers: 1, cluster, store: 'rocksdb', id: id() })
  t.same(openDataDirectory(path, of, never), directory)
})

t.test('directories of single nodes and of nodes of clusters are not taken for each other', async t => {
  const [single, node] = [t.testdir({ single: {} }), join(t.testdirName, 'node')]
  openDataDirectory(join(single, 'single'), wanted, id)
  openDataDirectory(node, { ...placementDefault, cluster: { id: 'c1' } }, id)
  t.throws(() => openDataDirectory(join(single, 'single'), { ...placementDefault, cluster: { id: 'c1' } }, never), {
    name: 'DataDirectoryError',
    message: /is that of a single node: .*"orrery cluster init --from .*single"/,
  })
  t.throws(() => openDataDirectory(node, wanted, never), {
    name: 'DataDirectoryError',
    message: /of cluster c1, and of no use to a single node: .*orrery cluster leave --from /,
  })
  t.throws(() => openDataDirectory(node, { ...placementDefault, cluster: { id: 'c2' } }, never), {
    message: /of cluster c1, not of c2/,
  })
})

t.test('more workers than shards are refused, and nothing is created', async t => {
  const path = t.testdir()
  t.throws(() => openDataDirectory(path, { shards: 4, spread: 2, workers: 5 }, id), {
    name: 'DataDirectoryError',
    message: `data directory ${path} has 4 shards: choose at most 4 workers`,
  })
  t.same(readdirSync(path), [])
})

t.test('a process that read the directory before another one divided it anew, or began to, learns that', async t => {
  const path = t.testdir()
  const directory = openDataDirectory(path, wanted, id)
  assertUnchanged(recordStore(directory, 'level'))
  const begun = recordBecoming(directory, 2)
  t.throws(() => assertUnchanged(directory), { name: 'DataDirectoryError', message: /changed by another process/ })
  assertUnchanged(begun)
  recordWorkers(begun, 2)
  t.throws(() => assertUnchanged(begun), DataDirectoryError)
})

t.test('a fresh volume, or the remains of a crash during creation, count as empty', async t => {
  const path = t.testdir({ 'lost+found': {}, 'orrery.json.new': '{"form' })
  t.match(openDataDirectory(path, wanted, id), wanted)
  t.same(readdirSync(path), ['lost+found', 'orrery.json'])
})

const refusals: readonly (readonly [string, (path: string) => void, RegExp])[] = [
  [
    'files of someone else',
    path => writeFileSync(join(path, 'thesis.tex'), ''),
    /holds "thesis.tex" but no orrery.json: choose/,
  ],
  ['a store whose file is lost', path => mkdirSync(join(path, 'store')), /holds "store" but no orrery.json: .*backup/],
  [
    'a newer format',
    path => file(path, '{"format":5,"shards":{}}'),
    /has format 5 and this version reads format 4: start the version that wrote it$/,
  ],
  ...[1, 2, 3].map(
    format =>
      [
        `format ${format}, which had other rows`,
        (path: string) => file(path, `{"format":${format},"shards":256,"spread":16,"id":"x"}`),
        /reads format 4: start the version that wrote it, whose "orrery export" writes a file for "orrery import"$/,
      ] as const,
  ),
  ['stores whose file is lost', path => mkdirSync(join(path, 'stores')), /holds "stores" but no orrery.json/],
  ['no workers', path => file(path, '{"format":4,"shards":1,"spread":1,"id":"x","workers":0}'), /damaged/],
  [
    'a half worker',
    path => file(path, '{"format":4,"shards":1,"spread":1,"workers":1,"id":"x","becoming":0.5}'),
    /damaged/,
  ],
  ['a file cut short', path => file(path, '{"format":4,"sha'), /damaged orrery.json/],
  ['a file that is not an object', path => file(path, 'null'), /damaged orrery.json/],
  [
    'shards that are no number',
    path => file(path, '{"format":4,"shards":"256","spread":16,"workers":1,"id":"x"}'),
    /damaged/,
  ],
  ['no shards', path => file(path, '{"format":4,"shards":0,"spread":16,"workers":1,"id":"x"}'), /damaged/],
  [
    'a cluster without a name',
    path => file(path, '{"format":4,"shards":1,"spread":1,"workers":1,"id":"x","cluster":{}}'),
    /damaged/,
  ],
  [
    'an unknown store',
    path => file(path, '{"format":4,"shards":1,"spread":1,"workers":1,"id":"x","store":"sql"}'),
    /damaged/,
  ],
  ['a file that cannot be read', path => mkdirSync(join(path, 'orrery.json')), /cannot be used: EISDIR/],
]

const file = (path: string, text: string) => writeFileSync(join(path, 'orrery.json'), text)

for (const [what, make, sentence] of refusals) {
  t.test(`a directory with ${what} is refused and left alone`, async t => {
    const path = t.testdir()
    make(path)
    const before = readdirSync(path)
    t.throws(() => openDataDirectory(path, wanted, never), { name: 'DataDirectoryError', message: sentence })
    t.throws(() => openDataDirectory(path, wanted, never), { message: path })
    t.same(readdirSync(path), before)
  })
}

t.test('a path that is a file is refused', async t => {
  const path = join(t.testdir({ taken: '' }), 'taken')
  t.throws(() => openDataDirectory(path, wanted, never), DataDirectoryError)
})

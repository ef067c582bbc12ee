// Data directories in and out: an export imported again is the same export, for any number of workers, and its indexes
// match its rows. Stores are real.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/clock.js'
import { directorySource, openStores } from '../../src/move/directory.js'
import { DirectorySink } from '../../src/move/directory-sink.js'
import { openFileSink, openFileSource } from '../../src/move/file.js'
import {
  allDocuments,
  allProgress,
  decodeDocumentRow,
  encodeDocumentRow,
} from '../../src/shard/documents/document-layout.js'
import { type DataDirectory, openDataDirectory } from '../../src/storage/data-directory.js'
import { commit, rowsOf } from '../storage/store-contract.js'
import { tempDir } from '../support/broker-process.js'
import { contentsOf, openAll, placement, plainWords, populated, wrongIn } from '../support/divided.js'
import { exported, exportWith, imported, moveAll } from '../support/moving.js'
import { Random } from '../support/random.js'

const random = Random.fromEnvironment()
t.comment(`SEED=${random.seed}`)
t.setTimeout(600_000)

const madeMs = Date.UTC(2024, 4, 1)

/** A new directory of the test's placement. */
const fresh = (t: Test, workers = 1): DataDirectory => {
  const path = tempDir(t)
  return openDataDirectory(path, { ...placement, workers }, () => 'an-id')
}

function written(t: Test, text: string): string {
  const file = join(tempDir(t), 'in.ndjson')
  writeFileSync(file, text)
  return file
}

const entityLine = (id: string, more: object = {}, attributes: object = {}) => ({
  entity: { id, type: 'T', ...attributes },
  ...more,
})

const subscriptionLine = (n: number, more: object = {}) => ({
  subscription: {
    id: n.toString(16).padStart(24, '0'),
    status: n % 3 === 0 ? 'oneshot' : 'active',
    subject: { entities: [{ idPattern: '.*' }], condition: { attrs: ['a'] } },
    notification:
      n % 2 === 0
        ? { mqtt: { url: 'mqtt://h', topic: 't', user: 'u', passwd: `secret${n}` } }
        : { httpCustom: { url: 'http://h', headers: { Authorization: `secret${n}` }, qs: { key: `secret${n}` } } },
  },
  tenant: `t${n % 5}`,
  servicePath: n % 2 === 0 ? '/#' : '/a/#',
  ...(n % 4 === 0 && { progress: { timesSent: n + 1, lastNotification: '2024-05-01T08:00:00.123Z' } }),
  ...(n % 6 === 0 && { spent: true }),
  ...more,
})

const registrationLine = (n: number) => ({
  registration: {
    id: n.toString(16).padStart(24, '0'),
    dataProvided: { entities: [{ id: `E${n}` }], attrs: ['a'] },
    provider: { http: { url: 'http://h' }, supportedForwardingMode: 'query' },
  },
  tenant: `t${n % 5}`,
  servicePath: '/a',
})

/** The lines of a file between its first and its last one. */
const linesOf = (text: string): string[] => text.trimEnd().split('\n').slice(1, -1)

/** Number of rounds; `npm run soak` sets more. */
const rounds = Number(process.env.MOVE_ROUNDS ?? 1)

for (let round = 0; round < rounds; round++)
  t.test(`an export imported again is the same export, between any numbers of workers (${round + 1})`, async t => {
    const folder = tempDir(t)
    const path = tempDir(t)
    const first = await populated(path, random, 1500, undefined, plainWords)
    const documents = Array.from({ length: 40 }, (_, n) => [subscriptionLine(n), registrationLine(n)]).flat()
    await imported(written(t, exportWith(documents, { entities: 0 })), first)
    const text = await exported(first, folder)
    const before = await contentsOf(path)
    t.ok(before.entities > 500, `${before.entities} entities`)
    let file = join(folder, 'export.ndjson')
    for (const workers of [3, 1, 2]) {
      const directory = fresh(t, workers)
      const { tally } = await imported(file, directory)
      t.match(tally, {
        entity: { written: before.entities },
        subscription: { written: 40 },
        registration: { written: 40 },
      })
      t.strictSame(await wrongIn(directory.path), [], `nothing is wrong in the stores of ${workers} workers`)
      const after = await contentsOf(directory.path)
      t.strictSame(after.rows, before.rows, 'every row is the same, byte by byte')
      const next = tempDir(t)
      t.equal(await exported(directory, next), text)
      file = join(next, 'export.ndjson')
    }
  })

t.test('another spread over other shards gives the same export', async t => {
  const folder = tempDir(t)
  const first = await populated(tempDir(t), random, 800, undefined, plainWords)
  const text = await exported(first, folder)
  const path = tempDir(t)
  const other = openDataDirectory(path, { shards: 64, spread: 2, workers: 2 }, () => 'another-id')
  await imported(join(folder, 'export.ndjson'), other)
  t.strictSame(await wrongIn(path), [])
  t.equal(await exported(other, tempDir(t)), text)
})

t.test('the stamps of a store go on above all that was imported', async t => {
  const first = await populated(tempDir(t), random, 50, undefined, plainWords)
  const folder = tempDir(t)
  await exported(first, folder)
  const directory = fresh(t)
  await imported(join(folder, 'export.ndjson'), directory)
  const source = await directorySource(await openStores(directory, 'os', () => {}))
  let newest = 0
  for await (const { found } of source.pages(undefined, 0))
    for (const { item } of found) if (item?.kind === 'entity') newest = Math.max(newest, item.entity.created)
  await source.close()
  const { stamp } = await contentsOf(directory.path)
  t.ok(stamp >= newest && newest > 0, `${stamp} is not below ${newest}`)
})

t.test('entities of one millisecond keep the order in which they come, more than there are stamps for', async t => {
  const directory = fresh(t)
  const count = 3000
  const created = { dateCreated: new Date(madeMs).toISOString() }
  const lines = Array.from({ length: count }, (_, n) => entityLine(`E${(n * 7919) % count}`, created))
  await imported(written(t, exportWith(lines)), directory)
  t.strictSame(await wrongIn(directory.path), [])
  const items = linesOf(await exported(directory, tempDir(t))).map(line => JSON.parse(line))
  const order = items
    .map(({ entity: { id }, dateCreated, order }) => ({ id, ms: Date.parse(dateCreated), order }))
    .sort((a, b) => a.ms - b.ms || a.order - b.order)
  t.strictSame(
    order.map(({ id }) => id),
    lines.map(({ entity: { id } }) => id),
  )
  t.ok(order.at(-1)!.ms - madeMs <= 1, 'the last ones are a millisecond ahead')
})

t.test('entities with the same stamp are all found again', async t => {
  const directory = fresh(t)
  const stamp = { dateCreated: new Date(madeMs).toISOString(), order: 7 }
  const half = Array.from({ length: 300 }, (_, n) => entityLine(`E${n}`, stamp))
  await imported(written(t, exportWith(half)), directory)
  const others = Array.from({ length: 300 }, (_, n) => entityLine(`F${n}`, stamp))
  await imported(written(t, exportWith(others)), directory)
  t.strictSame(await wrongIn(directory.path), [], 'none has taken the place of another one in an index')
  t.equal((await contentsOf(directory.path)).entities, 600)
})

t.test('existing rows stay, or are replaced as a whole, indexes and counts included', async t => {
  const directory = fresh(t, 2)
  const old = { dateCreated: '2020-01-01T00:00:00.000Z', order: 0, servicePath: '/a' }
  const before = [
    entityLine('same', old, { a: { type: 'Number', value: 1, metadata: {} } }),
    entityLine(
      'other',
      { ...old, expires: { type: 'DateTime', value: '2999-01-01T00:00:00.000Z' } },
      { a: { value: 1 } },
    ),
    subscriptionLine(1),
    subscriptionLine(4),
    registrationLine(1),
  ]
  await imported(written(t, exportWith(before, { entities: 2 })), directory)
  const after = [
    before[0]!,
    entityLine(
      'other',
      { ...old, dateCreated: '2021-01-01T00:00:00.000Z' },
      { b: { type: 'x', value: 2, metadata: {} } },
    ),
    entityLine('new', old),
    subscriptionLine(1),
    subscriptionLine(4, { servicePath: '/b', progress: { timesSent: 99 } }),
    registrationLine(1),
  ]
  const file = written(t, exportWith(after, { entities: 3 }))

  const { tally } = await imported(file, directory)
  t.strictSame(tally.entity, { written: 1, replaced: 0, same: 1, kept: 1, bad: 0, unselected: 0 })
  t.strictSame(tally.subscription, { written: 0, replaced: 0, same: 1, kept: 1, bad: 0, unselected: 0 })
  t.strictSame(tally.registration, { written: 0, replaced: 0, same: 1, kept: 0, bad: 0, unselected: 0 })
  t.match(await exported(directory, tempDir(t)), /"id":"other".*"a":.*2999/)

  const again = await imported(file, directory, { overwrites: true })
  t.match(again.tally, { entity: { replaced: 3 }, subscription: { replaced: 2 }, registration: { replaced: 1 } })
  t.strictSame(await wrongIn(directory.path), [])
  const text = await exported(directory, tempDir(t))
  t.match(text, /"id":"other","type":"T","b":.*"dateCreated":"2021/)
  t.notMatch(text, /2999|"timesSent":5/)
  t.match(text, /"servicePath":"\/b","progress":\{"timesSent":99\}/)
})

const dated = { dateCreated: '2020-01-01T00:00:00.000Z', dateModified: '2021-01-01T00:00:00.000Z' }
const number = (value: number, metadata: object = {}) => ({ type: 'Number', value, metadata })
const stored = entityLine(
  'E',
  { ...dated, correlator: 'c' },
  { a: number(1, { m: { type: 'Number', value: 2 } }), o: { value: { x: 1, y: 2 } } },
)
const comparisons: readonly (readonly [what: string, line: object, outcome: 'same' | 'kept'])[] = [
  ['the same line', stored, 'same'],
  ['no times at all', entityLine('E', {}, stored.entity), 'same'],
  [
    'another order of attributes and of keys',
    entityLine('E', dated, { o: { value: { y: 2, x: 1 } }, a: number(1, { m: { type: 'Number', value: 2 } }) }),
    'same',
  ],
  ['another time of creation', { ...stored, dateCreated: '2020-01-01T00:00:00.001Z' }, 'kept'],
  ['another time of change', { ...stored, dateModified: '2021-01-01T00:00:00.001Z' }, 'kept'],
  ['another time of an attribute', { ...stored, times: { a: [dated.dateCreated, dated.dateCreated] } }, 'kept'],
  ['another correlator', { ...stored, correlator: 'd' }, 'kept'],
  [
    'another value',
    entityLine('E', {}, { ...stored.entity, a: number(2, { m: { type: 'Number', value: 2 } }) }),
    'kept',
  ],
  [
    'another type of an attribute',
    entityLine(
      'E',
      {},
      { ...stored.entity, a: { ...number(1, { m: { type: 'Number', value: 2 } }), type: 'Integer' } },
    ),
    'kept',
  ],
  [
    'other metadata',
    entityLine('E', {}, { ...stored.entity, a: number(1, { m: { type: 'Number', value: 3 } }) }),
    'kept',
  ],
  ['no metadata', entityLine('E', {}, { ...stored.entity, a: number(1) }), 'kept'],
  ['one attribute more', entityLine('E', {}, { ...stored.entity, b: number(1) }), 'kept'],
  ['one attribute less', entityLine('E', {}, { o: { value: { x: 1, y: 2 } } }), 'kept'],
]
t.test('an existing entity is compared with the facts in the file', async t => {
  const directory = fresh(t)
  await imported(written(t, exportWith([stored])), directory)
  for (const [what, line, outcome] of comparisons) {
    const { tally } = await imported(written(t, exportWith([line])), directory)
    t.equal(tally.entity[outcome], 1, `${what}: ${outcome}`)
  }
})

t.test('a file without times that is imported twice differs in nothing, however many its entities are', async t => {
  const directory = fresh(t, 2)
  const lines = [entityLine('ahead', { dateCreated: '2999-01-01T00:00:00.000Z', order: 1 })]
  for (let n = 0; n < 1200; n++) lines.push(entityLine(`E${n}`, n % 2 === 0 ? {} : { dateCreated: '2020-01-01' }))
  const file = written(t, exportWith(lines))
  const open = async () => openStores(directory, 'os', () => {})
  const options = { clock: systemClock, overwrites: false, warn: () => {} }
  const once = async () =>
    moveAll(await openFileSource(file), async from => new DirectorySink(await open(), options, from))
  t.match((await once()).tally.entity, { written: 1201 })
  t.match((await once()).tally.entity, { same: 1201, kept: 0 })
})

const explicit = subscriptionLine(1)
const masked = {
  ...explicit.subscription,
  notification: { httpCustom: { url: 'http://h', headers: { Authorization: '*****' } } },
}
const documentComparisons: readonly (readonly [what: string, line: object, outcome: 'same' | 'kept'])[] = [
  ['the same line', explicit, 'same'],
  ['other counters', { ...explicit, progress: { timesSent: 7 } }, 'same'],
  [
    'defaults that are told',
    { ...explicit, subscription: { ...explicit.subscription, throttling: 0, status: 'active' } },
    'same',
  ],
  ['another path', { ...explicit, servicePath: '/a' }, 'kept'],
  ['another status', { ...explicit, subscription: { ...explicit.subscription, status: 'inactive' } }, 'kept'],
  ['one that is spent', { ...explicit, spent: true }, 'kept'],
  ['another description', { ...explicit, subscription: { ...explicit.subscription, description: 'x' } }, 'kept'],
  ['fewer secrets', { ...explicit, subscription: masked }, 'kept'],
  ['a registration', registrationLine(1), 'same'],
  ['a registration elsewhere', { ...registrationLine(1), servicePath: '/b' }, 'kept'],
]
t.test('an existing document is compared in the members that its owner wrote', async t => {
  const directory = fresh(t)
  await imported(written(t, exportWith([registrationLine(1), explicit], { entities: 0 })), directory)
  for (const [what, line, outcome] of documentComparisons) {
    const { tally } = await imported(written(t, exportWith([line], { entities: 0 })), directory)
    t.equal(tally.subscription[outcome] + tally.registration[outcome], 1, `${what}: ${outcome}`)
  }
})

t.test('a subscription whose status was set again in the directory is no other one', async t => {
  const directory = fresh(t)
  const folder = tempDir(t)
  await imported(written(t, exportWith([explicit], { entities: 0 })), directory)
  const [store] = await openAll(directory)
  const [row] = await rowsOf(store!, allDocuments('subscription'))
  const text = decodeDocumentRow(row!.value)
  const changed = text.replace('"statusRevision":1', '"statusRevision":3')
  t.not(changed, text)
  await commit(store!, batch => batch.put(row!.key, encodeDocumentRow(changed)))
  await store!.close()
  await exported(directory, folder)
  t.match((await imported(join(folder, 'export.ndjson'), directory)).tally.subscription, { same: 1, kept: 0 })
})

t.test('tenants and paths select from a file and from a directory', async t => {
  const lines = ['', 'city', 'park'].flatMap(tenant =>
    ['/', '/a', '/a/b'].map(servicePath => entityLine(`E${tenant}${servicePath}`, { tenant, servicePath })),
  )
  const documents = [subscriptionLine(0), subscriptionLine(1), registrationLine(0)]
  const file = written(t, exportWith([...lines, ...documents], { entities: 9 }))
  const city = fresh(t)
  const { tally, unmet } = await imported(file, city, { tenants: ['city'], paths: ['/a', '/none'] })
  t.match(tally.entity, { written: 1, unselected: 8 })
  t.match(tally.subscription, { written: 0, unselected: 2 })
  t.same(unmet, ['path /none'])
  t.same(
    linesOf(await exported(city, tempDir(t))).map(line => JSON.parse(line).entity.id),
    ['Ecity/a'],
  )

  const all = fresh(t)
  await imported(file, all)
  const target = join(tempDir(t), 'out.ndjson')
  const source = await directorySource(await openStores(all, 'os', () => {}))
  const moved = await moveAll(source, from => openFileSink(target, 'a test', from), { tenants: ['', 't0'] })
  t.match(moved.tally, { entity: { written: 3, unselected: 6 }, subscription: { written: 1, unselected: 1 } })
  t.same(moved.unmet, [])
  t.match(readFileSync(target, 'utf8'), '{"orrery-export-end":1,"entities":3,"registrations":1,"subscriptions":1}')
})

t.test('a stopped selection continues where it was, and knows the names that it had found', async t => {
  const lines = Array.from({ length: 4000 }, (_, n) => entityLine(`E${n}`, { tenant: n < 500 ? 'early' : `t${n % 2}` }))
  const file = written(t, exportWith(lines))
  const directory = fresh(t)
  const statePath = join(tempDir(t), 'state')
  const selected = { statePath, tenants: ['early', 't0'] }
  const stop = new AbortController()
  const onProgress = (n: number): void => void (n >= 2000 && stop.abort())
  await t.rejects(imported(file, directory, { ...selected, signal: stop.signal, onProgress }), /stopped/)
  const { tally, unmet } = await imported(file, directory, selected)
  t.strictSame(tally.entity, { written: 2250, replaced: 0, same: 0, kept: 0, bad: 0, unselected: 1750 })
  t.same(unmet, [])
})

t.test('a bad line among unselected ones stops the import, which counts them once', async t => {
  const directory = fresh(t)
  const other = { tenant: 'other' }
  const lines = [entityLine('E1', other), entityLine('E2'), entityLine('E3', other, { a: 1 }), entityLine('E4', other)]
  const file = written(t, exportWith(lines))
  const statePath = join(tempDir(t), 'state')
  await t.rejects(imported(file, directory, { statePath, tenants: [''] }), /line 4: a is not an object/)
  const { tally } = await imported(file, directory, { statePath, tenants: [''], skipsBad: true })
  t.strictSame(tally.entity, { written: 1, replaced: 0, same: 0, kept: 0, bad: 1, unselected: 2 })
})

t.test('several types of an id, over several batches and once replaced, keep their order', async t => {
  const directory = fresh(t)
  const typed = (type: string, value: number) => ({ entity: { id: 'E', type, a: { value } } })
  const typesIn = (text: string) => linesOf(text).map(line => JSON.parse(line).entity.type)
  await imported(written(t, exportWith([typed('Z', 1), typed('A', 1)])), directory)
  await imported(written(t, exportWith([typed('M', 1)])), directory)
  t.strictSame(typesIn(await exported(directory, tempDir(t))), ['Z', 'A', 'M'])
  await imported(written(t, exportWith([typed('Z', 2)])), directory, { overwrites: true })
  t.strictSame(typesIn(await exported(directory, tempDir(t))), ['Z', 'A', 'M'])
  t.strictSame(await wrongIn(directory.path), [])
})

t.test('the same entity twice in one file is there once', async t => {
  const directory = fresh(t)
  const line = entityLine('E', { dateCreated: '2020-01-01', order: 3 })
  const { tally } = await imported(written(t, exportWith([line, line])), directory)
  t.match(tally.entity, { written: 1, same: 1 })
  t.strictSame(await wrongIn(directory.path), [])
})

t.test('a file that was cut is refused before anything is taken from it', async t => {
  const directory = fresh(t)
  const text = exportWith(Array.from({ length: 10 }, (_, n) => entityLine(`E${n}`)))
  for (const length of [text.length - 5, text.length - 100, 10]) {
    const file = written(t, text.slice(0, length))
    await t.rejects(imported(file, directory), {
      name: 'MoveError',
      message: `file ${file} has no last line: it was cut, or is no export`,
    })
  }
  t.equal((await contentsOf(directory.path)).entities, 0)
})

t.test('lines behind the last one, and a first one of something else, are refused', async t => {
  const text = exportWith([entityLine('E')])
  const end = text.trimEnd().split('\n').at(-1)
  const two = written(t, `${text}${end}\n`)
  await t.rejects(imported(two, fresh(t)), { message: `file ${two}: line 4 follows the last line` })
  const none = written(t, `{"entity":{"id":"E","type":"T"}}\n${end}\n`)
  await t.rejects(imported(none, fresh(t)), {
    message: `file ${none} is not an export: its first line has no "orrery-export"`,
  })
})

t.test('a bad line stops the import in front of it, and is skipped when that is requested', async t => {
  const directory = fresh(t)
  const lines = [entityLine('E1'), entityLine('E2', {}, { a: 1 }), entityLine('E3')]
  const file = written(t, exportWith(lines))
  const statePath = join(tempDir(t), 'state')
  await t.rejects(imported(file, directory, { statePath }), {
    name: 'MoveError',
    message: `file ${file}, line 3: a is not an object`,
  })
  t.equal((await contentsOf(directory.path)).entities, 1, 'what stood before it is there, what stands behind it is not')
  const { tally, bad } = await imported(file, directory, { skipsBad: true, statePath })
  t.strictSame(bad, ['line 3: a is not an object'])
  t.strictSame(tally.entity, { written: 2, replaced: 0, same: 0, kept: 0, bad: 1, unselected: 0 })
  t.equal((await contentsOf(directory.path)).entities, 2)
})

t.test('an import that was stopped goes on where it was, and nothing counts twice', async t => {
  const lines = Array.from({ length: 5000 }, (_, n) => entityLine(`E${n}`))
  const file = written(t, exportWith(lines))
  const directory = fresh(t, 2)
  const statePath = join(tempDir(t), 'state')
  const nowMs = madeMs
  const stop = new AbortController()
  await t.rejects(
    imported(file, directory, { statePath, nowMs, signal: stop.signal, onProgress: n => n >= 2000 && stop.abort() }),
    {
      message: /^stopped/,
    },
  )
  const half = (await contentsOf(directory.path)).entities
  t.ok(half >= 2000 && half < 5000, `${half} entities`)
  t.match(JSON.parse(readFileSync(statePath, 'utf8')), { begunMs: nowMs })
  const { tally } = await imported(file, directory, { statePath })
  t.strictSame(tally.entity, { written: 5000, replaced: 0, same: 0, kept: 0, bad: 0, unselected: 0 })
  t.strictSame(await wrongIn(directory.path), [])
})

t.test('a batch that was durable before the word of it counts as ours when it comes again', async t => {
  const lines = Array.from({ length: 2500 }, (_, n) => entityLine(`E${n}`))
  const file = written(t, exportWith(lines))
  const directory = fresh(t)
  const statePath = join(tempDir(t), 'state')
  const states: string[] = []
  const stop = new AbortController()
  const onProgress = (n: number) => {
    states.push(readFileSync(statePath, 'utf8'))
    if (n >= 2000) stop.abort()
  }
  await t.rejects(imported(file, directory, { statePath, signal: stop.signal, onProgress }), /stopped/)
  // The state before the last batch.
  writeFileSync(statePath, states.at(-1) as string)
  const { tally } = await imported(file, directory, { statePath })
  t.strictSame(tally.entity, { written: 2500, replaced: 0, same: 0, kept: 0, bad: 0, unselected: 0 })
})

t.test('an export that was stopped goes on where it was', async t => {
  const directory = await populated(tempDir(t), random, 4000, undefined, plainWords)
  const text = await exported(directory, tempDir(t))
  const folder = tempDir(t)
  const file = join(folder, 'out.ndjson')
  const statePath = join(folder, 'out.ndjson.state')
  const open = async () => directorySource(await openStores(directory, 'os', () => {}))
  const stop = new AbortController()
  const sink = (from: Parameters<typeof openFileSink>[2]) => openFileSink(file, 'a test', from)
  await t.rejects(
    moveAll(await open(), sink, { statePath, signal: stop.signal, onProgress: () => stop.abort() }),
    /stopped/,
  )
  // A kill may leave this behind the last position.
  writeFileSync(file, '{"half a', { flag: 'a' })
  await moveAll(await open(), sink, { statePath })
  t.equal(readFileSync(file, 'utf8'), text)
})

t.test('a file that is there is not written over', async t => {
  const file = written(t, 'mine')
  await t.rejects(openFileSink(file, 'a test', undefined), {
    message: `file ${file} exists already: name another one, or remove it`,
  })
  t.equal(readFileSync(file, 'utf8'), 'mine')
})

t.test('a directory in use is refused in the words of its store', async t => {
  const directory = await populated(tempDir(t), random, 10, undefined, plainWords)
  const stores = await openAll(directory)
  const inUse = { name: 'DataDirectoryError', message: `data directory ${directory.path} is in use by another process` }
  await t.rejects(exported(directory, tempDir(t)), inUse)
  await t.rejects(imported(written(t, exportWith([])), directory), inUse)
  for (const store of stores) await store.close()
})

t.test('documents reach every store, and their progress that of the document owner', async t => {
  const directory = fresh(t, 3)
  await imported(written(t, exportWith([subscriptionLine(0), subscriptionLine(4)], { entities: 0 })), directory)
  const stores = await openAll(directory)
  const counts = await Promise.all(
    stores.map(async store => {
      return [(await rowsOf(store, allDocuments('subscription'))).length, (await rowsOf(store, allProgress())).length]
    }),
  )
  for (const store of stores) await store.close()
  t.strictSame(
    counts.map(([documents]) => documents),
    [2, 2, 2],
  )
  t.equal(
    counts.reduce((sum, [, progress]) => sum + progress!, 0),
    2,
  )
})

t.test('a creation in the future becomes now, with a warning', async t => {
  const directory = fresh(t)
  const lines: string[] = []
  const file = written(t, exportWith([entityLine('E', { dateCreated: '2999-01-01T00:00:00.000Z', order: 1 })]))
  const open = await openStores(directory, 'os', () => {})
  const options = { clock: systemClock, overwrites: false, warn: (line: string) => lines.push(line) }
  await moveAll(await openFileSource(file), async from => new DirectorySink(open, options, from))
  t.match(lines, [/created later than now/])
  const [line] = linesOf(await exported(directory, tempDir(t)))
  const made = JSON.parse(line as string) as { dateCreated: string }
  t.ok(Math.abs(Date.parse(made.dateCreated) - Date.now()) < 60_000)
})

// A data directory from a backup: all rows that the owners gave, as one directory, and nothing at all from a file that
// is not whole.

import { existsSync, mkdirSync, readdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type BackupHeader, BackupWriter, RowPacker } from '../../src/backup/backup-file.js'
import { BackupOperations } from '../../src/broker/backup.js'
import { systemClock } from '../../src/clock.js'
import { noProgress } from '../../src/domain/subscriptions/subscription.js'
import type { Shards } from '../../src/messages/messages.js'
import type { Row, Store } from '../../src/ports.js'
import { restore } from '../../src/process/restore.js'
import { BackupSource } from '../../src/shard/backup-source.js'
import { allDocuments, allProgress, documentKey, progressKey } from '../../src/shard/documents/document-layout.js'
import { parseEntityKey, stampKey, typeKey } from '../../src/shard/layout.js'
import { allBundles, allLetters, allOutbox, letterKey, outboxKey } from '../../src/shard/notify/notification-layout.js'
import { decodeProgress, encodeProgress } from '../../src/shard/notify/progress-book.js'
import { rowFormat } from '../../src/storage/data-directory.js'
import { commit, rowsOf } from '../storage/store-contract.js'
import { tempDir } from '../support/broker-process.js'
import { bundleAll } from '../support/bundled.js'
import { contentsOf, directoryAt, openAll, placement, populated, wrongIn } from '../support/divided.js'
import { MemoryStore } from '../support/memory-store.js'
import { Random } from '../support/random.js'

const register = placement.shards
const lastShard = placement.shards - 1
const document = { register: register, tenant: 'city', id: 'a-subscription' }
const letter = letterKey({ shard: 3, tenant: 'city', subscription: document.id, stamp: 1 })
const pending = [outboxKey({ shard: 3, stamp: 2 }), outboxKey({ shard: lastShard, stamp: 3 })]
const neverStopped = new AbortController().signal

/** The backup of the owners of all shards: the first has all but the last shard, the second has that one. */
async function backupOf(stores: readonly [Store, Store], stamps: readonly [number, number]): Promise<Buffer> {
  const ownerOf = (shard: number): number => (shard === lastShard ? 1 : 0)
  const sources = stores.map(
    (store, owner) =>
      new BackupSource({
        store,
        commit: { afterAll: onDurable => onDurable(), whenQuiet: onQuiet => onQuiet() },
        clock: systemClock,
        shards: placement.shards,
        lastStamp: () => stamps[owner]!,
        owns: shard => ownerOf(shard) === owner,
        isNode: false,
      }),
  )
  const shards: Shards = {
    ask: (shard, request, onReply) => {
      if (request.kind === 'backup') sources[ownerOf(shard)]!.onAsk(request, onReply)
    },
    owners: () => [0, lastShard],
    ownerOf,
    pathsOf: () => undefined,
  }
  const after = (_: number, run: () => void): (() => void) => {
    setImmediate(run)
    return () => {}
  }
  const clock = { ...systemClock, after }
  const logger = { info: () => {}, warn: () => {} }
  const chance = { uuid: () => 'a-session' }
  const begun = await new BackupOperations({ shards, placement, rowFormat, by: 'o', clock, chance, logger }).begin()
  if (!begun.ok) throw new Error(begun.refusal.code)
  const parts: Uint8Array[] = []
  for await (const part of begun.value) parts.push(Buffer.from(part))
  return Buffer.concat(parts)
}

interface Scene {
  readonly folder: string
  readonly file: string
  readonly backup: Buffer
  /** The entities of the backup, by the keys of their rows. */
  readonly entities: ReadonlyMap<string, string>
}

/** Entities of all sorts, a subscription whose copies differ, its progress at both owners, pending notifications. */
async function scene(t: Test): Promise<Scene> {
  const random = Random.fromEnvironment()
  t.comment(`SEED=${random.seed}`)
  const folder = tempDir(t)
  const { path } = await populated(join(folder, 'old'), random, 300)
  const { rows, stamp } = await contentsOf(path)
  const [store] = (await openAll(directoryAt(path))) as [Store]
  const other = new MemoryStore()
  try {
    await commit(store, batch => {
      batch.put(documentKey('subscription', document), Buffer.from('of the keeper'))
      batch.put(documentKey('registration', document), Buffer.from('of the keeper, too'))
      batch.put(progressKey(document), encodeProgress({ ...noProgress, timesSent: 3, lastNotificationMs: 5 }))
      batch.put(letter, Buffer.from('a letter'))
      batch.put(pending[0]!, Buffer.from('owed'))
    })
    await commit(other, batch => {
      batch.put(documentKey('subscription', document), Buffer.from('an older copy'))
      batch.put(progressKey(document), encodeProgress({ ...noProgress, timesSent: 4, lastNotificationMs: 9 }))
      batch.put(pending[1]!, Buffer.from('owed as well'))
    })
    await bundleAll(other)
    const backup = await backupOf([store, other], [stamp, stamp + 7])
    const file = join(folder, 'backup')
    writeFileSync(file, backup)
    const entities = new Map([...rows].filter(([key]) => parseEntityKey(Buffer.from(key, 'latin1')).shard < lastShard))
    return { folder, file, backup, entities }
  } finally {
    await store.close()
  }
}

const textsOf = (rows: readonly Row[]): string[] => rows.map(({ value }) => value.toString()).sort()

t.test('a backup', async t => {
  const { folder, file, backup, entities } = await scene(t)
  const alter = (change: (bytes: Buffer) => Buffer): string => {
    const altered = join(folder, 'altered')
    writeFileSync(altered, change(Buffer.from(backup)))
    return altered
  }

  t.test('becomes a directory with everything that its owners gave, as one', async t => {
    const to = join(folder, 'new')
    const said = await restore({ from: file, to }, neverStopped)
    t.match(said, /^\d+ entities, 1 subscriptions and 1 registrations of 20.* are in /)
    t.strictSame(readdirSync(to).sort(), ['orrery.json', 'store'])
    t.match(JSON.parse(readFileSync(join(to, 'orrery.json'), 'utf8')), { ...placement, workers: 1, format: rowFormat })
    const found = await contentsOf(to)
    t.strictSame(found.rows, entities)
    t.strictSame(await wrongIn(to), [], 'indexes and counts are right')
    const [store] = (await openAll(directoryAt(to))) as [Store]
    t.teardown(() => store.close())
    t.strictSame(textsOf(await rowsOf(store, allDocuments('subscription'))), ['of the keeper'])
    t.strictSame(textsOf(await rowsOf(store, allDocuments('registration'))), ['of the keeper, too'])
    t.strictSame(textsOf(await rowsOf(store, allLetters())), ['a letter'])
    t.strictSame(textsOf(await rowsOf(store, allOutbox())), ['owed', 'owed as well'])
    t.strictSame(await rowsOf(store, allBundles()), [])
    const progress = await rowsOf(store, allProgress())
    t.match(
      progress.map(({ value }) => decodeProgress(value).progress),
      [{ timesSent: 7, lastNotificationMs: 9 }],
    )
  })

  t.test('has the highest of all stamps: later creations come after everything', async t => {
    const to = join(folder, 'stamped')
    await restore({ from: file, to }, neverStopped)
    const { stamp } = await contentsOf(to)
    t.equal(stamp, (await contentsOf(join(folder, 'old'))).stamp + 7)
  })

  t.test('that is damaged or cut is refused before anything is made of it', async t => {
    const to = join(folder, 'none')
    const middle = Math.floor(backup.length / 2)
    for (const change of [
      (bytes: Buffer) => {
        bytes[middle]! ^= 1
        return bytes
      },
      (bytes: Buffer) => bytes.subarray(0, middle),
      (bytes: Buffer) => bytes.subarray(0, -1),
      (bytes: Buffer) => Buffer.concat([bytes, bytes]),
    ]) {
      await t.rejects(restore({ from: alter(change), to }, neverStopped), { name: 'BackupError' })
      t.notOk(existsSync(to))
      // The file is read to its end before the target is checked.
      await t.rejects(restore({ from: alter(change), to: join(folder, 'old') }, neverStopped), { name: 'BackupError' })
    }
  })

  t.test('is not put into a directory that holds anything, which stays as it was', async t => {
    const to = join(folder, 'taken')
    mkdirSync(to)
    writeFileSync(join(to, 'letters.txt'), 'dear')
    await t.rejects(restore({ from: file, to }, neverStopped), { message: /holds "letters.txt": choose an empty/ })
    t.strictSame(readdirSync(to), ['letters.txt'])
    const old = join(folder, 'old')
    await t.rejects(restore({ from: file, to: old }, neverStopped), { message: /is a data directory already/ })
    t.strictSame((await contentsOf(old)).rows.size >= entities.size, true)
  })

  t.test('may be put into a fresh volume, which has a folder of its own', async t => {
    const to = join(folder, 'volume')
    mkdirSync(join(to, 'lost+found'), { recursive: true })
    await restore({ from: file, to }, neverStopped)
    t.strictSame(readdirSync(to).sort(), ['lost+found', 'orrery.json', 'store'])
  })

  t.test('that was stopped on its way leaves nothing behind', async t => {
    const to = join(folder, 'stopped')
    const stop = new AbortController()
    const restoring = restore({ from: file, to }, stop.signal)
    stop.abort(new Error('stopped'))
    await t.rejects(restoring, { message: 'stopped' })
    t.notOk(existsSync(to))
  })

  t.test('begins anew where an earlier try was killed', async t => {
    const to = join(folder, 'again')
    await restore({ from: file, to }, neverStopped)
    // A kill leaves rows, and no orrery.json.
    writeFileSync(join(to, 'restore.json'), readFileSync(join(to, 'orrery.json')))
    unlinkSync(join(to, 'orrery.json'))
    await restore({ from: file, to }, neverStopped)
    t.strictSame((await contentsOf(to)).rows, entities)
  })
})

t.test('a backup of other rows, or without each shard once, is refused', async t => {
  const folder = tempDir(t)
  const whole: Omit<BackupHeader, 'version'> = {
    ...placement,
    rowFormat,
    by: 'orrery 9.9.9',
    beganMs: 1,
    owners: [
      { shards: Array.from({ length: placement.shards }, (_, n) => n), isKeeper: true, stamp: 0, positions: [] },
    ],
  }
  const refusalOf = async (header: Partial<BackupHeader>, ...keys: readonly Buffer[]): Promise<string> => {
    const writer = new BackupWriter()
    const packer = new RowPacker()
    for (const key of keys) packer.add({ key, value: Buffer.from('x') })
    const file = join(folder, 'file')
    const begin = Buffer.from(writer.begin({ ...whole, ...header }))
    const page = Buffer.from(writer.page(0, packer.packed()))
    writeFileSync(file, Buffer.concat([begin, page, writer.end(2)]))
    return restore({ from: file, to: join(folder, 'new') }, neverStopped).then(
      said => said,
      (error: Error) => error.message,
    )
  }
  t.match(await refusalOf({ rowFormat: rowFormat + 1 }), /rows of format 5 .* \(orrery 9\.9\.9\)$/)
  const [owner] = whole.owners
  for (const owners of [
    [],
    [{ ...owner!, shards: owner!.shards.slice(1) }],
    [owner!, owner!],
    [{ ...owner!, isKeeper: false }],
  ])
    t.equal(await refusalOf({ owners }), 'the backup does not have each shard once')
  const foreign = 'the backup has rows that this version does not know'
  for (const key of [
    Buffer.from('zebra'),
    Buffer.alloc(0),
    stampKey(),
    typeKey('t', '/', 'T', 1, 0),
    outboxKey({ shard: placement.shards, stamp: 1 }),
  ])
    t.equal(await refusalOf({}, key), foreign)
  t.notOk(existsSync(join(folder, 'new')))
  t.match(await refusalOf({}), /^0 entities/)
})

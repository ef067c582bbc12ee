// `orrery restore`: makes the data directory of a single node from a backup.
//
// It reads the file twice: first to its end, since it creates nothing from a damaged file, and then row by row into a
// new store, as every move does (shard/transfer.ts). It merges the rows of all owners: it adds up the progress of
// notifications, and makes indexes and counts from the entities. `orrery.json` comes last, so no broker starts on half
// of a directory.
//
// After an interruption the operator gives the same command again, and it begins anew.
//
// Not here: the form of the file (backup/backup-file.ts), another number of workers (repartition.ts), the way into a
// cluster (cluster-directories.ts).

import { existsSync, readdirSync, rmdirSync, rmSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { BackupError, type BackupHeader, type BackupTrailer, blocksOf } from '../backup/backup-file.js'
import { systemChance, systemClock } from '../clock.js'
import { usageOf } from '../config/commands.js'
import { envPrefixes, options } from '../config/options.js'
import { wholeOf } from '../move/backup-command.js'
import { openProgress } from '../observe/progress.js'
import type { Row, Store } from '../ports.js'
import { encodeNumber, kindsThatGo, prefix, shardOfKey } from '../shard/keys.js'
import { stampKey } from '../shard/layout.js'
import { rowsOfBundle } from '../shard/notify/bundle.js'
import { ProgressParts, TransferBatch, transferLimitsDefault } from '../shard/transfer.js'
import { createDirectory, DataDirectoryError, rowFormat } from '../storage/data-directory.js'
import { openPart } from '../storage/open-store.js'
import { rocksMissing } from '../storage/rocks-store.js'
import { discardStores, freeBytes } from '../storage/store-folders.js'
import { type Filled, markNew, roomFactor } from './fill-directory.js'

const text = { type: 'string' } as const
const known = { from: text, dataDir: text } as const

/** The file that marks an unfinished directory. */
const mark = 'restore.json'

export async function runRestore(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const reading = read(argv, env)
  if (typeof reading === 'string') return say('stderr', `${usageOf('restore')}\n\n${reading}`, 1)
  const stop = new AbortController()
  const onSignal = (): void => stop.abort(new Error('stopped; the same command begins again'))
  for (const signal of signals) process.once(signal, onSignal)
  try {
    return say('stdout', await restore(reading, stop.signal), 0)
  } catch (error) {
    return say('stderr', `orrery restore: ${(error as Error).message}`, 1)
  } finally {
    for (const signal of signals) process.off(signal, onSignal)
  }
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

function say(stream: 'stdout' | 'stderr', line: string, status: number): number {
  process[stream].write(`${line}\n`)
  return status
}

export interface RestoreOrder {
  readonly from: string
  readonly to: string
}

/** Reads the command line; returns the order, or a sentence about the fault. */
function read(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): RestoreOrder | string {
  try {
    const args = argv.map(word => (/^-[^-]/.test(word) ? `-${word}` : word))
    const { values } = parseArgs({ args, options: known, strict: true, allowPositionals: false })
    const { from } = values
    const to = values.dataDir ?? envPrefixes.map(one => env[one + options.dataDir.env]).find(one => one)
    return from === undefined || to === undefined ? 'orrery restore: --from and -dataDir are needed' : { from, to }
  } catch (error) {
    return (error as Error).message
  }
}

/**
 * Restores; returns a sentence about the result. If it fails, it removes everything it has created, and rejects with a
 * sentence for the operator.
 */
export async function restore({ from, to }: RestoreOrder, signal: AbortSignal): Promise<string> {
  // One open file for both readings: the restored bytes are the checked ones.
  const file = await open(from, 'r')
  try {
    const { header, trailer } = await wholeOf(bytesOf(file, signal))
    assertReadable(header)
    const isNew = !existsSync(to)
    markNew(to, mark)
    try {
      const filled = await fill(file, to, { header, trailer, signal })
      rmSync(join(to, mark))
      const { entities, subscriptions, registrations } = filled
      return [
        `${entities} entities, ${subscriptions} subscriptions and ${registrations} registrations of ${new Date(header.beganMs).toISOString()} are in ${to}.`,
        'Notifications that were pending then are sent again when a broker starts on it.',
      ].join('\n')
    } catch (error) {
      discardStores(to, 1)
      rmSync(join(to, mark), { force: true })
      if (isNew && readdirSync(to).length === 0) rmdirSync(to)
      throw error
    }
  } finally {
    await file.close()
  }
}

async function* bytesOf(file: FileHandle, signal: AbortSignal): AsyncGenerator<Buffer, void, void> {
  for (let at = 0; ; ) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(readBytes), 0, readBytes, at)
    signal.throwIfAborted()
    if (bytesRead === 0) return
    at += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

const readBytes = 256 * 1024

/** Refuses rows of another format, and a backup that does not have every shard exactly once. */
function assertReadable({ rowFormat: format, by, shards, owners }: BackupHeader): void {
  if (format !== rowFormat)
    throw new BackupError(
      `the backup has rows of format ${format} and this version reads format ${rowFormat}: restore it with the version that wrote it (${by})`,
    )
  const all = owners.flatMap(owner => owner.shards)
  const isWhole = all.length === shards && new Set(all).size === shards && all.every(shard => shard < shards)
  if (!isWhole || owners.filter(({ isKeeper }) => isKeeper).length !== 1)
    throw new BackupError('the backup does not have each shard once')
}

interface Given {
  readonly header: BackupHeader
  readonly trailer: BackupTrailer
  readonly signal: AbortSignal
}

async function fill(file: FileHandle, to: string, { header, trailer, signal }: Given): Promise<Filled> {
  const neededBytes = trailer.bytes * roomFactor
  if (freeBytes(to) < neededBytes)
    throw new DataDirectoryError(`${to} has too little room: it takes about ${Math.ceil(neededBytes / 1024 / 1024)} MB`)
  discardStores(to, 1)
  const kind = (await rocksMissing()) === undefined ? 'rocksdb' : 'level'
  const target = await openPart(to, kind, { worker: 0, workers: 1 }, { durability: 'os' })
  let filled: Filled
  try {
    filled = await fillStore(target, file, header, signal)
  } finally {
    // Closing makes the content durable before the directory gets its `orrery.json`.
    await target.close()
  }
  const { shards, spread } = header
  createDirectory({ path: to, shards, spread, store: kind, id: systemChance.uuid() })
  return filled
}

async function fillStore(target: Store, file: FileHandle, header: BackupHeader, signal: AbortSignal): Promise<Filled> {
  const logger = { info: (line: string): void => void process.stderr.write(`${line}\n`) }
  const owners = header.owners.map(({ shards, isKeeper }) => ({ shards: new Set(shards), isKeeper }))
  const progress = openProgress({ title: 'Restoring', unit: 'entities', clock: systemClock, logger })
  const filling = new TransferBatch(target, undefined)
  const parts = new ProgressParts()
  const counts = { entities: 0, subscriptions: 0, registrations: 0 }
  const add = async (row: Row): Promise<void> => {
    filling.add(row)
    if (filling.rows < transferLimitsDefault.batchRowsMax && filling.bytes < transferLimitsDefault.batchBytesMax) return
    counts.entities += await filling.commit(() => {})
    progress.show(counts.entities, undefined)
  }
  const put = async (row: Row): Promise<void> => {
    switch (row.key[0]) {
      case prefix.progress:
        return parts.add(row)
      case prefix.bundle:
        for (const one of rowsOfBundle(row)) await add(one)
        return
      case prefix.subscription:
        counts.subscriptions++
        break
      case prefix.registration:
        counts.registrations++
    }
    await add(row)
  }
  try {
    for await (const block of blocksOf(bytesOf(file, signal))) {
      if (block.kind !== 'rows') continue
      const owner = owners[block.owner]
      for (const row of block.rows) {
        if (!owner || !mayHave(owner, row)) throw new BackupError('the backup has rows that this version does not know')
        await put(row)
      }
    }
    for (const row of parts.merged()) await add(row)
    const stamp = Math.max(...header.owners.map(one => one.stamp))
    counts.entities += await filling.commit(batch => batch.put(stampKey(), encodeNumber(stamp)))
    return counts
  } finally {
    progress.end()
  }
}

/** Whether a row is of a kind that a backup has, and may come from this owner. */
function mayHave(
  { shards, isKeeper }: { readonly shards: ReadonlySet<number>; readonly isKeeper: boolean },
  { key }: Row,
): boolean {
  const [kind] = key
  if (kind === undefined) return false
  if (kindsOfShards.has(kind)) return shards.has(shardOfKey(key))
  return kindsOfRegister.has(kind) ? isKeeper : kindsOfAll.has(kind)
}

const kindsOfShards: ReadonlySet<number> = new Set(kindsThatGo('shard'))
const kindsOfRegister: ReadonlySet<number> = new Set(kindsThatGo('register'))
const kindsOfAll: ReadonlySet<number> = new Set(kindsThatGo('progress', 'split'))

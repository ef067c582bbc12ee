// `orrery backup`: requests a backup from a running broker, and keeps it in a file.
//
// It checks the bytes while it writes them. The file gets its name when it is whole and durable; until then its name is
// FILE.part. It holds secrets, so only its user can read it.
//
// Exit status: 0 when the file is complete; 1 when it is not, with the reason on standard error.
//
// Not here: the way back (process/restore.ts).

import { existsSync } from 'node:fs'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { Dispatcher } from 'undici'
import { BackupError, type BackupHeader, type BackupTrailer, blocksOf } from '../backup/backup-file.js'
import { systemClock } from '../clock.js'
import { usageOf } from '../config/commands.js'
import { envPrefixes, options } from '../config/options.js'
import { connectorTo, openSockets, reasonOf } from '../deliver/sockets/sockets.js'
import { openProgress } from '../observe/progress.js'
import { flushFolder } from '../storage/data-directory.js'
import { backupKeyIn } from './backup-key.js'
import { endpointOf, reasonIn } from './broker-client.js'

const text = { type: 'string' } as const
const flag = { type: 'boolean' } as const
const known = { from: text, to: text, backupKeyFile: text, notifCaFile: text, insecureNotif: flag } as const

/** Time until the first byte: the broker waits for shards that move. */
const headersMsMax = 60_000
/** Time without any byte; a broker's pauses between two pages are shorter. */
const silenceMsMax = 60_000
/** Bytes of a refusal that are read. */
const refusalBytesMax = 64 * 1024

export async function runBackup(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const reading = read(argv, env)
  if (typeof reading === 'string') return say(`${usageOf('backup')}\n\n${reading}`, 1)
  const stop = new AbortController()
  const onSignal = (): void => stop.abort()
  for (const signal of signals) process.once(signal, onSignal)
  // Waiting for a broker does not keep the process alive; this timer does.
  const awake = setInterval(() => {}, awakeMs)
  try {
    const { header, trailer } = await backUp(reading, stop.signal)
    const moment = new Date(header.beganMs).toISOString()
    return say(`${reading.to} has ${trailer.rows} rows of ${moment}, ${trailer.bytes} bytes of them`, 0)
  } catch (error) {
    return say(`orrery backup: ${stop.signal.aborted ? 'stopped' : (error as Error).message}`, 1)
  } finally {
    clearInterval(awake)
    for (const signal of signals) process.off(signal, onSignal)
  }
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const awakeMs = 1_000

function say(line: string, status: number): number {
  process.stderr.write(`${line}\n`)
  return status
}

interface BackupOrder {
  readonly from: URL
  readonly to: string
  readonly key: string
  readonly tls: { readonly insecure: boolean; readonly caFile: string | undefined }
}

/** Reads the command line; returns the order, or a sentence about the fault. */
function read(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): BackupOrder | string {
  try {
    const args = argv.map(word => (/^-[^-]/.test(word) ? `-${word}` : word))
    const { values } = parseArgs({ args, options: known, strict: true, allowPositionals: false })
    const { from, to, insecureNotif: insecure = false } = values
    const variable = (name: 'backupKeyFile' | 'notifCaFile'): string | undefined =>
      values[name] ?? envPrefixes.map(prefix => env[prefix + options[name].env]).find(one => one)
    const keyFile = variable('backupKeyFile')
    if (from === undefined || to === undefined || keyFile === undefined)
      return 'orrery backup: --from, --to and --backupKeyFile are needed'
    if (!URL.canParse(from) || !/^https?:$/.test(new URL(from).protocol))
      return `--from: ${JSON.stringify(from)} is not a URL with http or https`
    return { from: new URL(from), to, key: backupKeyIn(keyFile), tls: { insecure, caFile: variable('notifCaFile') } }
  } catch (error) {
    return (error as Error).message
  }
}

interface Whole {
  readonly header: BackupHeader
  readonly trailer: BackupTrailer
}

async function backUp(order: BackupOrder, signal: AbortSignal): Promise<Whole> {
  const { to } = order
  if (existsSync(to)) throw new BackupError(`${to} exists already: choose another name`)
  const part = `${to}.part`
  const file = await open(part, 'w', 0o600)
  try {
    // An older file of that name may have had other permissions.
    await file.chmod(0o600)
    const whole = await wholeOf(written(bodyOf(order, signal), file))
    await file.sync()
    await file.close()
    await rename(part, to)
    flushFolder(dirname(resolve(to)))
    return whole
  } catch (error) {
    await file.close().catch(() => {})
    await rm(part, { force: true })
    throw error
  }
}

/** The bytes, each written before it is yielded. */
async function* written(bytes: AsyncIterable<Buffer>, file: FileHandle): AsyncGenerator<Buffer, void, void> {
  const logger = { info: (line: string): void => void process.stderr.write(`${line}\n`) }
  const progress = openProgress({ title: 'Backing up', unit: 'bytes', clock: systemClock, logger })
  let count = 0
  try {
    for await (const piece of bytes) {
      await file.appendFile(piece)
      count += piece.length
      progress.show(count, undefined)
      yield piece
    }
  } finally {
    progress.end()
  }
}

/** Reads a backup to its end. Rejects when it is not whole. */
export async function wholeOf(bytes: AsyncIterable<Buffer>): Promise<Whole> {
  let header: BackupHeader | undefined
  for await (const block of blocksOf(bytes))
    if (block.kind === 'header') header = block.header
    else if (block.kind === 'trailer') return { header: header!, trailer: block.trailer }
  throw new BackupError('the backup is damaged: it has no end')
}

async function* bodyOf({ from, key, tls }: BackupOrder, signal: AbortSignal): AsyncGenerator<Buffer, void, void> {
  const { Client } = await import('undici')
  const client = new Client(from.origin, {
    connect: connectorTo(endpointOf(from), openSockets(tls), () => {}),
    headersTimeout: headersMsMax,
    bodyTimeout: silenceMsMax,
  })
  try {
    const path = `${from.pathname.replace(/\/+$/, '')}/admin/backup`
    const headers = { 'X-Auth-Token': key, 'content-length': '0' }
    const answer = await client.request({ method: 'POST', path, headers, signal })
    if (answer.statusCode !== 200) throw new BackupError(await refusalOf(from, answer))
    for await (const piece of answer.body as AsyncIterable<Buffer>) yield piece
  } catch (error) {
    throw error instanceof BackupError ? error : new BackupError(`${from.origin}: ${reasonOf(error as Error)}`)
  } finally {
    await client.destroy()
  }
}

async function refusalOf({ origin }: URL, { statusCode, body }: Dispatcher.ResponseData): Promise<string> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of body as AsyncIterable<Buffer>) {
    pieces.push(piece)
    bytes += piece.length
    if (bytes > refusalBytesMax) break
  }
  return `${origin} answered ${statusCode}: ${reasonIn({ body: Buffer.concat(pieces) })}`
}

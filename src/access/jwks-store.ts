// The keys of issuers on disk, so that a restart works while an issuer is away.
//
//   <directory>/<hash of issuer and URL>.json    {"format":1,"issuer":…,"jwks":…,"fetched":…,"keys":[…]}
//
// A file is replaced as a whole: written under another name, flushed, renamed. Several workers may share the directory:
// each writes under a name of its own, and the last one wins. A file of another format, issuer or URL is not read. The
// keys are public, but whoever may change these files may make tokens, so only the broker's user may.

import { createHash, randomUUID } from 'node:crypto'
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isObject, type Json, type JsonObject } from '../domain/json.js'
import { type KeySet, readKeySet } from './jwks.js'
import { jwksBytesMax } from './limits.js'

const format = 1

/** Beyond the keys, a file has an issuer, a URL and a date. */
const fileBytesMax = jwksBytesMax + 32 * 1024

/** An unfinished file of this age belongs to a process that has ended. */
const abandonedMs = 3_600_000

/** Whose keys they are. */
export interface KeysOwner {
  readonly issuer: string
  readonly url: string
}

export interface StoredKeys {
  readonly set: KeySet
  readonly fetchedMs: number
}

export class JwksStore {
  /** Without a directory nothing is kept. It is made when it is needed. */
  constructor(private readonly directory: string | undefined) {}

  /** undefined: there are none. Throws an error with a sentence if the file cannot be used. */
  async read(owner: KeysOwner): Promise<StoredKeys | undefined> {
    if (this.directory === undefined) return undefined
    const path = join(this.directory, nameOf(owner))
    const text = await textOf(path)
    if (text === undefined) return undefined
    let json: Json
    try {
      json = JSON.parse(text) as Json
    } catch {
      throw new Error(`${path} is not JSON`)
    }
    if (!isObject(json) || json.format !== format || json.issuer !== owner.issuer || json.jwks !== owner.url)
      throw new Error(`${path} is of another format or issuer`)
    const fetchedMs = typeof json.fetched === 'string' ? Date.parse(json.fetched) : Number.NaN
    return { set: readKeySet(JSON.stringify({ keys: json.keys ?? [] })), fetchedMs }
  }

  /** Fails when the disk does. */
  async write({ issuer, url }: KeysOwner, { set, fetchedMs }: StoredKeys): Promise<void> {
    if (this.directory === undefined) return
    await mkdir(this.directory, { recursive: true, mode: 0o700 })
    const path = join(this.directory, nameOf({ issuer, url }))
    const temporary = `${path}.${randomUUID()}${unfinished}`
    const fetched = new Date(fetchedMs).toISOString()
    const members: JsonObject = { format, issuer, jwks: url, fetched, keys: set.json.keys ?? [] }
    try {
      const file = await open(temporary, 'wx', 0o600)
      try {
        await file.writeFile(`${JSON.stringify(members)}\n`)
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(temporary, path)
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => {})
      throw error
    }
  }

  /** Removes the files of other issuers, and those that were abandoned. Other files stay. Fails when the disk does. */
  async keepOnly(owners: readonly KeysOwner[], nowMs: number): Promise<void> {
    const { directory } = this
    if (directory === undefined) return
    const wanted = new Set(owners.map(nameOf))
    for (const name of await readdir(directory).catch(() => [])) {
      const path = join(directory, name)
      const isOld = ownName.test(name) && !wanted.has(name)
      const isLeft =
        name.endsWith(unfinished) && nowMs - ((await stat(path).catch(() => undefined))?.mtimeMs ?? nowMs) > abandonedMs
      if (isOld || isLeft) await rm(path, { force: true })
    }
  }
}

const unfinished = '.new'
const ownName = /^[0-9a-f]{40}\.json$/

/** The lengths of its parts make no two owners the same text. */
const nameOf = ({ issuer, url }: KeysOwner): string =>
  `${createHash('sha256').update(`${issuer.length} ${issuer}${url}`).digest('hex').slice(0, 40)}.json`

async function textOf(path: string): Promise<string | undefined> {
  try {
    const file = await open(path, 'r')
    try {
      if ((await file.stat()).size > fileBytesMax) throw new Error(`${path} has more than ${fileBytesMax} bytes`)
      return await file.readFile('utf8')
    } finally {
      await file.close()
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

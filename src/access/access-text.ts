// Reads an access file from disk (docs/interface/access.md#the-file): JSON, or YAML.
//
// The extension of its name decides: `.json`, `.yaml` or `.yml`. With any other extension the first character of the
// text decides.
//
// Not here: when it is read (access-source.ts).

import { readFileSync, statSync } from 'node:fs'
import { dirname, extname, resolve } from 'node:path'
import { type AccessDocument, readAccessJson } from '../domain/access/access-document.js'
import { type AccessFile, accessFileOf } from '../domain/access/access-file.js'
import { accessFileLengthMax } from '../domain/access/access-limits.js'
import { accepted, type Result, refusals, refused } from '../domain/refusal.js'
import { stateNow } from './file-state.js'
import { readKeySet } from './jwks.js'
import { jwksBytesMax } from './limits.js'
import { readAccessYaml } from './yaml-document.js'

/** A character of a text has up to four bytes in UTF-8. */
const fileBytesMax = 4 * accessFileLengthMax

/** The access file at a path, or a refusal (`accessFile`) with a sentence that has the line and the reason. */
export function readAccessFile(path: string): Result<AccessFile> {
  let text: string
  try {
    text = textAt(path, fileBytesMax)
  } catch (error) {
    return refused(refusals.accessFile((error as Error).message))
  }
  const document = documentIn(text, path)
  return document.ok ? accessFileOf(document.value) : document
}

/** An access file, and its state on disk when it was read. Plain data, for another thread of the process. */
export interface ReadAccess {
  readonly file: AccessFile
  readonly state: string
}

/** The access file at a path, if the broker can use it and all files of keys that it names; or a refusal, as above. */
export function readUsable(path: string): Result<ReadAccess> {
  // A file that is written to meanwhile has another state at the next look, and is read again.
  const state = stateNow(path)
  const file = readAccessFile(path)
  if (!file.ok) return file
  const fault = keyFilesFault(file.value, folderOf(path))
  return fault === undefined ? accepted({ file: file.value, state }) : refused(refusals.accessFile(fault))
}

function documentIn(text: string, path: string): Result<AccessDocument> {
  const extension = extname(path).toLowerCase()
  if (extension === '.json') return readAccessJson(text)
  if (extension === '.yaml' || extension === '.yml') return readAccessYaml(text)
  return /^\s*\{/.test(text) ? readAccessJson(text) : readAccessYaml(text)
}

/** Paths in the file begin at its own directory. */
export const folderOf = (path: string): string => dirname(resolve(path))

/**
 * Why the broker cannot use a file of keys that the access file names, as a sentence; undefined: it can use all of
 * them.
 */
export function keyFilesFault({ issuers }: AccessFile, folder: string): string | undefined {
  for (const [at, { keys }] of [...issuers.values()].entries()) {
    if (keys.kind !== 'file') continue
    try {
      readKeySet(textAt(resolve(folder, keys.path), jwksBytesMax))
    } catch (error) {
      return `issuers[${at}].jwksFile: ${(error as Error).message}`
    }
  }
  return undefined
}

/** Throws an error with a sentence. */
function textAt(path: string, bytesMax: number): string {
  const found = statSync(path)
  if (!found.isFile()) throw new Error(`${path} is no file`)
  if (found.size > bytesMax) throw new Error(`${path} has more than ${bytesMax} bytes`)
  const bytes = readFileSync(path)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new Error(`${path} is not UTF-8`)
  }
}

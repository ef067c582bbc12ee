// How far work has come, in a small file beside what it writes: who starts the same work again goes on from there.
//
// It is replaced as a whole after each batch, when that is durable: it may be one batch behind, never ahead. It goes when the work has ended.
// It holds no token.

import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs'
import { isObject, type Json, type JsonObject } from '../domain/json.js'
import { MoveError } from './moved.js'

const version = 1

/** What was done of some work. */
export interface Progress {
  /** When it began. */
  readonly begunMs: number
  /** The page that the source has to begin with; undefined: the first. */
  readonly from: Json | undefined
  /** Items of that page that have been placed. */
  readonly done: number
  readonly sink: Json
  /** By kind and outcome. */
  readonly counts: Counts
}

export type Counts = { readonly [kind: string]: { readonly [outcome: string]: number } }

export interface StateFile {
  readonly path: string
  /** What was written down of the same work; undefined: nothing. `isOther`: of other work. */
  load(job: JsonObject): { readonly progress: Progress | undefined; readonly isOther: boolean }
  save(job: JsonObject, progress: Progress): void
  remove(): void
}

export function stateFileAt(path: string): StateFile {
  return {
    path,
    load(job) {
      const found = read(path)
      if (!found) return { progress: undefined, isOther: false }
      if (JSON.stringify(found.job) !== JSON.stringify(job)) return { progress: undefined, isOther: true }
      const { begunMs, from, done, sink, counts } = found
      return {
        progress: { begunMs: Number(begunMs), from, done: Number(done), sink: sink ?? null, counts: counts as Counts },
        isOther: false,
      }
    },
    save(job, progress) {
      const temporary = `${path}.new`
      try {
        const file = openSync(temporary, 'w', 0o600)
        try {
          writeSync(file, JSON.stringify({ 'orrery-state': version, job, ...progress }))
          fsyncSync(file)
        } finally {
          closeSync(file)
        }
        renameSync(temporary, path)
      } catch (error) {
        throw new MoveError(`file ${path} cannot be written: ${(error as Error).message}`, { cause: error })
      }
    },
    remove: () => rmSync(path, { force: true }),
  }
}

function read(path: string): JsonObject | undefined {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new MoveError(`file ${path} cannot be read: ${(error as Error).message}`, { cause: error })
  }
  let wrong = 'is not a state of ours'
  try {
    const found = JSON.parse(text) as Json
    const foundVersion = isObject(found) ? found['orrery-state'] : undefined
    if (isObject(found) && foundVersion === version) return found
    if (foundVersion !== undefined)
      wrong = `has version ${JSON.stringify(foundVersion)}, and this release reads version ${version}`
  } catch {
    // Told below.
  }
  throw new MoveError(`file ${path} ${wrong}: remove it to begin anew`)
}

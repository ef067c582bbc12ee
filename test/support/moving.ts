// Exports and imports of data directories within the test's process, as the command makes them, without the command
// line.

import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../src/clock.js'
import { directorySource, openStores } from '../../src/move/directory.js'
import { DirectorySink } from '../../src/move/directory-sink.js'
import { openFileSink, openFileSource } from '../../src/move/file.js'
import { move, stateFileAt, type Tally } from '../../src/move/move.js'
import type { Sink, Source } from '../../src/move/moved.js'
import type { DataDirectory } from '../../src/storage/data-directory.js'

export interface MoveWishes {
  readonly overwrites?: boolean
  readonly tenants?: readonly string[]
  readonly paths?: readonly string[]
  readonly skipsBad?: boolean
  /** The file of a state to continue from. */
  readonly statePath?: string
  readonly nowMs?: number
  readonly onProgress?: (entities: number) => void
  readonly signal?: AbortSignal
}

export interface Moved {
  readonly tally: Tally
  readonly unmet: readonly string[]
  /** Skipped lines, as `line 3: reason`. */
  readonly bad: readonly string[]
}

/** Moves everything, and closes both. */
export async function moveAll(
  source: Source,
  openSink: (sink: Parameters<typeof openFileSink>[2]) => Promise<Sink>,
  wishes: MoveWishes = {},
): Promise<Moved> {
  const state = wishes.statePath === undefined ? undefined : stateFileAt(wishes.statePath)
  const job = { from: source.identity }
  const earlier = state?.load(job).progress
  const sink = await openSink(earlier?.sink)
  const bad: string[] = []
  try {
    const { tally, unmet } = await move(source, sink, {
      selection: { tenants: wishes.tenants, paths: wishes.paths },
      skipsBad: wishes.skipsBad ?? false,
      state,
      job,
      nowMs: wishes.nowMs ?? systemClock.wallMs(),
      earlier,
      onProgress: wishes.onProgress ?? (() => {}),
      onBad: (where, fault) => bad.push(`${where}: ${fault}`),
      signal: wishes.signal ?? new AbortController().signal,
    })
    return { tally, unmet, bad }
  } finally {
    await sink.close()
    await source.close()
  }
}

const noWarning = (line: string): never => {
  throw new Error(`a warning nobody waits for: ${line}`)
}

/** The bytes of an export of a data directory, which is also left as `export.ndjson` in the folder. */
export async function exported(directory: DataDirectory, folder: string): Promise<string> {
  const file = join(folder, 'export.ndjson')
  if (existsSync(file)) rmSync(file)
  const source = await directorySource(await openStores(directory, 'os', noWarning))
  await moveAll(source, from => openFileSink(file, 'a test', from))
  return readFileSync(file, 'utf8')
}

/** Imports a file into a data directory. */
export async function imported(file: string, directory: DataDirectory, wishes: MoveWishes = {}): Promise<Moved> {
  return moveAll(
    await openFileSource(file),
    async from =>
      new DirectorySink(
        await openStores(directory, 'os', noWarning),
        { clock: systemClock, overwrites: wishes.overwrites ?? false, warn: noWarning },
        from,
      ),
    wishes,
  )
}

/** The text of an export with these lines between its first and its last one. */
export const exportWith = (lines: readonly object[], counts = { entities: lines.length }): string =>
  [{ 'orrery-export': 1 }, ...lines, { 'orrery-export-end': 1, ...counts }]
    .map(line => `${JSON.stringify(line)}\n`)
    .join('')

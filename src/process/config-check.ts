// `orrery config check`: shows the resulting settings, and checks whether a start would accept them
// (docs/operations/starting.md).
//
// It makes the checks of a start (preflight.ts). It also checks things that a start only notices when it uses them: the
// log file, the pid file, the store of the data directory, and whether another process uses that. It creates and
// changes nothing.
//
// Exit status: 0 when a start would accept all, 1 with a line for each reason against it.

import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { type Config, readConfig } from '../config/config.js'
import { logFileName } from '../observe/log-output.js'
import { assertPidFree } from '../observe/pid-file.js'
import { isDataDirectory, openedDirectory } from '../storage/data-directory.js'
import { lockHolder } from '../storage/lock-holder.js'
import { assertStore } from '../storage/open-store.js'
import { preflight } from './preflight.js'

/** Runs the command; returns the exit status. */
export async function runConfigCheck(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const reading = readConfig(words, env)
  if (reading.kind === 'print') return say('stdout', [reading.text], 0)
  if (reading.kind === 'refuse') return say('stderr', reading.lines, 1)
  const { config, settings } = reading
  const { faults, warnings } = await preflight(config)
  say('stdout', [...reading.warnings, ...warnings, ...settings], 0)
  const all = [...faults, ...(await faultsInUse(config))]
  return all.length > 0 ? say('stderr', all, 1) : 0
}

/** Faults that a start would meet later. */
async function faultsInUse({ logging: { file, pidFile }, store: { directory }, cluster }: Config): Promise<string[]> {
  const faults: string[] = []
  const check = async (at: () => void | Promise<void>): Promise<void> => {
    try {
      await at()
    } catch (error) {
      faults.push((error as Error).message)
    }
  }
  // A start creates the folder of the log if need be, but not that of the pid file.
  if (file) await check(() => assertWritable('the log file', join(file.directory, logFileName), true))
  if (pidFile !== undefined)
    await check(() => {
      assertPidFree(pidFile)
      assertWritable('the pid file', pidFile, false)
    })
  if (isDataDirectory(directory)) await check(() => checkStore(directory, cluster !== undefined))
  return faults
}

async function checkStore(path: string, isNode: boolean): Promise<void> {
  let directory: ReturnType<typeof openedDirectory>
  try {
    directory = openedDirectory(path)
  } catch {
    // The checks of a start have reported it.
    return
  }
  await assertStore(directory)
  const holder = lockHolder(path, isNode ? 1 : directory.workers)
  if (holder === undefined) return
  const who = holder === 0 ? 'another process' : `process ${holder}`
  throw new Error(`data directory ${path} is in use by ${who}: a start is refused until that has ended`)
}

/** Throws when a file could not be written. `makesFolders`: missing folders above it would be created. */
function assertWritable(what: string, file: string, makesFolders: boolean): void {
  try {
    let place = resolve(file)
    if (existsSync(place)) return accessSync(place, constants.W_OK)
    do place = dirname(place)
    while (makesFolders && !existsSync(place))
    if (!statSync(place).isDirectory()) throw new Error(`${place} is no directory`)
    accessSync(place, constants.W_OK | constants.X_OK)
  } catch (cause) {
    throw new Error(`cannot write ${what} ${file}: ${(cause as Error).message}`, { cause })
  }
}

function say(stream: 'stdout' | 'stderr', lines: readonly string[], status: number): number {
  if (lines.length > 0) process[stream].write(`${lines.join('\n')}\n`)
  return status
}

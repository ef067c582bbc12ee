// The plan of a recovery (`orrery cluster recover`), in a file of each directory that takes part, until all of them fit
// the new logs.
//
// An interrupted recovery continues with its plan, whatever it had changed by then. No broker uses a directory that has
// one (data-directory.ts). The file is replaced as a whole: after a crash there is the old one, the new one, or none.

import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DataDirectoryError, flushFolder, recoveryFile, replaceFile, unusable } from './data-directory.js'

/** A position in the log of a shard, as the plan keeps it. */
export interface PlannedPosition {
  readonly sequence: number
  readonly epoch: number
  readonly hash: Buffer
}

export interface RecoveryPlan {
  /** By this the new logs recognize the recovery that began them. */
  readonly mark: string
  /** The id of the cluster whose log is gone, and the id with which it continues. */
  readonly from: string
  readonly to: string
  /**
   * For each shard that continues, and for the register: the position of the chosen copies in the old log, and those
   * that they got in new logs. A copy at any of these has the content of the shard.
   */
  readonly positions: ReadonlyMap<number, readonly PlannedPosition[]>
}

const version = 1

/** The plan in a directory; undefined: there is none. */
export function readPlan(path: string): RecoveryPlan | undefined {
  const file = join(path, recoveryFile)
  if (!existsSync(file)) return undefined
  try {
    const found = JSON.parse(readFileSync(file, 'utf8')) as Written
    if (found.version !== version) throw new Error(`it has version ${found.version}, and this build reads ${version}`)
    const { mark, from, to } = found
    const positions = found.positions.map(
      ([shard, some]) =>
        [shard, some.map(([sequence, epoch, hash]) => ({ sequence, epoch, hash: Buffer.from(hash, 'hex') }))] as const,
    )
    return { mark, from, to, positions: new Map(positions) }
  } catch (error) {
    throw new DataDirectoryError(
      `data directory ${path} has a ${recoveryFile} that cannot be read: ${(error as Error).message}`,
      { cause: error },
    )
  }
}

/** The form of the plan in its file. */
interface Written {
  readonly version: number
  readonly mark: string
  readonly from: string
  readonly to: string
  readonly positions: readonly (readonly [
    shard: number,
    positions: readonly (readonly [sequence: number, epoch: number, hash: string])[],
  ])[]
}

export function writePlan(path: string, { mark, from, to, positions }: RecoveryPlan): void {
  const written: Written = {
    ...{ version, mark, from, to },
    positions: [...positions].map(([shard, some]) => [
      shard,
      some.map(({ sequence, epoch, hash }) => [sequence, epoch, hash.toString('hex')]),
    ]),
  }
  replaceFile(path, recoveryFile, JSON.stringify(written))
}

/** Ends the recovery for a directory: brokers may use it. */
export function removePlan(path: string): void {
  try {
    rmSync(join(path, recoveryFile), { force: true })
    flushFolder(path)
  } catch (error) {
    throw unusable(path, error)
  }
}

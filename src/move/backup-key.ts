// The key of `-backupKeyFile`. A client needs it to request a backup.

import { readFileSync } from 'node:fs'

/** A shorter one could be guessed. */
const keyLengthMin = 16
/** A longer text is no key, but another file. */
const keyLengthMax = 1000

/** The key in a file; throws an error with a sentence for the operator. */
export function backupKeyIn(file: string): string {
  let key: string
  try {
    key = readFileSync(file, 'utf8').replace(/\r?\n$/, '')
  } catch (error) {
    throw new Error(`-backupKeyFile: ${file} cannot be read: ${(error as Error).message}`)
  }
  if (key.length < keyLengthMin || key.length > keyLengthMax || !/^[!-~]+$/.test(key))
    throw new Error(`-backupKeyFile: ${file} has no key of ${keyLengthMin} to ${keyLengthMax} visible ASCII characters`)
  return key
}

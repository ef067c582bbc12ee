// The state of a file on disk, as a text. It changes when the name leads to another file, and when the file was written
// to.

import { type Stats, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'

const textOf = ({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string => `${dev} ${ino} ${size} ${mtimeMs} ${ctimeMs}`

const codeOf = (error: unknown): string => String((error as NodeJS.ErrnoException).code)

/** The state of the file with this name; if there is none, the code of the error. */
export async function stateOf(path: string): Promise<string> {
  try {
    return textOf(await stat(path))
  } catch (error) {
    return codeOf(error)
  }
}

/** The same at once. */
export function stateNow(path: string): string {
  try {
    return textOf(statSync(path))
  } catch (error) {
    return codeOf(error)
  }
}

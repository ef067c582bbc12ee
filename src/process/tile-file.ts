// Opens the archive of `-consoleTiles FILE.pmtiles`, and checks whether the console can draw it.
//
// The file stays open until the process ends: another file in its place counts from the next start.

import { createHash } from 'node:crypto'
import { closeSync, fstatSync, openSync, read as readFile, readSync } from 'node:fs'
import { promisify } from 'node:util'
import type { TileArchive } from '../http/tile-archive.js'

/** The head of an archive, by version 3 of the format of PMTiles. */
const headBytes = 127
const version = 3
const versionAt = 7
const kindAt = 99
const vectorKind = 1
/** The number of tiles that are pictures: png, jpeg, webp, avif. */
const pictureKinds = new Set([2, 3, 4, 5])

const readAt = promisify(readFile)

/** Throws an error with a sentence for the operator if it is no archive of pictures. */
export function openTileFile(file: string): TileArchive {
  const descriptor = opened(file)
  try {
    return archiveOf(descriptor, file)
  } catch (error) {
    closeSync(descriptor)
    throw error
  }
}

/** Makes the check of `openTileFile` alone. */
export function assertTileFile(file: string): void {
  const descriptor = opened(file)
  try {
    archiveOf(descriptor, file)
  } finally {
    closeSync(descriptor)
  }
}

function opened(file: string): number {
  try {
    return openSync(file, 'r')
  } catch (error) {
    throw new Error(`-consoleTiles: ${(error as Error).message}`, { cause: error })
  }
}

function archiveOf(descriptor: number, file: string): TileArchive {
  const found = fstatSync(descriptor)
  if (!found.isFile()) throw new Error(`-consoleTiles: ${file} is not a regular file`)
  const head = Buffer.alloc(headBytes)
  const length = readSync(descriptor, head, 0, headBytes, 0)
  if (length < headBytes || head.toString('latin1', 0, versionAt) !== 'PMTiles')
    throw new Error(`-consoleTiles: ${file} is not an archive of PMTiles`)
  if (head[versionAt] !== version)
    throw new Error(`-consoleTiles: ${file} has version ${head[versionAt]} of PMTiles, and only ${version} is read`)
  const kind = head[kindAt]!
  if (kind === vectorKind) throw new Error(`-consoleTiles: ${file} has vector tiles, and only raster tiles are drawn`)
  if (!pictureKinds.has(kind)) throw new Error(`-consoleTiles: ${file} has tiles of an unknown kind`)
  const { size, mtimeMs } = found
  const name = createHash('sha256').update(`${size} ${mtimeMs} `).update(head).digest('hex').slice(0, 16)
  return { name, bytes: size, read: (from, length) => readPart(descriptor, from, length) }
}

async function readPart(descriptor: number, from: number, length: number): Promise<Uint8Array> {
  const { buffer, bytesRead } = await readAt(descriptor, Buffer.allocUnsafe(length), 0, length, from)
  if (bytesRead < length) throw new Error('the archive of tiles has become shorter')
  return buffer
}

// A small archive of map tiles (PMTiles, version 3): one picture for the whole world.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A picture of one pixel. */
export const tilePicture = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

const headBytes = 127
/** One entry: tile 0, once, with its length; its offset is counted from 1. */
const directory = Buffer.from([1, 0, 1, tilePicture.length, 1])
const metadata = Buffer.from('{"attribution":"<a href=x>Our own map</a>"}')

export interface ArchiveChange {
  readonly magic?: string
  readonly version?: number
  /** 1: vector, 2: png. */
  readonly kind?: number
}

/** Writes the archive below a folder; returns its path. */
export function writeTileArchive(
  folder: string,
  { magic = 'PMTiles', version = 3, kind = 2 }: ArchiveChange = {},
): string {
  const head = Buffer.alloc(headBytes)
  head.write(magic, 0, 'latin1')
  head[7] = version
  const metadataAt = headBytes + directory.length
  const tilesAt = metadataAt + metadata.length
  const numbers = [
    headBytes,
    directory.length,
    metadataAt,
    metadata.length,
    tilesAt,
    0,
    tilesAt,
    tilePicture.length,
    1,
    1,
    1,
  ]
  for (const [at, number] of numbers.entries()) head.writeBigUInt64LE(BigInt(number), 8 + 8 * at)
  // Clustered; neither directories nor tiles are compressed; the kind; zooms from 0 to 0.
  head.set([1, 1, 1, kind, 0, 0], 96)
  const path = join(folder, 'map.pmtiles')
  writeFileSync(path, Buffer.concat([head, directory, metadata, tilePicture]))
  return path
}

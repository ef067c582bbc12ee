// Reads the built console, which deploy/build-console.mjs has made, once at the start, and opens its tiles.

import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ConsoleTiles } from '../../config/config.js'
import { archivePath, type ConsoleFiles, ConsoleHandlers, consoleHeaders, mapSettingsName } from '../../http/console.js'
import type { ServedFile } from '../../http/served-file.js'
import type { TileArchive } from '../../http/tile-archive.js'
import type { Logger } from '../../ports.js'
import { openTileFile } from '../tile-file.js'

/** The files of the build, with their compressed forms. A folder with more is not a console. */
const filesMax = 1_000
/** Their bytes together, which stay in memory. */
const bytesMax = 16 * 1024 * 1024

const built = fileURLToPath(new URL('../../../console/', import.meta.url))

/** The console of a node. `tiles`: undefined, its map has land and borders alone. */
export function consoleOf(tiles: ConsoleTiles | undefined, logger: Logger): ConsoleHandlers {
  const archive = tiles?.kind === 'archive' ? openTileFile(tiles.file) : undefined
  const origin = tiles?.kind === 'server' ? tiles.origin : ''
  const files = readConsole(logger, built, origin)
  return new ConsoleHandlers(files && new Map([...files, [mapSettingsName, settingsFile(tiles, archive)]]), archive)
}

/** What the map has to know, as the page reads it (src/console/map/map-tiles.ts). */
function settingsFile(tiles: ConsoleTiles | undefined, archive: TileArchive | undefined): ServedFile {
  const settings = archive
    ? { tiles: 'archive', file: archivePath(archive) }
    : tiles?.kind === 'server'
      ? { tiles: 'server', url: tiles.url }
      : { tiles: 'none' }
  return served(Buffer.from(JSON.stringify(settings)), consoleHeaders(mapSettingsName) ?? [])
}

/** The files by their path; undefined: the console was not built, or is none, and the log has the reason. */
export function readConsole(logger: Logger, folder = built, tileOrigin = ''): ConsoleFiles | undefined {
  if (!existsSync(join(folder, 'index.html'))) {
    logger.info('The console was not built (npm run build): /console/ is answered 404')
    return undefined
  }
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(path => path.replaceAll('\\', '/'))
  const files = new Map<string, ServedFile>()
  let bytes = 0
  for (const path of paths) {
    const headers = consoleHeaders(path, tileOrigin)
    if (!headers) continue
    const file = readOne(join(folder, path), headers)
    files.set(path, file)
    bytes += file.plain.length + (file.br?.length ?? 0) + (file.gzip?.length ?? 0)
    if (paths.length <= filesMax && bytes <= bytesMax) continue
    logger.warn(`${folder} has more than ${filesMax} files or ${bytesMax} bytes: /console/ is answered 404`)
    return undefined
  }
  return files
}

function readOne(file: string, headers: readonly string[]): ServedFile {
  return { ...served(readFileSync(file), headers), br: readForm(`${file}.br`), gzip: readForm(`${file}.gz`) }
}

function served(plain: Uint8Array, headers: readonly string[]): ServedFile {
  const tag = `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`
  return { plain, br: undefined, gzip: undefined, tag, headers }
}

const readForm = (file: string): Uint8Array | undefined => (existsSync(file) ? readFileSync(file) : undefined)

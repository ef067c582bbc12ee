// Streets below the marks: tiles of a server, or of an archive of raster tiles that the broker serves (-consoleTiles).

import { tileLayer } from 'leaflet'
import type { ConsoleClient } from '../interface/console-client.js'
import { type FoundStreets, tilesZoomMax } from './street-layer.js'

/** What the broker says about tiles: the file `settings/map.json` below the console. */
export type TileSettings =
  | { readonly tiles: 'none' }
  /** `url` has the places {z}, {x} and {y}. */
  | { readonly tiles: 'server'; readonly url: string }
  /** `file`: below the console. */
  | { readonly tiles: 'archive'; readonly file: string }

export async function streetsOf(client: ConsoleClient, ending: AbortSignal): Promise<FoundStreets> {
  const answer = await client.ask<TileSettings>({ method: 'GET', path: 'console/settings/map.json' }, ending)
  if (!answer.ok || answer.json.tiles === 'none') return { streets: undefined }
  const { json: settings } = answer
  if (settings.tiles === 'server') {
    const layer = tileLayer(settings.url, { noWrap: true, maxZoom: tilesZoomMax })
    return { streets: { layer, zoomMax: tilesZoomMax, credit: `Tiles of ${new URL(settings.url).host}` } }
  }
  const { streetsInArchive } = await import('./tile-archive.js')
  return streetsInArchive(new URL(`console/${settings.file}`, client.base))
}

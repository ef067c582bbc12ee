// An archive of raster tiles in one file (PMTiles), which the broker serves by ranges. Loaded when there is one.

import { type Coords, type DoneCallback, GridLayer } from 'leaflet'
import { PMTiles, TileType } from 'pmtiles'
import { type FoundStreets, tilesZoomMax } from './street-layer.js'

export async function streetsInArchive(url: URL): Promise<FoundStreets> {
  try {
    const archive = new PMTiles(url.href)
    const { tileType, maxZoom, minZoom } = await archive.getHeader()
    if (tileType === TileType.Mvt || tileType === TileType.Unknown)
      return { streets: undefined, problem: 'The archive of tiles has no pictures: only raster tiles are drawn.' }
    const metadata = (await archive.getMetadata()) as { readonly attribution?: unknown } | undefined
    const credit = typeof metadata?.attribution === 'string' ? metadata.attribution.replace(/<[^>]*>/g, '') : ''
    const layer = new ArchiveLayer(archive, { noWrap: true, minNativeZoom: minZoom, maxNativeZoom: maxZoom })
    return { streets: { layer, zoomMax: Math.max(maxZoom, tilesZoomMax), credit } }
  } catch (error) {
    return { streets: undefined, problem: `The archive of tiles cannot be read: ${String(error)}` }
  }
}

/** Draws on canvases: the policy of the page allows no pictures that a script has made. */
class ArchiveLayer extends GridLayer {
  constructor(
    private readonly archive: PMTiles,
    options: ConstructorParameters<typeof GridLayer>[0],
  ) {
    super(options)
  }

  protected override createTile(coords: Coords, done: DoneCallback): HTMLElement {
    const tile = document.createElement('canvas')
    const { x: width, y: height } = this.getTileSize()
    Object.assign(tile, { width, height })
    this.drawTile(tile, coords).then(
      () => done(undefined, tile),
      (error: unknown) => done(error instanceof Error ? error : new Error(String(error)), tile),
    )
    return tile
  }

  private async drawTile(tile: HTMLCanvasElement, { x, y, z }: Coords): Promise<void> {
    const answer = await this.archive.getZxy(z, x, y)
    if (!answer) return
    const picture = await createImageBitmap(new Blob([answer.data]))
    tile.getContext('2d')?.drawImage(picture, 0, 0, tile.width, tile.height)
    picture.close()
  }
}

// Tiles with streets, as the map gets them from a server or an archive.

import type { Layer } from 'leaflet'

export interface StreetLayer {
  readonly layer: Layer
  readonly zoomMax: number
  /** Where they are from, as a text. */
  readonly credit: string
}

/** `streets` is undefined if there are none; `problem` has the reason if there should be some. */
export interface FoundStreets {
  readonly streets: StreetLayer | undefined
  readonly problem?: string
}

/** The nearest zoom of most tile servers. */
export const tilesZoomMax = 19

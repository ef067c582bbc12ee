// The marks of a map: entities that are near each other at this zoom are one mark with their number (supercluster).

import Supercluster from 'supercluster'
import { type ColourFacts, type ColourRule, colourFacts, colourOf, togetherOf } from './map-colours.js'
import type { MapPlace } from './map-places.js'

export interface MapMark {
  /** Stays the same while nothing moves. */
  readonly key: string
  readonly longitude: number
  readonly latitude: number
  readonly colour: string
  /** What it stands for: one entity, or several. */
  readonly of: MarkSubject
}

export type MarkSubject =
  | { readonly kind: 'entity'; readonly place: MapPlace }
  | { readonly kind: 'group'; readonly count: number; readonly members: () => readonly MapPlace[] }

/** Pixels within which entities become one mark. */
const radiusPixels = 44

type PlaceFacts = ColourFacts & { readonly place: MapPlace }

/** [hot] Runs up to ten times a second over all entities: the index has one zoom only. */
export function marksOf(places: Iterable<MapPlace>, zoom: number, rule: ColourRule): readonly MapMark[] {
  const index = new Supercluster<PlaceFacts, ColourFacts>({
    minZoom: zoom,
    maxZoom: zoom,
    radius: radiusPixels,
    extent: 256,
    map: ({ type, sum, numbers }) => ({ type, sum, numbers }),
    reduce: (into, more) => Object.assign(into, togetherOf(into, more)),
  })
  index.load(
    Array.from(places, place => ({
      type: 'Feature',
      geometry: { type: 'Point', coordinates: [...place.shape.middle] },
      properties: { ...colourFacts(place), place },
    })),
  )
  return index.getClusters([-180, -90, 180, 90], zoom).map(({ geometry, properties }): MapMark => {
    const [longitude = 0, latitude = 0] = geometry.coordinates
    const colour = colourOf(rule, properties)
    if (!('cluster_id' in properties)) {
      const { place } = properties
      const key = `${place.path} ${place.type} ${place.id}`
      return { key, longitude, latitude, colour, of: { kind: 'entity', place } }
    }
    const { cluster_id: id, point_count: count } = properties
    const members = (): readonly MapPlace[] =>
      index.getLeaves(id, Number.POSITIVE_INFINITY).map(({ properties: { place } }) => place)
    return { key: `group ${id}`, longitude, latitude, colour, of: { kind: 'group', count, members } }
  })
}

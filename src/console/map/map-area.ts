// An area as the broker is asked for it: the three parts of a geographical query (docs/interface/geography.md#queries).

/** Empty texts: no area. */
export interface MapArea {
  readonly georel: string
  readonly geometry: string
  readonly coords: string
}

export const noArea: MapArea = { georel: '', geometry: '', coords: '' }

/** Latitude and longitude, in the order of the interface. */
export type MapPoint = readonly [latitude: number, longitude: number]

/** What a person has drawn. */
export type DrawnShape =
  | { readonly kind: 'circle'; readonly centre: MapPoint; readonly radiusM: number }
  | { readonly kind: 'polygon'; readonly corners: readonly MapPoint[] }

/** The part of the world between two opposite corners. */
export function areaOfBox([south, west]: MapPoint, [north, east]: MapPoint): MapArea {
  const least: MapPoint = [Math.max(-90, south), Math.max(-180, west)]
  const most: MapPoint = [Math.min(90, north), Math.min(180, east)]
  return { georel: 'intersects', geometry: 'box', coords: coordsOf([least, most]) }
}

/** The query for the entities in a shape. */
export function areaOf(shape: DrawnShape): MapArea {
  if (shape.kind === 'circle')
    return {
      georel: `near;maxDistance:${Math.max(1, Math.round(shape.radiusM))}`,
      geometry: 'point',
      coords: coordsOf([shape.centre]),
    }
  const { corners } = shape
  return { georel: 'coveredBy', geometry: 'polygon', coords: coordsOf([...corners, ...corners.slice(0, 1)]) }
}

/** The shape of an area that was drawn; undefined: there is none, or it cannot be drawn. */
export function drawnShape({ georel, geometry, coords }: MapArea): DrawnShape | undefined {
  const points = coords.split(';').map(pair => pair.split(',').map(Number))
  const corners = points.flatMap(([latitude = Number.NaN, longitude = Number.NaN]): MapPoint[] =>
    Number.isFinite(latitude) && Number.isFinite(longitude) ? [[latitude, longitude]] : [],
  )
  const [centre] = corners
  const distance = /^near;maxDistance:(\d+)$/.exec(georel)?.[1]
  if (geometry === 'point' && centre && distance !== undefined)
    return { kind: 'circle', centre, radiusM: Number(distance) }
  if (geometry === 'polygon' && corners.length > 3) return { kind: 'polygon', corners: corners.slice(0, -1) }
  return undefined
}

/** Six digits are a tenth of a metre. */
const coordsOf = (points: readonly MapPoint[]): string =>
  points.map(([latitude, longitude]) => `${round(latitude)},${round(longitude)}`).join(';')

const round = (degrees: number): number => Math.round(degrees * 1e6) / 1e6

// Boxes in longitude and latitude: the cheap question before the dear one, and the key of a spatial index.
//
// A box contains its border. West is never greater than east: what lies on both sides of the antimeridian, as the surroundings of
// a place may, is two boxes (geo-query.ts). Longitude 180 and -180 are the same meridian, yet a box holds only the one it names.
import type { Geometry, Position } from './location.js'

export interface Bounds {
  readonly west: number
  readonly south: number
  readonly east: number
  readonly north: number
}

/** The smallest box around a geometry. */
export function boundsOfGeometry(geometry: Geometry): Bounds {
  switch (geometry.type) {
    case 'Point':
      return boundsOfPositions([geometry.coordinates])
    case 'MultiPoint':
    case 'LineString':
      return boundsOfPositions(geometry.coordinates)
    case 'MultiLineString':
    case 'Polygon':
      return hull(geometry.coordinates.map(line => boundsOfPositions(line)))
    case 'MultiPolygon':
      return hull(geometry.coordinates.flatMap(rings => rings.map(ring => boundsOfPositions(ring))))
  }
}

/** The smallest box around `positions[from]` to `positions[to - 1]`, of which there is at least one. */
export function boundsOfPositions(positions: readonly Position[], from = 0, to = positions.length): Bounds {
  let [west, south] = positions[from]!
  let [east, north] = [west, south]
  for (let at = from + 1; at < to; at++) {
    const position = positions[at]!
    const longitude = position[0]
    const latitude = position[1]
    if (longitude < west) west = longitude
    else if (longitude > east) east = longitude
    if (latitude < south) south = latitude
    else if (latitude > north) north = latitude
  }
  return { west, south, east, north }
}

/** The smallest box around all of at least one box. */
export function hull(boxes: readonly Bounds[]): Bounds {
  let { west, south, east, north } = boxes[0]!
  for (const box of boxes) {
    west = Math.min(west, box.west)
    south = Math.min(south, box.south)
    east = Math.max(east, box.east)
    north = Math.max(north, box.north)
  }
  return { west, south, east, north }
}

/** Whether two boxes share a point. */
export function overlap(a: Bounds, b: Bounds): boolean {
  return a.west <= b.east && b.west <= a.east && a.south <= b.north && b.south <= a.north
}

/** Whether the box holds all of the other one. */
export function holds(box: Bounds, other: Bounds): boolean {
  return box.west <= other.west && other.east <= box.east && box.south <= other.south && other.north <= box.north
}

/** Whether the position lies in the box. */
export function isWithin(box: Bounds, position: Position): boolean {
  const longitude = position[0]
  const latitude = position[1]
  return box.west <= longitude && longitude <= box.east && box.south <= latitude && latitude <= box.north
}

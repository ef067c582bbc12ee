// The location of an entity as the map draws it, from the value of its attribute (docs/interface/geography.md).
//
// The broker checks the values of locations. If the map does not know the form of one, it leaves that entity out.

import type { Json } from '../../domain/json.js'
import type { Position } from '../../domain/places/location.js'

export interface PlaceShape {
  /** The middle of its bounds, where its mark is. */
  readonly middle: Position
  /** Its lines or rings; none if it is a point. */
  readonly lines: readonly (readonly Position[])[]
  readonly isFilled: boolean
}

/** undefined: the attribute is no location. */
export function shapeOf(type: string, value: Json): PlaceShape | undefined {
  if (type === 'geo:json') return shapeOfJson(value)
  if (type === 'geo:point') return shaped(listOf(value).slice(0, 1), [], false)
  const texts = listOf(value)
  if (type === 'geo:line') return shaped(texts, [texts], false)
  if (type === 'geo:polygon') return shaped(texts, [texts], true)
  if (type === 'geo:box') return shaped(texts, [cornersOf(texts)], true)
  return undefined
}

/** Texts `latitude, longitude`. */
function listOf(value: Json): Position[] {
  const texts = Array.isArray(value) ? value : [value]
  return texts.flatMap(text => {
    const [latitude = Number.NaN, longitude = Number.NaN] = typeof text === 'string' ? text.split(',').map(Number) : []
    return Number.isFinite(latitude) && Number.isFinite(longitude) ? [[longitude, latitude] as const] : []
  })
}

function cornersOf([one, other]: readonly Position[]): Position[] {
  if (!one || !other) return []
  return [one, [other[0], one[1]], other, [one[0], other[1]], one]
}

function shapeOfJson(value: Json): PlaceShape | undefined {
  if (typeof value !== 'object' || value === null || !('coordinates' in value)) return undefined
  const { type, coordinates = null } = value
  const lists = positionsIn(coordinates)
  const isLines = type !== 'Point' && type !== 'MultiPoint'
  return shaped(lists.flat(), isLines ? lists : [], type === 'Polygon' || type === 'MultiPolygon')
}

/** The innermost lists of positions, whatever the depth of a geometry is. */
function positionsIn(coordinates: Json): Position[][] {
  if (!Array.isArray(coordinates)) return []
  const position = positionOf(coordinates)
  if (position) return [[position]]
  const positions = coordinates.map(one => (Array.isArray(one) ? positionOf(one) : undefined))
  if (positions.length > 0 && positions.every(one => one !== undefined)) return [positions]
  return coordinates.flatMap(positionsIn)
}

const positionOf = ([longitude, latitude]: readonly Json[]): Position | undefined =>
  typeof longitude === 'number' && typeof latitude === 'number' ? [longitude, latitude] : undefined

function shaped(
  all: readonly Position[],
  lines: readonly (readonly Position[])[],
  isFilled: boolean,
): PlaceShape | undefined {
  const [first] = all
  if (!first) return undefined
  let [west, south] = first
  let [east, north] = first
  for (const [longitude, latitude] of all) {
    west = Math.min(west, longitude)
    east = Math.max(east, longitude)
    south = Math.min(south, latitude)
    north = Math.max(north, latitude)
  }
  return { middle: [(west + east) / 2, (south + north) / 2], lines, isFilled }
}

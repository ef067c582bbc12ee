// The location of an entity: checks its value and converts it to a geometry.
//
// Clients write locations as GeoJSON (`geo:json`) or in a legacy form (`geo:point`, `geo:line`, `geo:box`,
// `geo:polygon`: strings, latitude first). Both become a valid Geometry, `[longitude, latitude]`. The stored and
// rendered value stays as given.
//
// Not here: choosing the location attribute of an entity, `ignoreType` (update.ts), geographical queries (geo.ts).
import { isArray, isObject, type Json, type JsonObject, renderJson } from '../json.js'
import { positionsMax } from '../limits.js'
import { accepted, type LocationPrefix, type Refusal, type Result, refusals, refused } from '../refusal.js'
import { isSame, isSimpleRing, type Position } from './ring.js'

export type { Position } from './ring.js'

/** A valid GeoJSON geometry. Rings are closed and do not cross or touch themselves. */
export type Geometry =
  | { readonly type: 'Point'; readonly coordinates: Position }
  | { readonly type: 'MultiPoint'; readonly coordinates: readonly Position[] }
  | { readonly type: 'LineString'; readonly coordinates: readonly Position[] }
  | { readonly type: 'MultiLineString'; readonly coordinates: readonly (readonly Position[])[] }
  | { readonly type: 'Polygon'; readonly coordinates: readonly (readonly Position[])[] }
  | { readonly type: 'MultiPolygon'; readonly coordinates: readonly (readonly (readonly Position[])[])[] }

export type LocationType = 'geo:json' | 'geo:point' | 'geo:line' | 'geo:box' | 'geo:polygon'

/** Whether attributes of this type are locations (docs/interface/geography.md#location). */
export function isLocationType(type: string): type is LocationType {
  return Object.hasOwn(parsers, type)
}

/**
 * The geometry of a location attribute without `ignoreType`; undefined: its value is null or its type is not a location
 * type (docs/interface/geography.md).
 */
export function checkLocation(type: string, value: Json, prefix: LocationPrefix): Result<Geometry | undefined> {
  if (value === null || !isLocationType(type)) return accepted(undefined)
  return parsers[type](value, prefix)
}

/**
 * The refusal of a location with too many positions. A location that was stored before this limit existed stays one.
 */
export function checkPositions(type: string, value: Json): Refusal | undefined {
  const count = type === 'geo:json' ? countPositions(coordinatesOf(value)) : isArray(value) ? value.length : 1
  return count > positionsMax ? refusals.tooMany('positions', count, positionsMax) : undefined
}

/** The coordinates of a geometry, a feature, or a collection of one feature. */
function coordinatesOf(value: Json): Json | undefined {
  const geometry = renderedLocation(value)
  return isObject(geometry) ? geometry.coordinates : undefined
}

/** Counts the arrays that contain no array: in a valid location each is a position. */
function countPositions(value: Json | undefined): number {
  if (!isArray(value)) return 0
  if (!isArray(value[0])) return 1
  let count = 0
  for (const part of value) count += countPositions(part)
  return count
}

/**
 * The rendered form of a valid `geo:json` value: for a feature only its geometry (docs/interface/geography.md#geojson).
 */
export function renderedLocation(value: Json): Json {
  if (!isObject(value)) return value
  if (value.type === 'FeatureCollection') {
    const features = value.features
    return isArray(features) && features.length === 1 ? geometryOr(features[0], value) : value
  }
  return value.type === 'Feature' ? geometryOr(value, value) : value
}

function geometryOr(feature: Json | undefined, otherwise: Json): Json {
  return isObject(feature) && isObject(feature.geometry) ? feature.geometry : otherwise
}

const parsers = {
  'geo:json': parseGeoJson,
  'geo:point': (value, prefix) => {
    const position = parseCoordinates(value)
    return position
      ? accepted({ type: 'Point', coordinates: position })
      : refused(refusals.legacyCoordinates(prefix, shown(value)))
  },
  'geo:line': (value, prefix) => {
    const line = parseCoordinatesList(value, prefix, count => count >= 2, refusals.legacyLineCount)
    return line.ok ? accepted({ type: 'LineString', coordinates: line.value }) : line
  },
  'geo:box': parseBox,
  'geo:polygon': parsePolygon,
} as const satisfies Record<LocationType, (value: Json, prefix: LocationPrefix) => Result<Geometry>>

// GeoJSON

function parseGeoJson(value: Json, prefix: LocationPrefix): Result<Geometry> {
  if (!isObject(value)) return refused(refusals.geoJsonKind)
  if (value.type === 'Feature') return parseFeature(value, prefix)
  if (value.type !== 'FeatureCollection') return parseGeometry(value)

  const features = value.features
  if (features === undefined) return refused(refusals.featuresMissing(prefix))
  if (!isArray(features)) return refused(refusals.featuresNotArray(prefix))
  if (features.length === 0) return refused(refusals.featuresEmpty(prefix))
  if (features.length > 1) return refused(refusals.featuresTooMany(prefix))
  const feature = features[0]
  if (!isObject(feature) || feature.type !== 'Feature') return refused(refusals.geoJson)
  return parseFeature(feature, prefix)
}

function parseFeature(feature: JsonObject, prefix: LocationPrefix): Result<Geometry> {
  const geometry = feature.geometry
  if (geometry === undefined) return refused(refusals.featureWithoutGeometry(prefix))
  return isObject(geometry) ? parseGeometry(geometry) : refused(refusals.featureGeometryKind(prefix))
}

function parseGeometry(value: JsonObject): Result<Geometry> {
  const geometry = geometryOf(value.type, value.coordinates)
  return geometry ? accepted(geometry) : refused(refusals.geoJson)
}

function geometryOf(type: Json | undefined, coordinates: Json | undefined): Geometry | undefined {
  switch (type) {
    case 'Point':
      return isPosition(coordinates) ? { type, coordinates } : undefined
    case 'MultiPoint':
      return isListOf(isPosition, 1, coordinates) ? { type, coordinates } : undefined
    case 'LineString':
      return isLine(coordinates) ? { type, coordinates } : undefined
    case 'MultiLineString':
      return isListOf(isLine, 1, coordinates) ? { type, coordinates } : undefined
    case 'Polygon':
      return isRings(coordinates) ? { type, coordinates } : undefined
    case 'MultiPolygon':
      return isListOf(isRings, 1, coordinates) ? { type, coordinates } : undefined
    default:
      return undefined
  }
}

type Coordinates = Json | undefined

function isPosition(value: Coordinates): value is Position {
  return (
    isArray(value) &&
    value.length >= 2 &&
    value.every(n => typeof n === 'number' && Number.isFinite(n)) &&
    inRange(value[0] as number, value[1] as number)
  )
}

function isLine(value: Coordinates): value is readonly Position[] {
  return isListOf(isPosition, 2, value)
}

function isRings(value: Coordinates): value is readonly (readonly Position[])[] {
  return isListOf(isRing, 1, value)
}

function isRing(value: Coordinates): value is readonly Position[] {
  return isListOf(isPosition, ringPositionsMin, value) && isClosed(value) && isSimpleRing(value)
}

function isListOf<T extends Json>(
  isElement: (element: Coordinates) => element is T,
  lengthMin: number,
  value: Coordinates,
): value is readonly T[] {
  return isArray(value) && value.length >= lengthMin && value.every(isElement)
}

const ringPositionsMin = 4

const isClosed = (ring: readonly Position[]): boolean => isSame(ring[0]!, ring.at(-1)!)

function inRange(longitude: number, latitude: number): boolean {
  return longitude >= -180 && longitude <= 180 && latitude >= -90 && latitude <= 90
}

// Legacy forms

function parseBox(value: Json, prefix: LocationPrefix): Result<Geometry> {
  const corners = parseCoordinatesList(value, prefix, count => count === 2, refusals.legacyBoxCount)
  if (!corners.ok) return corners
  const ring = boxRing(corners.value[0]!, corners.value[1]!)
  return ring ? accepted({ type: 'Polygon', coordinates: [ring] }) : refused(refusals.legacyBoxFlat(prefix))
}

/** The ring of the box between two corners, from the southwest, counterclockwise; undefined: the box is flat. */
export function boxRing([lon1, lat1]: Position, [lon2, lat2]: Position): readonly Position[] | undefined {
  if (lon1 === lon2 || lat1 === lat2) return undefined
  const [west, east] = [Math.min(lon1, lon2), Math.max(lon1, lon2)]
  const [south, north] = [Math.min(lat1, lat2), Math.max(lat1, lat2)]
  const southwest: Position = [west, south]
  // The order matters for `georel=equals` (docs/interface/geography.md#relations).
  return [southwest, [east, south], [east, north], [west, north], southwest]
}

function parsePolygon(value: Json, prefix: LocationPrefix): Result<Geometry> {
  const enough = (count: number): boolean => count >= ringPositionsMin
  const ring = parseCoordinatesList(value, prefix, enough, refusals.legacyPolygonCount)
  if (!ring.ok) return ring
  if (!isClosed(ring.value)) return refused(refusals.legacyPolygonOpen(prefix))
  // The interface defines no text for a legacy ring that crosses itself; as GeoJSON it would get this one.
  return isRing(ring.value) ? accepted({ type: 'Polygon', coordinates: [ring.value] }) : refused(refusals.geoJson)
}

function parseCoordinatesList(
  value: Json,
  prefix: LocationPrefix,
  isCount: (count: number) => boolean,
  wrongCount: (prefix: LocationPrefix) => Refusal,
): Result<readonly Position[]> {
  if (!isArray(value)) return refused(refusals.legacyLocationNotArray(prefix))
  if (!value.every(element => typeof element === 'string')) return refused(refusals.legacyLocationElementKind(prefix))
  if (!isCount(value.length)) return refused(wrongCount(prefix))
  const positions: Position[] = []
  for (const element of value) {
    const position = parseCoordinates(element)
    if (!position) return refused(refusals.legacyCoordinates(prefix, shown(element)))
    positions.push(position)
  }
  return accepted(positions)
}

const shown = (value: Json): string => (typeof value === 'string' ? value : renderJson(value))

/** `latitude, longitude`, with blanks around each (docs/interface/geography.md#older-location-types). */
export function parseCoordinates(value: Json): Position | undefined {
  if (typeof value !== 'string') return undefined
  const parts = legacyCoordinates.exec(value)
  if (!parts) return undefined
  const latitude = Number(parts[1])
  const longitude = Number(parts[2])
  return inRange(longitude, latitude) ? [longitude, latitude] : undefined
}

const decimal = String.raw`[ \t]*([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[ \t]*`
const legacyCoordinates = new RegExp(`^${decimal},${decimal}$`)

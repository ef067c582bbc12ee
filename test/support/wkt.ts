// Geometries in well-known text: `POLYGON ((0 0, 4 0, 0 3, 0 0))`, longitude first.
import type { Geometry } from '../../src/domain/places/location.js'

const types = {
  POINT: 'Point',
  MULTIPOINT: 'MultiPoint',
  LINESTRING: 'LineString',
  MULTILINESTRING: 'MultiLineString',
  POLYGON: 'Polygon',
  MULTIPOLYGON: 'MultiPolygon',
} as const satisfies Record<string, Geometry['type']>

export function wkt(text: string): Geometry {
  const [word = ''] = text.split(' ')
  const type = types[word as keyof typeof types]
  const pairs = text.slice(word.length).replaceAll(/([-.0-9]+) ([-.0-9]+)/g, '[$1,$2]')
  const nest = JSON.parse(pairs.replaceAll('(', '[').replaceAll(')', ']'))
  return { type, coordinates: type === 'Point' ? nest[0] : nest } as Geometry
}

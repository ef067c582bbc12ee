// Geographical queries (docs/interface/geography.md#relations to docs/interface/errors.md#geography): stored locations,
// queries and their matches, and refused queries with the texts.
//
// Locations are written as WKT, longitude first; `coords` are as in requests, latitude first.

export type Location = readonly [name: string, wkt: string]

export interface GeoCase {
  readonly georel: string
  readonly geometry: string
  readonly coords: string
  /** Names of the matching locations; with `allBut`, of all others. */
  readonly matches: string
  readonly allBut?: true
}

/**
 * Most queries are about the box from 0 to 4 degrees east and 0 to 2 degrees north:
 *
 *       swapped
 *   2   +-------+-------+ corner
 *   1   |   inside  |   |       outside
 *   0   +------side-----+
 *       0   1   2   3   4       5
 */
export const locations: readonly Location[] = [
  ['inside', 'POINT (1 1)'],
  ['corner', 'POINT (4 2)'],
  ['side', 'POINT (2 0)'],
  ['outside', 'POINT (5 1)'],
  ['swapped', 'POINT (1 3)'],
  ['points-in', 'MULTIPOINT (1 1, 4 2)'],
  ['points-both', 'MULTIPOINT (1 1, 5 1)'],
  ['line-in', 'LINESTRING (0 0, 4 2)'],
  ['line-on-side', 'LINESTRING (0 0, 4 0)'],
  ['line-from-corner', 'LINESTRING (4 2, 5 3)'],
  ['line-through', 'LINESTRING (-1 1, 5 1)'],
  ['line-past-corner', 'LINESTRING (3 3, 5 1)'],
  ['line-away', 'LINESTRING (5 0, 5 2)'],
  ['lines-in', 'MULTILINESTRING ((0 0, 1 1), (3 1, 4 2))'],
  ['lines-both', 'MULTILINESTRING ((0 0, 1 1), (5 0, 5 2))'],
  ['same', 'POLYGON ((0 0, 4 0, 4 2, 0 2, 0 0))'],
  ['same-turned', 'POLYGON ((0 0, 0 2, 4 2, 4 0, 0 0))'],
  ['neighbour', 'POLYGON ((4 0, 6 0, 6 2, 4 2, 4 0))'],
  ['around', 'POLYGON ((-2 -2, 8 -2, 8 6, -2 6, -2 -2))'],
  ['wide-hole', 'POLYGON ((-2 -2, 8 -2, 8 6, -2 6, -2 -2), (-1 -1, 6 -1, 6 4, -1 4, -1 -1))'],
  ['snug-hole', 'POLYGON ((-2 -2, 8 -2, 8 6, -2 6, -2 -2), (0 0, 4 0, 4 2, 0 2, 0 0))'],
  ['pieces-in', 'MULTIPOLYGON (((0 0, 1 0, 0 1, 0 0)), ((3 1, 4 1, 4 2, 3 1)))'],
  ['pieces-both', 'MULTIPOLYGON (((0 0, 1 0, 0 1, 0 0)), ((5 0, 6 0, 5 1, 5 0)))'],
]

const box = { geometry: 'box', coords: '0,0;2,4' }
/** The same box as polygons in both directions. */
const ring = { geometry: 'polygon', coords: '0,0;0,4;2,4;2,0;0,0' }
const turned = { geometry: 'polygon', coords: '0,0;2,0;2,4;0,4;0,0' }
/** The half of it below the line from its northwest to its southeast. */
const half = { geometry: 'polygon', coords: '0,0;0,4;2,0;0,0' }
const diagonal = { geometry: 'line', coords: '0,0;2,4' }
const place = { geometry: 'point', coords: '1,1' }
const east = { geometry: 'point', coords: '1,5' }

const coveredByBox = 'inside corner side points-in line-in line-on-side lines-in same same-turned pieces-in'
const apartFromBox = 'outside swapped line-away wide-hole'
const apartFromHalf = 'corner outside swapped line-from-corner line-past-corner line-away wide-hole'
const apartFromDiagonal = 'inside side outside swapped points-both line-away wide-hole'
const atPlace = 'inside points-in points-both line-through lines-in lines-both same same-turned around'
const touchingEast =
  'outside points-both line-through line-past-corner line-away lines-both neighbour around snug-hole pieces-both'
const oneDegreeOfEast = `${touchingEast} same same-turned wide-hole pieces-in`

export const cases: readonly GeoCase[] = [
  { georel: 'coveredBy', ...box, matches: coveredByBox },
  { georel: 'coveredBy', geometry: 'box', coords: '2,0;0,4', matches: coveredByBox },
  { georel: 'coveredBy', geometry: 'box', coords: '2,4;0,0', matches: coveredByBox },
  { georel: 'coveredBy', ...ring, matches: coveredByBox },
  { georel: 'coveredBy', ...turned, matches: coveredByBox },
  { georel: 'coveredBy', ...half, matches: 'inside side line-on-side' },

  { georel: 'intersects', ...box, matches: apartFromBox, allBut: true },
  { georel: 'intersects', ...ring, matches: apartFromBox, allBut: true },
  { georel: 'intersects', ...turned, matches: apartFromBox, allBut: true },
  { georel: 'intersects', ...half, matches: apartFromHalf, allBut: true },
  { georel: 'intersects', ...diagonal, matches: apartFromDiagonal, allBut: true },
  { georel: 'intersects', ...place, matches: atPlace },

  { georel: 'disjoint', ...box, matches: apartFromBox },
  { georel: 'disjoint', ...turned, matches: apartFromBox },
  { georel: 'disjoint', ...half, matches: apartFromHalf },
  { georel: 'disjoint', ...diagonal, matches: apartFromDiagonal },
  { georel: 'disjoint', ...place, matches: atPlace, allBut: true },

  { georel: 'equals', ...box, matches: 'same' },
  { georel: 'equals', ...ring, matches: 'same' },
  { georel: 'equals', ...turned, matches: 'same-turned' },
  { georel: 'equals', ...diagonal, matches: 'line-in' },
  { georel: 'equals', geometry: 'line', coords: '2,4;0,0', matches: '' },
  { georel: 'equals', ...place, matches: 'inside' },

  // A degree is 111 195 m along a meridian, and 111 178 m along the parallel one degree north.
  { georel: 'near;maxDistance:0', ...place, matches: atPlace },
  { georel: 'near;maxDistance:112000', ...east, matches: oneDegreeOfEast },
  { georel: 'maxDistance:112000;near', ...east, matches: oneDegreeOfEast },
  { georel: 'near;minDistance:112000', ...east, matches: oneDegreeOfEast, allBut: true },
  { georel: 'near;minDistance:1;maxDistance:112000', ...east, matches: 'same same-turned wide-hole pieces-in' },
  { georel: 'near;maxDistance:111170', ...east, matches: touchingEast },
  { georel: 'near;minDistance:2;maxDistance:1', ...east, matches: '' },
  { georel: 'near;minDistance:0', ...east, matches: '', allBut: true },
]

/** Locations at the edges of the plane. Shapes do not reach across the antimeridian, distances do. */
export const locationsAtTheEdge: readonly Location[] = [
  ['east', 'POINT (179.9 -17)'],
  ['west', 'POINT (-179.9 -17)'],
  ['seam', 'POINT (180 -17)'],
  ['greenwich', 'POINT (0 -17)'],
  ['all-around', 'LINESTRING (179 -17, -179 -17)'],
  ['pole', 'POINT (0 90)'],
  ['near-pole', 'POINT (180 89.9)'],
  ['cap', 'POLYGON ((-180 89.95, 180 89.95, 180 90, -180 90, -180 89.95))'],
]

export const casesAtTheEdge: readonly GeoCase[] = [
  { georel: 'near;maxDistance:30000', geometry: 'point', coords: '-17,180', matches: 'east west seam' },
  { georel: 'near;maxDistance:30000', geometry: 'point', coords: '-17,-180', matches: 'east west seam' },
  { georel: 'near;maxDistance:0', geometry: 'point', coords: '-17,-180', matches: 'seam' },
  { georel: 'near;maxDistance:110000', geometry: 'point', coords: '-17,-179.9', matches: 'east west seam all-around' },
  { georel: 'near;maxDistance:12000', geometry: 'point', coords: '90,123', matches: 'pole near-pole cap' },
  { georel: 'near;maxDistance:12000', geometry: 'point', coords: '89.9,0', matches: 'pole cap' },
  { georel: 'near;maxDistance:23000', geometry: 'point', coords: '89.9,0', matches: 'pole near-pole cap' },
  { georel: 'near;maxDistance:20015100', geometry: 'point', coords: '-17,180', matches: '', allBut: true },
  // This is not the narrow strip at the antimeridian, but the rest of the world.
  { georel: 'coveredBy', geometry: 'box', coords: '-18,179;-16,-179', matches: 'greenwich all-around' },
  { georel: 'intersects', geometry: 'line', coords: '-17,179;-17,-179', matches: 'greenwich all-around' },
  { georel: 'coveredBy', geometry: 'box', coords: '-18,179;-16,180', matches: 'east seam' },
  { georel: 'coveredBy', geometry: 'box', coords: '-18,-179;-16,-180', matches: 'west' },
  { georel: 'intersects', geometry: 'point', coords: '-17,-180', matches: '' },
  { georel: 'coveredBy', geometry: 'box', coords: '-90,-180;90,180', matches: '', allBut: true },
]

/** Refused `geometry`, `georel` and `coords`; `-` where one is missing. The texts lack their prefix. */
export type GeoError = readonly [geometry: string, georel: string, coords: string, text: string]

const longLine = Array.from({ length: 2001 }, (_, at) => `0,${at % 7}`).join(';')

export const errors: readonly GeoError[] = [
  ['circle', 'intersects', '1,2', 'error parsing geometry: Invalid selector in geometry specification'],
  ['Point', 'intersects', '1,2', 'error parsing geometry: Invalid selector in geometry specification'],
  ['', 'intersects', '1,2', 'error parsing geometry: Invalid selector in geometry specification'],
  ['point;', 'intersects', '1,2', 'error parsing geometry: Invalid selector in geometry specification'],
  ['point;circle', 'intersects', '1,2', 'error parsing geometry: Invalid selector in geometry specification'],
  ['point;box', 'intersects', '1,2', 'error parsing geometry: geometry-type present more than once'],
  ['point;point', 'intersects', '1,2', 'error parsing geometry: geometry-type present more than once'],

  ['point', 'far', '1,2', 'Invalid modifier in georel parameter'],
  ['point', 'near;', '1,2', 'Invalid modifier in georel parameter'],
  ['point', 'near;maxDistance', '1,2', 'Invalid modifier in georel parameter'],
  ['point', 'near;maxDistance=5', '1,2', 'Invalid modifier in georel parameter'],
  ['point', 'near;maxdistance:5', '1,2', 'Invalid modifier in georel parameter'],
  ['point', 'maxDistance:5', '1,2', 'Invalid modifier in georel parameter'],
  ['point', 'near;near', '1,2', 'georel type present more than once'],
  ['point', 'near;maxDistance:1;equals', '1,2', 'georel type present more than once'],
  ['point', 'near;maxDistance:1;maxDistance:1', '1,2', 'maxDistance present more than once'],
  ['point', 'minDistance:1;near;minDistance:x', '1,2', 'minDistance present more than once'],
  ['point', 'near;maxDistance:', '1,2', 'invalid number for maxDistance'],
  ['point', 'near;maxDistance:5m', '1,2', 'invalid number for maxDistance'],
  ['point', 'near;maxDistance:0x5', '1,2', 'invalid number for maxDistance'],
  ['point', 'near;maxDistance:-1', '1,2', 'invalid number for maxDistance'],
  ['point', 'near;maxDistance:1e999', '1,2', 'invalid number for maxDistance'],
  ['point', 'near;minDistance:Infinity', '1,2', 'invalid number for minDistance'],
  ['point', 'intersects;maxDistance:5', '1,2', 'maxDistance erroneously used with georel /intersects/'],
  ['point', 'minDistance:5;equals', '1,2', 'minDistance erroneously used with georel /equals/'],
  ['point', 'near', '1,2', 'georel /near/ without either minDistance nor maxDistance'],

  ['line', 'near;maxDistance:5', '1,2;3,4', 'georel /near/ used with geometry different than point'],
  ['box', 'near;maxDistance:5', '1,2;3,4', 'georel /near/ used with geometry different than point'],
  ['polygon', 'near;minDistance:5', '1,2', 'georel /near/ used with geometry different than point'],
  ['line', 'coveredBy', '1,2;3,4', 'line geometry cannot be used with coveredBy georel'],
  ['point', 'coveredBy', '1,2', 'point geometry cannot be used with coveredBy georel'],

  ['point', 'equals', '', 'invalid point in URI param /coords/'],
  ['point', 'equals', '1', 'invalid point in URI param /coords/'],
  ['point', 'equals', '1,2,3', 'invalid point in URI param /coords/'],
  ['point', 'equals', '1;2,3', 'invalid point in URI param /coords/'],
  ['box', 'equals', '1,2;3,4;', 'invalid point in URI param /coords/'],
  ['box', 'equals', '1,2;3,4;5.6', 'invalid point in URI param /coords/'],
  ['point', 'equals', '5,B', 'invalid coordinates'],
  ['point', 'equals', ',5', 'invalid coordinates'],
  ['point', 'equals', '5 5,5', 'invalid coordinates'],
  ['point', 'equals', 'NaN,5', 'invalid coordinates'],
  ['point', 'equals', '90.1,5', 'invalid coordinates'],
  ['point', 'equals', '5,-180.1', 'invalid coordinates'],
  ['polygon', 'equals', '1.1,B;2.1,2.2;3.1,3.2', 'invalid coordinates'],
  ['point', 'equals', '1,2;2,2', 'invalid number of coordinates for /point/'],
  ['line', 'equals', '1,2', 'invalid number of coordinates for /line/'],
  ['box', 'equals', '1,2', 'invalid number of coordinates for /box/'],
  ['box', 'equals', '1,2;3,4;5,6', 'invalid number of coordinates for /box/'],
  ['polygon', 'equals', '1,2;2,2;1,2', 'Too few coordinates for polygon'],
  ['polygon', 'equals', '1,2;2,2;2,1;1,1', 'First and last point in polygon not the same'],
  ['box', 'equals', '1,2;1,8', 'box coordinates are not defining an actual box'],
  ['box', 'equals', '1,2;3,2', 'box coordinates are not defining an actual box'],
  // Refusals of our own.
  ['polygon', 'equals', '0,0;2,2;2,0;0,2;0,0', 'polygon crosses or touches itself'],
  ['polygon', 'equals', '0,0;1,1;2,2;0,0', 'polygon crosses or touches itself'],
  ['line', 'equals', longLine, 'coordinates in coords: 2001, max number supported: 2000'],
  ['point', 'equals', `1,${' '.repeat(100_000)}1`, 'coords length: 100003, max length supported: 100000'],
  // The first fault in the order of the checks decides.
  ['circle', 'far', 'x', 'error parsing geometry: Invalid selector in geometry specification'],
  ['line', 'far;near;maxDistance:5', 'x', 'Invalid modifier in georel parameter'],
  ['line', 'near;maxDistance:5', 'x', 'georel /near/ used with geometry different than point'],
]

// Rings: the sweep against the plain comparison of all edges, and the worst shape for the sweep.

import t from 'tap'
import { positionsMax } from '../../../src/domain/limits.js'
import { isSimpleRing, type Position } from '../../../src/domain/places/ring.js'
import { positions } from '../../support/positions.js'
import fc from '../../support/properties.js'

const rings: [name: string, simple: boolean, ring: string][] = [
  ['triangle', true, '0 0, 4 0, 0 3, 0 0'],
  ['square', true, '0 0, 1 0, 1 1, 0 1, 0 0'],
  ['square with a vertex within a side', true, '0 0, 1 0, 2 0, 2 2, 0 2, 0 1, 0 0'],
  ['square that repeats a position', true, '0 0, 1 0, 1 0, 1 1, 0 1, 0 0, 0 0'],
  ['letter C', true, '0 0, 3 0, 3 1, 1 1, 1 2, 3 2, 3 3, 0 3, 0 0'],
  ['bow tie', false, '0 0, 1 1, 1 0, 0 1, 0 0'],
  ['eight that touches in a vertex', false, '0 0, 2 0, 1 1, 2 2, 0 2, 1 1, 0 0'],
  ['vertex on a distant side', false, '0 0, 4 0, 4 4, 2 0, 0 4, 0 0'],
  ['spike', false, '0 0, 2 0, 2 2, 2 3, 2 2, 0 2, 0 0'],
  ['sides over each other', false, '0 0, 3 0, 3 1, 1 0, 2 0, 0 1, 0 0'],
  ['flat', false, '0 0, 1 1, 2 2, 0 0'],
  ['there and back', false, '0 0, 1 1, 0 0, 0 0'],
  ['one place', false, '0 0, 0 0, 0 0, 0 0'],
]

t.test('rings that cross or touch themselves are distinguished from others', async t => {
  for (const [name, simple, text] of rings) {
    const ring = positions(text)
    t.equal(isSimpleRing(ring), simple, name)
    t.equal(isSimpleRing(ring.toReversed()), simple, `${name}, reversed`)
    t.equal(isSimpleRing(ring.map(([x, y]) => [y, x])), simple, `${name}, turned`)
  }
})

/** Compares all edges with all others, for rings without repeated positions. Exact on small whole numbers. */
function isSimpleByComparingAll(ring: readonly Position[]): boolean {
  const side = (a: Position, b: Position, c: Position): number =>
    Math.sign((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))
  const within = (a: Position, b: Position, c: Position): boolean =>
    side(a, b, c) === 0 && (c[0] - a[0]) * (c[0] - b[0]) <= 0 && (c[1] - a[1]) * (c[1] - b[1]) <= 0
  return compareAll(ring, side, within)
}

/** `side`: the side of the third from the line through the first two. `within`: whether it lies between them. */
function compareAll<P>(
  ring: readonly P[],
  side: (a: P, b: P, c: P) => number,
  within: (a: P, b: P, c: P) => boolean,
): boolean {
  const size = ring.length - 1
  for (let i = 0; i < size; i++) {
    for (let j = i + 1; j < size; j++) {
      const [a, b, c, d] = [ring[i]!, ring[i + 1]!, ring[j]!, ring[j + 1]!]
      if (j === i + 1) {
        if (within(a, b, d) || within(c, d, a)) return false
      } else if (i === 0 && j === size - 1) {
        if (within(a, b, c) || within(c, d, b)) return false
      } else {
        const cross = side(a, b, c) * side(a, b, d) < 0 && side(c, d, a) * side(c, d, b) < 0
        if (cross || within(a, b, c) || within(a, b, d) || within(c, d, a) || within(c, d, b)) return false
      }
    }
  }
  return true
}

const gridPosition = (max: number): fc.Arbitrary<Position> =>
  fc.tuple(fc.integer({ min: 0, max }), fc.integer({ min: 0, max }))

const closed = (ring: Position[]): Position[] => [...ring, ring[0]!]

t.test('the sweep agrees with comparing all edges, on a grid where touching is common', async () => {
  const corners = fc
    .integer({ min: 2, max: 30 })
    .chain(max => fc.uniqueArray(gridPosition(max), { minLength: 3, maxLength: 9, selector: String }))
  fc.assert(
    fc.property(corners, found => isSimpleRing(closed(found)) === isSimpleByComparingAll(closed(found))),
    { numRuns: 5000 },
  )
})

/**
 * Vertices are whole multiples of this. It is so small that a double cannot have both a difference of far vertices and
 * one of near vertices.
 */
const unit = 2 ** -45

type Whole = readonly [x: bigint, y: bigint]

/** Like `isSimpleByComparingAll`, in whole numbers of any size. */
function isSimpleInWholeNumbers(ring: readonly Whole[]): boolean {
  const side = (a: Whole, b: Whole, c: Whole): number =>
    sign((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))
  const within = (a: Whole, b: Whole, c: Whole): boolean =>
    side(a, b, c) === 0 && (c[0] - a[0]) * (c[0] - b[0]) <= 0n && (c[1] - a[1]) * (c[1] - b[1]) <= 0n
  return compareAll(ring, side, within)
}

const sign = (value: bigint): number => Number(value > 0n) - Number(value < 0n)

t.test('vertices that all but lie on an edge are judged exactly', async () => {
  const corner = fc.tuple(fc.bigInt({ min: 0n, max: 90n }), fc.bigInt({ min: 0n, max: 45n }))
  const nudge = fc.tuple(fc.bigInt({ min: -2n, max: 2n }), fc.bigInt({ min: -2n, max: 2n }))
  const three = fc.uniqueArray(corner, { minLength: 3, maxLength: 3, selector: String })
  fc.assert(
    fc.property(three, fc.array(nudge, { minLength: 1, maxLength: 4 }), (corners, nudges) => {
      const [a, b, c] = corners.map(([x, y]) => [x << 45n, y << 45n] as const) as [Whole, Whole, Whole]
      // From b the ring goes back towards a, through places near the edge between them, and then to c.
      const near = nudges.map(([x, y], at): Whole => {
        const part = BigInt(nudges.length - at)
        const parts = BigInt(nudges.length + 1)
        return [a[0] + ((b[0] - a[0]) * part) / parts + x, a[1] + ((b[1] - a[1]) * part) / parts + y]
      })
      const ring = [a, b, ...near, c, a]
      fc.pre(new Set(ring.map(String)).size === ring.length - 1)
      const inDegrees = ring.map(([x, y]): Position => [Number(x) * unit, Number(y) * unit])
      return isSimpleRing(inDegrees) === isSimpleInWholeNumbers(ring)
    }),
    { numRuns: 5000 },
  )
})

t.test('a ring around a centre is simple, and is not once two far corners are swapped', async () => {
  const around = fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 8, maxLength: 200 })
  fc.assert(
    fc.property(around, fc.double({ min: 0, max: 1, noNaN: true }), (radii, turn) => {
      const star = radii.map((radius, at): Position => {
        const angle = (2 * Math.PI * (at + turn)) / radii.length
        return [radius * Math.cos(angle), radius * Math.sin(angle)]
      })
      const swapped = [...star]
      const far = Math.floor(star.length / 2)
      swapped[0] = star[far]!
      swapped[far] = star[0]!
      return isSimpleRing(closed(star)) && isSimpleRing(closed(swapped)) === isSimpleByComparingAll(closed(swapped))
    }),
  )
})

t.test('a ring of the largest size is judged, though all its edges lie over one another', async t => {
  // A comb of slanting teeth between two parallel lines, closed around its back.
  const teeth = Math.floor((positionsMax - 4) / 2)
  const comb: Position[] = []
  for (let at = 0; at < teeth; at++) {
    const shift = (40 * at) / teeth
    comb.push([shift, -shift], [80 + shift, 80 - shift])
  }
  comb.push([125, 45], [80, 90], [-5, 5])
  t.ok(isSimpleRing(closed(comb)))
  const bent = [...comb]
  bent[teeth] = [comb[teeth]![0], comb[teeth]![1] + 1]
  t.notOk(isSimpleRing(closed(bent)))
})

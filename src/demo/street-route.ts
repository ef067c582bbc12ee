// The way along a street: a distance becomes a point.

import type { Street, StreetPoint } from './streets.js'

interface Leg {
  readonly from: StreetPoint
  readonly to: StreetPoint
  /** Where it begins on the way, and how long it is, in metres. */
  readonly beginsAt: number
  readonly length: number
}

export class StreetRoute {
  /** Metres until the way begins again: a road leads there and back. */
  readonly length: number
  private readonly legs: readonly Leg[]

  constructor({ points, isRing }: Street) {
    const way = isRing ? [...points, ...points.slice(0, 1)] : [...points, ...points.slice(0, -1).reverse()]
    let beginsAt = 0
    this.legs = way.slice(1).map((to, index) => {
      const from = way[index] as StreetPoint
      const leg = { from, to, beginsAt, length: Math.hypot(to[0] - from[0], to[1] - from[1]) }
      beginsAt += leg.length
      return leg
    })
    this.length = beginsAt
  }

  /** The point at a distance from the beginning of the way. */
  pointAt(metres: number): StreetPoint {
    const distance = metres % this.length
    const leg = this.legs.findLast(({ beginsAt }) => beginsAt <= distance) as Leg
    const share = (distance - leg.beginsAt) / leg.length
    const between = (from: number, to: number): number => from + (to - from) * share
    return [between(leg.from[0], leg.to[0]), between(leg.from[1], leg.to[1])]
  }
}

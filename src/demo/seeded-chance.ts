// Chance that can be repeated: the same seed gives the same city.

import type { Chance } from '../ports.js'

/** The chance that the city needs. */
export type CityChance = Pick<Chance, 'fraction'>

/** The generator mulberry32. */
export function seededChance(seed: number): CityChance {
  let state = seed >>> 0
  return {
    fraction() {
      state = (state + 0x6d2b79f5) >>> 0
      let mixed = Math.imul(state ^ (state >>> 15), state | 1)
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
    },
  }
}

/** A number from `least` up to `most`. */
export const numberFrom = (chance: CityChance, least: number, most: number): number =>
  least + chance.fraction() * (most - least)

/** The next value of a quantity that wanders, and comes back to `usual`. */
export const drifted = (chance: CityChance, value: number, usual: number, step: number): number =>
  value + (usual - value) * 0.1 + numberFrom(chance, -step, step)

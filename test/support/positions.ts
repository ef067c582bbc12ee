// Lists of positions in a readable form: `'0 0, 4 0, 0 3, 0 0'`, longitude first.
//
// The formatter puts every pair of numbers in a nested array on a line of its own, which makes tables of shapes
// unreadable.
import type { Position } from '../../src/domain/places/ring.js'

export const positions = (text: string): Position[] =>
  text.split(', ').map((pair): Position => pair.split(' ').map(Number) as [number, number])

// Lists of positions as one reads them: `'0 0, 4 0, 0 3, 0 0'`, longitude first.
//
// The formatter gives every pair of numbers in a nested array a line of its own, which makes tables of shapes
// unreadable.
import type { Position } from '../../src/domain/places/ring.js'

export const positions = (text: string): Position[] =>
  text.split(', ').map((pair): Position => pair.split(' ').map(Number) as [number, number])

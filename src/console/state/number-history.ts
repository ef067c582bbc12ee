// The numbers that a view has seen while it was open, each as the points of a chart.

import type { Json } from '../../domain/json.js'
import type { ChartPoint } from '../parts/chart.js'

/** Points of one number; with more, the oldest go. */
const pointsMax = 600
/** Numbers that have a chart. */
const chartsMax = 200
/** How far back a chart reaches: from its first point, within these bounds. */
const spanMsMin = 60_000
const spanMsMax = 10 * 60_000

export type NumberHistory = ReadonlyMap<string, readonly ChartPoint[]>

/**
 * The points from before the view was opened, in ascending order. Orrery keeps no past of attributes yet, so there are
 * none.
 */
export const earlierPoints = (_name: string): readonly ChartPoint[] => []

/** The time that a chart of these points has. */
export const chartSpanMs = ([first]: readonly ChartPoint[], nowMs: number): number =>
  Math.min(spanMsMax, Math.max(spanMsMin, nowMs - (first?.atMs ?? nowMs)))

/** The history with the values of this moment: those that are numbers. */
export function withNumbers(
  history: NumberHistory,
  values: Iterable<readonly [name: string, value: Json | undefined]>,
  atMs: number,
): NumberHistory {
  const next = new Map<string, readonly ChartPoint[]>()
  for (const [name, value] of values) {
    if (typeof value !== 'number' || next.size >= chartsMax) continue
    const before = history.get(name) ?? earlierPoints(name)
    const recent = before.filter((point, at) => point.atMs > atMs - spanMsMax || at === before.length - 1)
    next.set(name, [...recent, { atMs, value }].slice(-pointsMax))
  }
  return next
}

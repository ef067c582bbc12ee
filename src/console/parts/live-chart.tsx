// A number as it was since the view was opened, up to now: it stays as it is until it changes.

import { chartSpanMs } from '../state/number-history.js'
import { type ChartPoint, LineChart } from './chart.js'
import { number } from './value-text.js'

export function LiveChart({
  name,
  points,
  nowMs,
}: {
  readonly name: string
  readonly points: readonly ChartPoint[]
  readonly nowMs: number
}) {
  const latest = points.at(-1)
  if (!latest) return null
  const values = points.map(({ value }) => value)
  const [least, most] = [Math.min(...values), Math.max(...values)]
  const spanMs = chartSpanMs(points, nowMs)
  const since = new Date(Math.max(points[0]?.atMs ?? nowMs, nowMs - spanMs)).toLocaleTimeString()
  const range = least === most ? '' : `, from ${number(least, 3)} to ${number(most, 3)}`
  return (
    <LineChart
      points={stepsOf([...points, { atMs: Math.max(nowMs, latest.atMs), value: latest.value }], nowMs - spanMs)}
      nowMs={nowMs}
      spanMs={spanMs}
      from="least"
      label={`${name} since ${since}: now ${number(latest.value, 3)}${range}`}
    />
  )
}

/** A line that goes sideways first and then up or down, and begins at the edge. */
const stepsOf = (points: readonly ChartPoint[], fromMs: number): ChartPoint[] =>
  points.flatMap(({ atMs, value }, at) => {
    const before = points[at - 1]
    const point = { atMs: Math.max(atMs, fromMs), value }
    return before ? [{ atMs: point.atMs, value: before.value }, point] : [point]
  })

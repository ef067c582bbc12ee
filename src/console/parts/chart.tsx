// A line over time, as SVG.

export interface ChartPoint {
  readonly atMs: number
  readonly value: number
}

const width = 240
const height = 48

/**
 * `label` is what a screen reader reads out. Points lie between `nowMs - spanMs` and `nowMs`. `from`: what the lower edge
 * is, zero or the least value.
 */
export function LineChart({
  points,
  nowMs,
  spanMs,
  label,
  from = 'zero',
}: {
  readonly points: readonly ChartPoint[]
  readonly nowMs: number
  readonly spanMs: number
  readonly label: string
  readonly from?: 'zero' | 'least'
}) {
  const values = points.map(({ value }) => value)
  const bottom = from === 'zero' ? 0 : Math.min(...values)
  const top = Math.max(...values, bottom + 1e-9)
  const line = points.map(
    ({ atMs, value }) =>
      `${(width * (1 - (nowMs - atMs) / spanMs)).toFixed(1)},${(height - 2 - (height - 4) * ((value - bottom) / (top - bottom))).toFixed(1)}`,
  )
  return (
    <svg class="chart" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label} preserveAspectRatio="none">
      <polyline points={line.join(' ')} fill="none" />
    </svg>
  )
}

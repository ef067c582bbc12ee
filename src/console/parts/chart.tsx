// A line over time, as SVG.

export interface ChartPoint {
  readonly atMs: number
  readonly value: number
}

const width = 240
const height = 48

/** `label` is what a screen reader reads out. Points lie between `nowMs - spanMs` and `nowMs`. */
export function LineChart({
  points,
  nowMs,
  spanMs,
  label,
}: {
  readonly points: readonly ChartPoint[]
  readonly nowMs: number
  readonly spanMs: number
  readonly label: string
}) {
  const top = Math.max(...points.map(({ value }) => value), 1e-9)
  const line = points.map(
    ({ atMs, value }) =>
      `${(width * (1 - (nowMs - atMs) / spanMs)).toFixed(1)},${(height - 2 - (height - 4) * (value / top)).toFixed(1)}`,
  )
  return (
    <svg class="chart" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label} preserveAspectRatio="none">
      <polyline points={line.join(' ')} fill="none" />
    </svg>
  )
}

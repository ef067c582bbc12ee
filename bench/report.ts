// Output: numbers as people read them, medians, tables, and findings, which are numbers compared with a requirement.
//
// Not here: the measurements, and the exit code after a shortfall (main).

/** A line of a table of findings. */
export interface Finding {
  readonly name: string
  readonly found: string
  /** '-' when there is no requirement. */
  readonly needed: string
  readonly isShort: boolean
}

/** A finding without a requirement. */
export const information = (name: string, found: string): Finding => ({ name, found, needed: '-', isShort: false })

export function atMost(name: string, found: string, value: number, limit: number, unit: string): Finding {
  const needed = Number.isInteger(limit) ? thousands(limit) : String(limit)
  return { name, found, needed: `<= ${needed} ${unit}`.trimEnd(), isShort: !(value <= limit) }
}

/** `limit` may be a share. */
export function atLeast(name: string, found: string, value: number, limit: number, unit = ''): Finding {
  const needed = limit < 1 ? limit.toFixed(2) : Number.isInteger(limit) ? thousands(limit) : String(limit)
  return { name, found, needed: `>= ${needed}${unit}`, isShort: !(value >= limit) }
}

export function printFindings(findings: readonly Finding[]): void {
  const verdict = ({ needed, isShort }: Finding): string => (needed === '-' ? '-' : isShort ? 'SHORT' : 'ok')
  printTable(
    ['what', 'found', 'needed', ''],
    findings.map(finding => [finding.name, finding.found, finding.needed, verdict(finding)]),
  )
}

export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map(row => row[column]!.length)))
  for (const row of [head, ...rows]) {
    say(row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))).join('  '))
  }
  say('')
}

export const say = (line: string): void => console.log(line)
/** Prints a line that is not part of the result to standard error. */
export const progress = (line: string): void => console.error(`  ${line}`)

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** The value that `share` of all do not exceed; NaN if there are no values. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN
}

export function thousands(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ' ')
}

/** The median, and half the spread of the rounds in percent of it. */
export function rate(values: readonly number[]): string {
  const middle = median(values)
  if (values.length === 1) return thousands(middle)
  const apart = ((Math.max(...values) - Math.min(...values)) / middle / 2) * 100
  return `${thousands(middle)} ±${apart.toFixed(0)}%`
}

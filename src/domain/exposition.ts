// Metrics as Prometheus reads them: families of samples, how those of several processes become one, and the text format, version 0.0.4.
//
// A family is joined as its kind says: what is counted adds up, what all processes know alike is taken once, and what is about a process
// stays apart by a label. A label's value may be any text; names are ours and need no escaping.
//
// Not here: which metrics there are (observe/families.ts; README, "Metrics").

import { countOf, type Histogram, joinHistograms } from './histogram.js'

export interface Family {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly join: 'sum' | 'max' | 'apart'
  readonly samples: readonly Sample[]
}

export interface Sample {
  readonly labels: Labels
  readonly value: number | Histogram
}

export type Labels = Readonly<Record<string, string>>

/** What the text format is called. */
export const expositionType = 'text/plain; version=0.0.4; charset=utf-8'

/** The families of several processes as one list. Numbers of processes become the label `worker` where they stay apart. */
export function joinFamilies(parts: readonly (readonly Family[])[]): readonly Family[] {
  if (parts.length === 1) return parts[0]!
  const joined = new Map<string, { readonly family: Family; readonly samples: Map<string, Sample> }>()
  for (const [worker, families] of parts.entries())
    for (const family of families) {
      const known = joined.get(family.name) ?? { family, samples: new Map<string, Sample>() }
      joined.set(family.name, known)
      for (const { labels, value } of family.samples) {
        const own = family.join === 'apart' ? { ...labels, worker: String(worker) } : labels
        const key = JSON.stringify(own)
        const before = known.samples.get(key)
        known.samples.set(key, { labels: own, value: before ? combine(family.join, before.value, value) : value })
      }
    }
  return [...joined.values()].map(({ family, samples }) => ({ ...family, samples: [...samples.values()] }))
}

function combine(join: Family['join'], one: Sample['value'], other: Sample['value']): Sample['value'] {
  if (typeof one === 'number' && typeof other === 'number') return join === 'max' ? Math.max(one, other) : one + other
  return typeof one === 'object' && typeof other === 'object' ? joinHistograms(one, other) : other
}

/** The text that `GET /metrics` answers. Families without samples are left out. */
export function renderExposition(families: readonly Family[]): string {
  const lines: string[] = []
  for (const { name, type, help, samples } of families) {
    if (samples.length === 0) continue
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`)
    for (const { labels, value } of samples)
      if (typeof value === 'number') lines.push(`${name}${renderLabels(labels)} ${renderNumber(value)}`)
      else lines.push(...renderHistogram(name, labels, value))
  }
  return `${lines.join('\n')}\n`
}

function renderHistogram(name: string, labels: Labels, histogram: Histogram): string[] {
  const { bounds, counts, sum } = histogram
  let below = 0
  const buckets = bounds.map((bound, at) => {
    below += counts[at]!
    return `${name}_bucket${renderLabels({ ...labels, le: String(bound) })} ${below}`
  })
  const count = countOf(histogram)
  return [
    ...buckets,
    `${name}_bucket${renderLabels({ ...labels, le: '+Inf' })} ${count}`,
    `${name}_sum${renderLabels(labels)} ${renderNumber(sum)}`,
    `${name}_count${renderLabels(labels)} ${count}`,
  ]
}

const renderNumber = (value: number): string => {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value)
  return value > 0 ? '+Inf' : '-Inf'
}

function renderLabels(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

const escaped = (value: string): string => value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')

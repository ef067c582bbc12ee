// A strict reader of Prometheus' text format, written from its description: it throws at the first wrong line.
//
// It also checks rules that span lines: each family has its HELP and TYPE once and its samples together, no sample
// occurs twice, and the buckets of a histogram grow up to its count.

export interface Exposition {
  /** The value of the one sample of that name whose labels include these. */
  value(name: string, labels?: Readonly<Record<string, string>>): number
  readonly families: ReadonlyMap<string, string>
  readonly samples: readonly ReadSample[]
}

export interface ReadSample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const name = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const sampleForm = new RegExp(`^(${name})(?:\\{(.*)\\})? (-?[0-9.]+(?:e[+-]?[0-9]+)?|[+-]Inf|NaN)$`, 's')
const labelForm = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/

export function parseExposition(text: string): Exposition {
  if (!text.endsWith('\n')) throw new Error('the last line does not end')
  const families = new Map<string, string>()
  const samples: ReadSample[] = []
  const seen = new Set<string>()
  let current = ''
  for (const line of text.slice(0, -1).split('\n')) {
    if (line === '') continue
    const [, kind, family = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? []
    if (kind === 'HELP') {
      if (families.has(family)) throw new Error(`told twice: ${line}`)
      families.set(family, '')
      current = family
    } else if (kind === 'TYPE') {
      if (current !== family || !/^(counter|gauge|histogram)$/.test(rest)) throw new Error(`not a type: ${line}`)
      families.set(family, rest)
    } else {
      const sample = parseSample(line)
      const base = families.get(current) === 'histogram' ? sample.name.replace(/_(bucket|sum|count)$/, '') : sample.name
      if (base !== current) throw new Error(`not among its family: ${line}`)
      const key = JSON.stringify([sample.name, Object.entries(sample.labels).sort()])
      if (seen.has(key)) throw new Error(`stands twice: ${line}`)
      seen.add(key)
      samples.push(sample)
    }
  }
  const found = { families, samples, value: finder(samples) }
  for (const [family, type] of families) if (type === 'histogram') checkHistogram(family, samples)
  return found
}

function parseSample(line: string): ReadSample {
  const [, sampleName, labelText = '', number] = sampleForm.exec(line) ?? []
  if (sampleName === undefined) throw new Error(`not a sample: ${line}`)
  const labels: Record<string, string> = {}
  for (let rest = labelText; rest !== ''; ) {
    const [whole, label, value] = labelForm.exec(rest) ?? []
    if (whole === undefined) throw new Error(`not labels: ${line}`)
    labels[label!] = value!.replace(/\\(.)/g, (_, character) => (character === 'n' ? '\n' : character))
    rest = rest.slice(whole.length)
  }
  return { name: sampleName, labels, value: Number(number!.replace('Inf', 'Infinity')) }
}

const finder =
  (samples: readonly ReadSample[]): Exposition['value'] =>
  (sampleName, wanted = {}) => {
    const fit = samples.filter(
      ({ name, labels }) =>
        name === sampleName && Object.entries(wanted).every(([key, value]) => labels[key] === value),
    )
    if (fit.length !== 1) throw new Error(`${fit.length} samples ${sampleName} ${JSON.stringify(wanted)}`)
    return fit[0]!.value
  }

function checkHistogram(family: string, samples: readonly ReadSample[]): void {
  const counts = samples.filter(({ name }) => name === `${family}_count`)
  for (const { labels, value } of counts) {
    const own = samples.filter(
      ({ name, labels: others }) =>
        name === `${family}_bucket` && Object.entries(labels).every(([key, one]) => others[key] === one),
    )
    const values = own.map(bucket => bucket.value)
    if (own.at(-1)?.labels.le !== '+Inf' || values.at(-1) !== value) throw new Error(`${family}: buckets do not add up`)
    if (values.some((one, at) => at > 0 && one < values[at - 1]!)) throw new Error(`${family}: buckets shrink`)
  }
}

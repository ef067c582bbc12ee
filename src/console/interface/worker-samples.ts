// The metrics about single workers, out of the text format of Prometheus (docs/operations/metrics.md): those with
// the label `worker`. A process without other workers has no such label.

export interface WorkerSample {
  /** '': the only process. */
  readonly worker: string
  readonly startedS: number | undefined
  readonly cpuS: number | undefined
  readonly residentBytes: number | undefined
  readonly openFiles: number | undefined
}

const members = {
  process_start_time_seconds: 'startedS',
  process_cpu_seconds_total: 'cpuS',
  process_resident_memory_bytes: 'residentBytes',
  process_open_fds: 'openFiles',
} as const satisfies Record<string, keyof WorkerSample>

type MemberName = keyof typeof members

const isMember = (name: string): name is MemberName => Object.hasOwn(members, name)

const sample = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/

export function readWorkers(text: string): WorkerSample[] {
  const workers = new Map<string, Partial<Record<(typeof members)[MemberName], number>>>()
  for (const line of text.split('\n')) {
    const [, name = '', labels = '', digits] = sample.exec(line) ?? []
    if (!isMember(name)) continue
    const worker = /(?:^|,)worker="(\d+)"/.exec(labels)?.[1] ?? ''
    const known = workers.get(worker) ?? {}
    known[members[name]] = Number(digits)
    workers.set(worker, known)
  }
  return [...workers]
    .sort(([a], [b]) => Number(a) - Number(b))
    .map(([worker, { startedS, cpuS, residentBytes, openFiles }]) => ({
      ...{ worker, startedS, cpuS, residentBytes, openFiles },
    }))
}

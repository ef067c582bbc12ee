// The number of processor cores that this process may use: the cores on which the system lets it run, limited by the
// processor time of its control group.
//
// A container with a limit of two CPUs runs on all cores of its machine for a part of the time. Node counts those
// cores, so `-workers auto` reads the limit itself: `cpu.max` of version 2 of control groups, `cpu.cfs_quota_us` of
// version 1, of the own group and those above it. A fraction of a core does not count, but the result is at least one.

import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'

/** Each worker owns some shards, and every data directory has at least this number of them. */
export const workersMax = 64

/** The number of workers for a value of `-workers`. */
export const workersFor = (wanted: number | 'auto', cores: () => number = availableCores): number =>
  wanted === 'auto' ? Math.min(workersMax, cores()) : wanted

/** Cores for this process, 1 or more. `root`: the folder of the system's files; `running`: cores that it may run on. */
export function availableCores(root = '/', running = availableParallelism()): number {
  return Math.max(1, Math.floor(Math.min(running, ...quotas(root))))
}

/**
 * Cores for which each control group of this process has time; none without a limit, or on another system than Linux.
 */
function quotas(root: string): number[] {
  // Lines are `0::/path` in version 2, and `4:cpu,cpuacct:/path` in version 1.
  const lines = (textOf(join(root, 'proc/self/cgroup')) ?? '').split('\n').map(line => line.split(':'))
  return lines.flatMap(([id, controllers = '', ...path]) => {
    const group = path.join(':')
    if (id === '0' && controllers === '') return quotasOf(join(root, 'sys/fs/cgroup'), group, quota2)
    return controllers.split(',').includes('cpu') ? quotasOf(join(root, 'sys/fs/cgroup/cpu'), group, quota1) : []
  })
}

/**
 * In a container the path may be that of the machine, of which the container only has the root. Groups without a file
 * have no limit.
 */
function quotasOf(mount: string, group: string, quota: (folder: string) => number | undefined): number[] {
  const found: number[] = []
  for (let folder = join('/', group); ; folder = dirname(folder)) {
    const cores = quota(join(mount, folder))
    if (cores !== undefined) found.push(cores)
    if (folder === '/') return found
  }
}

const quota2 = (folder: string): number | undefined => {
  const [quota, period] = (textOf(join(folder, 'cpu.max')) ?? '').trim().split(' ')
  return ratio(quota, period)
}

const quota1 = (folder: string): number | undefined =>
  ratio(textOf(join(folder, 'cpu.cfs_quota_us')), textOf(join(folder, 'cpu.cfs_period_us')))

/** `max` and -1 mean no limit. */
function ratio(quota: string | undefined, period: string | undefined): number | undefined {
  const cores = Number.parseInt(quota ?? '', 10) / Number.parseInt(period ?? '', 10)
  return Number.isFinite(cores) && cores > 0 ? cores : undefined
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}

// The machine of a measurement: its facts, its clocks, and the placement of processes on its cores.
//
// The rates are bounded by one core of the server and by the disk's flush, so both are reported with every run. If
// taskset exists, the generator is kept on the last core this process may use. The server has all cores, as in
// production: it flushes, compacts and collects garbage on threads of their own, and may be several processes. On a
// shared core, an answer would wake the generator, which would then displace the server, and no generator on another
// machine does that. So if chrt exists, the generator runs as a batch job, which gets its turns but displaces no other
// process.

import { execFileSync } from 'node:child_process'
import { closeSync, fdatasyncSync, openSync, readFileSync, rmSync, statfsSync, writeSync } from 'node:fs'
import os from 'node:os'
import { join } from 'node:path'

export function hasProgram(name: string): boolean {
  return (process.env.PATH ?? '').split(':').some(folder => {
    try {
      closeSync(openSync(join(folder, name), 'r'))
      return true
    } catch {
      return false
    }
  })
}

/** The cores this process may use, by number; empty if the system does not report them. */
function allowedCores(): number[] {
  try {
    const list = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? ''
    return list.split(',').flatMap(range => {
      const [from, to] = range.split('-').map(Number)
      return Array.from({ length: (to ?? from!) - from! + 1 }, (_, n) => from! + n)
    })
  } catch {
    return []
  }
}

// Read before this process pins itself.
const cores = allowedCores()
const pinnable = cores.length > 1 && hasProgram('taskset')
const batchJob = pinnable && hasProgram('chrt') ? ['chrt', '-b', '0'] : []

/** Where a process runs. `anywhere` removes the pin: start-up and memory are measured as a user would see them. */
export type Place = 'server' | 'generator' | 'anywhere'

/** The command with the pinning before it; unchanged where pinning is impossible. */
export function pinned(place: Place, command: string, args: readonly string[]): [string, string[]] {
  if (!pinnable) return [command, [...args]]
  const line =
    place === 'generator'
      ? ['taskset', '-c', String(cores.at(-1)), ...batchJob, command, ...args]
      : ['taskset', '-c', cores.join(','), command, ...args]
  return [line[0]!, line.slice(1)]
}

/** Moves this process, all its threads, to a place. */
export function pinSelf(place: Place): void {
  if (!pinnable) return
  const list = place === 'generator' ? String(cores.at(-1)) : cores.join(',')
  execFileSync('taskset', ['-acp', list, String(process.pid)], { stdio: 'ignore' })
}

/** Milliseconds of the machine's steady clock, which is the same in all its processes, unlike `performance.now()`. */
export const steadyMs = (): number => Number(process.hrtime.bigint()) / 1e6

let ticksPerSecond: number | undefined

/** CPU seconds a process has used so far, user and system, all its threads. */
export function cpuSeconds(pid: number): number {
  if (process.platform === 'linux') {
    ticksPerSecond ??= Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name in brackets may hold spaces; utime and stime are the 14th and 15th field of the whole line.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
  }
  const time = execFileSync('ps', ['-o', 'time=', '-p', String(pid)], { encoding: 'utf8' }).trim()
  const [days, clock] = time.includes('-') ? time.split('-') : ['0', time]
  return Number(days) * 86_400 + clock!.split(':').reduce((sum, part) => sum * 60 + Number(part), 0)
}

/** CPU seconds of a process and of its children. */
export function cpuSecondsOfAll(pid: number): number {
  const list = execFileSync('sh', ['-c', `ps -A -o ppid=,pid= | awk '$1 == ${pid} { print $2 }'`], { encoding: 'utf8' })
  const children = list.split('\n').filter(line => line !== '')
  return [pid, ...children.map(Number)].reduce((sum, one) => sum + cpuSeconds(one), 0)
}

/**
 * CPU seconds used so far by everything but a server, this process and the children it has waited for. Only differences
 * are meaningful. The kernel's interrupts are left out: most of them carry the load's own packets. NaN if the system
 * does not report them.
 */
export function othersCpuSeconds(server: number): number {
  if (process.platform !== 'linux') return Number.NaN
  const busyMs = os.cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys, 0)
  const stat = readFileSync('/proc/self/stat', 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const serverSeconds = cpuSeconds(server)
  // utime, stime, and the same of children that have ended.
  const ours = [11, 12, 13, 14].reduce((sum, field) => sum + Number(fields[field]), 0) / ticksPerSecond!
  return busyMs / 1000 - serverSeconds - ours
}

/** Resident memory of a process in bytes: now, and its peak if the system reports it. */
export function residentBytes(pid: number): { now: number; peak: number } {
  if (process.platform === 'linux') {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    const field = (name: string): number => Number(new RegExp(`^${name}:\\s*(\\d+) kB`, 'm').exec(status)?.[1]) * 1024
    return { now: field('VmRSS'), peak: field('VmHWM') }
  }
  const now = Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' })) * 1024
  return { now, peak: Number.NaN }
}

/** How long the disk under `folder` takes to make 4 KB appended to a file durable. */
function flushLatency(folder: string): string {
  const file = join(folder, 'flush-probe')
  const fd = openSync(file, 'w')
  const block = Buffer.alloc(4096, 1)
  const took: number[] = []
  for (let n = 0; n < 220; n++) {
    writeSync(fd, block)
    const from = process.hrtime.bigint()
    fdatasyncSync(fd)
    // The first ones allocate the file.
    if (n >= 20) took.push(Number(process.hrtime.bigint() - from) / 1e6)
  }
  closeSync(fd)
  rmSync(file)
  took.sort((a, b) => a - b)
  return `fdatasync of 4 KB: median ${took[100]!.toFixed(2)} ms, p99 ${took[198]!.toFixed(2)} ms`
}

const fileSystems: Record<number, string> = {
  61267: 'ext4',
  16914836: 'tmpfs',
  2435016766: 'btrfs',
  1481003842: 'xfs',
  2035054128: 'overlayfs',
  801189825: 'zfs',
}

/** Facts about the machine that generates the load: the only known ones when the servers run elsewhere. */
export function generatorFacts(): string[] {
  const model = os.cpus()[0]?.model.trim() ?? 'unknown CPU'
  return [
    `${os.availableParallelism()} cores, ${model}, ${(os.totalmem() / 2 ** 30).toFixed(1)} GB memory`,
    `${os.type()} ${os.release()} ${os.arch()}, Node ${process.version}, load before the run ${os.loadavg()[0]!.toFixed(2)}`,
  ]
}

/** Lines to print with every result; `folder` is where the servers keep their data. */
export function machineFacts(folder: string): string[] {
  const type = statfsSync(folder).type
  const facts = [
    ...generatorFacts(),
    `${fileSystems[type] ?? `file system 0x${type.toString(16)}`}, ${flushLatency(folder)}`,
    pinnable
      ? `generator on core ${cores.at(-1)} (taskset${batchJob.length > 0 ? ', chrt' : ''})`
      : 'not pinned: one core or no taskset; expect more noise',
  ]
  if (fileSystems[type] === 'tmpfs') facts.push('WARNING: this folder is in memory, so `sync` costs nothing; use --dir')
  return facts
}

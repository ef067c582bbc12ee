// Drives servers with a workload for some seconds: wrk with a generated Lua script, or autocannon where wrk is missing.
//
// The generator must not be what is measured: requests are built once, when the script starts, as raw text, and a request
// sent only joins two strings. An answer that is not a success makes the number worthless, so one of them fails the run.
// wrk counts 400 and above; brokers do not redirect.
//
// Not here: what is asked (workloads), medians and ratios (main). Several URLs share the connections evenly, a wrk thread each.

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hasProgram, type Place, pinned } from './machine.js'
import {
  changing,
  cycle,
  fill,
  freshPrefix,
  newId,
  stockId,
  stockSize,
  type Template,
  type Workload,
  wire,
} from './workloads.js'

export interface Load {
  readonly urls: readonly string[]
  readonly workload: Workload
  readonly seconds: number
  readonly connections: number
  /** Sent as Fiware-Service; '' for none. */
  readonly tenant: string
  /** Where wrk runs. One core is enough for one server; a cluster may need more. */
  readonly place: Place
}

export interface Outcome {
  readonly requests: number
  readonly seconds: number
  readonly latencyMs: { readonly p50: number; readonly p99: number; readonly max: number }
}

/** Coprime to the stock's size: consecutive requests meet entities far from each other, and all in turn. */
const stride = 7919

export const generatorName = hasProgram('wrk') ? 'wrk' : 'autocannon'

/** Fails when a connection broke, a request timed out, or an answer was not 2xx. */
export function drive(load: Load): Promise<Outcome> {
  return generatorName === 'wrk' ? driveWrk(load) : driveAutocannon(load)
}

// JSON's escapes for the characters of a request are Lua's as well.
const lua = (text: string): string => JSON.stringify(text)

function luaScript(load: Load): string {
  const hosts = load.urls.map(url => new URL(url))
  const steps = load.workload.map(({ template, ids }) => {
    const [before, after, ...more] = wire(template, load.tenant).split('{N}')
    if (more.length > 0 || (after ?? '').includes('{ID}')) throw new Error('a template has one {N}, after every {ID}')
    return `{ ids = ${lua(ids)}, before = ${lua(before!)}, after = ${after === undefined ? 'nil' : lua(after)} }`
  })
  return `
local hosts = { ${hosts.map(host => `{ ${lua(host.hostname)}, ${lua(host.port || '80')} }`).join(', ')} }
local threads = 0
function setup(thread)
  threads = threads + 1
  local host = hosts[(threads - 1) % #hosts + 1]
  for _, address in ipairs(wrk.lookup(host[1], host[2])) do
    if wrk.connect(address) then thread.addr = address break end
  end
  thread:set("number", threads)
end

local steps = { ${steps.join(', ')} }
local cycle = { ${cycle(load.workload)
    .map(step => step + 1)
    .join(', ')} }
local prefix = ${lua(freshPrefix())}
local at, n, fresh = 0, 0, 0

function init(args)
  for _, step in ipairs(steps) do
    if step.ids == "stock" then
      step.ready = {}
      for i = 0, ${stockSize - 1} do
        step.ready[i] = step.before:gsub("{ID}", string.format("%016d", i))
      end
    else
      step.head, step.rest = step.before:match("^(.-){ID}(.*)$")
    end
  end
  at = number * 997
  fresh = number * 10000000
  collectgarbage()
end

function request()
  n = n + 1
  local step = steps[cycle[n % #cycle + 1]]
  local text
  if step.ready then
    at = (at + ${stride}) % ${stockSize}
    text = step.ready[at]
  else
    fresh = fresh + 1
    text = step.head .. prefix .. string.format("%09d", fresh) .. step.rest
  end
  if step.after then return text .. (1000 + n % 9000) .. step.after end
  return text
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    'RESULT {"requests":%d,"us":%d,"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d,"p50":%f,"p99":%f,"max":%f}\\n',
    summary.requests, summary.duration, e.connect, e.read, e.write, e.status, e.timeout,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000, latency.max / 1000))
end
`
}

async function driveWrk(load: Load): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), 'orrery-bench-'))
  try {
    const script = join(folder, 'workload.lua')
    writeFileSync(script, luaScript(load))
    const args = ['-t', String(load.urls.length), '-c', String(load.connections), '-d', `${load.seconds}s`]
    const said = await output(...pinned(load.place, 'wrk', [...args, '--timeout', '10s', '-s', script, load.urls[0]!]))
    const line = /^RESULT (.*)$/m.exec(said)?.[1]
    if (line === undefined) throw new Error(`wrk gave no result:\n${said}`)
    const { us, requests, p50, p99, max, ...errors } = JSON.parse(line) as Record<string, number>
    refuse(load, requests!, errors)
    return { requests: requests!, seconds: us! / 1e6, latencyMs: { p50: p50!, p99: p99!, max: max! } }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function refuse(load: Load, requests: number, errors: Readonly<Record<string, number>>): void {
  const seen = Object.entries(errors).filter(([, count]) => count > 0)
  if (seen.length === 0 && requests > 0) return
  const steps = load.workload.map(({ template }) => `${template.method} ${template.path}`).join(', ')
  throw new Error(
    `${steps} at ${load.urls.join(', ')}: ${requests} answers, failed: ` +
      (seen.map(([kind, count]) => `${count} by ${kind}`).join(', ') || 'none, but nothing was answered'),
  )
}

function output(command: string, args: readonly string[]): Promise<string> {
  return new Promise((done, failed) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    const kill = (): void => void child.kill('SIGKILL')
    process.once('exit', kill)
    let said = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        said += chunk
      })
    }
    child.once('error', failed)
    child.once('close', code => {
      process.off('exit', kill)
      if (code === 0) done(said)
      else failed(new Error(`${command} ended with ${code}:\n${said}`))
    })
  })
}

/** The part of autocannon that is used. It is loaded only when it is needed, by name, for it may not be installed. */
type Autocannon = (options: {
  url: string
  connections: number
  duration: number
  timeout: number
  requests: { setupRequest: (request: object) => object }[]
}) => Promise<{
  '2xx': number
  non2xx: number
  errors: number
  timeouts: number
  mismatches: number
  resets: number
  duration: number
  latency: { p50: number; p99: number; max: number }
}>

async function driveAutocannon(load: Load): Promise<Outcome> {
  const packageName: string = 'autocannon'
  const autocannon = (await import(packageName).catch(cause => {
    throw new Error('neither wrk nor autocannon is here: install one of them', { cause })
  })) as { default: Autocannon }
  const prefix = freshPrefix()
  let n = 0
  const requestOf = (template: Template, id: string): object => ({
    method: template.method,
    path: fill(template.path, id, changing(n)),
    body: template.body === '' ? undefined : fill(template.body, id, changing(n)),
    headers: {
      ...(template.body === '' ? {} : { 'content-type': 'application/json' }),
      ...(load.tenant === '' ? {} : { 'fiware-service': load.tenant }),
    },
  })
  const requests = cycle(load.workload).map(index => {
    const { template, ids } = load.workload[index]!
    return {
      setupRequest: (request: object) => {
        n += 1
        const id = ids === 'new' ? newId(prefix, n) : stockId((n * stride) % stockSize)
        return { ...request, ...requestOf(template, id) }
      },
    }
  })
  const results = await Promise.all(
    load.urls.map(url =>
      autocannon.default({
        url,
        connections: Math.max(1, Math.floor(load.connections / load.urls.length)),
        duration: load.seconds,
        timeout: 10,
        requests,
      }),
    ),
  )
  const sum = (field: '2xx' | 'non2xx' | 'errors' | 'timeouts' | 'mismatches' | 'resets'): number =>
    results.reduce((total, result) => total + result[field], 0)
  refuse(load, sum('2xx'), { status: sum('non2xx'), errors: sum('errors'), timeouts: sum('timeouts') })
  const worst = (field: 'p50' | 'p99' | 'max'): number => Math.max(...results.map(result => result.latency[field]))
  return {
    requests: sum('2xx'),
    seconds: Math.max(...results.map(result => result.duration)),
    latencyMs: { p50: worst('p50'), p99: worst('p99'), max: worst('max') },
  }
}

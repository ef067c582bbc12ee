// Drives servers with a workload for some seconds: wrk with a generated Lua script, or autocannon if wrk is missing.
//
// The generator must not limit the measured rate. So requests are built once, when the script starts, as raw text, and
// sending a request only joins two or three strings. Batches are built whole, and twice, so that a repeated batch has
// other values. An answer that is not a success makes the number worthless, so one of them fails the run. wrk counts
// 400 and above; brokers do not redirect.
//
// wrk stops with a request in flight on every connection, which it does not count. If each must be accounted for, the
// run settles: at its end it sends only a light read now and then, so that all earlier requests are answered.
//
// Not here: the requests (workloads), medians and ratios (main). Several URLs share the connections evenly, a wrk
// thread each.

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hasProgram, type Place, pinned } from './machine.js'
import {
  cycle,
  entitiesOf,
  fill,
  freshPrefix,
  idHole,
  newId,
  ownValueHole,
  ownValues,
  type Step,
  stockId,
  stockSize,
  valueHole,
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
  /** Settles at the end, on top of `seconds`; needs wrk. */
  readonly settles?: boolean
}

export interface Outcome {
  /** Answered requests; all sent requests, if the run has settled. */
  readonly requests: number
  readonly seconds: number
  /** The first request, by the wall clock; NaN unless the run has settled. */
  readonly fromMs: number
  readonly latencyMs: { readonly p50: number; readonly p99: number; readonly max: number }
}

/** Coprime to the stock's size: consecutive requests meet entities far from each other, and all in turn. */
const stride = 7919

export const generatorName = hasProgram('wrk') ? 'wrk' : 'autocannon'

/** Time to settle, and pause between two reads in it: all connections have come to a read after a quarter of it. */
const settleSeconds = 1
const settleReadMs = 4
/** Distinct values that one wrk thread may use. */
const ownValuesPerThread = 10_000_000

/** Fails when a connection broke, a request timed out, or an answer was not 2xx. */
export function drive(load: Load): Promise<Outcome> {
  return generatorName === 'wrk' ? driveWrk(load) : driveAutocannon(load)
}

// JSON's escapes for the characters of a request are Lua's as well.
const lua = (text: string): string => JSON.stringify(text)

function luaScript(load: Load): string {
  const hosts = load.urls.map(url => new URL(url))
  const steps = load.workload.map(step => luaStep(step, load.tenant))
  return `
local hosts = { ${hosts.map(host => `{ ${lua(host.hostname)}, ${lua(host.port || '80')} }`).join(', ')} }
local threads = 0
local all = {}
function setup(thread)
  threads = threads + 1
  all[threads] = thread
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

math.randomseed(${Date.now() % 2 ** 31})
local function value()
  return math.random(1000, 9999)
end
local ownFrom = ${ownValues(ownValuesPerThread * load.urls.length)}
local function ownValue()
  ownFrom = ownFrom + 1
  return string.format("%.0f", ownFrom)
end

local function nextStock()
  at = (at + ${stride}) % ${stockSize}
  return string.format("%016d", at)
end

function init(args)
  for _, step in ipairs(steps) do
    if step.ids == "new" then
      step.head, step.rest = step.text:match("^(.-){ID}(.*)$")
    else
      step.ready = {}
      step.size = ${stockSize} / step.entities * (step.entities > 1 and 2 or 1)
      for i = 0, step.size - 1 do
        local text = step.text:gsub("{ID}", nextStock)
        if step.entities > 1 then text = text:gsub("{N}", value) end
        step.ready[i] = text
      end
    end
  end
  at = number * 997
  fresh = number * 10000000
  ownFrom = ownFrom + (number - 1) * ${ownValuesPerThread}
  collectgarbage()
end

function request()
  n = n + 1
  local step = steps[cycle[n % #cycle + 1]]
  local text
  if step.ready then
    at = at + 1
    text = step.ready[at % step.size]
  else
    fresh = fresh + 1
    text = step.head .. prefix .. string.format("%09d", fresh) .. step.rest
  end
  local draw = step.own and ownValue or value
  for i = 1, #step.values do text = text .. draw() .. step.values[i] end
  return text
end
${load.settles ? settling(load) : ''}
function done(summary, latency)
  local e = summary.errors
  local requests, us, fromMs = summary.requests, summary.duration, 0
  ${load.settles ? `requests, fromMs = counted() us = ${load.seconds * 1e6}` : ''}
  io.write(string.format(
    'RESULT {"requests":%d,"us":%d,"fromMs":%f,"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d,"p50":%f,"p99":%f,"max":%f}\\n',
    requests, us, fromMs, e.connect, e.read, e.write, e.status, e.timeout,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000, latency.max / 1000))
end
`
}

/**
 * Counts the requests sent in this number of seconds, and settles after them. wrk's first thread builds one request
 * before the run, which is not sent. The clock is the system's, because Lua has none that is finer than a second.
 */
const settling = (load: Load): string => `
local ffi = require("ffi")
ffi.cdef("typedef struct { long s, ns; } moment; int clock_gettime(int, moment *); int usleep(unsigned);")
local now = ffi.new("moment")
local function nowMs()
  ffi.C.clock_gettime(0, now)
  return tonumber(now.s) * 1000 + tonumber(now.ns) / 1000000
end
local build = request
fromMs, count = 0, -1
function request()
  if number > 1 and count < 0 then count = 0 end
  if count == 0 then fromMs = nowMs() end
  if count > 0 and nowMs() - fromMs > ${load.seconds * 1000} then
    ffi.C.usleep(${settleReadMs * 1000})
    return ${lua(wire({ method: 'GET', path: '/v2', body: '' }, ''))}
  end
  count = count + 1
  return build()
end
local function counted()
  local sent, first = 0, math.huge
  for _, thread in ipairs(all) do
    sent = sent + thread:get("count")
    first = math.min(first, thread:get("fromMs"))
  end
  return sent, first
end
`

/**
 * One entity's {N} or {U} are filled when the request is sent: `values` are the texts after each. A batch is filled
 * before.
 */
function luaStep({ template, ids }: Step, tenant: string): string {
  const text = wire(template, tenant)
  const entities = entitiesOf(template)
  if (entities > 1 && ids === 'new') throw new Error('a batch is about entities of the stock')
  const own = text.includes(ownValueHole)
  const [before, ...values] = entities > 1 ? [text] : text.split(own ? ownValueHole : valueHole)
  if (values.some(after => after.includes(idHole))) throw new Error('every {ID} stands before the first value')
  return `{ ids = ${lua(ids)}, own = ${own}, entities = ${entities}, text = ${lua(before!)}, values = { ${values.map(lua).join(', ')} } }`
}

async function driveWrk(load: Load): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), 'orrery-bench-'))
  try {
    const script = join(folder, 'workload.lua')
    writeFileSync(script, luaScript(load))
    const seconds = load.seconds + (load.settles ? settleSeconds : 0)
    const args = ['-t', String(load.urls.length), '-c', String(load.connections), '-d', `${seconds}s`]
    const said = await output(...pinned(load.place, 'wrk', [...args, '--timeout', '10s', '-s', script, load.urls[0]!]))
    const line = /^RESULT (.*)$/m.exec(said)?.[1]
    if (line === undefined) throw new Error(`wrk gave no result:\n${said}`)
    const { us, requests, fromMs, p50, p99, max, ...errors } = JSON.parse(line) as Record<string, number>
    refuse(load, requests!, errors)
    return {
      requests: requests!,
      seconds: us! / 1e6,
      fromMs: fromMs || Number.NaN,
      latencyMs: { p50: p50!, p99: p99!, max: max! },
    }
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

/** The used part of autocannon. It is loaded by name and only when needed, because it may not be installed. */
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
  if (load.settles) throw new Error('a run that shall settle needs wrk')
  const packageName: string = 'autocannon'
  const autocannon = (await import(packageName).catch(cause => {
    throw new Error('neither wrk nor autocannon is here: install one of them', { cause })
  })) as { default: Autocannon }
  const prefix = freshPrefix()
  let n = 0
  const nextId = {
    stock: () => stockId((n++ * stride) % stockSize),
    new: () => newId(prefix, n++),
  } as const
  const requestOf = ({ template, ids }: Step): object => ({
    method: template.method,
    path: fill(template.path, nextId[ids]),
    body: template.body === '' ? undefined : fill(template.body, nextId[ids]),
    headers: {
      ...(template.body === '' ? {} : { 'content-type': 'application/json' }),
      ...(load.tenant === '' ? {} : { 'fiware-service': load.tenant }),
      ...(template.servicePath === undefined ? {} : { 'fiware-servicepath': template.servicePath }),
      ...(template.authorization === undefined ? {} : { authorization: template.authorization }),
    },
  })
  const requests = cycle(load.workload).map(index => {
    const step = load.workload[index]!
    return { setupRequest: (request: object) => ({ ...request, ...requestOf(step) }) }
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
    fromMs: Number.NaN,
    latencyMs: { p50: worst('p50'), p99: worst('p99'), max: worst('max') },
  }
}

// Access control: what it costs a request, and what a large access file costs at a start.
//
// Three brokers run side by side: one without an access file, one with rules that allow everything, one with rules that
// narrow types and attributes. Only one of them has work at a time. All get the same bytes: the broker without an access
// file receives the key or token too, and ignores it. The speed of a machine may change within a minute, so a ratio is
// that of turns close to each other: each round has a turn for each way of asking, and the same turns again in the
// opposite order, and the bench takes medians of the ratios of rounds.
//
// A large file is compared with a small one: starts by turns, memory after them, and the time from SIGHUP to the line
// in the log. Memory is compared after some seconds of requests: the first thousands of them make the young generation
// of the heap as large as reading a large file does.
//
// Not here: a broker before and after a change (`--against`).

import { randomBytes } from 'node:crypto'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { keyHash, newKey } from '../src/access/keys.js'
import { drive } from './generator.js'
import { loadStock } from './loader.js'
import { cpuSeconds, residentBytes } from './machine.js'
import type { RateOptions } from './rate-options.js'
import { atLeast, atMost, type Finding, information, median, progress, rate, thousands } from './report.js'
import { type Server, type Subject, start } from './servers.js'
import { authorized, lists, reads, stockSize, updates, upserts, type Workload } from './workloads.js'

const needed = { allowed: 0.97, narrowed: 0.9, fileMs: 200, fileMb: 20 }

const workloads: readonly (readonly [name: string, workload: Workload])[] = [
  ['get', reads],
  ['update', updates],
  ['list', lists],
]

const probe = '/health/ready'

/** The load before memory is read. */
const connectionsServed = 8
const secondsServed = 2

export interface AccessOptions extends RateOptions {
  /** Of the large access file. */
  readonly keys: number
  readonly roles: number
  /** Timed starts with each file. */
  readonly starts: number
}

/** A way of asking: a broker, and the proof that a client shows. */
interface Way {
  readonly name: string
  readonly server: Server
  readonly proof: string
}

/** A way of asking, with the one to compare it with: the same bytes, to a broker without access control. */
interface JudgedWay extends Way {
  readonly base: Way
  readonly needed: number
}

interface Turns {
  requests: number
  seconds: number
  cpu: number
}

export async function access(options: AccessOptions): Promise<Finding[]> {
  const folder = join(options.folder, 'access')
  mkdirSync(folder)
  const findings = [...(await costOfRequests(options, folder)), ...(await costOfFile(options, folder))]
  rmSync(folder, { recursive: true })
  return findings
}

async function costOfRequests(options: AccessOptions, folder: string): Promise<Finding[]> {
  const { subject, seconds, rounds, warmUpSeconds, connections } = options
  const { key, root, token, files } = await writeFiles(folder)
  const started = (name: string, args: readonly string[]): Promise<Server> =>
    start(subject, join(folder, name), 'server', { probe, args })
  const servers = {
    open: await started('open', []),
    allowed: await started('allowed', ['-access', files.allowed]),
    narrowed: await started('narrowed', ['-access', files.narrowed]),
  }
  const openKey: Way = { name: 'key', server: servers.open, proof: key }
  const openToken: Way = { name: 'token', server: servers.open, proof: token }
  const ways: readonly JudgedWay[] = [
    { name: 'key', server: servers.allowed, proof: key, base: openKey, needed: needed.allowed },
    { name: 'remembered token', server: servers.allowed, proof: token, base: openToken, needed: needed.allowed },
    { name: 'narrowed', server: servers.narrowed, proof: key, base: openKey, needed: needed.narrowed },
  ]
  const all: readonly Way[] = [openKey, openToken, ...ways]
  const [{ template }] = authorized(upserts, root) as [Workload[number]]
  for (const { url } of Object.values(servers)) await loadStock([url], template, '', stockSize)

  const turnOf = async ({ server, proof }: Way, workload: Workload, turnSeconds: number, sum: Turns): Promise<void> => {
    const cpuBefore = cpuSeconds(server.pid)
    const outcome = await drive({
      urls: [server.url],
      workload: authorized(workload, proof),
      connections,
      tenant: '',
      place: 'generator',
      seconds: turnSeconds,
    })
    sum.requests += outcome.requests
    sum.seconds += outcome.seconds
    sum.cpu += cpuSeconds(server.pid) - cpuBefore
  }

  // Short turns are as good as long ones here, and closer to each other.
  const turnSeconds = Math.max(1, Math.round(seconds / 3))
  const findings: Finding[] = []
  for (const [name, workload] of workloads) {
    const found = new Map(ways.map(way => [way, { perSecond: [] as number[], perCpuSecond: [] as number[] }]))
    const rates: number[] = []
    for (const way of all) await turnOf(way, workload, warmUpSeconds, { requests: 0, seconds: 0, cpu: 0 })
    for (let round = 1; round <= 2 * rounds + 1; round++) {
      const there = [...all.slice(round % all.length), ...all.slice(0, round % all.length)]
      const sums = new Map(there.map(way => [way, { requests: 0, seconds: 0, cpu: 0 }]))
      for (const way of [...there, ...there.toReversed()]) await turnOf(way, workload, turnSeconds, sums.get(way)!)
      for (const way of ways) {
        const [mine, base] = [sums.get(way)!, sums.get(way.base)!]
        const { perSecond, perCpuSecond } = found.get(way)!
        perSecond.push(mine.requests / mine.seconds / (base.requests / base.seconds))
        perCpuSecond.push(mine.requests / mine.cpu / (base.requests / base.cpu))
      }
      const open = sums.get(openKey)!
      rates.push(open.requests / open.seconds)
      progress(
        `round ${round}, ${name}: ${thousands(rates.at(-1)!)}/s without; of that ` +
          ways.map(way => `${way.name} ${found.get(way)!.perSecond.at(-1)!.toFixed(3)}`).join(', '),
      )
    }
    findings.push(information(`${name} without access control, per second`, rate(rates)))
    for (const way of ways) {
      const { perSecond, perCpuSecond } = found.get(way)!
      const share = median(perSecond)
      findings.push(
        atLeast(
          `  ${way.name}`,
          `${shareText(perSecond)}; per CPU second ${shareText(perCpuSecond)}`,
          share,
          way.needed,
        ),
      )
    }
  }
  for (const server of Object.values(servers)) await server.stop()
  return findings
}

const shareText = (values: readonly number[]): string =>
  `${median(values).toFixed(3)} (${Math.min(...values).toFixed(3)} to ${Math.max(...values).toFixed(3)})`

/** Access files for a client with a key and a token, which `root` is not: it stores the entities. */
async function writeFiles(folder: string): Promise<{
  readonly key: string
  readonly root: string
  readonly token: string
  readonly files: { readonly allowed: string; readonly narrowed: string }
}> {
  const [key, root] = [newKey(), newKey()]
  const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true })
  const jwk = { ...(await exportJWK(publicKey)), kid: 'bench', alg: 'RS256', use: 'sig' }
  writeFileSync(join(folder, 'jwks.json'), JSON.stringify({ keys: [jwk] }))
  const issuer = 'https://id.example.org/realms/bench'
  // As large as those of a usual issuer.
  const claims = { realm_access: { roles: ['client'] }, session: randomBytes(200).toString('hex') }
  const token = await new SignJWT(claims)
    .setProtectedHeader({ alg: 'RS256', kid: 'bench' })
    .setIssuer(issuer)
    .setAudience('orrery')
    .setSubject('bench')
    .setExpirationTime('1d')
    .sign(privateKey)
  const write = (name: string, rules: readonly object[]): string => {
    const file = {
      keys: [
        { name: 'client', sha256: keyHash(key), roles: ['client'] },
        { name: 'root', sha256: keyHash(root), roles: ['root'] },
      ],
      issuers: [
        {
          issuer,
          audience: 'orrery',
          jwksFile: 'jwks.json',
          algorithms: ['RS256'],
          roles: { claim: 'realm_access.roles', map: { client: 'client' } },
        },
      ],
      roles: { client: rules, root: [{ actions: ['*'], tenants: ['*'] }] },
    }
    const path = join(folder, name)
    writeFileSync(path, JSON.stringify(file))
    return path
  }
  const files = {
    allowed: write('allowed.json', [{ actions: ['*'] }]),
    narrowed: write('narrowed.json', [
      { actions: ['read', 'update'], types: ['Sensor', 'Meter'], attributes: ['*', '!humidity'] },
      { actions: ['read'], types: ['Lamp'], paths: ['/north/#'] },
    ]),
  }
  return { key, root, token, files }
}

async function costOfFile({ subject, keys, roles, starts }: AccessOptions, folder: string): Promise<Finding[]> {
  const sizes = { small: writeLarge(folder, 1, 1), large: writeLarge(folder, keys, roles) }
  const found = {
    small: { startMs: [] as number[], megabytes: [] as number[] },
    large: { startMs: [] as number[], megabytes: [] as number[] },
  }
  const reloadMs: number[] = []
  for (let nth = 1; nth <= starts; nth++)
    for (const size of ['small', 'large'] as const) {
      const reader = await startReader(subject, join(folder, size), sizes[size])
      found[size].startMs.push(reader.server.answeredMs)
      await reader.serve()
      found[size].megabytes.push(residentBytes(reader.server.pid).now / 1e6)
      if (size === 'large') reloadMs.push(await reader.reload(), await reader.reload())
      await reader.server.stop()
    }
  const startMs = median(found.large.startMs) - median(found.small.startMs)
  const megabytes = median(found.large.megabytes) - median(found.small.megabytes)
  const what = `${thousands(keys)} keys and ${thousands(roles)} roles`
  progress(`starts with the small file: ${found.small.startMs.map(ms => ms.toFixed(0)).join(', ')} ms`)
  progress(`starts with the large file: ${found.large.startMs.map(ms => ms.toFixed(0)).join(', ')} ms`)
  return [
    atMost(`${what}: start`, `${startMs.toFixed(0)} ms more`, startMs, needed.fileMs, 'ms'),
    atMost(`${what}: reload`, `${median(reloadMs).toFixed(0)} ms`, median(reloadMs), needed.fileMs, 'ms'),
    atMost(`${what}: memory`, `${megabytes.toFixed(1)} MB more`, megabytes, needed.fileMb, 'MB'),
  ]
}

function writeLarge(folder: string, keys: number, roles: number): string {
  const named = (nth: number): string => `role-${nth % roles}`
  const file = {
    keys: Array.from({ length: keys }, (_, nth) => ({
      name: `gateway-${nth}`,
      sha256: randomBytes(32).toString('hex'),
      roles: [named(nth)],
      expires: '2099-01-01T00:00:00Z',
    })),
    roles: Object.fromEntries(
      Array.from({ length: roles }, (_, nth) => [
        named(nth),
        [
          {
            actions: ['create', 'update'],
            tenants: [`city${nth}`],
            paths: [`/district${nth}/#`],
            types: ['Meter', 'Lamp'],
          },
          { actions: ['read'], tenants: [`city${nth}`], attributes: ['*', '!cost'] },
        ],
      ]),
    ),
  }
  const path = join(folder, `${keys}-keys.json`)
  writeFileSync(path, JSON.stringify(file, undefined, 1))
  return path
}

/** A broker, with the time from SIGHUP to the line that its access file is in use. */
async function startReader(
  subject: Subject,
  dataDir: string,
  file: string,
): Promise<{ readonly server: Server; serve(): Promise<void>; reload(): Promise<number> }> {
  let onReload = (): void => {}
  const server = await start(subject, dataDir, 'server', {
    probe,
    args: ['-access', file, '-logLevel', 'INFO'],
    onLine: line => {
      if (line.includes('access: the file ')) onReload()
    },
  })
  return {
    server,
    serve: async () => {
      await drive({
        urls: [server.url],
        workload: [{ template: { method: 'GET', path: probe, body: '' }, ids: 'stock', weight: 1 }],
        connections: connectionsServed,
        tenant: '',
        place: 'generator',
        seconds: secondsServed,
      })
    },
    reload: async () => {
      const from = performance.now()
      const isDone = new Promise<void>(done => {
        onReload = done
      })
      process.kill(server.pid, 'SIGHUP')
      await isDone
      return performance.now() - from
    },
  }
}

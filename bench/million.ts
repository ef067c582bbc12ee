// A million entities on one node: the memory that they take, and the time until a node on that directory answers again.
//
// Memory is the resident set of the process, after the load and again after reads all over the key space. Start-up is
// timed from the start of the process to its ready line and to the first entity it returns: after SIGTERM, and after
// SIGKILL while creates were being acknowledged. The entities acknowledged before the kill must still be there: a fast
// start that lost something would be worth nothing, so that is checked here too. The page cache is warm: power loss is
// not simulated.
//
// Not pinned to a core, unlike the rates: these numbers are those of a user.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { load } from './loader.js'
import { residentBytes } from './machine.js'
import { answers, type Server, type Subject, start } from './servers.js'
import { entityBody, freshPrefix, newId, requestsOf } from './workloads.js'

export interface MillionResult {
  readonly count: number
  readonly loadSeconds: number
  readonly afterLoad: { readonly now: number; readonly peak: number }
  readonly afterReads: { readonly now: number; readonly peak: number }
  readonly afterRestart: { readonly now: number; readonly peak: number }
  readonly clean: readonly Start[]
  readonly killed: readonly Start[]
}

export interface Start {
  readonly readyMs: number
  readonly answeredMs: number
}

export interface MillionOptions {
  readonly subject: Subject
  readonly folder: string
  readonly count: number
  /** Number of timed starts of each kind. */
  readonly starts: number
  readonly say: (line: string) => void
}

const body = entityBody(300)
const create = { method: 'POST', path: '/v2/entities', body } as const
const readsSample = 50_000
const writingMs = 1500
/** Of the entities acknowledged before a kill, the newest are the ones at risk. */
const checkedMax = 2000

const numbered = (prefix: string) => (n: number) => newId(prefix, n)
const pathOf = (id: string): string => `/v2/entities/urn:sensor:${id}`

export async function million({ subject, folder, count, starts, say }: MillionOptions): Promise<MillionResult> {
  const dataDir = join(folder, `million-${subject.name}`)
  rmSync(dataDir, { recursive: true, force: true })
  const idOf = numbered(freshPrefix())
  const probe = pathOf(idOf(0))

  let server: Server = await start(subject, dataDir, 'anywhere')
  const from = performance.now()
  await load({
    urls: [server.url],
    request: requestsOf(create, '', idOf),
    count,
    onAcknowledged: n => {
      if (n % 100_000 === 99_999) say(`${n + 1} entities after ${((performance.now() - from) / 1000).toFixed(0)} s`)
    },
  })
  const loadSeconds = (performance.now() - from) / 1000
  const afterLoad = residentBytes(server.pid)

  await load({
    urls: [server.url],
    request: requestsOf({ method: 'GET', path: pathOf('{ID}'), body: '' }, '', n => idOf((n * 7919) % count)),
    count: Math.min(readsSample, count),
  })
  const afterReads = residentBytes(server.pid)

  const clean: Start[] = []
  for (let n = 0; n < starts; n++) {
    await server.stop()
    server = await start(subject, dataDir, 'anywhere', { probe })
    clean.push({ readyMs: server.readyMs, answeredMs: server.answeredMs })
  }
  const afterRestart = residentBytes(server.pid)

  const killed: Start[] = []
  for (let n = 0; n < starts; n++) {
    const prefix = freshPrefix()
    const acknowledged = await killWhileWriting(server, prefix)
    server = await start(subject, dataDir, 'anywhere', { probe })
    killed.push({ readyMs: server.readyMs, answeredMs: server.answeredMs })
    const lost: number[] = []
    for (const entity of acknowledged.slice(-checkedMax)) {
      if (!(await answers(server.url + pathOf(newId(prefix, entity))))) lost.push(entity)
    }
    if (lost.length > 0) throw new Error(`kill -9 lost ${lost.length} acknowledged entities, ${lost[0]} among them`)
    say(`kill -9 after ${acknowledged.length} creates under load: nothing acknowledged is missing`)
  }
  await server.stop()
  rmSync(dataDir, { recursive: true })
  return { count, loadSeconds, afterLoad, afterReads, afterRestart, clean, killed }
}

/** Returns the acknowledged entities, in the order of their acknowledgement. */
async function killWhileWriting(server: Server, prefix: string): Promise<number[]> {
  const acknowledged: number[] = []
  let killing = false
  const writing = load({
    urls: [server.url],
    request: requestsOf(create, '', numbered(prefix)),
    count: Number.POSITIVE_INFINITY,
    onAcknowledged: n => acknowledged.push(n),
  }).catch(error => {
    // The connections break when the server is killed: that is the point.
    if (!killing) throw error
  })
  await Promise.race([writing, delay(writingMs)])
  killing = true
  await server.kill()
  await writing
  if (acknowledged.length === 0) throw new Error('nothing was acknowledged before the kill')
  return acknowledged
}

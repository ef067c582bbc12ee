// A server under test: started on its own data directory, known by its process id, stopped or killed.
//
// Ready means two things, and both are timed: the first line on stdout, and the first request answered. All processes
// that this module has started die with the bench, also when the bench fails or is interrupted: a server leads a group,
// in which all processes that it has started die with it.

import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { request } from 'node:http'
import { createServer } from 'node:net'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Place, pinned } from './machine.js'

/** A program that can be started. */
export interface Subject {
  readonly name: string
  readonly script: string
  /** Whether it is more than a bare server: it knows PATCH and lists. */
  readonly isBroker: boolean
}

const atRoot = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))

export const bare: Subject = { name: 'bare', script: atRoot('dist/bench/bare-server.js'), isBroker: false }

/** A broker by the path of its main.js; by default the one of this checkout. Undefined when it is not built. */
export function broker(name: string, path?: string): Subject | undefined {
  const script = path === undefined ? atRoot('dist/program/main.js') : resolve(path)
  if (!existsSync(script)) {
    if (path !== undefined) throw new Error(`${script} does not exist`)
    return undefined
  }
  return { name, script, isBroker: true }
}

export interface Server {
  readonly subject: Subject
  readonly pid: number
  readonly url: string
  /** Milliseconds from the start of the process to its first line on stdout. */
  readonly readyMs: number
  /** Milliseconds from the start of the process to the first 2xx for the probed path. */
  readonly answeredMs: number
  /** Sends SIGTERM, and waits for the end. Fails unless the server ends well. */
  stop(): Promise<void>
  /** Sends SIGKILL to the server and to all processes that it has started, and waits for the end. */
  kill(): Promise<void>
}

const startMsMax = 60_000
const stopMsMax = 60_000
const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) killGroup(child)
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

export interface StartOptions {
  /** The path that must be answered with 2xx. */
  readonly probe?: string
  /** By default a free port. */
  readonly port?: number
  /** Further options for the command line; the last one of a name counts. */
  readonly args?: readonly string[]
  /** Called with every line on stdout. */
  readonly onLine?: (line: string) => void
}

/** Starts a subject on a directory; returns when it has answered `probe` with 2xx. */
export async function start(
  subject: Subject,
  dataDir: string,
  place: Place,
  { probe = '/v2', port: wanted, args: further = [], onLine }: StartOptions = {},
): Promise<Server> {
  const port = wanted ?? (await freePort())
  const url = `http://127.0.0.1:${port}`
  const args = [subject.script, '-port', String(port), '-dataDir', dataDir, '-durability', 'sync', ...further]
  const from = performance.now()
  const child = spawn(...pinned(place, process.execPath, args), { stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  running.add(child)
  let said = ''
  let readyMs = Number.NaN
  const ended = new Promise<number | NodeJS.Signals | null>(end =>
    child.once('exit', (code, signal) => {
      running.delete(child)
      end(code ?? signal)
    }),
  )
  child.stdout.on('data', (chunk: Buffer) => {
    if (Number.isNaN(readyMs)) readyMs = performance.now() - from
    said = (said + chunk).slice(-4000)
  })
  if (onLine) createInterface({ input: child.stdout }).on('line', onLine)
  child.stderr.on('data', (chunk: Buffer) => {
    said = (said + chunk).slice(-4000)
  })

  while (!(Number.isFinite(readyMs) && (await answers(url + probe)))) {
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`${subject.name} ended at start:\n${said}`)
    if (performance.now() - from > startMsMax) {
      throw new Error(`${subject.name} does not answer GET ${probe} ${startMsMax} ms after its start:\n${said}`)
    }
    await delay(1)
  }
  const answeredMs = performance.now() - from

  return {
    subject,
    pid: child.pid!,
    url,
    readyMs,
    answeredMs,
    async stop() {
      child.kill('SIGTERM')
      const late = setTimeout(() => killGroup(child), stopMsMax)
      const outcome = await ended
      clearTimeout(late)
      if (outcome !== 0) throw new Error(`${subject.name} ended with ${outcome}:\n${said}`)
    },
    async kill() {
      killGroup(child)
      await ended
    },
  }
}

function killGroup({ pid }: ChildProcess): void {
  try {
    process.kill(-pid!, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** Whether a GET is answered with 2xx. */
export function answers(url: string, headers: Record<string, string> = {}): Promise<boolean> {
  return new Promise(resolve => {
    const asking = request(url, { agent: false, headers, timeout: 5000 }, response => {
      response.resume()
      response.once('close', () => resolve(response.statusCode! >= 200 && response.statusCode! < 300))
    })
    asking.once('error', () => resolve(false))
    asking.once('timeout', () => asking.destroy())
    asking.end()
  })
}

/** A port on which no program listens now. */
export function freePort(): Promise<number> {
  return new Promise((found, failed) => {
    const server = createServer()
    server.once('error', failed)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => found((address as { port: number }).port))
    })
  })
}

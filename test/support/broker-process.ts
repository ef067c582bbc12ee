// One running broker, as the outside world has it: a process, a port, a data directory.
//
// `startBroker` resolves when the program has printed its ready line and accepts connections. If the program does
// neither in time, or ends before, the error carries all that it printed. Every child is killed when its test ends, and
// all children when the test process ends, unless by kill -9. The child leads a process group, so that a wrapper
// (strace) and the wrapped program end together. With `sharesGroup` it stays in the group of its parent, and ends with
// the parent.
//
// Every wait here is for an event (a line, a connection, an exit) and has a bound. The pauses between two attempts to
// connect are the only timers.

import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { countKilled } from './processor-time.js'
import { main } from './project.js'

/** The line on standard output by which the program reports that it can be used. Printed once. */
export const readyLine = /\bis ready\b/

export interface BrokerOptions {
  /** When absent, an empty one is made, and removed at teardown. */
  readonly dataDir?: string
  /** Start options besides -port and -dataDir. */
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** When absent, a free one is chosen. */
  readonly port?: number
  /** Words before the command, such as `strace -f`. */
  readonly wrapper?: readonly string[]
  /** A main.js other than the project's. */
  readonly main?: string
  /** A Node.js other than the one that runs the test. */
  readonly node?: string
  readonly readyWaitMs?: number
  /** The child stays in the process group of its parent, for parents whose group is killed as a whole. */
  readonly sharesGroup?: boolean
}

export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** The part of a test that is used here: it runs a function when the test is over. */
export interface Teardown {
  teardown(run: () => unknown): void
}

export class BrokerProcess {
  readonly baseUrl: string
  readonly exited: Promise<Exit>
  #stdout = ''
  #stderr = ''
  #gone = false

  constructor(
    readonly child: ChildProcess,
    readonly port: number,
    readonly dataDir: string,
    private readonly leadsGroup = true,
  ) {
    this.baseUrl = `http://127.0.0.1:${port}`
    alive.add(this)
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text
    })
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text
    })
    this.exited = new Promise(resolve => {
      const end = (code: number | null, signal: NodeJS.Signals | null) => {
        this.#gone = true
        alive.delete(this)
        resolve({ code, signal, stdout: this.#stdout, stderr: this.#stderr })
      }
      child.once('error', error => {
        this.#stderr += `${error.message}\n`
        end(null, null)
      })
      child.once('close', end)
    })
  }

  /** Its processes: the one that was started, and the children of that one. */
  get processes(): readonly number[] {
    const { pid } = this.child
    if (this.#gone || pid === undefined) return []
    try {
      const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
      return [
        pid,
        ...children
          .split(' ')
          .filter(word => word !== '')
          .map(Number),
      ]
    } catch {
      return []
    }
  }

  get stdout(): string {
    return this.#stdout
  }

  get stderr(): string {
    return this.#stderr
  }

  /** Returns the output since the last call and forgets it, for runs that print more than a string can hold. */
  takeOutput(): string {
    const printed = this.#stdout
    this.#stdout = ''
    return printed
  }

  get gone(): boolean {
    return this.#gone
  }

  /** Sends a signal to the process and, if it leads a group, to the group; resolves when the process has ended. */
  kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<Exit> {
    this.signal(signal)
    return this.exited
  }

  /** Sends a signal and does not wait. */
  signal(signal: NodeJS.Signals): void {
    if (this.#gone || this.child.pid === undefined) return
    if (signal === 'SIGKILL') countKilled(this.processes.slice(1))
    try {
      process.kill(this.leadsGroup ? -this.child.pid : this.child.pid, signal)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }

  /** Resolves with the exit if it comes within `waitMs`; otherwise rejects with the output so far. */
  async exitWithin(waitMs: number): Promise<Exit> {
    const exit = await within(waitMs, this.exited)
    if (!exit) throw new Error(`the broker still runs after ${waitMs} ms\n${this.printed()}`)
    return exit
  }

  printed(): string {
    return `--- stdout\n${this.#stdout}\n--- stderr\n${this.#stderr}`
  }
}

/**
 * A command that runs without tap inside. tap loads itself into every Node process by NODE_OPTIONS, which it adds to
 * any environment that `spawn` gets. That costs a second of processor time per process. `env` becomes the command, so
 * the process id stays.
 */
export const plainly = (words: readonly string[]): readonly [command: string, words: readonly string[]] => [
  'env',
  ['-u', 'NODE_OPTIONS', ...words],
]

/** Starts the built program and waits until it can be used. */
export async function startBroker(t: Teardown, options: BrokerOptions = {}): Promise<BrokerProcess> {
  const broker = await spawnBroker(t, options)
  await untilReady(broker, options.readyWaitMs ?? 60_000)
  return broker
}

/** Starts the built program and does not wait, for tests that expect a refusal to start. */
export async function spawnBroker(t: Teardown, options: BrokerOptions = {}): Promise<BrokerProcess> {
  const port = options.port ?? (await freePort())
  const dataDir = options.dataDir ?? tempDir(t)
  const program = [options.node ?? process.execPath, options.main ?? main, '-port', String(port), '-dataDir', dataDir]
  const words = [...(options.wrapper ?? []), ...program, ...(options.args ?? [])]
  const leadsGroup = options.sharesGroup !== true
  const child = spawn(...plainly(words), {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: leadsGroup,
    env: { ...process.env, ...options.env },
  })
  const broker = new BrokerProcess(child, port, dataDir, leadsGroup)
  t.teardown(() => broker.kill('SIGKILL'))
  return broker
}

/** Runs the program with `args` alone until it ends. */
export async function runToEnd(
  t: Teardown,
  args: readonly string[],
  waitMs = 60_000,
  node = process.execPath,
): Promise<Exit> {
  const options: SpawnOptions = { stdio: ['ignore', 'pipe', 'pipe'], detached: true }
  const child = spawn(...plainly([node, main, ...args]), options)
  const broker = new BrokerProcess(child, 0, '')
  t.teardown(() => broker.kill('SIGKILL'))
  return broker.exitWithin(waitMs)
}

/** Whether the port is free now. */
export const listensNobody = (port: number): Promise<boolean> =>
  freePort(port).then(
    () => true,
    () => false,
  )

/** A free port, kept for this process. Rejects when `wanted` is given and is not free. */
export async function freePort(wanted?: number): Promise<number> {
  for (;;) {
    const port = wanted ?? portsFrom + randomInt(portsCount)
    if (wanted === undefined && !keep(port)) continue
    const error = await listens(port)
    if (!error) return port
    if (wanted !== undefined || error.code !== 'EADDRINUSE') throw error
  }
}

/** A file for each port that a test process has chosen, with the id of the process. */
const keptPorts = join(tmpdir(), 'orrery-test-ports')
/** The files of this process. */
const kept = new Set<string>()

/**
 * Keeps a port until this process ends: test files run side by side, and a node of a cluster listens seconds after its
 * port was chosen. Returns false when another process or this one keeps it already.
 */
function keep(port: number): boolean {
  const file = join(keptPorts, String(port))
  mkdirSync(keptPorts, { recursive: true })
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    if (!isLeft(file)) return false
    writeFileSync(file, String(process.pid))
  }
  kept.add(file)
  return true
}

/** Whether the process that made a file has ended without removing it. */
function isLeft(file: string): boolean {
  try {
    process.kill(Number(readFileSync(file, 'utf8')), 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

/** Ports that the system does not assign: an assigned one could go to a connection before the broker listens. */
const portsFrom = 10_000
const portsCount = 10_000

/** The error of listening at a port; undefined when the port is free. */
function listens(port: number): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', resolve)
    server.listen(port, () => server.close(() => resolve(undefined)))
  })
}

/** An empty directory that is removed when the test ends. */
export function tempDir(t: Teardown): string {
  const dir = mkdtempSync(join(tmpdir(), 'orrery-test-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

/** Whether a server accepts connections on this port. */
export function accepts(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect({ port, host: '127.0.0.1' })
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

/** The value of `promise`, or undefined when that takes longer than `waitMs`. */
export async function within<T>(waitMs: number, promise: Promise<T>): Promise<T | undefined> {
  const bound = new AbortController()
  const late = pause(waitMs, undefined, { signal: bound.signal }).catch(() => undefined)
  try {
    return await Promise.race([promise, late])
  } finally {
    bound.abort()
  }
}

/** Resolves when the broker can be used; a broker that is not ready in time is killed. */
export async function untilReady(broker: BrokerProcess, waitMs: number): Promise<void> {
  const deadlineMs = performance.now() + waitMs
  while (!(readyLine.test(broker.stdout) && (await accepts(broker.port)))) {
    const why = broker.gone ? 'ended before it was ready' : `was not ready within ${waitMs} ms`
    if (broker.gone || performance.now() > deadlineMs) {
      await broker.kill('SIGKILL')
      throw new Error(`the broker ${why}\n${broker.printed()}`)
    }
    await pause(5)
  }
}

const alive = new Set<BrokerProcess>()
const killAll = () => {
  for (const broker of alive) broker.signal('SIGKILL')
}
process.on('exit', () => {
  killAll()
  for (const file of kept) rmSync(file, { force: true })
})
process.prependOnceListener('SIGTERM', killAll)
process.prependOnceListener('SIGINT', killAll)

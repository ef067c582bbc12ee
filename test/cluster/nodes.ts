// Nodes for tests over real gRPC and bare sockets: in this process, or in one of their own.

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer, connect as dial, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import {
  type AskHost,
  type AskOptions,
  type Asks,
  type Outcome,
  type Peer,
  startAsks,
  type TransportOptions,
} from '../../cluster/index.js'
import { systemClock } from '../../src/clock.js'
import type { NodeReport, Setting } from './node-main.js'

/** The bound of every wait. */
const waitMsMax = 20_000

/** A directory for unix sockets, until the test ends. */
export function socketDirectory(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'asks-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

/** Addresses for a node that listens for calls over gRPC: a unix socket or a port of its own. */
export const callAddresses = {
  'a unix socket': (t: Test, name: string) => `unix:${join(socketDirectory(t), name)}`,
  TCP: () => '127.0.0.1:0',
} as const

/** Addresses for a node that listens for asks: these, or a unix socket without gRPC. */
export const addresses = {
  ...callAddresses,
  'a bare socket': (t: Test, name: string) => `socket:${join(socketDirectory(t), name)}`,
} as const

/** A host that replies with the request. */
export const echo: AskHost = { onAsk: (_shard, request, onReply) => onReply(request) }

let lives = 0

/** A node in this process, until the test ends. */
export async function startNode(
  t: Test,
  self: Peer,
  peers: readonly Peer[],
  host: AskHost = echo,
  options: Partial<AskOptions> = {},
  transport: TransportOptions = {},
): Promise<Asks> {
  const asks = await startAsks(self, `life ${process.pid}/${lives++}`, peers, host, systemClock, options, transport)
  t.teardown(() => asks.close())
  return asks
}

/** Resolves when a node can be reached, or (`up` false) no longer. */
export async function untilLink(asks: Asks, node: string, up = true): Promise<void> {
  if (asks.reachable(node) === up) return
  await inTime(`${node} is ${up ? 'up' : 'down'}`, resolve => {
    asks.onChange((other, now) => other === node && now === up && resolve(undefined))
  })
}

export function ask(asks: Asks, node: string, shard: number, request: string | Buffer): Promise<Outcome> {
  return inTime(`the outcome of an ask`, resolve => asks.ask(node, shard, Buffer.from(request), resolve))
}

/** A node in a process of its own. */
export class NodeProcess {
  /** Requests that its host has begun. */
  readonly begun: string[] = []
  readonly child: ChildProcess
  private address = ''
  private readonly watchers = new Set<() => void>()

  private constructor(t: Test) {
    this.child = fork(fileURLToPath(new URL('./node-main.js', import.meta.url)))
    t.teardown(() => this.kill())
    this.child.on('message', message => {
      const said = message as NodeReport
      if ('listening' in said) this.address = said.listening
      else if ('begun' in said) this.begun.push(said.begun)
      for (const watcher of this.watchers) watcher()
    })
  }

  static async start(t: Test, setting: Omit<Setting, 'incarnation'>): Promise<NodeProcess> {
    const node = new NodeProcess(t)
    node.child.send({ ...setting, incarnation: `life ${process.pid}/${lives++}` } satisfies Setting)
    await node.until('listening', () => node.address !== '')
    return node
  }

  get peer(): string {
    return this.address
  }

  /** Resolves when a report of the node makes `holds` true. */
  until(what: string, holds: () => boolean): Promise<void> {
    return inTime(what, resolve => {
      const watcher = (): void => {
        if (!holds()) return
        this.watchers.delete(watcher)
        resolve(undefined)
      }
      this.watchers.add(watcher)
      watcher()
    })
  }

  async kill(): Promise<void> {
    const { child } = this
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }
}

/** The number of open files of this process: sockets, most of them. */
export function openFiles(): number {
  return readdirSync('/proc/self/fd').length
}

/** A wire between two nodes that the test can cut, or clog in one direction. */
export class Wire {
  readonly address: string
  /** The number of connections made over it. */
  dialed = 0
  private readonly pairs: Set<readonly [dialed: Socket, listening: Socket]>

  private constructor(address: string, pairs: Set<readonly [Socket, Socket]>) {
    this.address = address
    this.pairs = pairs
  }

  /** A wire to a port of this machine. */
  static async to(t: Test, target: string): Promise<Wire> {
    const pairs = new Set<readonly [Socket, Socket]>()
    const server = createServer(near => {
      wire.dialed++
      const far = dial(Number(target.split(':')[1]), '127.0.0.1')
      const pair = [near, far] as const
      pairs.add(pair)
      for (const [from, to] of [pair, [far, near] as const]) {
        from.pipe(to)
        from.on('error', () => {})
        from.on('close', () => {
          pairs.delete(pair)
          to.destroy()
        })
      }
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => {
      for (const [near, far] of pairs) for (const socket of [near, far]) socket.destroy()
      server.close()
    })
    const address = server.address()
    const port = typeof address === 'object' ? address?.port : undefined
    const wire = new Wire(`127.0.0.1:${port}`, pairs)
    return wire
  }

  /** Resolves when no connection is left. */
  untilEmpty(): Promise<void> {
    return inTime('the end of all connections', resolve => {
      const look = (): void => {
        if (this.pairs.size === 0) resolve(undefined)
        else setTimeout(look, 5)
      }
      look()
    })
  }

  cut(): void {
    for (const [near, far] of this.pairs) {
      near.destroy()
      far.destroy()
    }
  }

  /** No bytes pass from the dialing side any more. */
  clog(): void {
    for (const [near, far] of this.pairs) {
      near.unpipe(far)
      near.pause()
    }
  }

  unclog(): void {
    for (const [near, far] of this.pairs) near.pipe(far)
  }
}

export function inTime<T>(what: string, begin: (resolve: (value: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`waited too long for: ${what}`)), waitMsMax)
    begin(value => {
      clearTimeout(timer)
      resolve(value)
    })
  })
}

// A network on loopback that can be cut between any two who talk: those who listen are found behind doors, and a door
// knows who has dialed.
//
// What is silenced is kept, as by wires that lose packets for a while and senders that repeat them: it arrives late,
// when the network is whole again, also from who has hung up meanwhile. What is refused is cut at once, as by a
// firewall that says no.
//
// Dialers on loopback all look alike. The kernel tells which process has the other end of a connection (/proc), so this
// is for Linux. It is asked only when something is to be cut, since that takes a while, and nothing passes meanwhile.

import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Teardown } from './broker-process.js'

/** The processes that dial under a name now. */
type ProcessesOf = () => readonly number[]

export class Network {
  private readonly t: Teardown
  private readonly dialers = new Map<string, ProcessesOf>()
  private readonly silenced = new Set<string>()
  private readonly refused = new Set<string>()
  private readonly wires = new Set<Wire>()

  constructor(t: Teardown) {
    this.t = t
  }

  /**
   * Whose processes are behind a name from now on. A connection of nobody who has a name ends when something is cut.
   */
  name(dialer: string, processesOf: ProcessesOf): void {
    this.dialers.set(dialer, processesOf)
  }

  /**
   * Makes a door to `target`, a `host:port`, for whoever wants to talk to `listener`; gives the address of the door.
   */
  async door(listener: string, target: string): Promise<string> {
    const [host = '', port] = target.split(':')
    const server = createServer(client => {
      const wire = new Wire(this, listener, client, connect(Number(port), host))
      this.wires.add(wire)
      wire.onEnd = () => this.wires.delete(wire)
      if (this.silenced.size > 0 || this.refused.size > 0) this.look([wire])
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    this.t.teardown(() => {
      for (const wire of this.wires) wire.cut()
      server.close()
    })
    return `127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  /** What `from` says does not arrive at `to`, until the network is whole again. */
  silence(from: string, to: string): void {
    this.silenced.add(key(from, to))
    this.look(this.wires)
  }

  /** These two have no connection, until the network is whole again. */
  refuse(one: string, other: string): void {
    for (const pair of [key(one, other), key(other, one)]) this.refused.add(pair)
    this.look(this.wires)
  }

  /** Everybody reaches everybody again, and what was kept arrives. */
  mend(): void {
    this.silenced.clear()
    this.refused.clear()
    for (const wire of this.wires) wire.release()
  }

  isSilenced(from = '', to = ''): boolean {
    return this.silenced.has(key(from, to))
  }

  /** Finds out whose these connections are, and ends those that must not be. */
  private look(wires: Iterable<Wire>): void {
    const all = [...wires]
    if (all.some(({ dialer }) => dialer === undefined)) {
      const inodes = inodesByPorts()
      const dialers = new Map<string, string>()
      for (const [dialer, processesOf] of this.dialers)
        for (const pid of processesOf()) for (const inode of socketsOf(pid)) dialers.set(inode, dialer)
      for (const wire of all) wire.dialer ??= dialers.get(inodes.get(wire.ports) ?? '')
    }
    for (const wire of all)
      if (wire.dialer === undefined || this.refused.has(key(wire.dialer, wire.listener))) wire.cut()
  }
}

const key = (from: string, to: string): string => `${from} -> ${to}`

/** One connection, through a door. */
class Wire {
  onEnd = (): void => {}
  /** undefined: not known yet. */
  dialer: string | undefined
  readonly listener: string
  /** Those of its client's end, as `inodesByPorts` has them. */
  readonly ports: string
  private readonly lanes: readonly [Lane, Lane]
  private readonly sockets: readonly Socket[]

  constructor(network: Network, listener: string, client: Socket, server: Socket) {
    this.listener = listener
    this.ports = `${client.remotePort} ${client.localPort}`
    this.sockets = [client, server]
    const there = new Lane(client, server, () => network.isSilenced(this.dialer, listener))
    const back = new Lane(server, client, () => network.isSilenced(listener, this.dialer))
    this.lanes = [there, back]
    for (const lane of this.lanes) {
      lane.onEnd = () => {
        if (this.lanes.every(({ isOver }) => isOver)) this.onEnd()
      }
    }
  }

  release(): void {
    for (const lane of this.lanes) lane.release()
  }

  cut(): void {
    for (const lane of this.lanes) lane.forget()
    for (const socket of this.sockets) socket.destroy()
  }
}

/** One direction of a connection. */
class Lane {
  onEnd = (): void => {}
  private readonly sink: Socket
  private readonly isSilenced: () => boolean
  private kept: Buffer[] = []
  private hasHungUp = false
  isOver = false

  constructor(source: Socket, sink: Socket, isSilenced: () => boolean) {
    this.sink = sink
    this.isSilenced = isSilenced
    source.setNoDelay(true)
    source.on('data', chunk => {
      if (isSilenced() || this.kept.length > 0) this.kept.push(chunk)
      else sink.write(chunk)
    })
    source.on('error', () => {})
    source.on('close', () => {
      this.hasHungUp = true
      if (!isSilenced()) this.release()
    })
  }

  /** Lets pass what was kept. */
  release(): void {
    if (this.isOver || this.isSilenced()) return
    for (const chunk of this.kept.splice(0)) this.sink.write(chunk)
    if (!this.hasHungUp) return
    this.isOver = true
    this.sink.end(() => this.sink.destroy())
    this.onEnd()
  }

  forget(): void {
    this.kept = []
  }
}

/** The kernel's numbers of all connected sockets of loopback, by their own port and the other end's. */
function inodesByPorts(): ReadonlyMap<string, string> {
  const inodes = new Map<string, string>()
  for (const line of readFileSync('/proc/net/tcp', 'utf8').split('\n')) {
    const [, own = '', other = '', , , , , , , inode = ''] = line.trim().split(/\s+/)
    const ports = [own, other].map(end => Number.parseInt(end.split(':')[1] ?? '', 16))
    if (inode !== '0') inodes.set(ports.join(' '), inode)
  }
  return inodes
}

/** The kernel's numbers of the sockets that a process has. */
function socketsOf(pid: number): string[] {
  const folder = `/proc/${pid}/fd`
  const linkOf = (name: string): string => {
    try {
      return readlinkSync(`${folder}/${name}`)
    } catch {
      return ''
    }
  }
  try {
    return readdirSync(folder).flatMap(name => /^socket:\[(\d+)\]$/.exec(linkOf(name))?.[1] ?? [])
  } catch {
    return []
  }
}

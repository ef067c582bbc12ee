// A network on loopback that can be cut between any two parties. Listeners are behind doors, and a door finds out which
// process has dialed.
//
// Silenced bytes are kept, as by wires that lose packets for a while and senders that repeat them. They arrive late,
// when the network is whole again, also when their sender has hung up meanwhile. Refused connections are cut at once,
// as by a firewall that rejects them.
//
// All dialers on loopback look alike. The kernel reports which process has the other end of a connection (/proc), so
// this is for Linux. The kernel is asked only for a cut, since that takes a while in which no bytes pass.

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

  /** Names the processes of a dialer from now on. At a cut, connections of processes without a name end. */
  name(dialer: string, processesOf: ProcessesOf): void {
    this.dialers.set(dialer, processesOf)
  }

  /** Makes a door to `target`, a `host:port`, for connections to `listener`; returns the address of the door. */
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

  /** Bytes from `from` do not arrive at `to`, until the network is whole again. */
  silence(from: string, to: string): void {
    this.silenced.add(key(from, to))
    this.look(this.wires)
  }

  /** These two have no connection, until the network is whole again. */
  refuse(one: string, other: string): void {
    for (const pair of [key(one, other), key(other, one)]) this.refused.add(pair)
    this.look(this.wires)
  }

  /** Makes the network whole again; the kept bytes arrive. */
  mend(): void {
    this.silenced.clear()
    this.refused.clear()
    for (const wire of this.wires) wire.release()
  }

  isSilenced(from = '', to = ''): boolean {
    return this.silenced.has(key(from, to))
  }

  /** Finds the dialers of these connections, and ends connections that are refused or have no known dialer. */
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
  /** The ports of the client's end, as `inodesByPorts` has them. */
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

  /** Sends the kept bytes on. */
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

/** The inodes of all connected sockets of loopback, by their own port and the port of the other end. */
function inodesByPorts(): ReadonlyMap<string, string> {
  const inodes = new Map<string, string>()
  for (const line of readFileSync('/proc/net/tcp', 'utf8').split('\n')) {
    const [, own = '', other = '', , , , , , , inode = ''] = line.trim().split(/\s+/)
    const ports = [own, other].map(end => Number.parseInt(end.split(':')[1] ?? '', 16))
    if (inode !== '0') inodes.set(ports.join(' '), inode)
  }
  return inodes
}

/** The inodes of the sockets of a process. */
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

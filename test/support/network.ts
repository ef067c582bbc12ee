// A network on loopback that can be cut between any two who talk: those who listen are found behind doors, and a door knows who has dialed.
//
// What is silenced is kept, as by wires that lose packets for a while and senders that repeat them: it arrives late, when the network is whole again,
// also from who has hung up meanwhile. What is refused is cut at once, as by a firewall that says no. Either way what has not been said to reach
// somebody does not.
//
// Dialers on loopback all look alike. The kernel tells which process has the other end of a connection (/proc), so this is for Linux.

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

  /** Whose processes are behind a name from now on. Who is not named may not dial. */
  name(dialer: string, processesOf: ProcessesOf): void {
    this.dialers.set(dialer, processesOf)
  }

  /** Makes a door to `target`, a `host:port`, for whoever wants to talk to `listener`; gives the address of the door. */
  async door(listener: string, target: string): Promise<string> {
    const [host = '', port] = target.split(':')
    const server = createServer(client => {
      const dialer = this.dialerOf(client)
      if (dialer === undefined || this.refused.has(key(dialer, listener))) return client.destroy()
      const wire = new Wire(this, dialer, listener, client, connect(Number(port), host))
      this.wires.add(wire)
      wire.onEnd = () => this.wires.delete(wire)
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
  }

  /** These two have no connection, until the network is whole again. */
  refuse(one: string, other: string): void {
    for (const pair of [key(one, other), key(other, one)]) this.refused.add(pair)
    for (const wire of this.wires) if (this.refused.has(key(wire.dialer, wire.listener))) wire.cut()
  }

  /** Everybody reaches everybody again, and what was kept arrives. */
  mend(): void {
    this.silenced.clear()
    this.refused.clear()
    for (const wire of this.wires) wire.release()
  }

  isSilenced(from: string, to: string): boolean {
    return this.silenced.has(key(from, to))
  }

  private dialerOf({ remotePort, localPort }: Socket): string | undefined {
    const inode = inodeOf(remotePort ?? 0, localPort ?? 0)
    if (inode === undefined) return undefined
    for (const [dialer, processesOf] of this.dialers)
      if (processesOf().some(pid => holdsSocket(pid, inode))) return dialer
    return undefined
  }
}

const key = (from: string, to: string): string => `${from} -> ${to}`

/** One connection, through a door. */
class Wire {
  onEnd = (): void => {}
  readonly dialer: string
  readonly listener: string
  private readonly lanes: readonly [Lane, Lane]
  private readonly sockets: readonly Socket[]

  constructor(network: Network, dialer: string, listener: string, client: Socket, server: Socket) {
    this.dialer = dialer
    this.listener = listener
    this.sockets = [client, server]
    const there = new Lane(client, server, () => network.isSilenced(dialer, listener))
    const back = new Lane(server, client, () => network.isSilenced(listener, dialer))
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

/** The kernel's number of the socket that has this port and is connected to that one, both on loopback. */
function inodeOf(port: number, peerPort: number): string | undefined {
  const end = (of: number): string => `0100007F:${of.toString(16).toUpperCase().padStart(4, '0')}`
  const line = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .find(one => one.includes(` ${end(port)} ${end(peerPort)} `))
  return line?.trim().split(/\s+/)[9]
}

function holdsSocket(pid: number, inode: string): boolean {
  const folder = `/proc/${pid}/fd`
  try {
    return readdirSync(folder).some(number => {
      try {
        return readlinkSync(`${folder}/${number}`) === `socket:[${inode}]`
      } catch {
        return false
      }
    })
  } catch {
    return false
  }
}

// The connections to receivers, providers and issuers that are open, so that none of them stays open to a target that is
// denied from now on (docs/operations/egress.md#when-it-is-decided).
//
// Such a connection is closed with the reason, also in the middle of a message: its owner reports the message as denied.
// A connection that is still connecting when the rules change is checked when it is connected, before anything is sent.

import { isIP, type Socket } from 'node:net'
import { type Egress, EgressDenied } from './egress.js'

interface Target {
  readonly host: string
  readonly port: number
}

export class OutgoingConnections {
  /** As many as their owners allow. */
  private readonly targets = new Map<Socket, Target>()

  constructor(private readonly egress: Egress) {
    egress.onChange(() => {
      for (const [socket, target] of this.targets) this.check(socket, target)
    })
  }

  /** Notes a socket that begins to connect. */
  add(socket: Socket, target: Target): Socket {
    this.targets.set(socket, target)
    // Comes before the first bytes of TLS.
    socket.prependOnceListener('connect', () => this.check(socket, target))
    return socket.once('close', () => this.targets.delete(socket))
  }

  private check(socket: Socket, { host, port }: Target): void {
    const address = socket.remoteAddress ?? (isIP(host) === 0 ? undefined : host)
    if (address === undefined || this.egress.mayConnect(host, port, address)) return
    // Its owner may listen no more.
    socket.on('error', () => {}).destroy(new EgressDenied())
  }
}

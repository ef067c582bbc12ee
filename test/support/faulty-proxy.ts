// A TCP proxy on loopback that can keep requests from the server, or answers from clients, and deliver requests late.
//
// It is meant for HTTP/2. A late delivery leaves out the frames by which a client cancelled its requests when its
// deadline passed. So the server sees a request that was on the wire all the time, and its client is gone.

import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import type { Teardown } from './broker-process.js'

interface Pair {
  readonly client: Socket
  readonly server: Socket
  readonly held: Buffer[]
  /** Some of its bytes were held back or dropped: it can never pass again. */
  spoilt: boolean
}

const frameHeaderBytes = 9
const resetFrame = 3

export class FaultyProxy {
  mode: 'pass' | 'hold requests' | 'drop answers' | 'away' = 'pass'
  readonly address: string
  private readonly pairs = new Set<Pair>()
  private readonly late: Socket[] = []

  static async start(t: Teardown, target: string): Promise<FaultyProxy> {
    const server = createServer()
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const proxy = new FaultyProxy(server, target)
    t.teardown(() => {
      proxy.cut()
      for (const socket of proxy.late) socket.destroy()
      server.close()
    })
    return proxy
  }

  private constructor(server: Server, target: string) {
    this.address = `127.0.0.1:${(server.address() as AddressInfo).port}`
    const [host = '', port] = target.split(':')
    server.on('connection', client => {
      if (this.mode === 'away') return client.destroy()
      this.join({ client, server: connect(Number(port), host), held: [], spoilt: false })
    })
  }

  /** Ends all connections on both sides. */
  cut(): void {
    for (const pair of this.pairs) {
      pair.client.destroy()
      pair.server.destroy()
    }
  }

  /** No connection gets through any more. */
  goAway(): void {
    this.mode = 'away'
    this.cut()
  }

  /** Sends the held bytes on to the server; their client is gone. New connections pass. */
  releaseLate(): void {
    this.mode = 'pass'
    for (const pair of this.pairs) {
      if (!pair.spoilt) continue
      this.pairs.delete(pair)
      this.late.push(pair.server)
      pair.client.destroy()
      pair.server.write(withoutResets(Buffer.concat(pair.held)))
    }
  }

  /** Everything passes again, over new connections where bytes were lost. */
  mend(): void {
    this.mode = 'pass'
    for (const pair of this.pairs) {
      if (!pair.spoilt) continue
      pair.client.destroy()
      pair.server.destroy()
    }
  }

  private join(pair: Pair): void {
    const { client, server } = pair
    this.pairs.add(pair)
    client.setNoDelay(true)
    server.setNoDelay(true)
    client.on('data', chunk => {
      if (this.mode !== 'hold requests') return server.write(chunk)
      pair.spoilt = true
      pair.held.push(chunk)
    })
    server.on('data', chunk => {
      if (!this.pairs.has(pair)) return
      if (this.mode !== 'drop answers') return client.write(chunk)
      pair.spoilt = true
    })
    const end = (other: Socket) => (): void => {
      if (!this.pairs.delete(pair)) return
      other.destroy()
    }
    client.on('close', end(server)).on('error', () => {})
    server.on('close', end(client)).on('error', () => {})
  }
}

/** The HTTP/2 frames without those that cancel a request. An incomplete frame at the end is left out. */
function withoutResets(bytes: Buffer): Buffer {
  const kept: Buffer[] = []
  for (let at = 0; at + frameHeaderBytes <= bytes.length; ) {
    const end = at + frameHeaderBytes + bytes.readUIntBE(at, 3)
    if (bytes[at + 3] !== resetFrame && end <= bytes.length) kept.push(bytes.subarray(at, end))
    at = end
  }
  return Buffer.concat(kept)
}

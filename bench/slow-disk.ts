// An etcd whose disk is slow: a proxy that passes the bytes of its clients on one after the other, at a limited rate.
//
// An etcd writes what it gets to its disk before it answers, one request after the other. The bytes of all nodes share
// that rate, whichever connection they use. Requests that only read are few bytes, and wait behind appends as they do
// behind a flush.

import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { steadyMs } from './machine.js'

export interface SlowDisk {
  /** Where clients connect. */
  readonly address: string
  /** From now on the disk has this rate; before, it has no limit. */
  slowDown(bytesPerSecond: number): void
  close(): void
}

/** Opens the proxy to an etcd, `host:port`. */
export async function openSlowDisk(target: string): Promise<SlowDisk> {
  let bytesPerSecond = Number.POSITIVE_INFINITY
  const [host = '', port] = target.split(':')
  const sockets = new Set<Socket>()
  let freeMs = 0
  const passOn = (chunk: Buffer, to: Socket): void => {
    freeMs = Math.max(freeMs, steadyMs()) + (chunk.length / bytesPerSecond) * 1000
    setTimeout(() => to.write(chunk), freeMs - steadyMs())
  }
  const server = createServer(client => {
    const engine = connect(Number(port), host)
    for (const [socket, other] of [
      [client, engine],
      [engine, client],
    ] as const) {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        other.destroy()
      })
    }
    client.on('data', chunk => passOn(chunk, engine))
    engine.on('data', chunk => client.write(chunk))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    slowDown(rate) {
      bytesPerSecond = rate
    },
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

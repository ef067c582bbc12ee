// Creates a known number of entities as fast as the server takes them, and remembers which were acknowledged.
//
// wrk runs for a time, not for a count, and does not tell which requests were answered; storing exactly a million, and asking
// after a crash for what was acknowledged before it, need both. 64 keep-alive connections with one request at a time each:
// servers built on uWebSockets.js do not take a second one before the first is answered.
//
// It speaks just enough HTTP: answers carry Content-Length or no body at all.

import { connect, type Socket } from 'node:net'
import { changing, fill, newId, stockId, type Template, wire } from './workloads.js'

export interface Loading {
  readonly urls: readonly string[]
  readonly template: Template
  readonly tenant: string
  /** The id of the n-th entity. */
  readonly idOf: (n: number) => string
  /** How many to send; Infinity goes on until the server dies. */
  readonly count: number
  /** Called for every entity acknowledged. */
  readonly onAcknowledged?: (n: number) => void
}

const connections = 64

/** Sends everything; ends when all is answered. Fails on the first answer that is not 2xx and when a server goes away. */
export async function load(loading: Loading): Promise<void> {
  const text = wire(loading.template, loading.tenant)
  const sockets: Socket[] = []
  let next = 0
  try {
    await Promise.all(
      Array.from({ length: connections }, (_, k) => {
        const url = new URL(loading.urls[k % loading.urls.length]!)
        return new Promise<void>((done, failed) => {
          const socket = connect(Number(url.port || 80), url.hostname)
          sockets.push(socket)
          socket.setNoDelay(true)
          let sent = -1
          let received = ''
          const send = (): void => {
            if (next >= loading.count) {
              done()
              return
            }
            sent = next
            next += 1
            socket.write(fill(text, loading.idOf(sent), changing(sent)))
          }
          socket.once('connect', send)
          socket.once('error', failed)
          socket.once('close', () => failed(new Error(`${url.host} closed the connection`)))
          socket.on('data', chunk => {
            received += chunk.toString('latin1')
            const head = received.indexOf('\r\n\r\n')
            if (head === -1) return
            const length = Number(/\r\ncontent-length: *(\d+)/i.exec(received.slice(0, head + 2))?.[1] ?? 0)
            if (received.length < head + 4 + length) return
            if (received[9] !== '2') {
              failed(new Error(`${url.host} refused entity ${sent}:\n${received}`))
              return
            }
            received = ''
            loading.onAcknowledged?.(sent)
            send()
          })
        })
      }),
    )
  } finally {
    for (const socket of sockets) socket.destroy()
  }
}

/** Puts the entities in place that the workloads read and update. */
export function loadStock(urls: readonly string[], template: Template, tenant: string, count: number): Promise<void> {
  return load({ urls, template, tenant, idOf: stockId, count })
}

export const numbered = (prefix: string) => (n: number) => newId(prefix, n)

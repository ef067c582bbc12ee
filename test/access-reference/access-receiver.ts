// The receiver of all notifications of a campaign, and those that are still expected.
//
// An expectation is made before the request that causes it is sent, so each arrival has one, or is a fault. The path of
// the URL has the number of the subscription. A repeated try has the id of the earlier one, and counts once.

import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Teardown } from '../support/broker-process.js'

export interface ArrivedNotification {
  /** The number of the subscription. */
  readonly at: number
  readonly text: string
  /** Headers, names and values, and the body. */
  readonly everything: string
}

export class AccessReceiver {
  url = ''
  arrived = 0
  readonly #server: Server
  readonly #expected = new Map<number, string[]>()
  readonly #ids = new Set<string>()
  readonly #onArrived: (arrived: ArrivedNotification, isExpected: boolean) => void

  constructor(t: Teardown, onArrived: (arrived: ArrivedNotification, isExpected: boolean) => void) {
    this.#onArrived = onArrived
    this.#server = createServer((request, response) => {
      const parts: Buffer[] = []
      request.on('data', (part: Buffer) => parts.push(part))
      request.on('end', () => {
        response.end()
        const { url = '', headers } = request
        this.#take(url, String(headers['ctx-notification-id']), headers, Buffer.concat(parts).toString())
      })
    })
    t.teardown(() => this.#server.closeAllConnections())
    t.teardown(() => this.#server.close())
  }

  listen(): Promise<void> {
    return new Promise(resolve => {
      this.#server.listen(0, '127.0.0.1', () => {
        this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
        resolve()
      })
    })
  }

  expect(at: number, text: string): void {
    this.#expected.set(at, [...(this.#expected.get(at) ?? []), text])
  }

  /** The notifications that have not arrived yet. */
  get missing(): readonly string[] {
    return [...this.#expected].flatMap(([at, texts]) => texts.map(text => `subscription ${at}: ${text}`))
  }

  #take(url: string, id: string, headers: object, text: string): void {
    if (this.#ids.has(id)) return
    this.#ids.add(id)
    this.arrived++
    const at = Number(url.split('/').at(-1))
    const waiting = this.#expected.get(at) ?? []
    const found = waiting.indexOf(text)
    if (found >= 0) waiting.splice(found, 1)
    this.#onArrived({ at, text, everything: JSON.stringify(headers) + text }, found >= 0)
  }
}

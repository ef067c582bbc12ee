// The target of hostile subscriptions and registrations: a receiver of notifications and a provider that answers well
// or badly.
//
// It keeps the requests that hold a private text. As a provider it answers with difficult content: odd names, broken
// JSON, errors.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Teardown } from '../support/broker-process.js'
import { one } from '../support/mutator.js'
import type { Random } from '../support/random.js'

const provided: readonly string[] = [
  '[]',
  '[{"id":"E1","type":"T","a":{"type":"Number","value":1,"metadata":{}}}]',
  '[{"id":"__proto__","type":"constructor","__proto__":{"type":"Number","value":1,"metadata":{}}}]',
  '[{"id":"E1","type":"T","a":{"value":{"__proto__":{"polluted":true}}}}]',
  '{"error":"NotFound","description":"x"}',
  '{"__proto__":{"polluted":true}}',
  '[{}]',
  '[null]',
  '[[]]',
  '{',
  '',
  `${'['.repeat(3_000)}`,
  '[{"id":"E1","type":"T","a":{"value":1e400}}]',
  '[{"id":"<script>","type":"(","a":1}]',
]

export class HostileReceiver {
  port = 0
  received = 0
  /** Requests that hold a private text. */
  readonly leaks: string[] = []
  private readonly random: Random
  private readonly privateTexts: readonly string[]

  constructor(random: Random, privateTexts: readonly string[]) {
    this.random = random
    this.privateTexts = privateTexts
  }

  async open(t: Teardown): Promise<void> {
    const server = createServer((request, response) => this.take(request, response))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    this.port = (server.address() as AddressInfo).port
    t.teardown(() => {
      server.close()
      server.closeAllConnections()
    })
  }

  private take(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = []
    request.on('error', () => {})
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      this.received++
      const text = `${request.method} ${request.url} ${request.rawHeaders.join(' ')} ${Buffer.concat(chunks)}`
      if (this.privateTexts.some(each => text.includes(each))) this.leaks.push(text.slice(0, 500))
      this.reply(request.url ?? '', response)
    })
  }

  private reply(url: string, response: ServerResponse): void {
    const { random } = this
    if (url.includes('provider')) {
      const body = one(random, provided)
      response.writeHead(random.between(0, 9) === 0 ? 500 : 200, { 'Content-Type': 'application/json' })
      response.end(body)
      return
    }
    switch (random.between(0, 30)) {
      case 0:
        response.writeHead(500).end('{"error":"x"}')
        return
      case 1:
        response.writeHead(307, { Location: `http://127.0.0.1:${this.port}/again` }).end()
        return
      case 2:
        response.destroy()
        return
      default:
        response.writeHead(200).end()
    }
  }
}

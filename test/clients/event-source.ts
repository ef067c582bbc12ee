// The part of a browser's `EventSource` that ngsijs uses: listeners by name, `readyState`, and that it connects again
// after the time that the server names. A status other than 200 ends it, as the standard has it.

import { type ClientRequest, get, type IncomingMessage } from 'node:http'

interface Happening {
  readonly data: string
  readonly target: NodeEventSource
}

type Listener = (event: Happening) => void

/** Those that are not closed. */
const open = new Set<NodeEventSource>()

export class NodeEventSource {
  readonly CONNECTING = 0
  readonly OPEN = 1
  readonly CLOSED = 2
  readyState = 0
  private readonly url: string
  private readonly listeners = new Map<string, Set<Listener>>()
  private request: ClientRequest | undefined
  private timer: NodeJS.Timeout | undefined
  private retryMs = 3_000
  private rest = ''

  constructor(url: string | URL) {
    this.url = String(url)
    open.add(this)
    this.connect()
  }

  /** Closes all of them: a test is over. */
  static closeAll(): void {
    for (const source of open) source.close()
  }

  /** Has all of them lose their connections, as if a network had failed. */
  static loseAll(): void {
    for (const { request } of open) request?.destroy()
  }

  addEventListener(name: string, listener: Listener): void {
    this.listeners.set(name, (this.listeners.get(name) ?? new Set()).add(listener))
  }

  removeEventListener(name: string, listener: Listener): void {
    this.listeners.get(name)?.delete(listener)
  }

  close(): void {
    this.listeners.clear()
    this.end()
  }

  private end(): void {
    this.readyState = this.CLOSED
    open.delete(this)
    clearTimeout(this.timer)
    this.request?.destroy()
  }

  private connect(): void {
    this.rest = ''
    const request = get(this.url, { agent: false, headers: { Accept: 'text/event-stream' } })
    this.request = request
    request.on('response', response => this.onResponse(response))
    request.on('error', () => {})
    request.on('close', () => this.onClose())
  }

  private onResponse(response: IncomingMessage): void {
    response.on('error', () => {})
    if (response.statusCode !== 200) {
      this.end()
      return this.dispatch('error', '')
    }
    this.readyState = this.OPEN
    this.dispatch('open', '')
    response.setEncoding('utf8')
    response.on('data', (text: string) => this.read(text))
  }

  private onClose(): void {
    if (this.readyState === this.CLOSED) return
    this.readyState = this.CONNECTING
    this.timer = setTimeout(() => this.connect(), this.retryMs)
    this.dispatch('error', '')
  }

  private read(text: string): void {
    const blocks = (this.rest + text).split('\n\n')
    this.rest = blocks.pop() ?? ''
    for (const block of blocks) {
      let name = 'message'
      let data: string | undefined
      for (const line of block.split('\n')) {
        const [, field, value = ''] = /^([^:]*): ?(.*)$/.exec(line) ?? []
        if (field === 'event') name = value
        if (field === 'data') data = value
        if (field === 'retry') this.retryMs = Number(value)
      }
      if (data !== undefined) this.dispatch(name, data)
    }
  }

  private dispatch(name: string, data: string): void {
    for (const listener of [...(this.listeners.get(name) ?? [])]) listener({ data, target: this })
  }
}

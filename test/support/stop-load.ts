// Clients that continue to ask while a broker is stopped, and the end of each of their connections and requests.
//
// There are three kinds. *Kept* clients keep their connection and ask again as soon as they have an answer.
// *Reconnecting* clients connect anew for each request. *Resting* clients ask once and rest. A client that reads
// `Connection: close` closes its side, as HTTP clients do. Each continues until the port is closed.
//
// Three counters matter:
// - *reset*: a connection that was established, or was being established, ended with ECONNRESET or EPIPE. There must be
//   none. ECONNREFUSED is the ordinary end: the port is closed.
// - *unanswered*: the server ended a connection in order (FIN) while a request on it had no answer. That may only
//   happen where the request and the end have crossed on the way. A client that asks again at once never rests for as
//   long as the server waits before it ends a connection that rests (`quietMs` in http/drain.ts). So of these clients
//   there must be none either.
// - *late*: answers that were read after the signal. There must be some, or nothing was proved.

import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

export interface StopTally {
  answered: number
  late: number
  resets: string[]
  unanswered: string[]
  /** Ends of connections that rested, in order. */
  restEnds: number
}

export interface StopLoadOptions {
  readonly kept: number
  readonly reconnecting: number
  readonly resting: number
  readonly isTls?: boolean
  /** The requests of a client, in turn. */
  readonly requests: (client: number) => readonly string[]
}

type Kind = 'kept' | 'reconnecting' | 'resting'

export class StopLoad {
  readonly tally: StopTally = { answered: 0, late: 0, resets: [], unanswered: [], restEnds: 0 }
  isStopping = false
  /** Clients that have got an answer. */
  readonly answered = new Set<number>()
  readonly #clients: Promise<void>[] = []

  constructor(
    readonly port: number,
    readonly options: StopLoadOptions,
  ) {
    const kinds: Kind[] = [
      ...Array<Kind>(options.kept).fill('kept'),
      ...Array<Kind>(options.reconnecting).fill('reconnecting'),
      ...Array<Kind>(options.resting).fill('resting'),
    ]
    for (const [index, kind] of kinds.entries()) this.#clients.push(new StopClient(this, kind, index).run())
  }

  /** Resolves when `count` requests were answered, and at least one of each client. */
  async answeredAtLeast(count: number): Promise<void> {
    const { kept, reconnecting, resting } = this.options
    const clients = kept + reconnecting + resting
    while (this.tally.answered < count || this.answered.size < clients)
      await new Promise(resolve => setTimeout(resolve, 5))
  }

  /** Resolves when each client has found the port closed. */
  async over(): Promise<StopTally> {
    await Promise.all(this.#clients)
    return this.tally
  }
}

class StopClient {
  #sent = 0

  constructor(
    private readonly load: StopLoad,
    private readonly kind: Kind,
    private readonly index: number,
  ) {}

  async run(): Promise<void> {
    while (await this.#connection());
  }

  /** One connection, to its end; false: the port is closed. */
  async #connection(): Promise<boolean> {
    const { load, kind } = this
    const { port, options, tally } = load
    const requests = options.requests(this.index)
    const socket: Socket = options.isTls
      ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
      : connect({ port, host: '127.0.0.1' })
    socket.setNoDelay()
    let isConnected = false
    let isRefused = false
    let answers = 0
    let waitsFor = ''
    let isLeaving = false
    let bytes: Buffer = Buffer.alloc(0)
    const where = () => waitsFor || (isConnected ? 'resting' : 'connecting')
    const ask = (): void => {
      waitsFor = requests[this.#sent++ % requests.length]!
      socket.write(waitsFor)
    }
    const leave = (): void => {
      isLeaving = true
      socket.end()
    }
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') isRefused = true
      else if (!isLeaving) tally.resets.push(`${kind} ${this.index}, after ${answers}: ${error.code} ${where()}`)
    })
    socket.on(options.isTls ? 'secureConnect' : 'connect', () => {
      isConnected = true
      ask()
    })
    socket.on('data', (chunk: Buffer) => {
      bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk])
      const head = bytes.indexOf('\r\n\r\n')
      if (head < 0) return
      const text = bytes.toString('latin1', 0, head + 2)
      const length = Number(/\r\ncontent-length: (\d+)\r\n/i.exec(text)?.[1] ?? 0)
      if (bytes.length < head + 4 + length) return
      bytes = bytes.subarray(head + 4 + length)
      waitsFor = ''
      answers++
      tally.answered++
      load.answered.add(this.index)
      if (load.isStopping) tally.late++
      if (/\r\nconnection: close\r\n/i.test(text) || kind === 'reconnecting') leave()
      else if (kind === 'kept') ask()
    })
    socket.on('end', () => {
      if (isLeaving) return
      if (waitsFor !== '') tally.unanswered.push(`${kind} ${this.index}, after ${answers}: ${waitsFor}`)
      else if (kind === 'resting') tally.restEnds++
    })
    await new Promise<void>(resolve => socket.once('close', () => resolve()))
    return !isRefused
  }
}

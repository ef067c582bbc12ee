// Writers that know the expected value of every counter: one for each, with one increment in flight.
//
// A write that is answered with 2xx was made, once; one with a certain refusal was not. The outcome of a write is
// unknown if the answer states that, or if its connection broke. So a counter is at least the number of acknowledged
// writes, and at most that number plus all unknown ones: below, a write was lost, and above, a write was made twice.

import { setTimeout as delay } from 'node:timers/promises'
import { type Answer, Connection } from './connection.js'
import type { Counter } from './counters.js'

/** Pause after an acknowledged write: the load is far from the nodes' capacity. */
const restMs = 3_000
/** Pause after any other answer: a refusal causes no storm, and it is soon known when the shard answers again. */
const againMs = 100

/**
 * Called for every acknowledged write. `sentMs`: when it was sent; `wantedMs`: when the first of its tries was sent that
 * followed the acknowledged write before; both by `performance.now()`.
 */
export type OnAcknowledged = (shard: number, sentMs: number, wantedMs: number) => void

export interface Accounts {
  readonly acknowledged: number
  readonly refused: number
  readonly unknown: number
  readonly lost: number
  readonly twice: number
}

export class CountingWriters {
  private readonly writers: readonly Writer[]
  private running: Promise<unknown> = Promise.resolve()
  private isStopping = false

  /** `urls` is called before every write; it returns the nodes that may be written to. */
  constructor(counters: readonly Counter[], urls: () => readonly string[], onAcknowledged: OnAcknowledged) {
    this.writers = counters.map((counter, n) => new Writer(counter, n, urls, onAcknowledged))
  }

  start(): void {
    this.isStopping = false
    const { writers } = this
    const stepMs = restMs / writers.length
    this.running = Promise.all(writers.map((writer, at) => writer.writeUntil(() => this.isStopping, at * stepMs)))
    // The caller of `stop` gets the failure.
    this.running.catch(() => {})
  }

  /** No write is in flight afterwards. */
  async stop(): Promise<void> {
    this.isStopping = true
    await this.running
  }

  /** Compares all counters with the writes since they were last read. Writers must have been stopped. */
  async check(url: string): Promise<Accounts> {
    const connection = await Connection.open(url)
    const accounts: Accounts[] = []
    for (const writer of this.writers) accounts.push(await writer.check(connection))
    connection.close()
    return sumOf(accounts)
  }

  close(): void {
    for (const writer of this.writers) writer.close()
  }
}

export function sumOf(all: readonly Accounts[]): Accounts {
  const sum = (figure: keyof Accounts): number => all.reduce((total, one) => total + one[figure], 0)
  return {
    acknowledged: sum('acknowledged'),
    refused: sum('refused'),
    unknown: sum('unknown'),
    lost: sum('lost'),
    twice: sum('twice'),
  }
}

class Writer {
  private readonly counter: Counter
  private readonly urls: () => readonly string[]
  private readonly onAcknowledged: OnAcknowledged
  private readonly connections = new Map<string, Connection>()
  private turn: number
  /** The counter's value when it was last read, and the outcomes of the writes since. */
  private base = 0
  private acknowledged = 0
  private refused = 0
  private unknown = 0
  /** When the first try was sent since the last acknowledged write. */
  private wantedMs: number | undefined

  constructor(counter: Counter, turn: number, urls: () => readonly string[], onAcknowledged: OnAcknowledged) {
    this.counter = counter
    this.turn = turn
    this.urls = urls
    this.onAcknowledged = onAcknowledged
  }

  /** `firstMs`: before the first write, so that not all writers begin at once. */
  async writeUntil(isEnd: () => boolean, firstMs: number): Promise<void> {
    this.wantedMs = undefined
    await delay(firstMs)
    while (!isEnd()) await delay((await this.write()) ? restMs : againMs)
  }

  /** Resolves with whether the write was acknowledged. */
  private async write(): Promise<boolean> {
    const urls = this.urls()
    const url = urls[this.turn++ % urls.length]!
    const connection = await this.connectionTo(url)
    const sentMs = performance.now()
    this.wantedMs ??= sentMs
    if (!connection) return false
    const answer = await connection.ask(this.counter.increment).catch(() => undefined)
    if (!answer) {
      this.connections.delete(url)
      this.unknown += 1
    } else if (answer.isSuccess) {
      this.acknowledged += 1
      this.onAcknowledged(this.counter.shard, sentMs, this.wantedMs)
      this.wantedMs = undefined
      return true
    } else if (isCertain(answer)) this.refused += 1
    else this.unknown += 1
    return false
  }

  /** undefined: the node cannot be connected to. */
  private async connectionTo(url: string): Promise<Connection | undefined> {
    const known = this.connections.get(url)
    if (known && !known.isBroken) return known
    const opened = await Connection.open(url).catch(() => undefined)
    if (opened) this.connections.set(url, opened)
    return opened
  }

  async check(connection: Connection): Promise<Accounts> {
    const { isSuccess, head, body } = await connection.ask(this.counter.reading)
    if (!isSuccess) throw new Error(`a counter cannot be read:\n${head}\n${body}`)
    const written = Number(body) - this.base
    const { acknowledged, refused, unknown } = this
    this.base = Number(body)
    this.acknowledged = 0
    this.refused = 0
    this.unknown = 0
    return {
      acknowledged,
      refused,
      unknown,
      lost: Math.max(0, acknowledged - written),
      twice: Math.max(0, written - acknowledged - unknown),
    }
  }

  close(): void {
    for (const connection of this.connections.values()) connection.close()
  }
}

/**
 * Whether an answer without success states that no write was made. Throws for answers that no healthy cluster gives.
 */
function isCertain({ head, body }: Answer): boolean {
  const status = head.slice(9, 12)
  if (status !== '503' && status !== '500') throw new Error(`a write was answered with:\n${head}\n${body}`)
  return status === '503' && !body.includes('is unknown')
}

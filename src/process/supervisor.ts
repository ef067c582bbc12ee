// The supervisor of `-workers N`: starts the workers, shares the port, replaces a worker that ended, and stops all in
// order.
//
// uws opens a socket for each worker, and the system spreads connections; for node the supervisor accepts them and
// passes them on in turn (handed-connections.ts). It reads no request, so a request that ends a worker cannot end the
// supervisor. The socket files of the workers are in a directory that only this user can enter; the last process
// removes it.
//
// Stopping has three steps. First all workers stop listening, and then the supervisor. Otherwise a client whose
// connection one worker has ended would connect to another one, which is about to stop as well. Then all answer the
// requests that still come. Workers ask each other for that, so they close their stores only after that.

import type { ChildProcess } from 'node:child_process'
import cluster from 'node:cluster'
import { mkdtempSync, rmSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Config } from '../config/config.js'
import type { ListenAddress } from '../http/front.js'
import type { Logger } from '../ports.js'
import { youngFlags } from './collector.js'
import { ConnectionSharing, type Taker } from './handed-connections.js'
import type { Pulse, Pulses } from './liveness.js'
import { assertListenable } from './port-check.js'
import { type FromWorker, socketAddresses, type ToWorker } from './worker-protocol.js'

/** Starts in a row of a worker that ends before it serves. */
const startsMax = 5
/** Pause before such a worker is started again. */
const restartPauseMs = 200
/** How long workers may take to stop listening, then to answer the requests that still come, and then to close. */
const unlistenMsMax = 1_000
const drainMsMax = 35_000
const closeMsMax = 20_000

export interface Supervised {
  readonly store: string
  /** Stops all workers; false when one of them did not end well. */
  stop(): Promise<boolean>
  /** Makes all workers reopen their log files, and look at the files of certificates and of access. */
  reopen(): void
}

/**
 * Starts all workers; resolves when they serve. `onFailure`: a worker cannot be kept running. `pulses`: watches over
 * them; undefined: they are not watched.
 */
export async function superviseWorkers(
  config: Config,
  logger: Logger,
  onFailure: (failure: Error) => void,
  pulses: Pulses | undefined,
): Promise<Supervised> {
  // The start has checked it, but another process may have taken it while the data was divided.
  await assertListenable({ option: 'port', ...config.http }, config.workers)
  const execArgv = [...process.execArgv, ...youngFlags(config.cluster !== undefined)]
  cluster.setupPrimary({ exec: entry, execArgv, args: process.argv.slice(2), serialization: 'json' })
  const folder = mkdtempSync(join(tmpdir(), 'orrery-workers-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const addresses = socketAddresses(folder, config.workers)
  const sharing = new ConnectionSharing()
  const workers = addresses.map((_, index) => new Supervision(index, addresses, logger, onFailure, pulses, sharing))
  try {
    const stores = await Promise.all(workers.map(worker => worker.start()))
    return {
      store: stores[0]!,
      stop: () => stopAll(workers, sharing),
      reopen: () => {
        for (const worker of workers) worker.reopen()
      },
    }
  } catch (error) {
    for (const worker of workers) worker.kill()
    throw error
  }
}

async function stopAll(workers: readonly Supervision[], sharing: ConnectionSharing): Promise<boolean> {
  await Promise.all(workers.map(worker => worker.unlisten()))
  await sharing.close()
  await Promise.all(workers.map(worker => worker.drain()))
  const ends = await Promise.all(workers.map(worker => worker.close()))
  return ends.every(isWell => isWell)
}

const entry = fileURLToPath(new URL('./worker.js', import.meta.url))

/** One worker, through all its successive processes. */
class Supervision implements Taker {
  private child: ChildProcess | undefined
  private pulse: Pulse | undefined
  private serves = false
  private ending = false
  /** Connections in flight to it, each with the call for the case that it ends first. */
  private readonly handed = new Map<Socket, () => void>()
  /** Failed starts in a row. */
  private failures = 0
  private reason = ''
  private onReady: { resolve(store: string): void; reject(failure: Error): void } | undefined
  /** The report that completes the present step of stopping, and the call that then follows. */
  private step: { readonly until: FromWorker['kind']; readonly onDone: () => void } | undefined

  constructor(
    private readonly index: number,
    private readonly addresses: readonly string[],
    private readonly logger: Logger,
    private readonly onFailure: (failure: Error) => void,
    private readonly pulses: Pulses | undefined,
    private readonly sharing: ConnectionSharing,
  ) {}

  /** Resolves when it serves for the first time, with the name of its store. Rejects when it cannot start. */
  start(): Promise<string> {
    return new Promise((resolve, reject) => {
      this.onReady = { resolve, reject }
      this.spawn()
    })
  }

  private spawn(): void {
    const child = cluster.fork().process
    this.child = child
    this.serves = false
    this.reason = ''
    child.on('message', message => this.onMessage(message as FromWorker))
    child.once('exit', (code, signal) => this.onExit(code, signal))
    child.on('error', error => this.logger.error(`Runtime Error (worker ${this.index}: ${error.message})`))
  }

  private send(order: ToWorker): void {
    // A failure to send means that it has ended, which 'exit' reports.
    if (this.child?.connected) this.child.send(order, () => {})
  }

  reopen(): void {
    this.send({ kind: 'reopen' })
  }

  get isBusy(): boolean {
    return this.handed.size > 0
  }

  take(port: number, socket: Socket, onLost: () => void): void {
    this.handed.set(socket, onLost)
    const order: ToWorker = { kind: 'connection', port }
    // A failure to send means that it has ended, which 'exit' reports.
    this.child?.send(order, socket, {}, error => error ?? this.handed.delete(socket))
  }

  private async listen(at: ListenAddress): Promise<void> {
    const { child } = this
    const { port } = at
    try {
      await this.sharing.listen(at)
      if (this.child !== child) return
      this.sharing.add(port, this)
      this.send({ kind: 'listens', port })
    } catch (error) {
      this.send({ kind: 'listens', port, reason: (error as Error).message })
    }
  }

  private onMessage(message: FromWorker): void {
    const { index, addresses } = this
    switch (message.kind) {
      case 'receiving':
        return this.send({ kind: 'start', part: { index, workers: addresses.length, addresses } })
      case 'listen':
        return void this.listen(message.at)
      case 'ready':
        this.serves = true
        this.failures = 0
        this.pulse = this.pulses?.begin(() => this.send({ kind: 'ping' }))
        this.onReady?.resolve(message.store)
        this.onReady = undefined
        return
      case 'pong':
        return this.pulse?.answered()
      case 'unlistened':
      case 'drained':
        // A report after a step that took too long is ignored.
        if (message.kind === this.step?.until) this.step.onDone()
        return
      case 'failed':
        this.reason = message.reason
    }
  }

  private onExit(code: number | null, signal: NodeJS.Signals | null): void {
    this.child = undefined
    this.pulse?.ended()
    this.step?.onDone()
    this.sharing.remove(this)
    for (const [socket, onLost] of [...this.handed]) {
      this.handed.delete(socket)
      onLost()
    }
    if (this.ending) return
    const why = this.reason || `it ended with ${signal ?? `code ${code}`}`
    const { onReady } = this
    if (onReady) return onReady.reject(new Error(this.reason || `worker ${this.index} cannot start: ${why}`))
    this.failures = this.serves ? 0 : this.failures + 1
    if (this.failures >= startsMax)
      return this.onFailure(new Error(`worker ${this.index} cannot be started again: ${why}`))
    this.logger.error(`Runtime Error (worker ${this.index} is started again: ${why})`)
    if (this.serves) this.spawn()
    else setTimeout(() => this.ending || this.spawn(), restartPauseMs)
  }

  /** Resolves when it takes no more connections, has ended, or takes too long. */
  unlisten(): Promise<void> {
    this.ending = true
    this.pulse?.ended()
    return this.carriesOut({ kind: 'unlisten' }, 'unlistened', unlistenMsMax)
  }

  /** Resolves when it has answered all requests and ended its connections, has ended itself, or takes too long. */
  drain(): Promise<void> {
    return this.carriesOut({ kind: 'drain' }, 'drained', drainMsMax)
  }

  private async carriesOut(order: ToWorker, until: FromWorker['kind'], waitMs: number): Promise<void> {
    if (!this.child) return
    const done = new Promise<void>(onDone => {
      this.step = { until, onDone }
    })
    this.send(order)
    await Promise.race([done, pause(waitMs, undefined, { ref: false })])
  }

  /** Resolves when it has ended; false when it did not end well. */
  async close(): Promise<boolean> {
    const { child } = this
    if (!child) return true
    const ended = new Promise<boolean>(resolve => child.once('exit', code => resolve(code === 0)))
    this.send({ kind: 'close' })
    const late = setTimeout(() => child.kill('SIGKILL'), closeMsMax)
    const isWell = await ended
    clearTimeout(late)
    return isWell
  }

  kill(): void {
    this.ending = true
    this.child?.kill('SIGKILL')
  }
}

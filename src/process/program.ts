// The process: reads the configuration, starts a node, reports when it is ready, and ends it on a signal or a failure.
//
// Exit status: 0 after a signal, once everything acknowledged is on disk; 1 when the options are wrong, when the node
// could not start, or when it had to end because the disk failed.
//
// Modules are loaded where they are needed. A node's own modules are loaded by its thread only; loading them twice
// would add 0.2 s to a start.

import { systemChance, systemClock } from '../clock.js'
import { type Config, readConfig, version } from '../config/config.js'
import { placementDefault } from '../domain/scope.js'
import type { LogSettings } from '../messages/admin.js'
import { type AreaLogger, openLog } from '../observe/logger.js'
import { writePidFile } from '../observe/pid-file.js'
import { openProgress } from '../observe/progress.js'
import { logFailure, logNodeLines, logReady, outliveReaders } from '../observe/standard-lines.js'
import type { Logger } from '../ports.js'
import { openDataDirectory, wordsFor } from '../storage/data-directory.js'
import { leftovers } from '../storage/store-folders.js'
import { tuneCollector } from './collector.js'
import { runCommand } from './commands.js'
import type { Pulses } from './liveness.js'
import { startInThread } from './own-thread.js'
import { preflight } from './preflight.js'
import type { Surroundings } from './surroundings.js'

/** Wrappers that a test puts between the parts of the node; empty in production. */
export type Seams = Pick<Surroundings, 'wrapShards'>

export async function runProgram(seams: Seams = {}): Promise<void> {
  const words = process.argv.slice(2)
  const status = await runCommand(words, { env: process.env, divide: divideForMove })
  if (status !== undefined) {
    process.exitCode = status
    return
  }
  const reading = readConfig(words, process.env)
  switch (reading.kind) {
    case 'print':
      process.stdout.write(`${reading.text}\n`)
      break
    case 'refuse':
      refuse(reading)
      process.exitCode = 1
      break
    case 'run':
      await run(reading, seams)
  }
}

/** The faults come last, where a terminal shows them. In JSON format there is no usage text: it is no log line. */
function refuse({ lines, usage, format }: Extract<ReturnType<typeof readConfig>, { kind: 'refuse' }>): void {
  if (format === 'json') for (const line of lines) logFailure({ format }, line)
  else process.stderr.write(`${[usage, '', ...lines].join('\n')}\n`)
}

type Run = Extract<ReturnType<typeof readConfig>, { kind: 'run' }>

async function run({ config, warnings, commandLine, fromEnv, effective }: Run, seams: Seams): Promise<void> {
  const log = { ...config.log }
  outliveReaders()
  logNodeLines(config.logging)
  const logger = startLog(config, log)
  if (!logger) return
  for (const line of [commandLine, ...fromEnv, effective]) logger.info(line)
  for (const line of warnings) logger.warn(line)
  if (config.workersFollowCores) logger.info(`-workers auto: ${wordsFor(config.workers)}, one for each core`)

  let running: Running | undefined
  // Installed first: SIGHUP never ends the program (docs/operations/signals.md).
  process.on('SIGHUP', () => {
    logger.reopen()
    running?.reopen()
    logger.info('log files opened again, certificates and the access file looked at (SIGHUP)')
  })
  let ending = false
  const end = async (status: number): Promise<void> => {
    if (ending) return
    ending = true
    try {
      await running?.stop()
    } catch (error) {
      logger.error(`Runtime Error (stopping: ${(error as Error).message})`)
      status = 1
    }
    process.exit(status)
  }
  const fail = (error: Error): void => {
    logger.fatal(`Fatal Error (${error.message})`)
    logFailure(config.logging, error.message)
  }

  const stopped = new AbortController()
  try {
    const { faults, warnings: found, checkedAccess } = await preflight(config)
    for (const line of found) logger.warn(line)
    for (const fault of faults) fail(new Error(fault))
    if (faults.length > 0) process.exit(1)
    const pulses = await watched(config)
    if (!config.cluster) await divide(config, logger, stopped, config.logging.format === 'pipe')
    const onFailure = (error: Error): void => {
      fail(error)
      void end(1)
    }
    running =
      config.workers > 1 || config.cluster
        ? await startWorkers(config, logger, onFailure, pulses)
        : isEmpty(seams)
          ? await startInThread({ config, checkedAccess }, onFailure, pulses)
          : await startHere(config, { ...seams, logger, log }, onFailure)
  } catch (error) {
    if (stopped.signal.aborted) process.exit(0)
    fail(error as Error)
    process.exit(1)
  }
  // Up to here stored data was read, with the help of every core that was free.
  tuneCollector(config.workers)
  let firstMs: number | undefined
  for (const signal of signals) {
    process.on(signal, () => {
      const nowMs = performance.now()
      if (firstMs !== undefined) {
        if (nowMs - firstMs >= againMsMin) endAtOnce(signal, logger)
        return
      }
      firstMs = nowMs
      logger.info(`orrery exiting due to receiving a signal (${signal})`)
      void end(0)
    })
  }
  logger.info('Startup completed')
  logReady(config.logging, readyLine(config, running))
}

/** Opens the log, after writing the pid file; undefined: one of them failed, which was reported. */
function startLog({ logging }: Config, settings: LogSettings): AreaLogger | undefined {
  try {
    if (logging.pidFile !== undefined) writePidFile(logging.pidFile)
    return openLog(logging, settings, true)
  } catch (error) {
    logFailure(logging, (error as Error).message)
    process.exitCode = 1
    return undefined
  }
}

/** The signals that end the program. */
const signals = ['SIGINT', 'SIGTERM'] as const

/** A second signal within this time counts as the first one: a terminal and npm both pass Ctrl-C on. */
const againMsMin = 200

/**
 * Ends as if the signal had no handler. Acknowledged changes are on disk, as with `kill -9`. Workers end with their
 * supervisor.
 */
function endAtOnce(signal: NodeJS.Signals, logger: Pick<Logger, 'warn'>): void {
  logger.warn(`orrery ends at once: a second signal (${signal}) while it stops`)
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
}

/** Answers probes for life from now on, if `-livePort` is set. A node that starts or divides its data is live. */
async function watched({ http }: Config): Promise<Pulses | undefined> {
  if (http.livePort === undefined) return undefined
  const { Pulses, serveLiveness } = await import('./liveness.js')
  const pulses = new Pulses(systemClock)
  await serveLiveness(http, pulses)
  return pulses
}

/** One node, or several that act as one. */
interface Running {
  /** The name of its store, for the line that reports readiness. */
  readonly store: string
  stop(): Promise<void>
  /** Reopens the log files, and looks at the files of certificates and of access. */
  reopen(): void
}

/**
 * Divides stored data among the workers, unless it is divided that way already. A signal makes it reject; the next
 * start continues. `mayDraw`: a progress bar may be drawn at a terminal.
 */
async function divide(
  { store: { directory }, workers }: { readonly store: Pick<Config['store'], 'directory'>; readonly workers: number },
  logger: Pick<Logger, 'info' | 'warn'>,
  stopped: AbortController,
  mayDraw: boolean,
): Promise<void> {
  const onSignal = (signal: NodeJS.Signals): void => {
    logger.info(`orrery exiting due to receiving a signal (${signal}), the next start goes on dividing`)
    stopped.abort()
  }
  for (const signal of signals) process.on(signal, onSignal)
  const title = `Dividing the data among ${wordsFor(workers)}`
  const progress = openProgress({ title, unit: 'entities', clock: systemClock, logger, mayDraw })
  try {
    const wanted = openDataDirectory(directory, { ...placementDefault, workers }, () => systemChance.uuid())
    if (workers === 1 && wanted.workers === 1 && wanted.becoming === undefined && leftovers(wanted).length === 0) return
    const { repartition } = await import('./repartition.js')
    await repartition(wanted, workers, { logger, signal: stopped.signal, onProgress: progress.show })
  } finally {
    progress.end()
    for (const signal of signals) process.off(signal, onSignal)
  }
}

/** The same for an import, which reports everything on standard error. */
async function divideForMove(directory: string, workers: number): Promise<void> {
  const printLine = (line: string): boolean => process.stderr.write(`${line}\n`)
  const stopped = new AbortController()
  try {
    await divide({ store: { directory }, workers }, { info: printLine, warn: printLine }, stopped, true)
  } catch (error) {
    if (stopped.signal.aborted) process.exit(1)
    throw error
  }
}

const isEmpty = (seams: Seams): boolean => Object.keys(seams).length === 0

/** Starts the node in this thread: the wrappers of a test cannot be passed to another thread. */
async function startHere(
  config: Config,
  given: Seams & Pick<Surroundings, 'logger' | 'log'>,
  onFailure: (error: Error) => void,
): Promise<Running> {
  const { startNode } = await import('./node.js')
  const node = await startNode(config, {
    ...given,
    clock: systemClock,
    chance: systemChance,
    onFailure: error => onFailure(new Error(`the store has failed, no more requests are taken: ${error.message}`)),
  })
  return {
    store: node.store,
    async stop() {
      await node.drain()
      await node.close()
    },
    // It logs with this thread's logger.
    reopen: () => node.lookAtFiles(),
  }
}

async function startWorkers(
  config: Config,
  logger: Logger,
  onFailure: (error: Error) => void,
  pulses: Pulses | undefined,
): Promise<Running> {
  const { superviseWorkers } = await import('./supervisor.js')
  const workers = await superviseWorkers(config, logger, onFailure, pulses)
  return {
    store: workers.store,
    async stop() {
      if (!(await workers.stop())) throw new Error('a worker has ended with an error')
    },
    reopen: () => workers.reopen(),
  }
}

function readyLine(config: Config, { store }: Running): string {
  const scheme = config.http.tls ? 'https' : 'http'
  const { directory } = config.store
  const durability = config.cluster ? `replicated, node ${config.cluster.name}` : config.store.durability
  const workers = config.workers > 1 ? `, ${config.workers} workers` : ''
  const { host = 'localhost', port, admin } = config.http
  const urlOf = (address: string, at: number): string =>
    `${scheme}://${address.includes(':') ? `[${address}]` : address}:${at}`
  const operators = admin ? `, for operators at ${urlOf(admin.host, admin.port)}` : ''
  return `Orrery ${version} is ready at ${urlOf(host, port)}${operators} (data in ${directory}, ${store}, ${durability}${workers})`
}

// `orrery export` and `orrery import`: from the command line to the summary at the end.
//
// Exit status: 0 when all requested items are at the target; 1 when an item was refused, failed, differs from one at
// the target, or was not found at all, and when a signal has stopped the work: the same command then continues.
// Standard output carries only moved items, and only if it is the target; everything else goes to standard error.
//
// Not here: how a data directory is divided among another number of workers (program.ts passes that function in).

import { resolve } from 'node:path'
import { systemChance, systemClock } from '../clock.js'
import { version } from '../config/config.js'
import { openSockets } from '../deliver/sockets/sockets.js'
import type { JsonObject } from '../domain/json.js'
import { placementDefault } from '../domain/scope.js'
import { Unreadable } from '../domain/unreadable.js'
import { openProgress } from '../observe/progress.js'
import { clusterOf, DataDirectoryError, isDataDirectory, openDataDirectory } from '../storage/data-directory.js'
import { type MoveEndpoint, type MoveOrder, readArguments, type Verb } from './arguments.js'
import { BrokerClient } from './broker-client.js'
import { BrokerSink } from './broker-sink.js'
import { BrokerSource } from './broker-source.js'
import { directorySource, openStores } from './directory.js'
import { DirectorySink } from './directory-sink.js'
import { openFileSink, openFileSource } from './file.js'
import { isWhole, type MoveProgress, type MoveResult, move, type StateFile, stateFileAt, type Tally } from './move.js'
import { itemKinds, MoveError, type Sink, type Source } from './moved.js'

/** Divides a data directory among this number of workers, if it is divided otherwise. */
export type Divide = (path: string, workers: number) => Promise<void>

export async function runMove(
  verb: Verb,
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  divide: Divide,
): Promise<number> {
  const reading = readArguments(verb, argv, env)
  if (reading.kind === 'refuse') {
    printLine(reading.lines.join('\n'))
    return 1
  }
  const stop = new AbortController()
  const onSignal = (): void => stop.abort()
  // A second signal ends the process by default.
  for (const signal of signals) process.once(signal, onSignal)
  // Waiting for a broker does not keep the process alive; this timer does.
  const awake = setInterval(() => {}, awakeMs)
  try {
    const { result, lack } = await carryOut(reading.order, divide, stop.signal)
    for (const what of result.unmet) printLine(`nothing of ${what} was found`)
    if (lack !== undefined) printLine(lack)
    printLine(summary(result.tally, verb))
    return isWhole(result) && lack === undefined ? 0 : 1
  } catch (error) {
    if (!isForOperator(error)) throw error
    printLine(`orrery ${verb}: ${error.message}`)
    return 1
  } finally {
    clearInterval(awake)
    for (const signal of signals) process.off(signal, onSignal)
  }
}

/** Whether an error is a fault that the operator can correct. */
const isForOperator = (error: unknown): error is Error =>
  error instanceof MoveError || error instanceof DataDirectoryError || error instanceof Unreadable

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const awakeMs = 1_000

const printLine = (line: string): void => {
  process.stderr.write(`${line}\n`)
}

interface CarriedOut {
  readonly result: MoveResult
  /** What the source lacks, in a sentence. */
  readonly lack: string | undefined
}

async function carryOut(order: MoveOrder, divide: Divide, signal: AbortSignal): Promise<CarriedOut> {
  const { verb, to, selection } = order
  const state = stateOf(order)
  const source = await openSource(order)
  const progress = openProgress({
    title: `${verb === 'export' ? 'Exporting' : 'Importing'} ${source.name}`,
    unit: 'entities',
    clock: systemClock,
    logger: { info: printLine },
    logIntervalMs: progressLogMs,
  })
  let sink: Sink | undefined
  try {
    const job = jobOf(order, source)
    const known = state?.load(job)
    const earlier = known?.progress
    if (known?.isOther) printLine(`${state?.path} is of other work, which is not gone on with`)
    if (earlier) printLine('goes on where it was interrupted')
    sink = await openSink(order, divide, earlier)
    if (to.kind === 'broker') printLine(`${sink.name}: ${lostOverHttp}`)
    const result = await move(source, sink, {
      selection,
      skipsBad: order.skipsBad,
      state,
      job,
      nowMs: systemClock.wallMs(),
      earlier,
      onProgress: entities => progress.show(entities, source.total),
      onBad: (where, fault) => printLine(`${source.name}, ${where}: ${fault}`),
      signal,
    })
    return { result, lack: source.lack }
  } finally {
    progress.end()
    await sink?.close()
    await source.close()
  }
}

/** Interval of the lines about progress, where no bar can be drawn. */
const progressLogMs = 10_000

const ofOneNode =
  'this is the directory of a node of a cluster: changes that other nodes have acknowledged and that it does not have are missing'

const lostOverHttp =
  'times of creation and change, correlators, and the ids and counters of subscriptions and registrations are not carried over HTTP'

/** The tenants that are read from a broker when none is named: the interface does not list them. */
const defaultTenant = ['']

async function openSource(order: MoveOrder): Promise<Source> {
  const { from, selection } = order
  switch (from.kind) {
    case 'file':
      return openFileSource(from.path)
    case 'broker': {
      const client = clientOf(from.url, order)
      try {
        const { tenants = defaultTenant, paths } = selection
        return await BrokerSource.open(client, { tenants, paths, warn: printLine })
      } catch (error) {
        await client.close()
        throw error
      }
    }
    case 'directory': {
      if (!isDataDirectory(from.path)) throw new MoveError(`${from.path} is no data directory`)
      const cluster = clusterOf(from.path)
      if (cluster) printLine(`${from.path}: ${ofOneNode}`)
      const open = await openStores(directoryAt(from.path, 1, cluster), 'os', printLine)
      return directorySource(open)
    }
  }
}

async function openSink(order: MoveOrder, divide: Divide, earlier: MoveProgress | undefined): Promise<Sink> {
  const { to, overwrites, workers } = order
  switch (to.kind) {
    case 'file':
      return openFileSink(to.path, `orrery ${version}`, earlier?.sink)
    case 'broker':
      return new BrokerSink(clientOf(to.url, order), overwrites, earlier?.sink)
    case 'directory': {
      if (workers !== undefined) await divide(to.path, workers)
      const open = await openStores(directoryAt(to.path, workers ?? 1), 'sync', printLine)
      return new DirectorySink(open, { clock: systemClock, overwrites, warn: printLine }, earlier?.sink)
    }
  }
}

/** Opens the directory; a new one gets this number of workers. `cluster`: that of the node to which it must belong. */
const directoryAt = (path: string, workers: number, cluster?: { readonly id: string }) =>
  openDataDirectory(path, { ...placementDefault, workers, ...(cluster && { cluster }) }, () => systemChance.uuid())

const clientOf = (url: string, { token, tls }: MoveOrder): BrokerClient =>
  new BrokerClient(url, { token, openSocket: openSockets(tls) })

/** The identity of the work: all of the order but the treatment of faulty items. */
function jobOf({ verb, to, overwrites, selection: { tenants, paths } }: MoveOrder, { identity }: Source): JsonObject {
  const selected = { ...(tenants && { tenants }), ...(paths && { paths }) }
  return { verb, from: identity, to: absolute(to), overwrites, ...selected }
}

const absolute = (place: MoveEndpoint): JsonObject =>
  place.kind === 'broker' ? { broker: place.url } : { [place.kind]: place.path === '-' ? '-' : resolve(place.path) }

/** The state file, beside the target if that has a place; undefined: the work cannot be continued. */
function stateOf({ state, from, to }: MoveOrder): StateFile | undefined {
  if (state !== undefined) return stateFileAt(state)
  if (to.kind === 'directory') return stateFileAt(`${resolve(to.path)}.import`)
  const file = to.kind === 'file' ? to : from
  if (file.kind === 'file' && file.path !== '-') return stateFileAt(`${resolve(file.path)}.state`)
  return to.kind === 'file' ? undefined : stateFileAt('orrery-import.state')
}

export function summary(tally: Tally, verb: Verb): string {
  const said = itemKinds.map(kind => {
    const { written, replaced, same, kept, bad, unselected } = tally[kind]
    const more = [
      replaced > 0 ? `${replaced} of them in the place of others` : '',
      same > 0 ? `${same} were there already and are equal` : '',
      kept > 0 ? `${kept} are there already and differ: they stay (-overwrite replaces them)` : '',
      bad > 0 ? `${bad} failed` : '',
      unselected > 0 ? `${unselected} were not selected` : '',
    ].filter(part => part !== '')
    return `${written + replaced} ${plural[kind]}${more.length > 0 ? ` (${more.join(', ')})` : ''}`
  })
  return `${verb}ed ${said.join(', ')}`
}

const plural = { entity: 'entities', registration: 'registrations', subscription: 'subscriptions' } as const

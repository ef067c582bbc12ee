// `orrery export` and `orrery import`: from the command line to what is told at the end.
//
// Exit status: 0 when all that was asked for is there; 1 when something was refused, failed, differs from what is
// there, or was not found at all, and when a signal has stopped the work: the same command then goes on. Standard
// output carries only what is moved there; all else goes to standard error.
//
// Not here: how a data directory is divided among another number of workers (program.ts hands it in).

import { resolve } from 'node:path'
import { systemChance, systemClock } from '../clock.js'
import { version } from '../config/config.js'
import { openSockets } from '../deliver/sockets/sockets.js'
import type { JsonObject } from '../domain/json.js'
import { placementDefault } from '../domain/scope.js'
import { Unreadable } from '../domain/unreadable.js'
import { openProgress } from '../observe/progress.js'
import { DataDirectoryError, isDataDirectory, openDataDirectory } from '../storage/data-directory.js'
import { type MoveEndpoint, type MoveOrder, readArguments, type Verb } from './arguments.js'
import { BrokerClient } from './broker-client.js'
import { BrokerSink } from './broker-sink.js'
import { BrokerSource } from './broker-source.js'
import { directorySource, openStores } from './directory.js'
import { DirectorySink } from './directory-sink.js'
import { openFileSink, openFileSource } from './file.js'
import { isWhole, type MoveProgress, type MoveResult, move, type StateFile, stateFileAt, type Tally } from './move.js'
import { itemKinds, MoveError, type Sink, type Source } from './moved.js'

/** Divides a data directory among so many workers, if it is not. */
export type Divide = (path: string, workers: number) => Promise<void>

export async function runMove(
  verb: Verb,
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  divide: Divide,
): Promise<number> {
  const reading = readArguments(verb, argv, env)
  if (reading.kind === 'refuse') {
    say(reading.lines.join('\n'))
    return 1
  }
  const stop = new AbortController()
  const onSignal = (): void => stop.abort()
  // The second one ends the process as it always does.
  for (const signal of signals) process.once(signal, onSignal)
  // What waits for a broker is no reason for the process to go on by itself; the work is.
  const awake = setInterval(() => {}, awakeMs)
  try {
    const result = await carryOut(reading.order, divide, stop.signal)
    for (const what of result.unmet) say(`nothing of ${what} was found`)
    say(summary(result.tally, verb))
    return isWhole(result) ? 0 : 1
  } catch (error) {
    if (!isForOperator(error)) throw error
    say(`orrery ${verb}: ${error.message}`)
    return 1
  } finally {
    clearInterval(awake)
    for (const signal of signals) process.off(signal, onSignal)
  }
}

/** Whether an error says what somebody has to set right. */
const isForOperator = (error: unknown): error is Error =>
  error instanceof MoveError || error instanceof DataDirectoryError || error instanceof Unreadable

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const awakeMs = 1_000

const say = (line: string): void => {
  process.stderr.write(`${line}\n`)
}

async function carryOut(order: MoveOrder, divide: Divide, signal: AbortSignal): Promise<MoveResult> {
  const { verb, to, selection } = order
  const state = stateOf(order)
  const source = await openSource(order)
  const progress = openProgress({
    title: `${verb === 'export' ? 'Exporting' : 'Importing'} ${source.name}`,
    unit: 'entities',
    clock: systemClock,
    logger: { info: say },
    logIntervalMs: tellMs,
  })
  let sink: Sink | undefined
  try {
    const job = jobOf(order, source)
    const known = state?.load(job)
    const earlier = known?.progress
    if (known?.isOther) say(`${state?.path} is of other work, which is not gone on with`)
    if (earlier) say('goes on where it was interrupted')
    sink = await openSink(order, divide, earlier)
    if (to.kind === 'broker') say(`${sink.name}: ${lostOverHttp}`)
    return await move(source, sink, {
      selection,
      skipsBad: order.skipsBad,
      state,
      job,
      nowMs: systemClock.wallMs(),
      earlier,
      onProgress: entities => progress.show(entities, source.total),
      onBad: (where, fault) => say(`${source.name}, ${where}: ${fault}`),
      signal,
    })
  } finally {
    progress.end()
    await sink?.close()
    await source.close()
  }
}

/** How often a line tells how far it is, where no bar can be drawn. */
const tellMs = 10_000

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
        return await BrokerSource.open(client, { tenants, paths, warn: say })
      } catch (error) {
        await client.close()
        throw error
      }
    }
    case 'directory': {
      if (!isDataDirectory(from.path)) throw new MoveError(`${from.path} is no data directory`)
      const open = await openStores(directoryAt(from.path, 1), 'os', say)
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
      const open = await openStores(directoryAt(to.path, workers ?? 1), 'sync', say)
      return new DirectorySink(open, { clock: systemClock, overwrites, warn: say }, earlier?.sink)
    }
  }
}

/** The directory as it is; a new one is for so many workers. */
const directoryAt = (path: string, workers: number) =>
  openDataDirectory(path, { ...placementDefault, workers }, () => systemChance.uuid())

const clientOf = (url: string, { token, tls }: MoveOrder): BrokerClient =>
  new BrokerClient(url, { token, openSocket: openSockets(tls) })

/** What makes it the same work another time: all but how it deals with what is wrong. */
function jobOf({ verb, to, overwrites, selection: { tenants, paths } }: MoveOrder, { identity }: Source): JsonObject {
  const selected = { ...(tenants && { tenants }), ...(paths && { paths }) }
  return { verb, from: identity, to: absolute(to), overwrites, ...selected }
}

const absolute = (place: MoveEndpoint): JsonObject =>
  place.kind === 'broker' ? { broker: place.url } : { [place.kind]: place.path === '-' ? '-' : resolve(place.path) }

/** Beside what is written, if that has a place; undefined: nothing can be gone on with. */
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

// The entries by which the log engines describe their cluster. A node reads them before it opens its store, and creates
// them when it is the first one.
//
// Every engine has an entry with the cluster's id, shards and spread. If several engines keep the logs, each entry also
// has the place of its engine: the shards of an engine follow from that (cluster/logs/divided-log.ts). So a node that
// names the engines in another order, or other engines, does not start. Such entries have a version of their own, since
// older builds ignore members that they do not know.
//
//   an entry in each engine, the first one first -> an entry `divided` in each: all others exist
//
// While one engine has `divided`, another one without its entry has lost it, or is another engine.
//
// Not here: opening the engines, and their versions (cluster-logs.ts).

import type { ClusterMark, ShardLog, Unknown } from '../../cluster/index.js'
import { systemClock } from '../clock.js'
import { assertVersion, Unreadable } from '../domain/unreadable.js'
import type { Logger } from '../ports.js'
import type { Agreement } from './surroundings.js'

/** Pause between two tries to read the cluster's entry. */
const agreeRetryMs = 500

/** The name of the cluster's entry in an engine. */
const markName = 'cluster'
/** Version of this entry, and of all other rows of the cluster in the engine: 1 had counts in other rows. */
const markVersion = 2
/** Version of the entry in one of several engines. The rows are those of `markVersion`. */
const placedVersion = 3
/** The name of the entry by which several engines know that each of them has its mark. */
const dividedName = 'divided'

/** An engine, and its members for texts. */
export type MarkedLog = Pick<ShardLog, 'createOnce' | 'named'> & { readonly name: string }

/** The entry of a cluster that is to be created. */
export interface WantedAgreement extends Agreement {
  /** The id that the cluster had before its log was lost (recover.ts). */
  readonly recovered?: string | undefined
}

/** The agreement, and its bytes in each engine. */
export interface Agreed {
  readonly agreement: Agreement
  readonly marks: readonly ClusterMark[]
  /** The id that the cluster had before its log was lost; undefined: it was never recovered. */
  readonly recovered: string | undefined
}

/** An entry that an engine has. */
interface Mark {
  readonly agreement: Agreement
  readonly recovered: string | undefined
  readonly value: Buffer
  /** The number of its engine, from 0 on, and how many there are. */
  readonly place: number
  readonly of: number
}

/** Reads the entries of this cluster, and waits as long as that takes. Creates them as `wanted` if there are none. */
export async function agreed(
  logs: readonly MarkedLog[],
  wanted: WantedAgreement,
  logger: Pick<Logger, 'warn'>,
): Promise<Agreed> {
  if (logs.length === 1) return agreedOf([await created(logs, 0, wanted, logger)])
  const found = await marksIn(logs, logger)
  if (found.includes(undefined)) await assertUndivided(logs, found, logger)
  const first = found.find(mark => mark !== undefined)
  let agreement: WantedAgreement = first ? { ...first.agreement, recovered: first.recovered } : wanted
  const marks: Mark[] = []
  for (const place of logs.keys()) {
    const mark = found[place] ?? (await created(logs, place, agreement, logger))
    marks.push(mark)
    assertOneCluster(logs, marks)
    // Another node may have been faster, with an id of its own.
    agreement = { ...mark.agreement, recovered: mark.recovered }
  }
  for (const log of logs) await answered<Buffer>(logger, onDone => create(log, dividedName, divided, onDone))
  return agreedOf(marks)
}

/** Reads the entry of the cluster that the engines keep, and waits as long as that takes. Undefined: they keep none. */
export async function agreementIn(
  logs: readonly MarkedLog[],
  logger: Pick<Logger, 'warn'>,
): Promise<Omit<Agreed, 'marks'> | undefined> {
  const found = await marksIn(logs, logger)
  return found.find(mark => mark !== undefined)
}

/** The same for a node that belongs to a cluster already. It creates no missing entry, since it may be brought back. */
export async function agreedBefore(
  logs: readonly MarkedLog[],
  own: { readonly path: string; readonly id: string },
  logger: Pick<Logger, 'warn'>,
): Promise<Agreed> {
  const found = await marksIn(logs, logger)
  const place = found.findIndex(mark => mark?.agreement.id !== own.id)
  const marks = found.filter(mark => mark !== undefined)
  if (place < 0) return agreedOf(marks)
  const other = found[place]
  if (other?.recovered === own.id)
    throw new Error(
      `data directory ${own.path} belongs to cluster ${own.id}, which was recovered without it and is cluster ${other.agreement.id} now. ` +
        'Nothing was changed. Start the node with an empty directory: it gets copies from the other nodes (docs/operations/disasters.md)',
    )
  const has = other ? `has cluster ${other.agreement.id} in its place` : 'has nothing of it'
  throw new Error(
    `data directory ${own.path} belongs to cluster ${own.id}, and ${engineAt(logs, place)} ${has}: its data was deleted or replaced, or it is another engine. ` +
      'Nothing was changed. Bring the log back, or name the right engine, and start again (docs/operations/log-lost.md)',
  )
}

const engineAt = (logs: readonly MarkedLog[], place: number): string =>
  logs.length === 1 ? 'the log engine (-shardLog)' : `the log engine ${logs[place]!.name} (-shardLog)`

const agreedOf = (marks: readonly Mark[]): Agreed => {
  const { agreement, recovered } = marks[0]!
  return { agreement, recovered, marks: marks.map(({ value }) => ({ name: markName, value })) }
}

/** The entry of each engine. Rejects entries of different clusters, and of engines that have other places. */
async function marksIn(
  logs: readonly MarkedLog[],
  logger: Pick<Logger, 'warn'>,
): Promise<readonly (Mark | undefined)[]> {
  const marks: (Mark | undefined)[] = []
  for (const [place, log] of logs.entries()) {
    const value = await answered<Buffer | undefined>(logger, onDone => look(log, markName, onDone))
    marks.push(value && placedMark(logs, place, value))
  }
  assertOneCluster(logs, marks)
  return marks
}

async function created(
  logs: readonly MarkedLog[],
  place: number,
  wanted: WantedAgreement,
  logger: Pick<Logger, 'warn'>,
): Promise<Mark> {
  const log = logs[place]!
  const value = encodeMark(wanted, place, logs.length)
  return placedMark(logs, place, await answered<Buffer>(logger, onDone => create(log, markName, value, onDone)))
}

function encodeMark({ shards, spread, id, recovered }: WantedAgreement, place: number, of: number): Buffer {
  const mark = { shards, spread, id, recovered }
  if (of === 1) return Buffer.from(JSON.stringify({ version: markVersion, ...mark }))
  return Buffer.from(JSON.stringify({ version: placedVersion, ...mark, place, of }))
}

/** An entry, which has to be that of the engine at this place. */
function placedMark(logs: readonly MarkedLog[], place: number, value: Buffer): Mark {
  const mark = markOf(value)
  if (mark.place === place && mark.of === logs.length) return mark
  const named = logs.length === 1 ? 'the only one' : `number ${place + 1} of ${logs.length}`
  const is = mark.of === 1 ? 'the only one' : `number ${mark.place + 1} of ${mark.of}`
  throw new Error(
    `-shardLog names the log engine ${logs[place]!.name} as ${named}, and for cluster ${mark.agreement.id} it is ${is}: ` +
      'the engines of a cluster keep their number and their order. Nothing was changed (docs/operations/cluster.md#several-etcds)',
  )
}

function assertOneCluster(logs: readonly MarkedLog[], marks: readonly (Mark | undefined)[]): void {
  const first = marks.findIndex(mark => mark !== undefined)
  const other = marks.findIndex(mark => mark !== undefined && mark.agreement.id !== marks[first]!.agreement.id)
  if (other < 0) return
  throw new Error(
    `the log engines of -shardLog keep different clusters: ${logs[first]!.name} has ${marks[first]!.agreement.id}, and ` +
      `${logs[other]!.name} has ${marks[other]!.agreement.id}. Nothing was changed (docs/operations/cluster.md#several-etcds)`,
  )
}

/** Rejects when an engine lacks its entry, although all had theirs. */
async function assertUndivided(
  logs: readonly MarkedLog[],
  marks: readonly (Mark | undefined)[],
  logger: Pick<Logger, 'warn'>,
): Promise<void> {
  const missing = marks.indexOf(undefined)
  for (const [place, log] of logs.entries()) {
    if (!(await answered<Buffer | undefined>(logger, onDone => look(log, dividedName, onDone)))) continue
    throw new Error(
      `${engineAt(logs, missing)} has nothing of cluster ${marks[place]?.agreement.id}, which ${logs[place]!.name} keeps with it: ` +
        'its data was deleted or replaced, or it is another engine. Nothing was changed (docs/operations/log-lost.md)',
    )
  }
}

/** Its presence says all; the version is for builds to come. */
const divided = Buffer.from(JSON.stringify({ version: 1 }))

function markOf(value: Buffer): Mark {
  const { version, id, shards, spread, recovered, place = 0, of = 1 } = fieldsOf(value)
  assertVersion("the cluster's mark in the log engine (-shardLog)", version, of === 1 ? markVersion : placedVersion)
  if (typeof id !== 'string') throw noMark()
  for (const number of [shards, spread, place, of]) if (!Number.isSafeInteger(number)) throw noMark()
  return {
    agreement: { id, shards: Number(shards), spread: Number(spread) },
    recovered: typeof recovered === 'string' ? recovered : undefined,
    value,
    place: Number(place),
    of: Number(of),
  }
}

function fieldsOf(value: Buffer): Readonly<Record<string, unknown>> {
  try {
    const found: unknown = JSON.parse(value.toString())
    if (typeof found === 'object' && found !== null) return found as Readonly<Record<string, unknown>>
  } catch {}
  throw noMark()
}

const noMark = (): Error =>
  new Unreadable(`the cluster's mark in the log engine (-shardLog), under the name ${markName}, cannot be read`)

// Asking

/** The answer of the engine, or the reason why there is none. */
type EngineAnswer<T> = { readonly kind: 'answer'; readonly value: T } | Unknown
type OnAnswer<T> = (outcome: EngineAnswer<T>) => void

const create = (log: MarkedLog, name: string, value: Buffer, onDone: OnAnswer<Buffer>): void =>
  log.createOnce(name, value, outcome =>
    onDone(outcome.kind === 'stands' ? { kind: 'answer', value: outcome.value } : outcome),
  )

const look = (log: MarkedLog, name: string, onDone: OnAnswer<Buffer | undefined>): void =>
  log.named(name, outcome => onDone(outcome.kind === 'read' ? { kind: 'answer', value: outcome.value } : outcome))

/** Asks the engine until it answers. Rejects with a sentence for the operator when the engine refuses this node. */
async function answered<T>(logger: Pick<Logger, 'warn'>, ask: (onDone: OnAnswer<T>) => void): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    const outcome = await new Promise<EngineAnswer<T>>(ask)
    if (outcome.kind === 'answer') return outcome.value
    if (outcome.isRefused)
      throw new Error(
        `the log engine refuses this node (${outcome.reason}): check -shardLogUser and -shardLogPasswordFile, or the user in -shardLog, and the rights of that user in etcd`,
      )
    if (attempt % 10 === 0) logger.warn(`cluster: waiting for the log engine (${outcome.reason})`)
    await new Promise<void>(resolve => systemClock.after(agreeRetryMs, resolve))
  }
}

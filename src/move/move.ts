// Moves items from a source to a sink, page by page, and writes down how far it got.
//
// Each page is placed and durable before the next one is read, and then the state is saved: it may be one batch behind,
// never ahead. After a kill the page in progress comes again: an item that is at the target unchanged was placed
// before. A faulty item ends the work in front of it, or is reported and skipped.
//
// The state is a small file beside the target, replaced as a whole and removed at the end. It holds no token.
//
// Not here: choosing the source and the sink (command.ts).

import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs'
import { isObject, type Json, type JsonObject } from '../domain/json.js'
import {
  type ItemOutcome,
  itemKinds,
  type MovedItem,
  type MovedKind,
  MoveError,
  type Sink,
  type Source,
  type SourceItem,
} from './moved.js'
import { type MoveSelection, Selector } from './selection.js'

export interface MoveOptions {
  /** Which items are moved. */
  readonly selection: MoveSelection
  readonly skipsBad: boolean
  readonly state: StateFile | undefined
  /** The identity of the work, by which a later try recognizes its state. */
  readonly job: JsonObject
  /** The present time. Continued work keeps the time at which it began. */
  readonly nowMs: number
  /** The saved progress of an earlier try. */
  readonly earlier: MoveProgress | undefined
  /** Called after each batch with the number of entities handled so far. */
  readonly onProgress: (entities: number) => void
  readonly onBad: (where: string, fault: string) => void
  readonly signal: AbortSignal
}

/**
 * Number of items by kind and outcome. `bad`: they could not be read or placed; `unselected`: the selection leaves them
 * out.
 */
export type Tally = Record<MovedKind, Record<ItemOutcome | 'bad' | 'unselected', number>>

const none = { written: 0, replaced: 0, same: 0, kept: 0, bad: 0, unselected: 0 } as const

export interface MoveResult {
  readonly tally: Tally
  /** Named tenants and paths of which no item was found. */
  readonly unmet: readonly string[]
}

/** Whether all requested items are at the target. */
export const isWhole = ({ tally, unmet }: MoveResult): boolean =>
  unmet.length === 0 && itemKinds.every(kind => tally[kind].kept === 0 && tally[kind].bad === 0)

interface Selected extends Pick<SourceItem, 'where'> {
  readonly item: MovedItem
  /** Its index in its run. */
  readonly at: number
}

/**
 * Moves the selected items. Rejects with a MoveError when the operator has to act; items moved until then stay moved.
 */
export async function move(source: Source, sink: Sink, options: MoveOptions): Promise<MoveResult> {
  const { earlier, signal } = options
  const begunMs = earlier?.begunMs ?? options.nowMs
  const tally = tallyOf(earlier)
  const selector = new Selector(options.selection, earlier?.met)
  let from = earlier?.from
  /** Items of the page that were placed before the work was interrupted. */
  let done = earlier?.done ?? 0
  let isInDoubt = earlier !== undefined
  // In the first batch after a kill, an item that is at the target unchanged counts as written by us.
  const count = (kind: MovedKind, outcome: ItemOutcome): void => {
    tally[kind][isInDoubt && outcome === 'same' ? 'written' : outcome]++
  }
  const saveAt = (done: number): void =>
    options.state?.save(options.job, {
      begunMs,
      from,
      done,
      sink: sink.position(),
      counts: tally,
      met: selector.found,
    })
  saveAt(done)
  for await (const { found, after } of source.pages(from, begunMs)) {
    for (const run of runsOf(found.slice(done), sink.documentsMax)) {
      if (signal.aborted) throw new MoveError('stopped: the same command goes on from here')
      const bad = run.find(({ item }) => !item)
      const end = bad && !options.skipsBad ? run.indexOf(bad) : run.length
      const { taken, left } = divided(run.slice(0, end), selector)
      const leave = (before: number): void => {
        for (const { item, at } of left) if (at < before) tally[item.kind].unselected++
      }
      const placed = await sink.put(
        taken.map(({ item }) => item),
        !options.skipsBad,
      )
      for (const [index, result] of placed.entries()) {
        const { item, where, at } = taken[index] as Selected
        if ('outcome' in result) count(item.kind, result.outcome)
        else if (options.skipsBad) {
          tally[item.kind].bad++
          options.onBad(where, result.fault)
        } else {
          leave(at)
          saveAt(done + at)
          throw new MoveError(`${source.name}, ${where}: ${result.fault}`)
        }
      }
      leave(end)
      if (bad && !options.skipsBad) {
        saveAt(done + end)
        throw new MoveError(`${source.name}, ${bad.where}: ${bad.fault}`)
      }
      for (const { item, where, fault } of run)
        if (!item) {
          // Its intended kind is unknown.
          tally.entity.bad++
          options.onBad(where, fault)
        }
      isInDoubt = false
      done += run.length
      if (done < found.length) saveAt(done)
      options.onProgress(sum(tally.entity))
    }
    from = after
    done = 0
    saveAt(done)
  }
  await sink.finish(takenOf(tally))
  options.state?.remove()
  return { tally, unmet: selector.unmet() }
}

/** The items of a run that are selected, and those that are not. */
function divided(run: readonly SourceItem[], selector: Selector): { taken: Selected[]; left: Selected[] } {
  const taken: Selected[] = []
  const left: Selected[] = []
  for (const [at, { item, where }] of run.entries())
    if (item) (selector.takes(item) ? taken : left).push({ item, where, at })
  return { taken, left }
}

/** The items that are placed at a time: documents in parts as small as the sink wants. */
function* runsOf(found: readonly SourceItem[], documentsMax: number): Iterable<readonly SourceItem[]> {
  let run: SourceItem[] = []
  let documents = 0
  for (const one of found) {
    const isDocument = one.item !== undefined && one.item.kind !== 'entity'
    if (isDocument && documents >= documentsMax) {
      yield run
      run = []
      documents = 0
    }
    run.push(one)
    if (isDocument) documents++
  }
  if (run.length > 0) yield run
}

const tallyOf = (earlier: MoveProgress | undefined): Tally =>
  Object.fromEntries(itemKinds.map(kind => [kind, { ...none, ...earlier?.counts[kind] }])) as Tally

function takenOf(tally: Tally): Record<MovedKind, number> {
  const counts = itemKinds.map(kind => [kind, tally[kind].written + tally[kind].replaced] as const)
  return Object.fromEntries(counts) as Record<MovedKind, number>
}

const sum = (counts: Record<string, number>): number => Object.values(counts).reduce((a, b) => a + b, 0)

/** Version of the state. */
const version = 1

/** The saved progress of some work. */
export interface MoveProgress {
  readonly begunMs: number
  /** The page that the source has to begin with; undefined: the first. */
  readonly from: Json | undefined
  /** Items of that page that have been placed. */
  readonly done: number
  readonly sink: Json
  readonly counts: MoveCounts
  /** Named tenants and paths of which an item was found. */
  readonly met: readonly string[]
}

export type MoveCounts = { readonly [kind: string]: { readonly [outcome: string]: number } }

export interface StateFile {
  readonly path: string
  /** The saved progress of the same work; undefined: none. `isOther`: the file is of other work. */
  load(job: JsonObject): { readonly progress: MoveProgress | undefined; readonly isOther: boolean }
  save(job: JsonObject, progress: MoveProgress): void
  remove(): void
}

export function stateFileAt(path: string): StateFile {
  return {
    path,
    load(job) {
      const found = read(path)
      if (!found) return { progress: undefined, isOther: false }
      if (JSON.stringify(found.job) !== JSON.stringify(job)) return { progress: undefined, isOther: true }
      const { begunMs, from, done, sink = null, counts, met = [] } = found
      const known = { begunMs: Number(begunMs), from, done: Number(done), sink, counts: counts as MoveCounts }
      return { progress: { ...known, met: met as readonly string[] }, isOther: false }
    },
    save(job, progress) {
      const temporary = `${path}.new`
      try {
        const file = openSync(temporary, 'w', 0o600)
        try {
          writeSync(file, JSON.stringify({ 'orrery-state': version, job, ...progress }))
          fsyncSync(file)
        } finally {
          closeSync(file)
        }
        renameSync(temporary, path)
      } catch (error) {
        throw new MoveError(`file ${path} cannot be written: ${(error as Error).message}`, { cause: error })
      }
    },
    remove: () => rmSync(path, { force: true }),
  }
}

function read(path: string): JsonObject | undefined {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new MoveError(`file ${path} cannot be read: ${(error as Error).message}`, { cause: error })
  }
  let wrong = 'is not a state of ours'
  try {
    const found = JSON.parse(text) as Json
    const foundVersion = isObject(found) ? found['orrery-state'] : undefined
    if (isObject(found) && foundVersion === version) return found
    if (foundVersion !== undefined)
      wrong = `has version ${JSON.stringify(foundVersion)}, and this release reads version ${version}`
  } catch {
    // Reported below.
  }
  throw new MoveError(`file ${path} ${wrong}: remove it to begin anew`)
}

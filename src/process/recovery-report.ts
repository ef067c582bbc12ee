// The report of a recovery: the directories with their copies, and what may be missing.
//
// A change that only an absent directory or the lost log had is missing, and nothing shows it for certain. A hint is the
// time of the last change that a directory knows, of any shard: if the directories with the chosen copy of a shard ended
// earlier than another one, that shard may have changed meanwhile.

import { shardsInWords } from '../move/node-copies.js'

export interface ReportedDirectory {
  readonly path: string
  /** The time of the last change that it knows. */
  readonly lastMs: number
  /** The shards that continue with its copies. */
  readonly current: ReadonlySet<number>
  /** How many of its copies are behind, or were refused: its node fetches them from others. */
  readonly behind: number
}

export interface Report {
  readonly from: string
  readonly to: string
  /** The shards that continue, and all that there are, the register counted. */
  readonly shards: readonly number[]
  readonly total: number
  readonly directories: readonly ReportedDirectory[]
}

export function reportInWords({ from, to, shards, total, directories }: Report): string {
  const continued = new Set(shards)
  const empty = Array.from({ length: total }, (_, shard) => shard).filter(shard => !continued.has(shard))
  return [
    `cluster ${from} is cluster ${to} now, and continues with ${shards.length} of ${total} shards.`,
    ...directories.map(
      ({ path, current, behind, lastMs }) =>
        `${path}: ${current.size} copies continue, and ${behind} are fetched from other nodes; its last change was at ${timeOf(lastMs)}`,
    ),
    ...aloneLines(shards, directories),
    ...lateLines(shards, directories),
    ...(empty.length > 0 ? [`${shardsInWords(empty)}: empty from now on, since no directory has a copy`] : []),
    'Changes that only other directories or the lost log had are missing.',
    'Start the nodes on these directories as before. Every other node needs an empty one.',
  ].join('\n')
}

/** The shards of which one directory alone has the chosen copy, where there are several. */
function aloneLines(shards: readonly number[], directories: readonly ReportedDirectory[]): string[] {
  if (directories.length === 1) return []
  return directories.flatMap(({ path, current }) => {
    const alone = shards.filter(
      shard => current.has(shard) && directories.filter(one => one.current.has(shard)).length === 1,
    )
    return alone.length === 0 ? [] : [`${shardsInWords(alone)}: only ${path} has the furthest copy`]
  })
}

/** The shards that may have changed after the directories with their chosen copies ended. */
function lateLines(shards: readonly number[], directories: readonly ReportedDirectory[]): string[] {
  const latest = directories.reduce((a, b) => (b.lastMs > a.lastMs ? b : a))
  const late = new Map<number, number[]>()
  for (const shard of shards) {
    const seenMs = Math.max(...directories.filter(one => one.current.has(shard)).map(one => one.lastMs))
    if (seenMs < latest.lastMs) late.set(seenMs, [...(late.get(seenMs) ?? []), shard])
  }
  return [...late].map(
    ([seenMs, some]) =>
      `${shardsInWords(some)}: changes between ${timeOf(seenMs)} and ${timeOf(latest.lastMs)} may be missing, since only ${latest.path} goes on until then`,
  )
}

const timeOf = (ms: number): string => new Date(ms).toISOString()

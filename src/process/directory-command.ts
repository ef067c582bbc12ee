// The commands over data directories that no broker uses (`orrery cluster init|leave|recover`): their words, signals and
// output.
//
// Exit status: 0 when it was done, 1 when it was refused or stopped, or when the words are wrong.

import { type EtcdLog, oneLog, type ShardLog } from '../../cluster/index.js'
import { usageOf } from '../config/commands.js'
import { type ClusterConfig, type Config, readConfig } from '../config/config.js'
import { DataDirectoryError, isDataDirectory } from '../storage/data-directory.js'
import { certificatesOf } from './cluster-files.js'
import { openLogsOf } from './cluster-logs.js'

export interface Order {
  /** The directories behind `--from`: exactly one where the command takes one. */
  readonly from: readonly [string, ...string[]]
  readonly config: Config
  readonly flags: ReadonlySet<string>
  readonly signal: AbortSignal
}

export interface Command {
  /** How many directories it takes. */
  readonly takes: 'one' | 'several'
  /** Options without a value. */
  readonly flags: readonly string[]
  /** Returns the text for standard output. Rejects with a sentence for the operator. */
  run(order: Order): Promise<string>
}

/** The last word of a command. */
export type DirectoryVerb = 'init' | 'leave' | 'recover'

/** Runs the command; returns the exit status. */
export async function runDirectoryCommand(
  verb: DirectoryVerb,
  { takes, flags, run }: Command,
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const usage = usageOf(`cluster ${verb}`)
  const { from, given, options } = sorted(words, flags)
  const reading = readConfig(options, env)
  if (reading.kind === 'print') return say('stdout', usage, 0)
  const [first, ...more] = from
  if (first === undefined) return say('stderr', `${usage}\n\n--from is missing`, 1)
  if (takes === 'one' && more.length > 0) return say('stderr', `${usage}\n\n--from takes one directory`, 1)
  if (reading.kind === 'refuse') return say('stderr', [usage, '', ...reading.lines].join('\n'), 1)
  const stop = new AbortController()
  const onSignal = (): void => stop.abort(new Error('stopped; give the same command again'))
  for (const signal of signals) process.once(signal, onSignal)
  // Waiting for the log engine does not keep the process alive; this timer does.
  const awake = setInterval(() => {}, awakeMs)
  try {
    for (const path of from) if (!isDataDirectory(path)) throw new DataDirectoryError(`${path} is no data directory`)
    const { config } = reading
    return say('stdout', await run({ from: [first, ...more], config, flags: given, signal: stop.signal }), 0)
  } catch (error) {
    return say('stderr', `orrery cluster ${verb}: ${(error as Error).message}`, 1)
  } finally {
    clearInterval(awake)
    for (const signal of signals) process.off(signal, onSignal)
  }
}

/** The directories behind `--from`, up to the next option; the flags; and all other words. */
function sorted(words: readonly string[], flags: readonly string[]) {
  const from: string[] = []
  const given = new Set<string>()
  const options: string[] = []
  let isFrom = false
  for (const word of words) {
    if (isFrom && !word.startsWith('-')) {
      from.push(word)
      continue
    }
    isFrom = bare(word) === '-from'
    if (isFrom) continue
    if (flags.includes(bare(word))) given.add(bare(word))
    else options.push(word)
  }
  return { from, given, options }
}

/** Options may begin with two dashes, too. */
const bare = (word: string): string => word.replace(/^--/, '-')

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const awakeMs = 60_000

function say(stream: 'stdout' | 'stderr', text: string, status: number): number {
  process[stream].write(`${text}\n`)
  return status
}

export const warn = (line: string): void => void process.stderr.write(`${line}\n`)

export function clusterIn({ cluster }: Config, verb: DirectoryVerb): ClusterConfig {
  if (!cluster) throw new Error(`-clusterListen, -nodeName and -shardLog are missing; see orrery cluster ${verb} -h`)
  return cluster
}

/** The log of a cluster, and the engines of which it consists. */
export interface OpenLog {
  readonly log: ShardLog
  readonly engines: readonly EtcdLog[]
}

export function logOf(cluster: ClusterConfig): OpenLog {
  const engines = openLogsOf(cluster, cluster.tls && certificatesOf(cluster.tls))
  return { log: oneLog(engines), engines }
}

// A log that is divided among several engines: each keeps the logs of some shards, and goes on without the others.
//
// The rule is the number of the shard modulo the number of engines, in the order in which they are configured. It must
// never change while the engines keep a cluster, so each of them keeps its place (src/process/cluster-marks.ts).
// Takeovers, fences and numbers belong to a shard, so the engines need nothing of each other. Only what happens in one
// step must have one engine: an append, and a heartbeat.
//
// Nodes talk to each part by itself, since one may be away (replicator.ts). This class is for everything that treats
// the shards one after the other, or needs all parts: a question to all of them has an answer when each has answered.
//
// Not here: which shards share an append (src/shard/commit, appender.ts), the drivers (etcd-log.ts).

import assert from 'node:assert/strict'
import type { LogFollower, ShardLog, Takeover, Unknown } from './shard-log.js'

/** The index of the log that keeps a shard, where there are `logs` of them. */
export const logIndexOf = (shard: number, logs: number): number => shard % logs

/** The log that keeps a shard. */
export const logOf = <Log>(logs: readonly Log[], shard: number): Log => logs[logIndexOf(shard, logs.length)]!

/** One log as it is, or several as one. At least one. */
export function oneLog(logs: readonly ShardLog[]): ShardLog {
  const [first, ...more] = logs
  assert(first, 'there is no log')
  return more.length === 0 ? first : new DividedLog(logs)
}

export class DividedLog implements ShardLog {
  readonly appendsMax: number
  readonly appendBytesMax: number

  constructor(private readonly logs: readonly ShardLog[]) {
    this.appendsMax = Math.min(...logs.map(({ appendsMax }) => appendsMax))
    this.appendBytesMax = Math.min(...logs.map(({ appendBytesMax }) => appendBytesMax))
  }

  takeOver: ShardLog['takeOver'] = (shard, owner, onDone) => this.of(shard).takeOver(shard, owner, onDone)

  retake: ShardLog['retake'] = (shard, epoch, owner, onDone) => this.of(shard).retake(shard, epoch, owner, onDone)

  append: ShardLog['append'] = (appends, onDone) =>
    this.ofAll(appends.map(({ shard }) => shard)).append(appends, onDone)

  heartbeat: ShardLog['heartbeat'] = (heartbeat, onDone) =>
    this.ofAll([...heartbeat.epochs.keys()]).heartbeat(heartbeat, onDone)

  read: ShardLog['read'] = (shard, after, bytesMax, onDone) => this.of(shard).read(shard, after, bytesMax, onDone)

  takeovers: ShardLog['takeovers'] = onDone =>
    askAll<{ readonly takeovers: ReadonlyMap<number, Takeover> }>(
      this.logs.map(log => done => log.takeovers(done)),
      answers =>
        onDone(
          'reason' in answers
            ? answers
            : { kind: 'read', takeovers: new Map(answers.flatMap(({ takeovers }) => [...takeovers])) },
        ),
    )

  lacking: ShardLog['lacking'] = (ends, onDone) => {
    const parts = this.logs.map((log, index) => {
      const own = [...ends].filter(([shard]) => logIndexOf(shard, this.logs.length) === index)
      return { log, ends: new Map(own) }
    })
    askAll<{ readonly shards: readonly number[] }>(
      parts
        .filter(part => part.ends.size > 0)
        .map(
          ({ log, ends }) =>
            done =>
              log.lacking(ends, done),
        ),
      answers =>
        onDone(
          'reason' in answers
            ? answers
            : { kind: 'read', shards: answers.flatMap(({ shards }) => shards).sort((a, b) => a - b) },
        ),
    )
  }

  /** Each part has its own order, and its own gaps. */
  follow: ShardLog['follow'] = (wanted, follower) => {
    for (const log of this.logs) log.follow(wanted, follower satisfies LogFollower)
  }

  trim: ShardLog['trim'] = (shard, upTo) => this.of(shard).trim(shard, upTo)

  /** Names of the whole cluster are kept by the first part. */
  createOnce: ShardLog['createOnce'] = (name, value, onDone) => this.logs[0]!.createOnce(name, value, onDone)

  named: ShardLog['named'] = (name, onDone) => this.logs[0]!.named(name, onDone)

  keepHistory: ShardLog['keepHistory'] = isOn => {
    for (const log of this.logs) log.keepHistory(isOn)
  }

  async close(): Promise<void> {
    await Promise.all(this.logs.map(log => log.close()))
  }

  private of(shard: number): ShardLog {
    return logOf(this.logs, shard)
  }

  private ofAll(shards: readonly number[]): ShardLog {
    const indexes = new Set(shards.map(shard => logIndexOf(shard, this.logs.length)))
    assert(indexes.size === 1, `a step has shards of ${indexes.size} logs`)
    return this.of(shards[0]!)
  }
}

type Ask<Answer> = (onDone: (outcome: (Answer & { readonly kind: string }) | Unknown) => void) => void

/** Asks all parts, and passes their answers, or one of the reasons why there is none. At least one. */
function askAll<Answer extends object>(
  asks: readonly Ask<Answer>[],
  onDone: (answers: readonly Answer[] | Unknown) => void,
): void {
  const answers: Answer[] = []
  let unknown: Unknown | undefined
  let left = asks.length
  for (const ask of asks)
    ask(outcome => {
      if ('reason' in outcome) unknown = outcome
      else answers.push(outcome)
      if (--left === 0) onDone(unknown ?? answers)
    })
}

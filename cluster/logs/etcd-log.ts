// The replicated log in an etcd (3.4 or later): the driver as others see it.
//
// etcd gives every change a revision, and carries out transactions one after the other: a takeover's revision is its epoch, and an
// append compares it in the transaction that puts the record. etcd says that something has happened when a majority has it on disk.
//
// etcd keeps what was deleted or replaced until it is compacted, and counts it against its quota. So each node compacts all the time,
// up to where the store was one `compactMs` ago; that others do the same harms nobody. Only when something was lost nobody compacts: what was
// deleted since can then be read from etcd's history.
//
// Not here: keys (etcd-keys.ts), what requests and answers mean (etcd-requests.ts), deadlines and members (etcd-calls.ts), following
// (etcd-following.ts).

import assert from 'node:assert/strict'
import type { ClusterClock } from '../ports.js'
import { EtcdCalls, type EtcdRequest, type EtcdRequestKind, type EtcdRequestStats } from './etcd-calls.js'
import { EtcdFollowing, type EtcdFollowStats } from './etcd-following.js'
import { EtcdKeys } from './etcd-keys.js'
import type { EtcdMethod, EtcdMethods } from './etcd-member.js'
import { completeEtcdOptions, type EtcdAddress, type EtcdOptions } from './etcd-options.js'
import {
  appendBytesMax,
  appendOutcome,
  appendRequest,
  appendsMax,
  createOnceOutcome,
  createOnceRequest,
  firstRecordRequest,
  heartbeatOutcome,
  heartbeatRequest,
  lackingMax,
  lackingOutcome,
  lackingRequest,
  namedOutcome,
  namedRequest,
  readOutcome,
  readRecordsMax,
  readRequest,
  retakeOutcome,
  retakeRequest,
  takeOverOutcome,
  takeOverRequest,
  takeoversOutcome,
  takeoversRequest,
  trimRequest,
} from './etcd-requests.js'
import type { Append, Reading, ShardLog, Unknown } from './shard-log.js'

export interface EtcdStats {
  readonly requests: Readonly<Record<EtcdRequestKind, Readonly<EtcdRequestStats>>>
  readonly followed: Readonly<EtcdFollowStats>
  /** How often requests were sent to another member than before. */
  readonly rotations: number
  /** The member that is asked at present. */
  readonly member: string
}

/** The driver, and what it has counted. */
export interface EtcdLog extends ShardLog {
  stats(): EtcdStats
}

/** Opens the log of a cluster, without asking whether the engine is there: whoever asks is told. */
export function openEtcdLog(
  address: EtcdAddress,
  cluster: string,
  clock: ClusterClock,
  options: Partial<EtcdOptions> = {},
): EtcdLog {
  return new Log(address, cluster, clock, completeEtcdOptions(options))
}

class Log implements EtcdLog {
  readonly appendsMax = appendsMax
  readonly appendBytesMax = appendBytesMax
  private readonly keys: EtcdKeys
  private readonly clock: ClusterClock
  private readonly options: EtcdOptions
  private readonly calls: EtcdCalls
  private following: EtcdFollowing | undefined
  private stopCompacting = (): void => {}
  private closing: Promise<void> | undefined
  /** Where the store was one `compactMs` ago, and what we compacted up to. */
  private earlierRevision = 0
  private compactedRevision = 0
  private keepsHistory = false
  /** Bytes of a record, by shard: what the last reading had on average. */
  private readonly recordBytes = new Map<number, number>()
  /** Up to where shards are to be trimmed, those under way included. */
  private readonly trims = new Map<number, number>()

  constructor(address: EtcdAddress, cluster: string, clock: ClusterClock, options: EtcdOptions) {
    this.keys = new EtcdKeys(cluster)
    this.clock = clock
    this.options = options
    this.calls = new EtcdCalls(address, clock, options)
    this.compactLater()
  }

  takeOver: ShardLog['takeOver'] = (shard, owner, onDone) => {
    const message = takeOverRequest(this.keys, shard, owner)
    this.ask({ kind: 'takeOver', method: 'put', message }, takeOverOutcome, onDone)
  }

  retake: ShardLog['retake'] = (shard, epoch, owner, onDone) => {
    const message = retakeRequest(this.keys, shard, epoch, owner)
    this.ask({ kind: 'retake', method: 'txn', message }, retakeOutcome, onDone)
  }

  append: ShardLog['append'] = (appends, onDone) => {
    const bytes = checkedBytes(appends)
    const message = appendRequest(this.keys, appends)
    this.ask(
      { kind: 'append', method: 'txn', message, records: appends.length, bytes },
      response => appendOutcome(appends, response),
      onDone,
    )
  }

  heartbeat: ShardLog['heartbeat'] = (heartbeat, onDone) => {
    const message = heartbeatRequest(this.keys, heartbeat)
    this.ask({ kind: 'heartbeat', method: 'txn', message }, heartbeatOutcome, onDone)
  }

  read: ShardLog['read'] = (shard, after, bytesMax, onDone) => {
    // etcd limits by number only. Where nothing is known records may be as long as can be.
    const expected = this.recordBytes.get(shard) ?? appendBytesMax
    const limit = Math.max(1, Math.min(readRecordsMax, Math.floor(bytesMax / expected)))
    const message = readRequest(this.keys, shard, after, limit)
    this.ask(
      { kind: 'read', method: 'txn', message },
      response => {
        const outcome = readOutcome(this.keys, shard, bytesMax, response)
        if (outcome.kind === 'read') this.learnLength(shard, outcome)
        return outcome
      },
      onDone,
    )
  }

  takeovers: ShardLog['takeovers'] = onDone => {
    const message = takeoversRequest(this.keys)
    this.ask({ kind: 'takeovers', method: 'range', message }, response => takeoversOutcome(this.keys, response), onDone)
  }

  lacking: ShardLog['lacking'] = (ends, onDone) => {
    const all = [...ends]
    const lacking: number[] = []
    const askFrom = (at: number): void => {
      const some = all.slice(at, at + lackingMax)
      this.ask(
        { kind: 'lacking', method: 'txn', message: lackingRequest(this.keys, some) },
        response => lackingOutcome(some, response),
        outcome => {
          if (outcome.kind === 'unknown') return onDone(outcome)
          lacking.push(...outcome.shards)
          if (at + lackingMax < all.length) askFrom(at + lackingMax)
          else onDone({ kind: 'read', shards: lacking })
        },
      )
    }
    askFrom(0)
  }

  named: ShardLog['named'] = (name, onDone) => {
    this.ask({ kind: 'named', method: 'range', message: namedRequest(this.keys, name) }, namedOutcome, onDone)
  }

  keepHistory: ShardLog['keepHistory'] = isOn => {
    this.keepsHistory = isOn
  }

  createOnce: ShardLog['createOnce'] = (name, value, onDone) => {
    const message = createOnceRequest(this.keys, name, value)
    this.ask({ kind: 'createOnce', method: 'txn', message }, response => createOnceOutcome(value, response), onDone)
  }

  follow: ShardLog['follow'] = (wanted, follower) => {
    assert(!this.following, 'one follower at a time')
    if (this.closing) return
    this.following = new EtcdFollowing(this.calls, this.keys, this.clock, this.options, wanted, follower)
    this.following.begin()
  }

  trim: ShardLog['trim'] = (shard, upTo) => {
    const before = this.trims.get(shard)
    this.trims.set(shard, Math.max(upTo, before ?? 0))
    if (before === undefined) this.trimMore(shard)
  }

  stats(): EtcdStats {
    const { stats: requests, rotations, member } = this.calls
    return { requests, followed: this.following?.stats ?? notFollowing, rotations, member }
  }

  close(): Promise<void> {
    this.stopCompacting()
    this.following?.close()
    this.closing ??= this.calls.close()
    return this.closing
  }

  private ask<M extends EtcdMethod, Outcome>(
    request: EtcdRequest<M>,
    outcomeOf: (response: EtcdMethods[M]['response']) => Outcome | Unknown,
    onDone: (outcome: Outcome | Unknown) => void,
  ): void {
    this.calls.call(request, (response, reason, refusal) =>
      onDone(
        response
          ? outcomeOf(response)
          : {
              kind: 'unknown',
              reason,
              ...(refusal === 'refused' && { isRefused: true }),
              ...(refusal === 'full' && { isFull: true }),
            },
      ),
    )
  }

  private learnLength(shard: number, { records }: Reading): void {
    let bytes = 0
    for (const record of records) bytes += record.bytes.length
    this.calls.stats.read.records += records.length
    this.calls.stats.read.bytes += bytes
    if (records.length > 0) this.recordBytes.set(shard, Math.max(1, bytes / records.length))
  }

  /** Lets go of one part after the other, until nothing is left or something fails: the next trim finds the rest. */
  private trimMore(shard: number): void {
    const stop = (): void => {
      this.trims.delete(shard)
    }
    const look = firstRecordRequest(this.keys, shard)
    this.calls.call({ kind: 'trim', method: 'range', message: look }, found => {
      const part = found && trimRequest(this.keys, shard, this.trims.get(shard) ?? 0, found)
      if (!part || this.closing) return stop()
      this.calls.call({ kind: 'trim', method: 'deleteRange', message: part }, deleted => {
        if (deleted && !this.closing) this.trimMore(shard)
        else stop()
      })
    })
  }

  private compactLater(): void {
    this.stopCompacting = this.clock.after(this.options.compactMs, () => {
      const revision = this.earlierRevision
      // The history may still hold what was lost: it may go back to before the loss was noticed.
      if (!this.keepsHistory) this.earlierRevision = this.calls.revision
      if (revision > this.compactedRevision && !this.keepsHistory) {
        this.calls.call(
          { kind: 'compact', method: 'compact', message: { revision }, doneBefore: /compacted/ },
          () => {},
        )
        this.compactedRevision = revision
      }
      this.compactLater()
    })
  }
}

const notFollowing: EtcdFollowStats = { records: 0, bytes: 0, takeovers: 0, gaps: 0 }

function checkedBytes(appends: readonly Append[]): number {
  assert(appends.length >= 1 && appends.length <= appendsMax, `${appends.length} appends in one step`)
  assert(new Set(appends.map(({ shard }) => shard)).size === appends.length, 'one append for a shard')
  let bytes = 0
  for (const append of appends) {
    assert(append.sequence >= 1, 'records are numbered from 1')
    bytes += append.bytes.length
  }
  assert(bytes <= appendBytesMax, `${bytes} bytes in one step`)
  return bytes
}

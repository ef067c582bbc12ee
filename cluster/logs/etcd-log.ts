// The replicated log in an etcd (etcd-versions.ts has the versions): the public class of the driver.
//
// etcd gives every change a revision, and executes transactions one after the other. A takeover's revision is its
// epoch, and an append compares it in the transaction that puts the record. etcd reports success when a majority has it
// on disk.
//
// etcd keeps deleted and replaced keys until it is compacted, and counts them against its quota. So each node compacts
// all the time, up to the store's revision of one `compactMs` ago. After a loss no node compacts: etcd's history then
// still has the keys that were deleted since.
//
// Not here: keys, requests and answers (etcd-requests.ts), deadlines and members (etcd-calls.ts).

import assert from 'node:assert/strict'
import type { IEvent, IWatchResponse } from 'etcd3'
import type { ClusterClock } from '../ports.js'
import { EtcdCalls, type EtcdRequest, type EtcdRequestKind, type EtcdRequestStats } from './etcd-calls.js'
import type { EtcdMethod, EtcdMethods, EtcdWatch } from './etcd-member.js'
import { assertWhole, completeEtcdOptions, type EtcdAddress, type EtcdOptions, type EtcdTls } from './etcd-options.js'
import {
  appendBytesMax,
  appendOutcome,
  appendRequest,
  appendsMax,
  createOnceOutcome,
  createOnceRequest,
  EtcdKeys,
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
  takeoverOf,
  takeoversOutcome,
  takeoversRequest,
  trimRequest,
} from './etcd-requests.js'
import type { Append, LogFollower, LogReading, ShardLog, Unknown } from './shard-log.js'

interface EtcdStats {
  readonly requests: Readonly<Record<EtcdRequestKind, Readonly<EtcdRequestStats>>>
  readonly followed: Readonly<EtcdFollowStats>
  readonly rotations: number
  readonly member: string
}

/** Opens the log of a cluster. It does not check that the engine is there: the first request shows that. */
export function openEtcdLog(
  address: EtcdAddress,
  cluster: string,
  clock: ClusterClock,
  options: Partial<EtcdOptions> = {},
): EtcdLog {
  return new EtcdLog(address, cluster, clock, completeEtcdOptions(options))
}

export class EtcdLog implements ShardLog {
  readonly appendsMax = appendsMax
  readonly appendBytesMax = appendBytesMax
  /** The addresses of the members, for texts. */
  readonly name: string
  readonly isSecure: boolean
  private readonly keys: EtcdKeys
  private readonly calls: EtcdCalls
  private following: EtcdFollowing | undefined
  private stopCompacting = (): void => {}
  private closing: Promise<void> | undefined
  /** The store's revision one `compactMs` ago, and the revision up to which we compacted. */
  private earlierRevision = 0
  private compactedRevision = 0
  private keepsHistory = false
  /** The average bytes of a record in the last reading, by shard. */
  private readonly recordBytes = new Map<number, number>()
  /** The number up to which each shard is to be trimmed, trims in flight included. */
  private readonly trims = new Map<number, number>()

  constructor(
    address: EtcdAddress,
    cluster: string,
    private readonly clock: ClusterClock,
    private readonly options: EtcdOptions,
  ) {
    this.name = address.members.join(',')
    this.isSecure = address.secure
    this.keys = new EtcdKeys(cluster)
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
      { kind: 'append', method: 'txn', message, records: appends.length, bytes, isRepeatable: true },
      response => appendOutcome(appends, response),
      onDone,
    )
  }

  heartbeat: ShardLog['heartbeat'] = (heartbeat, onDone) => {
    const message = heartbeatRequest(this.keys, heartbeat)
    this.ask({ kind: 'heartbeat', method: 'txn', message, isRepeatable: true }, heartbeatOutcome, onDone)
  }

  read: ShardLog['read'] = (shard, after, bytesMax, onDone) => {
    // etcd limits by number only. Without an earlier reading, records are assumed to have the greatest length.
    const expected = this.recordBytes.get(shard) ?? appendBytesMax
    const limit = Math.max(1, Math.min(readRecordsMax, Math.floor(bytesMax / expected)))
    const message = readRequest(this.keys, shard, after, limit)
    this.ask(
      { kind: 'read', method: 'txn', message, isRepeatable: true },
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
    this.ask(
      { kind: 'takeovers', method: 'range', message, isRepeatable: true },
      response => takeoversOutcome(this.keys, response),
      onDone,
    )
  }

  lacking: ShardLog['lacking'] = (ends, onDone) => {
    const all = [...ends]
    const lacking: number[] = []
    const askFrom = (at: number): void => {
      const some = all.slice(at, at + lackingMax)
      this.ask(
        { kind: 'lacking', method: 'txn', message: lackingRequest(this.keys, some), isRepeatable: true },
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
    const message = namedRequest(this.keys, name)
    this.ask({ kind: 'named', method: 'range', message, isRepeatable: true }, namedOutcome, onDone)
  }

  keepHistory: ShardLog['keepHistory'] = isOn => {
    this.keepsHistory = isOn
  }

  createOnce: ShardLog['createOnce'] = (name, value, onDone) => {
    const message = createOnceRequest(this.keys, name, value)
    this.ask(
      { kind: 'createOnce', method: 'txn', message, isRepeatable: true },
      response => createOnceOutcome(value, response),
      onDone,
    )
  }

  follow: ShardLog['follow'] = (wanted, follower) => {
    assert(!this.following, 'the log has a follower already')
    if (this.closing) return
    this.following = new EtcdFollowing(this.calls, this.keys, this.clock, this.options, wanted, follower)
    this.following.begin()
  }

  get followedMs(): number {
    return this.following?.followedMs ?? 0
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

  /** The version of each member that answers in time, by its address. */
  versions(): Promise<ReadonlyMap<string, string>> {
    return this.calls.versions()
  }

  /** Later requests use connections that show and verify these certificates. */
  renew(tls: EtcdTls): void {
    assertWhole(tls)
    this.calls.renew(tls)
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

  private learnLength(shard: number, { records }: LogReading): void {
    let bytes = 0
    for (const record of records) bytes += record.bytes.length
    this.calls.stats.read.records += records.length
    this.calls.stats.read.bytes += bytes
    if (records.length > 0) this.recordBytes.set(shard, Math.max(1, bytes / records.length))
  }

  /** Deletes one part after the other, until nothing is left or something fails: the next trim finds the rest. */
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
      // The history may still hold the lost keys, so the next compaction must not pass the moment before the loss was
      // noticed.
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
  assert(new Set(appends.map(({ shard }) => shard)).size === appends.length, 'a step has two appends for one shard')
  let bytes = 0
  for (const append of appends) {
    assert(append.sequence >= 1, 'records are numbered from 1')
    bytes += append.bytes.length
  }
  assert(bytes <= appendBytesMax, `${bytes} bytes in one step`)
  return bytes
}

interface EtcdFollowStats {
  records: number
  bytes: number
  takeovers: number
  /** The first one, when following began, included. */
  gaps: number
}

/**
 * One watch over all of a cluster's keys, replaced when it is lost.
 *
 * It reports later events once, in the order of revisions. Events between two watches are a gap: when the new watch
 * begins, the follower is notified and reads. A member that lags behind would report events again, so events with older
 * revisions are dropped. A member that is stopped or cut off keeps its connections, so it is asked for progress, and
 * left when it is silent.
 *
 * All nodes get the records of all shards and drop the unwanted ones: with three nodes and three copies there are none.
 */
class EtcdFollowing {
  readonly stats: EtcdFollowStats = { records: 0, bytes: 0, takeovers: 0, gaps: 0 }
  private watching: EtcdWatch | undefined
  private stopTimer = (): void => {}
  /** The reason of the gap, for the moment when the next watch begins. */
  private gap = 'following begins'
  private failures = 0
  private reportedRevision = 0
  /** The last revision that earlier watches reported. */
  private knownRevision = 0
  private receivedMs = 0
  /** When the present watch began; undefined: it has not yet. */
  private createdMs: number | undefined
  private closed = false

  constructor(
    private readonly calls: EtcdCalls,
    private readonly keys: EtcdKeys,
    private readonly clock: ClusterClock,
    private readonly options: EtcdOptions,
    private readonly wanted: (shard: number) => boolean,
    private readonly follower: LogFollower,
  ) {}

  /** From the beginning of the present watch to its latest message: members answer pings behind all earlier events. */
  get followedMs(): number {
    return this.createdMs === undefined ? 0 : this.receivedMs - this.createdMs
  }

  begin(): void {
    this.receivedMs = this.clock.monoMs()
    const watching = this.calls.watch(
      { create_request: { ...this.keys.all, filters: ['Nodelete'], fragment: true } },
      {
        onResponse: response => {
          if (watching === this.watching) this.onResponse(response)
        },
        onEnd: reason => {
          if (watching === this.watching) this.lose(reason)
        },
      },
    )
    this.watching = watching
    this.pingLater()
  }

  close(): void {
    this.closed = true
    this.drop()
  }

  private onResponse(response: IWatchResponse): void {
    this.receivedMs = this.clock.monoMs()
    this.calls.learn(response.header.revision)
    if (response.canceled) return this.lose(response.cancel_reason || 'the watch was cancelled')
    if (response.created) {
      this.failures = 0
      this.createdMs = this.receivedMs
      this.knownRevision = this.reportedRevision
      this.stats.gaps++
      this.follower.onGap(this.gap)
    }
    for (const event of response.events) this.report(event)
  }

  private report({ kv }: IEvent): void {
    if (this.closed) return
    const revision = Number(kv.mod_revision)
    if (revision <= this.knownRevision) return
    this.reportedRevision = revision
    const place = this.keys.placeOf(kv.key)
    if (place?.kind === 'owner') {
      this.stats.takeovers++
      this.follower.onTakeover(place.shard, takeoverOf(kv))
    } else if (place?.kind === 'record' && this.wanted(place.shard)) {
      this.stats.records++
      this.stats.bytes += kv.value.length
      this.follower.onRecord(place.shard, { sequence: place.sequence, bytes: kv.value })
    } else if (place?.kind === 'heartbeat') this.follower.onHeartbeat(place.node, kv.value)
  }

  private pingLater(): void {
    const { clock, options } = this
    this.stopTimer = clock.after(options.followPingMs, () => {
      if (clock.monoMs() - this.receivedMs > options.followSilentMs) return this.lose('no message came in time')
      this.watching?.write({ progress_request: {} })
      this.pingLater()
    })
  }

  private lose(reason: string): void {
    if (this.closed) return
    this.drop()
    this.calls.leaveWatched()
    this.gap = reason
    const { refollowMsMin, refollowMsMax, chance } = this.options
    const dueMs = Math.min(refollowMsMin * 2 ** Math.min(this.failures++, 30), refollowMsMax)
    this.stopTimer = this.clock.after(dueMs * (0.5 + chance() / 2), () => this.begin())
  }

  private drop(): void {
    this.stopTimer()
    this.watching?.cancel()
    this.watching = undefined
    this.createdMs = undefined
  }
}

// Being told what happens in etcd: one watch over all of a cluster's keys, replaced when it is lost.
//
// Whatever happens after a watch stands is told, once, in the order of revisions. What happened while none stood is not asked for:
// whoever needs it must read anyway, so the follower is told of a gap as soon as the new watch stands. A member that lags behind
// the one before would tell things again; what is not newer than what was told is dropped.
//
// All nodes are sent the records of all shards, and drop what they do not want: with three nodes and three copies that is nothing.
//
// A member that is stopped or cut off keeps its connections: it is asked for signs of life, and left when it gives none.

import type { IEvent, IWatchResponse } from 'etcd3'
import type { ClusterClock } from '../ports.js'
import type { EtcdCalls } from './etcd-calls.js'
import type { EtcdKeys } from './etcd-keys.js'
import type { Watching } from './etcd-member.js'
import type { EtcdOptions } from './etcd-options.js'
import { takeoverOf } from './etcd-requests.js'
import type { LogFollower } from './shard-log.js'

/** Counters that only grow. */
export interface EtcdFollowStats {
  records: number
  bytes: number
  takeovers: number
  /** The first one, when the telling began, included. */
  gaps: number
}

export class EtcdFollowing {
  readonly stats: EtcdFollowStats = { records: 0, bytes: 0, takeovers: 0, gaps: 0 }
  private readonly calls: EtcdCalls
  private readonly keys: EtcdKeys
  private readonly clock: ClusterClock
  private readonly options: EtcdOptions
  private readonly wanted: (shard: number) => boolean
  private readonly follower: LogFollower
  private watching: Watching | undefined
  private stopTimer = (): void => {}
  /** Why there is a gap when the next watch stands. */
  private gap = 'the telling begins'
  private failures = 0
  private toldRevision = 0
  /** What earlier watches have told up to. */
  private knownRevision = 0
  private heardMs = 0
  private closed = false

  constructor(
    calls: EtcdCalls,
    keys: EtcdKeys,
    clock: ClusterClock,
    options: EtcdOptions,
    wanted: (shard: number) => boolean,
    follower: LogFollower,
  ) {
    this.calls = calls
    this.keys = keys
    this.clock = clock
    this.options = options
    this.wanted = wanted
    this.follower = follower
  }

  begin(): void {
    this.heardMs = this.clock.monoMs()
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
    this.heardMs = this.clock.monoMs()
    this.calls.learn(response.header.revision)
    if (response.canceled) return this.lose(response.cancel_reason || 'the watch was cancelled')
    if (response.created) {
      this.failures = 0
      this.knownRevision = this.toldRevision
      this.stats.gaps++
      this.follower.onGap(this.gap)
    }
    for (const event of response.events) this.tell(event)
  }

  private tell({ kv }: IEvent): void {
    if (this.closed) return
    const revision = Number(kv.mod_revision)
    if (revision <= this.knownRevision) return
    this.toldRevision = revision
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
      if (clock.monoMs() - this.heardMs > options.followSilentMs) return this.lose('nothing was heard')
      this.watching?.write({ progress_request: {} })
      this.pingLater()
    })
  }

  private lose(reason: string): void {
    if (this.closed) return
    this.drop()
    this.gap = reason
    const { refollowMsMin, refollowMsMax, chance } = this.options
    const dueMs = Math.min(refollowMsMin * 2 ** Math.min(this.failures++, 30), refollowMsMax)
    this.stopTimer = this.clock.after(dueMs * (0.5 + chance() / 2), () => this.begin())
  }

  private drop(): void {
    this.stopTimer()
    this.watching?.cancel()
    this.watching = undefined
  }
}
